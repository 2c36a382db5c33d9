// The sampled tokens of a reply as a strip of bars, moved along with keys: a bar is the higher, the less likely its token
// was. What was read only is said as a number, since it is not trained (mask 0). Below it, a mark is the longer, the more
// the log-probability where the token is trained differs from the one here: its drift.

import { count, el } from "./page_parts.js";

const CELL = 9;
const TALL = 30;
const SURE = 0.02; // height of a bar of a token that was certain
const LOWEST = -6; // log-probability of a bar of full height
const MOST_TOKENS = 20_000;
const APART = 0.5; // drift of a mark of full length

// trained: {advantage, leftOut, drift} of the turn, null where it is not on record.
export function tokenStrip({ read, logprobs, ids }, trained) {
  return new TokenStrip(read, logprobs.slice(0, MOST_TOKENS), ids, trained).node;
}

class TokenStrip {
  constructor(read, logprobs, ids, trained) {
    const drift = trained && trained.drift.length >= logprobs.length ? trained.drift : null;
    Object.assign(this, { logprobs, ids, trained, drift, at: 0 });
    const masked = trained && trained.leftOut ? `mask 0: left out, ${trained.leftOut}` : "mask 1";
    const told = [`${count(read, "token")} read (mask 0)`, `${count(logprobs.length, "token")} sampled (${masked})`];
    if (trained) told.push(`advantage ${signed(trained.advantage)}`);
    if (drift) told.push(`drift: mean ${mean(drift.map(Math.abs)).toFixed(4)}, most ${signed(most(drift))}`);
    this.canvas = el("canvas", {
      class: "tokens", tabindex: 0, role: "slider", "aria-label": "Sampled tokens; arrow keys move, n goes to the next less likely one",
      "aria-valuemin": 1, "aria-valuemax": logprobs.length,
      on: { keydown: (event) => this.key(event), pointerdown: (event) => this.press(event) },
    });
    this.readout = el("p", { class: "dim", role: "status" });
    this.node = el("div", {}, el("p", { class: "facts" }, ...told.map((each) => el("span", {}, each))), el("div", { class: "token-box" }, this.canvas), this.readout);
    this.order = logprobs.map((_, place) => place).sort((a, b) => logprobs[a] - logprobs[b]);
    new ResizeObserver(() => this.draw()).observe(this.node);
    this.say();
  }

  draw() {
    const across = Math.max(1, Math.floor(this.node.clientWidth / CELL));
    this.across = across;
    const ratio = window.devicePixelRatio || 1;
    const [wide, high] = [across * CELL, Math.min(16_000 / ratio, Math.ceil(this.logprobs.length / across) * TALL)];
    this.canvas.width = Math.round(wide * ratio);
    this.canvas.height = Math.round(high * ratio);
    this.canvas.style.width = `${wide}px`;
    this.canvas.style.height = `${high}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const style = getComputedStyle(this.canvas);
    const colour = (name) => style.getPropertyValue(`--${name}`);
    this.logprobs.forEach((value, place) => {
      const [x, y] = [(place % across) * CELL, Math.floor(place / across) * TALL];
      const tall = (TALL - 6) * Math.max(SURE, Math.min(1, value / LOWEST));
      pen.fillStyle = colour(this.trained && this.trained.leftOut ? "waiting" : "running");
      pen.fillRect(x + 1, y + TALL - 3 - tall, CELL - 2, tall);
      pen.fillStyle = colour("line");
      pen.fillRect(x, y + TALL - 2, CELL, 1);
      if (this.drift) {
        pen.fillStyle = colour("exec-err");
        pen.fillRect(x + 1, y + TALL - 2, (CELL - 2) * Math.min(1, Math.abs(this.drift[place]) / APART), 2);
      }
      if (place === this.at) {
        pen.strokeStyle = colour("text");
        pen.strokeRect(x + 0.5, y + 1.5, CELL - 1, TALL - 3);
      }
    });
  }

  say() {
    const value = this.logprobs[this.at];
    const id = this.ids.length ? ` · id ${this.ids[this.at]}` : "";
    const apart = this.drift ? ` · drift ${signed(this.drift[this.at])}` : "";
    const text = `token ${this.at + 1} of ${this.logprobs.length}${id} · log-probability ${value.toFixed(4)} · probability ${(100 * Math.exp(value)).toFixed(1)} %${apart}`;
    this.readout.textContent = text;
    this.canvas.setAttribute("aria-valuenow", this.at + 1);
    this.canvas.setAttribute("aria-valuetext", text);
  }

  go(place) {
    this.at = Math.max(0, Math.min(this.logprobs.length - 1, place));
    this.say();
    this.draw();
  }

  press(event) {
    const box = this.canvas.getBoundingClientRect();
    this.go(Math.floor((event.clientY - box.top) / TALL) * this.across + Math.floor((event.clientX - box.left) / CELL));
  }

  key(event) {
    const to = {
      ArrowLeft: this.at - 1, ArrowRight: this.at + 1, ArrowUp: this.at - this.across, ArrowDown: this.at + this.across,
      Home: 0, End: Infinity, n: this.order[(this.order.indexOf(this.at) + 1) % this.order.length],
    }[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.go(to);
  }
}

const mean = (values) => values.reduce((sum, each) => sum + each, 0) / values.length;
const most = (values) => values.reduce((far, each) => (Math.abs(each) > Math.abs(far) ? each : far), 0);

export function signed(value) {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toPrecision(3)}`;
}
