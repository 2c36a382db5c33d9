// The timeline on a canvas: a bar for each item, in lanes. A status is a colour and a pattern; the critical path is a
// line below its bars; signs on a bar say that it was repeated, stalled, or decided about. Below stands how the budget was
// used up. Invariant: drawing reads the data and changes nothing but the canvas.

import { drawBudget } from "./budget_lines.js";
import { el, HAPPENED, happenedTo, seconds } from "./page_parts.js";

const AXIS = 22;
const MOST_HEIGHT = 264;
const BUDGET = 64; // height of the part that shows the budget

export class Timeline {
  constructor(data, chosen) {
    this.data = data;
    this.chosen = chosen;
    this.from = 0;
    this.to = 1;
    this.whole = true;
    this.selected = -1;
    this.canvas = el("canvas", {
      class: "timeline", tabindex: 0, role: "img",
      on: {
        keydown: (event) => this.key(event), wheel: (event) => this.wheel(event),
        pointerdown: (event) => this.press(event), pointermove: (event) => this.move(event),
        pointerup: (event) => this.release(event), pointerleave: () => { this.tip.hidden = true; },
      },
    });
    this.tip = el("div", { class: "tip", hidden: true });
    this.node = el("div", { class: "timeline-box" }, this.canvas, this.tip);
    new ResizeObserver(() => this.draw()).observe(this.node);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  update() {
    this.placed = this.data.lanes();
    this.budget = this.data.budget();
    if (this.whole) [this.from, this.to] = [0, this.data.end];
    const items = this.data.items.length;
    this.canvas.setAttribute("aria-label", `Timeline of ${items} items in ${seconds(this.data.end)}; the list says the same.`);
    this.draw();
  }

  select(index) {
    this.selected = index;
    const item = this.data.items[index];
    if (item && item.started !== null && (item.started > this.to || this.data.endOf(item) < this.from)) {
      const half = (this.to - this.from) / 2;
      this.show(item.started - half, item.started + half);
    } else this.paint();
  }

  show(from, to) {
    const end = this.data.end;
    const width = Math.min(end, Math.max(to - from, end / 1e6));
    this.from = Math.max(0, Math.min(from, end - width));
    this.to = this.from + width;
    this.whole = width >= end;
    this.draw();
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  all() {
    this.show(0, this.data.end);
  }

  draw() {
    this.picture = null;
    this.paint();
  }

  // All bars are drawn once for a view; what is chosen is drawn over that picture.
  paint() {
    const width = this.node.clientWidth;
    if (!this.placed || !width) return;
    const ratio = window.devicePixelRatio || 1;
    const colours = coloursOf(this.node);
    if (!this.picture) this.picture = this.drawn(width, ratio, colours);
    const pen = this.canvas.getContext("2d");
    if (this.canvas.width !== this.picture.width || this.canvas.height !== this.picture.height) {
      [this.canvas.width, this.canvas.height] = [this.picture.width, this.picture.height]; // which takes long
      this.canvas.style.height = `${this.picture.height / ratio}px`;
    } else {
      pen.resetTransform();
      pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    }
    pen.drawImage(this.picture, 0, 0);
    pen.scale(ratio, ratio);
    const lane = this.placed.lane.get(this.selected);
    if (lane !== undefined) this.drawBar(pen, colours, this.data.items[this.selected], lane);
  }

  drawn(width, ratio, colours) {
    const each = Math.max(2, Math.min(18, Math.floor((MOST_HEIGHT - AXIS) / this.placed.count)));
    const bars = this.placed.count * each + AXIS;
    const height = bars + (this.budget.length ? BUDGET : 0);
    Object.assign(this, { each, width });
    const picture = el("canvas");
    picture.width = Math.round(width * ratio);
    picture.height = Math.round(height * ratio);
    const pen = picture.getContext("2d");
    pen.scale(ratio, ratio);
    this.drawAxis(pen, colours, bars, height);
    // What would lie on the pixels of its neighbour is not drawn again; a failure always is.
    const reached = new Float64Array(this.placed.count).fill(-1);
    for (const [index, lane] of this.placed.lane) {
      const item = this.data.items[index];
      const right = this.x(this.data.endOf(item));
      if (right <= reached[lane] + 0.5 && item.status === "OK") continue;
      reached[lane] = right;
      this.drawBar(pen, colours, item, lane);
    }
    if (this.budget.length) drawBudget(pen, colours, this.budget, { top: bars, high: BUDGET, wide: width, x: (at) => this.x(at) });
    return picture;
  }

  x(moment) {
    return ((moment - this.from) / (this.to - this.from)) * this.width;
  }

  drawAxis(pen, colours, bars, height) {
    const step = niceStep((this.to - this.from) / Math.max(2, this.width / 110));
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      const x = this.x(at);
      pen.fillStyle = colours.line;
      pen.fillRect(x, 0, 1, height);
      pen.fillStyle = colours.dim;
      if (x < this.width - 44) pen.fillText(seconds(at), x + 4, bars - AXIS / 2);
    }
  }

  drawBar(pen, colours, item, lane) {
    const left = this.x(item.started);
    const right = this.x(this.data.endOf(item));
    if (right < 0 || left > this.width) return;
    const begin = Math.max(-2, left);
    const wide = Math.max(1, Math.min(right, this.width + 2) - begin - (right - left > 3 ? 1 : 0));
    const top = lane * this.each;
    const high = Math.max(1, this.each - (this.each > 6 ? 4 : this.each > 3 ? 1 : 0));
    pen.fillStyle = item.kind === "request" && item.status === "OK" ? colours.request : colours[item.status];
    pen.fillRect(begin, top, wide, high);
    // Signs stand where they belong; the name behind those at the begin of the bar, and the pattern behind the name.
    let behind = begin;
    if (item.marks.length && this.each >= 14) behind = this.drawMarks(pen, colours, item, begin, top, high);
    if (this.each >= 14 && wide - (behind - begin) > 46) behind = drawName(pen, colours.on, item.name, behind, top, begin + wide - behind, high);
    drawPattern(pen, colours.ground, item.status, behind, top, begin + wide - behind, high);
    if (this.data.critical.has(item.index) && this.each > 3) {
      pen.fillStyle = colours.critical;
      pen.fillRect(begin, top + high, wide, Math.min(3, this.each - high + 1));
    }
    if (item.index === this.selected) {
      pen.strokeStyle = colours.text;
      pen.lineWidth = 2;
      pen.strokeRect(begin - 1, top + 0.5, wide + 2, Math.max(2, high));
    }
  }

  // Signs where something happened to an item; those that would lie on another stand beside it. Gives the end of those
  // at the begin of the bar.
  drawMarks(pen, colours, item, begin, top, high) {
    pen.font = "bold 11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    let [free, behind] = [begin, begin];
    for (const { kind, at } of item.marks.slice(0, 40)) {
      const x = Math.max(free, this.x(Math.max(at, item.started)));
      if (x < 0 || x > this.width) continue;
      free = x + 12;
      pen.fillStyle = colours.ground;
      pen.fillRect(x, top + 1, 11, high - 2);
      pen.fillStyle = colours.text;
      pen.fillText(HAPPENED[kind][0], x + 1, top + high / 2 + 0.5);
      if (x < behind + 12) behind = free;
    }
    return behind;
  }

  // The item below a place of the canvas; the shortest of several that are less than a pixel apart.
  found(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, lane] = [event.clientX - box.left, Math.floor((event.clientY - box.top) / this.each)];
    let best = null;
    for (const [index, place] of this.placed.lane) {
      if (place !== lane) continue;
      const item = this.data.items[index];
      if (this.x(item.started) - 2 > x || this.x(this.data.endOf(item)) + 2 < x) continue;
      if (!best || this.data.took(item) < this.data.took(best)) best = item;
    }
    return best;
  }

