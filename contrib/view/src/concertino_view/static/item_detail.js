// One item, opened: its facts, and its sections of text with marks at the places of format issues.

import { count, el, happenedTo, money, seconds, statusPill } from "./page_parts.js";
import { tokenStrip } from "./token_strip.js";

const OPEN = 1500; // characters up to which a section is open at first, after the first two sections

export function itemDetail(data, item, sections, go) {
  const parts = [
    el("h2", {}, `${item.name} `, el("span", { class: "dim" }, item.id)),
    el("p", { class: "facts" }, statusPill(item.status), ...factsOf(data, item)),
  ];
  if (item.error) parts.push(el("p", { class: "error" }, item.error));
  const links = linksOf(data, item, go);
  if (links) parts.push(links);
  if (!sections) parts.push(el("p", { class: "dim" }, "Reading …"));
  else if (!sections.length) parts.push(el("p", { class: "dim" }, "Nothing else is on record."));
  else parts.push(...sections.map((section, place) => sectionOf(section, place < 2, () => data.trained(item))));
  return parts;
}

function factsOf(data, item) {
  const facts = [item.kind];
  if (item.started !== null) facts.push(`began at ${seconds(item.started)}`, `took ${seconds(data.took(item))}`);
  if (item.usd) facts.push(money(item.usd));
  if (item.tokens) facts.push(count(item.tokens, "token"));
  facts.push(happenedTo(item));
  if (item.note) facts.push(item.note);
  if (data.critical.has(item.index)) facts.push("on the critical path");
  return facts.filter(Boolean).map((fact) => el("span", {}, fact));
}

function linksOf(data, item, go) {
  const link = (index) => {
    const other = data.items[index];
    return el("button", { class: "link", type: "button", on: { click: () => go(index) } }, `${other.id} ${other.name}`);
  };
  const parts = [];
  if (item.parent >= 0) parts.push("inside ", link(item.parent), " ");
  if (item.after.length) parts.push("after ", ...item.after.slice(0, 12).flatMap((index) => [link(index), " "]));
  if (item.after.length > 12) parts.push(`and ${item.after.length - 12} more`);
  return parts.length ? el("p", {}, ...parts) : null;
}

function sectionOf([title, text, marks, tokens], first, trained) {
  const open = first || text.length <= OPEN;
  const more = marks.length ? `, ${count(marks.length, "format issue")}` : "";
  return el(
    "details",
    { open },
    el("summary", {}, `${title} `, el("span", { class: "dim" }, `${count(text.length, "character")}${more}`)),
    el("pre", { tabindex: 0 }, ...markedText(text, marks)),
    tokens ? tokenStrip(tokens, trained()) : null,
    marks.length ? el("ul", {}, ...marks.map((mark) => el("li", {}, mark[2]))) : null,
  );
}

// Offsets of Python count characters, those of JavaScript halves of some; so a text with such is cut as a list.
export function markedText(text, marks) {
  if (!marks.length) return [text];
  const letters = Array.from(text);
  const parts = [];
  let at = 0;
  for (const [start, end, message] of [...marks].sort((a, b) => a[0] - b[0])) {
    if (start < at) continue;
    parts.push(letters.slice(at, start).join(""));
    const stop = Math.max(end, start + 1);
    parts.push(el("mark", { title: message }, letters.slice(start, stop).join("") || "⁁"));
    at = stop;
  }
  parts.push(letters.slice(at).join(""));
  return parts;
}
