// Two runs beside each other: where they first differ, their figures, and all differences.

import { count, el, money, seconds } from "./page_parts.js";
import { allRuns, runAddress } from "./site.js";

const MOST = 300; // characters of a question or an answer; the page of the run has all

export function showDifference(root, found, query) {
  const ids = [query.get("a"), query.get("b")];
  const first = found.differences[0];
  const link = (side, item) => el(
    "a", { href: runAddress(ids[side], item) }, item >= 0 ? "open" : ids[side],
  );
  const cell = (difference, side) => el(
    "td", { class: "long" }, difference[side ? "b" : "a"].slice(0, MOST) || el("span", { class: "dim" }, "nothing"), " ",
    difference.items[side] >= 0 ? link(side, difference.items[side]) : null,
  );
  const differenceRow = (difference, place) => el(
    "tr", { class: place === 0 ? "differs" : "" },
    el("td", {}, difference.where), el("td", {}, difference.what), cell(difference, 0), cell(difference, 1),
  );
  root.replaceChildren(
    el("nav", { class: "bar" }, allRuns()),
    el("h1", {}, first ? `The runs first differ in ${first.where}: ${first.what}` : "The runs do not differ in what they called and found"),
    el(
      "table", {},
      el("thead", {}, el("tr", {}, el("th", {}, ""), el("th", {}, link(0, -1)), el("th", {}, link(1, -1)), el("th", { class: "num" }, "difference"))),
      el("tbody", {}, ...figures(found)),
    ),
    el("h2", {}, count(found.differences.length + found.more, "difference")),
    first ? el(
      "table", { class: "differences" },
      el("thead", {}, el("tr", {}, ...["where", "what", ids[0], ids[1]].map((title) => el("th", { scope: "col" }, title)))),
      el("tbody", {}, ...found.differences.map(differenceRow)),
    ) : "",
    found.more ? el("p", { class: "dim" }, `and ${found.more} more`) : "",
  );
  document.title = "two runs compared";
}

function figures(found) {
  const [a, b] = found.runs;
  const tokens = (head) => (head.usage.input_tokens || 0) + (head.usage.output_tokens || 0);
  const asked = a.question === b.question ? [] : [["question", a.question, b.question]];
  const rows = [
    ...asked, ["ended", a.stop, b.stop], ["answer", a.answer ?? "", b.answer ?? ""],
    ["calls", ...found.calls], ["cost", a.usage.usd || 0, b.usage.usd || 0, money],
    ["tokens", tokens(a), tokens(b)], ["time", a.seconds, b.seconds, seconds],
  ];
  return rows.map(([name, one, other, shown = String]) => {
    const number = typeof one === "number";
    const by = number ? other - one : null;
    const told = number && by ? `${by > 0 ? "+" : "−"}${shown(Math.abs(by))}` : number || one === other ? "same" : "differs";
    return el("tr", {}, el("th", { scope: "row" }, name), ...[one, other].map((value) => el("td", { class: "long" }, String(shown(value)).slice(0, MOST))), el("td", { class: "num" }, told));
  });
}
