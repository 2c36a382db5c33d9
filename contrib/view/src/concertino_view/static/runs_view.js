// The table of runs, with filters; two chosen runs are compared.

import { count, el, moment, money, seconds } from "./page_parts.js";
import { compareAddress, runAddress, SITE } from "./site.js";

const AGAIN = 2000; // milliseconds until the table is asked for again
const MOST_SHOWN = 300;

export async function showRuns(root, asked) {
  const table = new RunsTable(asked);
  root.replaceChildren(...table.parts);
  await table.read();
}

class RunsTable {
  constructor(asked) {
    this.asked = asked;
    this.runs = [];
    this.chosen = new Set();
    this.words = el("input", { type: "search", placeholder: "Filter: question, answer, id", "aria-label": "Filter by words", on: { input: () => this.draw() } });
    this.ended = el("select", { "aria-label": "Filter by end", on: { change: () => this.draw() } }, el("option", { value: "" }, "all"));
    this.failed = el("input", { type: "checkbox", on: { change: () => this.draw() } });
    this.compare = el("button", { type: "button", disabled: true, on: { click: () => this.open() } }, "compare two");
    this.shown = el("span", { class: "dim", role: "status" });
    this.body = el("tbody");
    this.evaluations = el("p", { hidden: true }, el("a", { href: `${SITE}evaluations` }, "compare two evaluations"));
    const titles = [["", ""], ["run", "long"], ["ended", ""], ["calls", "num"], ["failed", "num wide"],
      ["cost", "num wide"], ["took", "num"], ["began", "wide"]];
    this.parts = [
      el("h1", {}, "Runs"), this.evaluations,
      el("div", { class: "bar" }, this.words, this.ended, el("label", {}, this.failed, " with failed calls"), this.compare, this.shown),
      el("table", {}, el("thead", {}, el("tr", {}, ...titles.map(([title, kind]) => el("th", { class: kind, scope: "col" }, title)))), this.body),
    ];
  }

  async read() {
    try {
      const found = await this.asked("api/runs");
      const now = JSON.stringify(found.runs);
      if (now !== this.before) {
        this.before = now;
        this.runs = found.runs;
        this.folder = found.folder;
        this.evaluations.hidden = !found.evaluations;
        this.draw();
      }
    } catch (error) {
      this.shown.textContent = `the server does not answer: ${error.message}`;
    }
    setTimeout(() => this.read(), AGAIN);
  }

  draw() {
    const kinds = [...new Set(this.runs.map((run) => run.stop || "unreadable"))].sort();
    if (this.ended.options.length !== kinds.length + 1) {
      const value = this.ended.value;
      this.ended.replaceChildren(el("option", { value: "" }, "all"), ...kinds.map((kind) => el("option", { value: kind }, kind)));
      this.ended.value = value;
    }
    const words = this.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.runs.filter((run) => {
      if (this.ended.value && (run.stop || "unreadable") !== this.ended.value) return false;
      if (this.failed.checked && !run.failed) return false;
      const text = `${run.id} ${run.question} ${run.answer} ${run.error || ""}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    this.body.replaceChildren(...found.slice(0, MOST_SHOWN).map((run) => this.row(run)));
    const none = "There is no run here yet; concertino run and concertino demo write them.";
    this.shown.textContent = this.runs.length ? `${found.length} of ${count(this.runs.length, "run")}` : none;
  }

  row(run) {
    const box = el("input", { type: "checkbox", "aria-label": `Choose run ${run.id}`, on: { change: () => this.choose(run.id, box.checked) } });
    box.checked = this.chosen.has(run.id);
    const id = el("span", { class: "dim" }, run.id);
    if (run.error) return el("tr", {}, el("td"), el("td", { class: "long" }, id), el("td", { class: "error", colspan: 6 }, run.error));
    const link = el("a", { href: runAddress(run.id) }, run.question || "(no question)");
    const more = [run.damage ? "damaged" : "", run.waits ? `${count(run.waits, "call")} to approve` : ""].filter(Boolean);
    return el(
      "tr", {},
      el("td", {}, box), el("td", { class: "long" }, link, " ", id),
      el("td", { class: "word" }, [run.stop, ...more].join(", ")), el("td", { class: "num" }, String(run.calls)),
      el("td", { class: "num wide" }, String(run.failed)), el("td", { class: "num wide" }, money(run.usd)),
      el("td", { class: "num" }, seconds(run.seconds)), el("td", { class: "wide" }, moment(run.began)),
    );
  }

  choose(id, chosen) {
    if (chosen) this.chosen.add(id);
    else this.chosen.delete(id);
    this.compare.disabled = this.chosen.size !== 2;
  }

  open() {
    const [b, a] = [...this.chosen];
    location.href = compareAddress(a, b);
  }
}
