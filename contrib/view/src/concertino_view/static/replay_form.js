// The form on the page of a run that asks how it would have ended under another strategy or other settings.

import { el } from "./page_parts.js";

// ask(wanted) gives the replayed end of {strategy, settings}; head is that of the run.
export function replayForm(strategies, head, ask) {
  const recorded = (head.facts.find(([name]) => name === "strategy") || ["", ""])[1];
  const strategy = el(
    "select", { "aria-label": "Strategy" }, el("option", { value: "" }, `${recorded} (as recorded)`),
    ...strategies.filter((each) => each !== recorded).map((each) => el("option", { value: each }, each)),
  );
  const settings = el("input", { type: "search", placeholder: "Settings: max_rounds=1", "aria-label": "Settings, as name=value" });
  const result = el("div", { role: "status" });
  const say = (text) => result.replaceChildren(el("p", { class: "error" }, text));
  const run = async () => {
    result.replaceChildren(el("p", { class: "dim" }, "Replaying …"));
    try {
      result.replaceChildren(...endsOf(head, await ask({ strategy: strategy.value, settings: readSettings(settings.value) })));
    } catch (error) {
      say(error.message);
    }
  };
  settings.addEventListener("keydown", (event) => { if (event.key === "Enter") run(); });
  const button = el("button", { type: "button", on: { click: run } }, "replay");
  return el(
    "details", { class: "replay" }, el("summary", {}, "what if: another strategy or limit"),
    el("div", { class: "bar" }, strategy, settings, button), result,
  );
}

// "max_rounds=1 note=abc" as {max_rounds: 1, note: "abc"}: a value is JSON where it can be, else a text.
export function readSettings(text) {
  const found = {};
  for (const part of text.split(/\s+/).filter(Boolean)) {
    const [name, ...rest] = part.split("=");
    if (!rest.length) throw new Error(`${part}: expected name=value`);
    const value = rest.join("=");
    try {
      found[name] = JSON.parse(value);
    } catch {
      found[name] = value;
    }
  }
  return found;
}

function endsOf(head, end) {
  const cell = (text) => el("td", { class: "long" }, text);
  const row = (name, one, other) => el("tr", {}, el("th", { scope: "row" }, name), cell(one), cell(other));
  const reason = (each) => [each.stop, each.meaning, each.detail].filter(Boolean).join(": ");
  return [
    el("p", {}, end.same ? "It ends as recorded." : "It ends otherwise."),
    el(
      "table", {},
      el("thead", {}, el("tr", {}, ...["", "recorded", "replayed"].map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, row("ended", reason(head), reason(end)), row("answer", head.answer ?? "", end.answer ?? "")),
    ),
  ];
}
