// Where the pages of a server stand, below which all their addresses begin: "/", or "/view/" in `concertino serve`.

import { el } from "./page_parts.js";

export const SITE = new URL("..", import.meta.url).pathname;

export function runAddress(id, item = -1) {
  return `${SITE}run/${encodeURIComponent(id)}${item >= 0 ? `?item=${item}` : ""}`;
}

export function compareAddress(a, b) {
  return `${SITE}compare?${new URLSearchParams({ a, b })}`;
}

export function allRuns() {
  return el("a", { href: SITE }, "all runs");
}
