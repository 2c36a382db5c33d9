// Elements and texts. Invariant: a text becomes a text node, never markup; no attribute takes a text of a run but
// `title` and `aria-label`, which browsers do not interpret.

export const STATUSES = ["OK", "PARSE_ERR", "EXEC_ERR", "TIMEOUT", "running", "waiting"];
const MARKS = { OK: "✓", PARSE_ERR: "¶", EXEC_ERR: "✗", TIMEOUT: "◷", running: "▸", waiting: "·" };

// What happened to an item: a sign for bars and rows, and its word.
export const HAPPENED = {
  retry: ["↻", "repeated"], stall: ["‖", "stalled"], approval: ["?", "asked a person"], approved: ["✓", "approved"],
  denied: ["✗", "denied"],
};

// Words for all marks of an item, "↻ repeated 2×, ✓ approved"; or its signs alone.
export function happenedTo(item, brief = false) {
  const times = new Map();
  for (const { kind } of item.marks) times.set(kind, (times.get(kind) || 0) + 1);
  const told = ([kind, number]) => `${HAPPENED[kind][0]} ${HAPPENED[kind][1]}${number > 1 ? ` ${number}×` : ""}`;
  return brief ? [...times.keys()].map((kind) => HAPPENED[kind][0]).join("") : [...times].map(told).join(", ");
}

export function el(tag, settings = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(settings)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    } else if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(name, value === true ? "" : String(value));
    }
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function statusPill(status) {
  const known = STATUSES.includes(status) ? status : "waiting";
  return el("span", { class: `pill s-${known}` }, `${MARKS[known]} ${status}`);
}

export function seconds(value) {
  if (value === null || value === undefined) return "";
  if (value === 0) return "0 s";
  if (value < 0.0995) return `${(value * 1000).toFixed(value < 0.00995 ? 1 : 0)} ms`;
  if (value < 60) return `${value.toFixed(value < 10 ? 2 : 1)} s`;
  const minutes = Math.floor(value / 60);
  return minutes < 60
    ? `${minutes} min ${Math.floor(value % 60)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function money(usd) {
  if (!usd) return usd === 0 ? "$0" : "";
  return usd < 0.0001 ? "< $0.0001" : `$${usd.toFixed(usd < 1 ? 4 : 2)}`;
}

export function count(number, word) {
  return `${Number(number).toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
}

export function moment(since1970) {
  return since1970 ? new Date(since1970 * 1000).toISOString().slice(0, 19).replace("T", " ") + " UTC" : "";
}
