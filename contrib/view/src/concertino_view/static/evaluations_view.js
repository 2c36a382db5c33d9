// Two evaluations beside each other: how many items each has right, and the items that flipped.

import { count, el } from "./page_parts.js";
import { allRuns, compareAddress, runAddress } from "./site.js";

export async function showEvaluations(root, asked) {
  const { arms, unread } = await asked("api/evaluations");
  const result = el("div", { role: "status" });
  const named = ([file, system, items, right]) => `${system} (${file}): ${right} of ${items} right`;
  const select = (label, chosen) => {
    const made = el("select", { "aria-label": label, on: { change: () => show() } }, ...arms.map((arm, place) => el("option", { value: place }, named(arm))));
    made.value = String(Math.min(chosen, arms.length - 1));
    return made;
  };
  const [one, other] = [select("First evaluation", 0), select("Second evaluation", 1)];
  const show = async () => {
    const found = await asked(`api/flips?${new URLSearchParams({ a: one.value, b: other.value })}`);
    result.replaceChildren(...flipsOf(found, [arms[one.value], arms[other.value]].map(([file, system]) => `${system} (${file})`)));
  };
  root.replaceChildren(
    el("nav", { class: "bar" }, allRuns()), el("h1", {}, "Two evaluations"),
    unread ? el("p", { class: "warning", role: "note" }, `${count(unread, "line")} cannot be read and are left out.`) : "",
    arms.length ? el("div", { class: "bar" }, one, other) : el("p", {}, "The results files have no items yet."), result,
  );
  document.title = "two evaluations compared";
  if (arms.length) await show();
}

function flipsOf(found, names) {
  const link = (run) => (run ? el("a", { href: runAddress(run) }, "open") : null);
  const cell = ([verdict, answer, reason, run]) => el(
    "td", { class: "long", title: reason }, el("b", {}, verdict), " ", answer || el("span", { class: "dim" }, "no answer"), " ", link(run),
  );
  const pair = (a, b) => (a && b ? el("a", { href: compareAddress(a, b) }, "compare") : "");
  const row = ([key, a, b]) => el("tr", {}, el("td", { class: "word" }, key), cell(a), cell(b), el("td", {}, pair(a[3], b[3])));
  const alone = found.alone[0] + found.alone[1];
  return [
    el("p", { class: "facts" }, el("span", {}, `${count(found.both, "item")} in both`), el("span", {}, `${found.only[0]} right only in the first`),
      el("span", {}, `${found.only[1]} right only in the second`), alone ? el("span", {}, `${count(alone, "item")} in one only`) : ""),
    el("h2", {}, `${count(found.items.length + found.more, "item")} flipped`),
    found.items.length ? el(
      "table", { class: "flips" },
      el("thead", {}, el("tr", {}, ...["item", ...names, "runs"].map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, ...found.items.map(row)),
    ) : "",
    found.more ? el("p", { class: "dim" }, `and ${found.more} more`) : "",
  ];
}
