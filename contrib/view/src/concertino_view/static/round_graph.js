// The graph of a round as places of boxes: levels beside each other, the calls of a level below each other, and what
// went on inside an agent within its box. It touches no document. Invariants: no box lies on another that does not
// hold it; a call stands to the right of all that it waits for; at most `MOST_BOXES` boxes, and what is left out is counted.

export const MOST_BOXES = 200;
const WIDE = 190;
const HIGH = 44;
const GAP = 28; // between levels
const BETWEEN = 8; // between the boxes of a level
const PAD = 8;

// opened: indexes of the agents that are open. Gives {width, height, boxes: [{item, x, y, width, height, holds, open}],
// edges: [[from, to], ...] as indexes of items, left: how many calls are left out}.
export function layRound(data, number, opened) {
  const inside = new Map();
  const top = [];
  for (const item of data.rounds.get(number) || []) {
    if (item.parent < 0) top.push(item);
    else if (inside.has(item.parent)) inside.get(item.parent).push(item);
    else inside.set(item.parent, [item]);
  }
  const graph = { boxes: [], edges: [], left: 0, inside, opened };
  const size = layLevel(graph, top, 0, 0);
  return { ...size, boxes: graph.boxes, edges: graph.edges, left: graph.left };
}

function layLevel(graph, items, x, y) {
  let [across, tallest] = [x, 0];
  const laid = new Set();
  for (const level of levelsOf(items)) {
    let [down, widest] = [y, 0];
    for (const item of level) {
      if (graph.boxes.length >= MOST_BOXES) {
        graph.left += 1;
        continue;
      }
      const box = layBox(graph, item, across, down);
      laid.add(item.index);
      down += box.height + BETWEEN;
      widest = Math.max(widest, box.width);
    }
    tallest = Math.max(tallest, down - BETWEEN - y);
    across += widest ? widest + GAP : 0;
  }
  for (const item of items) {
    if (laid.has(item.index)) graph.edges.push(...item.after.filter((each) => laid.has(each)).map((each) => [each, item.index]));
  }
  return { width: Math.max(0, across - GAP - x), height: Math.max(0, tallest) };
}

function layBox(graph, item, x, y) {
  const within = graph.inside.get(item.index) || [];
  const open = within.length > 0 && graph.opened.has(item.index);
  const box = { item, x, y, width: WIDE, height: HIGH, holds: within.length, open };
  graph.boxes.push(box);
  if (open) {
    const size = layLevel(graph, within, x + PAD, y + HIGH + PAD);
    box.width = Math.max(WIDE, size.width + 2 * PAD);
    box.height = HIGH + size.height + 2 * PAD;
  }
  return box;
}

// Items by level: requests first; then each call behind all that it names, and inside an agent, where nothing is named,
// behind all that had ended when it began.
function levelsOf(items) {
  const level = new Map();
  const asked = items.filter((item) => item.kind === "request");
  const first = asked.length && items.length > asked.length ? 1 : 0;
  const named = items.some((item) => item.after.length);
  const rest = items.filter((item) => item.kind !== "request");
  for (const item of asked) level.set(item.index, 0);
  if (named || rest.every((item) => item.parent < 0)) namedLevels(rest, first, level);
  else laterLevels(rest, first, level);
  const levels = [];
  for (const item of items) (levels[level.get(item.index)] ||= []).push(item);
  return levels.filter(Boolean);
}

// Calls are taken when all that they wait for is taken; no plan has calls that wait for each other, but a file may.
function namedLevels(items, first, level) {
  const waiting = new Map(items.map((item) => [item.index, 0]));
  const then = new Map();
  for (const item of items) {
    level.set(item.index, first);
    for (const before of item.after) {
      if (!waiting.has(before)) continue;
      waiting.set(item.index, waiting.get(item.index) + 1);
      if (then.has(before)) then.get(before).push(item.index);
      else then.set(before, [item.index]);
    }
  }
  const free = [...waiting.keys()].filter((index) => !waiting.get(index));
  for (const index of free) {
    for (const next of then.get(index) || []) {
      level.set(next, Math.max(level.get(next), level.get(index) + 1));
      waiting.set(next, waiting.get(next) - 1);
      if (!waiting.get(next)) free.push(next);
    }
  }
}

function laterLevels(items, first, level) {
  const begun = [...items].sort((a, b) => (a.started ?? Infinity) - (b.started ?? Infinity));
  let [number, ended] = [first, Infinity]; // of what stands on this level, the first end
  for (const item of begun) {
    if ((item.started ?? Infinity) >= ended) [number, ended] = [number + 1, Infinity];
    level.set(item.index, number);
    ended = Math.min(ended, item.ended ?? Infinity);
  }
}
