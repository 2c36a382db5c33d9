// The page of a run. A *source* gives the data: start() the first patch, body(index) the sections of an item, and
// follow(listener), which tells of further patches; `live` says whether it may.

import { itemDetail } from "./item_detail.js";
import { count, el, HAPPENED, happenedTo, moment, money, seconds, statusPill, STATUSES } from "./page_parts.js";
import { rewardTable } from "./reward_table.js";
import { RowList } from "./row_list.js";
import { FAILED, makeFilter, RunData } from "./run_data.js";
import { GraphView } from "./graph_view.js";
import { Timeline } from "./timeline.js";

const REST = 6; // how many times longer than to draw it takes at least until it is drawn again
const TITLE = 200; // characters of a question in the title
const KEYS = "Keys: ↑ ↓ or j k move, f next failure, c next on the critical path, m next mark (repeated, stalled, approval), "
  + "[ ] round before and after, / filter, + - 0 zoom, ← → pan.";
const CHOICES = [
  ["", "all"], ["failed", "failed"], ["critical", "critical path"], ["retry", "repeated"], ["stall", "stalled"],
  ["approval", "asked a person"], ...STATUSES.map((each) => [each, each]),
];

export async function showRun(root, source) {
  const view = new RunView(source);
  root.replaceChildren(...view.parts);
  const drawn = () => { root.dataset.version = view.data.version; }; // what is on the page
  const take = (patch) => view.take(patch, drawn);
  take(await source.start());
  root.addEventListener("go", (event) => view.goTo(event.detail));
  if (source.follow) source.follow(take, (state) => view.say(state));
  return view;
}

class RunView {
  constructor(source) {
    this.source = source;
    this.data = new RunData();
    this.timeline = new Timeline(this.data, (index) => this.goTo(index));
    this.graph = new GraphView(this.data, (index) => this.goTo(index));
    this.list = new RowList("Rounds, requests and calls", (row) => this.rowOf(row), (row) => this.choose(row));
    this.detail = el("section", { class: "detail", "aria-label": "Details", tabindex: -1 });
    this.detail.append(el("p", { class: "dim" }, "Choose a row or a bar."));
    this.head = el("header", { class: "head" });
    this.state = el("span", { class: "dim", role: "status" });
    this.words = el("input", {
      type: "search", placeholder: "Filter: name, id, text", "aria-label": "Filter by words",
      on: { input: () => this.filter() },
    });
    this.status = el(
      "select",
      { "aria-label": "Filter by status", on: { change: () => this.filter() } },
      ...CHOICES.map(
        ([value, text]) => el("option", { value }, text),
      ),
    );
    this.shown = el("span", { class: "dim" });
    this.chosenIndex = -1;
    this.parts = [
      this.head,
      el("section", { "aria-label": "Timeline" }, this.timelineBar(), this.timeline.node),
      this.graph.node,
      el(
        "main",
        { class: "two" },
        el("section", { class: "left" }, el("div", { class: "bar" }, this.words, this.status, this.shown), this.list.node),
        this.detail,
      ),
      el("footer", { class: "dim" }, KEYS),
    ];
    document.addEventListener("keydown", (event) => this.key(event));
  }

  timelineBar() {
    const button = (text, label, click) => el("button", { type: "button", "aria-label": label, on: { click } }, text);
    const kinds = [["OK", "OK"], ["PARSE_ERR", "PARSE_ERR"], ["EXEC_ERR", "EXEC_ERR"], ["TIMEOUT", "TIMEOUT"]];
    return el(
      "div",
      { class: "bar" },
      button("+", "Zoom in", () => this.timeline.zoom(0.5)),
      button("−", "Zoom out", () => this.timeline.zoom(2)),
      button("all", "Show the whole run", () => this.timeline.all()),
      ...kinds.map(([status]) => statusPill(status)),
      el("span", { class: "pill s-request" }, "request"),
      el("span", { class: "pill s-critical" }, "critical path"),
      el("span", { class: "dim" }, Object.values(HAPPENED).map((each) => each.join(" ")).join("  ")),
      this.state,
    );
  }

  // Where more records come soon, most of the time is left for reading them: what a patch changed is drawn later.
  take(patch, drawn) {
    this.data.apply(patch);
    this.changed = this.changed ? this.changed.concat(patch.items) : patch.items;
    const began = performance.now();
    if (patch.behind && began < (this.next || 0)) return;
    if (this.changed.length) this.draw(this.changed);
    else this.list.redraw();
    this.changed = null;
    if (this.chosenIndex >= 0 && patch.texts.some((row) => row[0] === this.chosenIndex)) this.open(this.chosenIndex);
    this.next = performance.now() + REST * (performance.now() - began);
    drawn();
  }

  draw(rows) {
    const opened = this.head.querySelector(".training")?.open;
    this.head.replaceChildren(...headOf(this.data, this.source.link || (() => null)));
    if (opened) this.head.querySelector(".training").open = true;
    document.title = `${this.data.head.stop}: ${this.data.head.question.slice(0, 60)}`;
    this.timeline.update();
    this.graph.update(rows);
    this.filter();
    if (this.chosenIndex >= 0 && rows.some((row) => row[0] === this.chosenIndex)) this.open(this.chosenIndex);
  }

  say(text) {
    this.state.textContent = text;
  }

