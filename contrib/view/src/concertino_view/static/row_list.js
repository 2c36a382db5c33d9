// A list of which only the visible rows are in the document, moved by keys and clicks.

import { el } from "./page_parts.js";

const HEIGHT = 28;
const BEYOND = 8;

export class RowList {
  // make(row) gives the cells of a row; chosen(row) is called when the reader moves to it.
  constructor(label, make, chosen) {
    this.make = make;
    this.chosen = chosen;
    this.rows = [];
    this.at = -1;
    this.inner = el("div", { class: "rows-inner", role: "presentation" });
    this.node = el(
      "div",
      {
        class: "rows", tabindex: 0, role: "listbox", "aria-label": label,
        on: { scroll: () => this.draw(), keydown: (event) => this.key(event) },
      },
      this.inner,
    );
    new ResizeObserver(() => this.draw()).observe(this.node);
  }

  show(rows, at = -1) {
    this.rows = rows;
    this.at = Math.min(at, rows.length - 1);
    this.inner.style.height = `${rows.length * HEIGHT}px`;
    this.redraw();
  }

  redraw() {
    this.drawn = "";
    this.draw();
  }

  draw() {
    const top = this.node.scrollTop;
    const first = Math.max(0, Math.floor(top / HEIGHT) - BEYOND);
    const last = Math.min(this.rows.length, Math.ceil((top + this.node.clientHeight) / HEIGHT) + BEYOND);
    const now = `${first} ${last} ${this.at}`;
    if (now === this.drawn) return;
    this.drawn = now;
    const made = [];
    for (let place = first; place < last; place += 1) {
      const row = this.make(this.rows[place]);
      row.classList.add("row");
      row.id = `row-${place}`;
      row.style.top = `${place * HEIGHT}px`;
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", place === this.at);
      row.setAttribute("aria-posinset", place + 1);
      row.setAttribute("aria-setsize", this.rows.length);
      row.addEventListener("click", () => this.go(place));
      made.push(row);
    }
    this.inner.replaceChildren(...made);
    if (this.at >= 0) this.node.setAttribute("aria-activedescendant", `row-${this.at}`);
    else this.node.removeAttribute("aria-activedescendant");
  }

  go(place, quiet = false) {
    if (!this.rows.length) return;
    this.at = Math.max(0, Math.min(place, this.rows.length - 1));
    const top = this.at * HEIGHT;
    if (top < this.node.scrollTop) this.node.scrollTop = top;
    else if (top + HEIGHT > this.node.scrollTop + this.node.clientHeight) {
      this.node.scrollTop = top + HEIGHT - this.node.clientHeight;
    }
    this.draw();
    if (!quiet) this.chosen(this.rows[this.at]);
  }

  // To the next row that passes, round the end once; says whether there is one.
  next(passes, step = 1) {
    for (let tried = 1; tried <= this.rows.length; tried += 1) {
      const place = (this.at + step * tried + 2 * this.rows.length) % this.rows.length;
      if (passes(this.rows[place])) {
        this.go(place);
        return true;
      }
    }
    return false;
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.node.clientHeight / HEIGHT) - 1);
    const steps = {
      ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity,
    };
    if (!(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const step = steps[event.key];
    this.go(Number.isFinite(step) ? this.at + step : step > 0 ? this.rows.length - 1 : 0);
  }
}