  press(event) {
    this.drag = { x: event.clientX, from: this.from, to: this.to, moved: false };
    this.canvas.setPointerCapture(event.pointerId);
  }

  move(event) {
    if (this.drag) {
      const by = event.clientX - this.drag.x;
      this.drag.moved ||= Math.abs(by) > 3;
      const shift = (by / this.width) * (this.drag.to - this.drag.from);
      if (this.drag.moved) this.show(this.drag.from - shift, this.drag.to - shift);
      return;
    }
    const item = this.found(event);
    this.tip.hidden = !item;
    if (!item) return;
    this.tip.textContent = `${item.id} ${item.name} · ${item.status} · ${[seconds(this.data.took(item)), happenedTo(item)].filter(Boolean).join(" · ")}`;
    const box = this.node.getBoundingClientRect();
    this.tip.style.left = `${Math.max(0, Math.min(event.clientX - box.left, this.width - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${event.clientY - box.top + 18}px`;
  }

  release(event) {
    const click = this.drag && !this.drag.moved;
    this.drag = null;
    const item = click ? this.found(event) : null;
    if (item) this.chosen(item.index);
  }

  wheel(event) {
    if (!event.ctrlKey) return; // the wheel alone scrolls the page
    event.preventDefault();
    const at = this.from + ((event.offsetX / this.width) * (this.to - this.from));
    this.zoom(Math.exp(event.deltaY / 300), at);
  }

  key(event) {
    const step = (this.to - this.from) / 5;
    const does = {
      ArrowLeft: () => this.show(this.from - step, this.to - step), "+": () => this.zoom(0.5),
      ArrowRight: () => this.show(this.from + step, this.to + step), "-": () => this.zoom(2), 0: () => this.all(),
    }[event.key];
    if (!does || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    does();
  }
}

function coloursOf(node) {
  const style = getComputedStyle(node);
  const named = (name) => style.getPropertyValue(`--${name}`).trim();
  const colours = { ground: named("ground"), text: named("text"), dim: named("dim"), line: named("line"), on: named("on") };
  for (const status of ["OK", "PARSE_ERR", "EXEC_ERR", "TIMEOUT", "running", "waiting", "request", "critical"]) {
    colours[status] = named(status.toLowerCase().replace("_", "-"));
  }
  return colours;
}

// What tells statuses apart without their colours: stripes, dots, an open end.
function drawPattern(pen, colour, status, left, top, wide, high) {
  if (wide < 4 || high < 4) return;
  pen.fillStyle = colour;
  if (status === "EXEC_ERR") {
    for (let x = left + 3; x < left + wide - 1; x += 7) pen.fillRect(x, top, 2, high);
  } else if (status === "PARSE_ERR") {
    for (let x = left + 3; x < left + wide - 2; x += 6) pen.fillRect(x, top + high / 2 - 1, 2, 2);
  } else if (status === "TIMEOUT") {
    pen.fillRect(left + wide - 3, top + 2, 2, high - 4);
  } else if (status === "running") {
    pen.fillRect(left + 1, top + 1, Math.max(0, wide - 1), high - 2 > 4 ? 1 : 0);
  }
}

function drawName(pen, colour, name, left, top, wide, high) {
  pen.save();
  pen.beginPath();
  pen.rect(left, top, wide - 4, high);
  pen.clip();
  pen.fillStyle = colour;
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const text = name.slice(0, 80);
  pen.fillText(text, Math.max(0, left) + 5, top + high / 2 + 0.5);
  pen.restore();
  return Math.min(left + wide, Math.max(0, left) + 8 + pen.measureText(text).width);
}

export function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((each) => each * power >= rough * 0.999);
}
