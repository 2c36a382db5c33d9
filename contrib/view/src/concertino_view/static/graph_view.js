// One round as a graph: a box for each call, lines to what waits for it, agents that open in place. Boxes are buttons,
// so they are reached with keys and read aloud; lines are drawn on a canvas behind them.

import { count, el, happenedTo, seconds, statusPill } from "./page_parts.js";
import { layRound } from "./round_graph.js";

export class GraphView {
  // chosen(index) is called when the reader chooses a call.
  constructor(data, chosen) {
    this.data = data;
    this.chosen = chosen;
    this.opened = new Set();
    this.round = null;
    this.selected = -1;
    this.title = el("b");
    this.more = el("span", { class: "dim" });
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.boxes = el("div", { class: "boxes" });
    this.area = el("div", { class: "graph", tabindex: 0, role: "group", "aria-label": "Graph of the round" }, this.canvas, this.boxes);
    const button = (text, label, by) => el("button", { type: "button", "aria-label": label, on: { click: () => this.step(by) } }, text);
    this.node = el(
      "section", { "aria-label": "Round" },
      el("div", { class: "bar" }, button("‹", "Round before", -1), this.title, button("›", "Round after", 1), this.more),
      this.area,
    );
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.drawLines());
  }

  // rows: what a patch changed; the graph is made again only if it shows some of that.
  update(rows) {
    if (this.round === null) this.round = this.data.rounds.keys().next().value ?? null;
    if (this.round !== null && rows.some((row) => this.data.items[row[0]].round === this.round)) this.draw();
    else this.head();
  }

  select(index) {
    this.selected = index;
    const item = this.data.items[index];
    if (!item) return;
    const [round, opened] = [this.round, this.opened.size];
    this.round = item.round;
    for (let at = item.parent; at >= 0; at = this.data.items[at].parent) this.opened.add(at);
    if (!this.laid || round !== this.round || opened !== this.opened.size) this.draw();
    else this.mark();
    const box = this.boxes.querySelector("[aria-current=true]");
    if (box) this.reveal(box.parentElement);
  }

  // The graph is drawn already; another call of it is chosen.
  mark() {
    this.boxes.querySelector("[aria-current]")?.removeAttribute("aria-current");
    this.boxes.querySelector(`[data-of="c${this.selected}"]`)?.setAttribute("aria-current", "true");
  }

  step(by) {
    const rounds = [...this.data.rounds.keys()];
    const place = Math.max(0, Math.min(rounds.length - 1, rounds.indexOf(this.round) + by));
    if (rounds.length) [this.round, this.selected] = [rounds[place], -1];
    this.area.scrollTo(0, 0);
    this.draw();
  }

  // Scrolls the graph alone, not the page.
  reveal(box) {
    const [left, top] = [box.offsetLeft, box.offsetTop];
    if (left < this.area.scrollLeft || left + box.offsetWidth > this.area.scrollLeft + this.area.clientWidth) this.area.scrollLeft = left - 8;
    if (top < this.area.scrollTop || top + 44 > this.area.scrollTop + this.area.clientHeight) this.area.scrollTop = top - 8;
  }

  head() {
    const all = this.data.told;
    this.title.textContent = all.has(this.round) ? `round ${this.round} of ${all.size}` : all.size ? "after the last round" : "before any round";
  }

  draw() {
    this.head();
    this.laid = layRound(this.data, this.round, this.opened);
    const calls = this.laid.boxes.filter((box) => box.item.kind !== "request" && box.item.parent < 0).length;
    this.more.textContent = [count(calls, "call"), this.laid.left ? `${count(this.laid.left, "more call")} in the list only` : ""].filter(Boolean).join(", ");
    const focus = document.activeElement && this.boxes.contains(document.activeElement) ? document.activeElement.dataset.of : null;
    this.boxes.replaceChildren(...this.laid.boxes.map((box) => this.boxOf(box)));
    this.boxes.style.width = `${this.laid.width}px`;
    this.boxes.style.height = `${this.laid.height}px`;
    if (focus) this.boxes.querySelector(`[data-of="${focus}"]`)?.focus({ preventScroll: true });
    this.drawLines();
  }

  boxOf({ item, x, y, width, height, holds, open }) {
    const told = [seconds(this.data.took(item)), happenedTo(item, true)].filter(Boolean).join(" · ");
    const choose = el(
      "button",
      {
        type: "button", class: "call", "data-of": `c${item.index}`, title: [happenedTo(item), item.error || item.label].filter(Boolean).join(" · "),
        "aria-current": item.index === this.selected ? "true" : null, on: { click: () => this.chosen(item.index) },
      },
      el("span", { class: "name" }, item.name), el("span", {}, statusPill(item.status), " ", el("span", { class: "dim" }, told)),
    );
    const critical = this.data.critical.has(item.index) ? " critical" : "";
    const box = el("div", { class: `box${critical}` }, choose);
    if (holds) {
      box.append(el(
        "button",
        {
          type: "button", class: "opener", "data-of": `o${item.index}`, "aria-expanded": String(open),
          "aria-label": `${open ? "Close" : "Open"} ${item.name}: ${count(holds, "call")} inside`,
          on: { click: () => this.toggle(item.index) },
        },
        `${open ? "−" : "+"}${holds}`,
      ));
    }
    Object.assign(box.style, { left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` });
    return box;
  }

  toggle(index) {
    if (!this.opened.delete(index)) this.opened.add(index);
    this.draw();
  }

  drawLines() {
    if (!this.laid) return;
    const ratio = window.devicePixelRatio || 1;
    // A canvas has a greatest size; boxes beyond it have no lines.
    const [wide, high] = [Math.min(this.laid.width, 16_000 / ratio), Math.min(this.laid.height, 16_000 / ratio)];
    this.canvas.width = Math.round(wide * ratio);
    this.canvas.height = Math.round(high * ratio);
    this.canvas.style.width = `${wide}px`;
    this.canvas.style.height = `${high}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const style = getComputedStyle(this.area);
    const at = new Map(this.laid.boxes.map((box) => [box.item.index, box]));
    for (const [from, to] of this.laid.edges) {
      const [a, b] = [at.get(from), at.get(to)];
      const critical = this.data.critical.has(from) && this.data.critical.has(to);
      pen.strokeStyle = pen.fillStyle = style.getPropertyValue(critical ? "--critical" : "--dim");
      pen.lineWidth = critical ? 2.5 : 1.2;
      const [x, y, endX, endY] = [a.x + a.width, a.y + 22, b.x - 2, b.y + 22];
      pen.beginPath();
      pen.moveTo(x, y);
      pen.bezierCurveTo(x + 14, y, endX - 16, endY, endX - 5, endY);
      pen.stroke();
      pen.beginPath();
      pen.moveTo(endX, endY);
      pen.lineTo(endX - 6, endY - 4);
      pen.lineTo(endX - 6, endY + 4);
      pen.fill();
    }
  }
}
