// The reward of a rollout of a training, and the rollouts of its group beside it.

import { count, el } from "./page_parts.js";
import { signed } from "./token_strip.js";

// link(id) is the address of another run's page, null where there is none.
export function rewardTable(training, link) {
  const own = training.rollouts.find((each) => each[4]);
  const shown = (value) => String(Number(value.toPrecision(4)));
  const row = ([id, total, advantage, leftOut, here, there]) => {
    const address = there && !here ? link(id) : null;
    const name = address ? el("a", { href: address }, id) : here ? el("b", {}, `${id} (this run)`) : id;
    return el(
      "tr", { class: here ? "here" : "" }, el("td", { class: "long" }, name), el("td", { class: "num" }, shown(total)),
      el("td", { class: "num" }, advantage === null ? "" : signed(advantage)), el("td", { class: "word" }, leftOut ? `left out: ${leftOut}` : ""),
    );
  };
  const heads = [["rollout", ""], ["reward", "num"], ["advantage", "num"], ["", ""]];
  const more = training.of - training.rollouts.length;
  return el(
    "details", { class: "training" },
    el("summary", {}, `reward ${shown(own[1])}${own[2] === null ? "" : `, advantage ${signed(own[2])}`} `,
      el("span", { class: "dim" }, `group of ${training.of}`)),
    el("p", { class: "facts" }, ...training.components.map(([name, value]) => el("span", {}, `${name} ${shown(value)}`))),
    el(
      "table", {}, el("thead", {}, el("tr", {}, ...heads.map(([text, kind]) => el("th", { class: kind, scope: "col" }, text)))),
      el("tbody", {}, ...training.rollouts.map(row)),
    ),
    more > 0 ? el("p", { class: "dim" }, `and ${count(more, "more rollout")}`) : null,
  );
}