  filter() {
    const passes = makeFilter(this.words.value, this.status.value, this.data.critical);
    const rows = this.data.rows(passes);
    const at = rows.findIndex((row) => row.item && row.item.index === this.chosenIndex);
    this.list.show(rows, at);
    const items = rows.filter((row) => row.item).length;
    this.shown.textContent = passes ? `${items} of ${this.data.items.length}` : count(items, "item");
  }

  rowOf(row) {
    if (!row.item) return el("div", { class: "round" }, ...this.roundOf(row.round));
    const { item, depth } = row;
    const critical = this.data.critical.has(item.index) ? " critical" : "";
    const notes = [happenedTo(item), item.note].filter(Boolean).join(", ");
    const name = el("span", { class: "name" }, item.name);
    name.style.paddingLeft = `${Math.min(depth, 6) * 14}px`;
    return el(
      "div",
      { class: `item${critical}`, title: item.error || item.label },
      el("span", { class: "id" }, item.id),
      name,
      el("span", { class: "label" }, item.error || item.label),
      el("span", { class: "note" }, notes),
      statusPill(item.status),
      el("span", { class: "num" }, seconds(this.data.took(item))),
      el("span", { class: "num cost" }, item.usd ? money(item.usd) : ""),
    );
  }

  roundOf(number) {
    const told = this.data.told.get(number);
    const faults = told && told[3] ? el("span", { class: "note" }, count(told[3], "format issue")) : null;
    return [el("b", {}, told ? `round ${number}` : this.data.told.size ? "after the last round" : "before any round"), el("span", { class: "label" }, told ? told[2] : ""), faults];
  }

  choose(row) {
    if (row.item) this.open(row.item.index);
  }

  goTo(index) {
    const place = this.list.rows.findIndex((row) => row.item && row.item.index === index);
    if (place >= 0) this.list.go(place);
    else this.open(index);
  }

  async open(index) {
    this.chosenIndex = index;
    this.timeline.select(index);
    this.graph.select(index);
    const item = this.data.items[index];
    const draw = (sections) => this.detail.replaceChildren(...itemDetail(this.data, item, sections, (to) => this.goTo(to)));
    const opening = this.source.body(index);
    const soon = setTimeout(() => draw(null), 80);
    const sections = await opening.catch((error) => [["this item could not be read", String(error), []]]);
    clearTimeout(soon);
    if (this.chosenIndex === index) draw(sections);
  }

  key(event) {
    if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const does = {
      "/": () => this.words.focus(), f: () => this.list.next((row) => row.item && FAILED.has(row.item.status)),
      c: () => this.list.next((row) => row.item && this.data.critical.has(row.item.index)),
      m: () => this.list.next((row) => row.item && row.item.marks.length > 0),
      "[": () => this.graph.step(-1), "]": () => this.graph.step(1),
      j: () => this.list.go(this.list.at + 1), k: () => this.list.go(this.list.at - 1),
      "+": () => this.timeline.zoom(0.5), "-": () => this.timeline.zoom(2), 0: () => this.timeline.all(),
    }[event.key];
    if (!does || event.defaultPrevented) return;
    event.preventDefault();
    does();
  }
}

function headOf(data, link) {
  const head = data.head;
  const long = head.question.length > TITLE;
  const used = head.usage;
  const tokens = (used.input_tokens || 0) + (used.output_tokens || 0);
  const unpriced = used.unpriced ? ` (${count(used.unpriced, "request")} of unknown price)` : "";
  const facts = [
    moment(head.began), seconds(head.seconds), `${money(used.usd || 0)}${unpriced}`, `${used.units || 0} units`,
    count(tokens, "token"), ...Object.entries(head.statuses).map(([status, number]) => `${number} ${status}`),
    ...Object.entries(head.verdicts).map(([verdict, number]) => `guards: ${number} ${verdict}`),
  ];
  const path = [...data.critical].map((index) => data.items[index]).filter((item) => item.parent < 0);
  if (path.length) facts.push(`critical path: ${seconds(path.reduce((sum, item) => sum + data.took(item), 0))}`);
  return [
    el("h1", {}, long ? `${head.question.slice(0, TITLE)} …` : head.question || "(no question)"),
    long ? el("details", {}, el("summary", {}, "the whole question"), el("pre", { tabindex: 0 }, head.question)) : null,
    ...head.notes.map((note) => el("p", { class: "warning", role: "note" }, note)),
    el("p", { class: "facts" }, el("b", { class: "stop" }, head.stop), el("span", {}, head.meaning),
      head.detail ? el("span", {}, head.detail.slice(0, 400)) : null),
    head.answer === null ? null : el("pre", { class: "answer", tabindex: 0 }, head.answer),
    el("p", { class: "facts" }, ...facts.filter(Boolean).map((fact) => el("span", {}, fact))),
    budgetOf(head),
    head.training ? rewardTable(head.training, link) : null,
    el("p", { class: "facts dim" }, ...[["run", head.run], ...head.facts].map(([name, value]) => el("span", {}, `${name} ${value}`))),
  ].filter(Boolean);
}

function budgetOf(head) {
  if (!head.limits.length) return null;
  const bars = head.limits.map(([name, used, limit]) => {
    const share = limit > 0 ? Math.min(1, used / limit) : 1;
    const shown = (value) => Number(value.toPrecision(4));
    return el(
      "label", { class: "limit" }, `${name} ${shown(used)} of ${shown(limit)}`, el("meter", { min: 0, max: 1, value: share, high: 0.9, optimum: 0 }),
    );
  });
  return el("div", { class: "limits", "aria-label": "Budget" }, ...bars);
}
