// What the page knows of a run: the items of all patches, their order in the list, and their lanes on the timeline.
// It touches no document, so it is tested without a browser. The order of a row is that of `Item.to_row` in Python.

const FIELDS = [
  "index", "id", "name", "kind", "parent", "round", "started", "ended", "status", "label", "error", "note", "usd",
  "tokens", "units", "calls", "after", "marks",
];
const MOST_LANES = 120;
const SPENT = { usd: "usd", units: "units", tokens: "tokens", calls: "calls" }; // limits that items use up

export const FAILED = new Set(["PARSE_ERR", "EXEC_ERR", "TIMEOUT"]);

export class RunData {
  constructor() {
    this.items = [];
    this.head = null;
    this.told = new Map(); // rounds by number: [number, at, thought, issues]
    this.version = 0;
    this.critical = new Set();
    this.ordered = null;
    this.byRound = null;
  }

  apply(patch) {
    for (const row of patch.items) {
      const item = {};
      for (let place = 0; place < FIELDS.length; place += 1) item[FIELDS[place]] = row[place];
      item.marks = pairs(item.marks);
      this.items[item.index] = item;
    }
    for (const [index, label, error] of patch.texts) Object.assign(this.items[index], { label, error });
    for (const round of patch.rounds) this.told.set(round[0], round);
    this.head = patch.head;
    this.version = patch.version;
    this.critical = new Set(patch.head.critical);
    if (patch.items.length) [this.ordered, this.byRound] = [null, null];
  }

  // Items by round, the rounds in their order; what comes before a plan and after the last one has numbers of its own.
  get rounds() {
    if (!this.byRound) {
      const found = new Map();
      for (const item of this.items) {
        const among = found.get(item.round);
        if (among) among.push(item);
        else found.set(item.round, [item]);
      }
      this.byRound = new Map([...found].sort((a, b) => a[0] - b[0]));
    }
    return this.byRound;
  }

  // The end of everything on record, in seconds since the begin of the run; never 0.
  get end() {
    let latest = this.head ? this.head.seconds : 0;
    for (const item of this.items) latest = Math.max(latest, item.ended ?? item.started ?? 0);
    return latest || 0.001;
  }

  endOf(item) {
    return item.ended ?? (item.started === null ? null : Math.max(item.started, this.head.seconds));
  }

  took(item) {
    return item.started === null ? null : this.endOf(item) - item.started;
  }

  // Rounds and items in the order of the list, as {round} or {item, depth}; those that a filter lets through.
  rows(filter) {
    const passes = filter || (() => true);
    const rows = [];
    let number = null;
    for (const { item, depth } of this.inOrder()) {
      if (!passes(item)) continue;
      if (item.round !== number) {
        number = item.round;
        rows.push({ round: number });
      }
      rows.push({ item, depth });
    }
    return rows;
  }

  inOrder() {
    if (this.ordered) return this.ordered;
    const inside = new Map();
    for (const item of this.items) {
      const among = inside.get(item.parent);
      if (among) among.push(item);
      else inside.set(item.parent, [item]);
    }
    const found = [];
    const top = (inside.get(-1) || []).slice();
    // The request that planned a round stands before its calls.
    top.sort((a, b) => a.round - b.round || rank(a) - rank(b) || a.index - b.index);
    const below = (items, depth) => {
      for (const item of items) {
        found.push({ item, depth });
        const within = inside.get(item.index);
        if (within) below(within, depth + 1);
      }
    };
    below(top, 0);
    this.ordered = found;
    return found;
  }

  // How each limit of the budget was used up: [{name, limit, used, points: [[seconds, used], ...]}]. An item counts when
  // it ends, as in the ledger. What agents used holds what the calls inside them used, so only top items are added.
  budget() {
    const spent = this.items.filter((item) => item.parent < 0 && item.ended !== null).sort((a, b) => a.ended - b.ended);
    return this.head.limits.map(([name, used, limit]) => {
      const points = [[0, 0]];
      const add = (at, by) => { if (by) points.push([at, points[points.length - 1][1] + by]); };
      if (name === "seconds") points.push([used, used]);
      else if (name === "rounds") for (const [, at] of [...this.told.values()].sort((a, b) => a[1] - b[1])) add(at, 1);
      else if (name in SPENT) for (const item of spent) add(item.ended, item[SPENT[name]]);
      return { name, limit, used, points };
    });
  }

  // What was trained of a request's reply, as {advantage, leftOut, drift}; null if that is not on record. A training counts the
  // replies of a run from 1.
  trained(item) {
    const rows = this.head.training ? this.head.training.rows : [];
    const replies = this.items.filter((each) => each.kind === "request" && each.status === "OK" && each.index < item.index);
    const row = rows.find(([turns]) => turns.includes(replies.length + 1));
    return row ? { advantage: row[1], leftOut: row[2], drift: row[3][row[0].indexOf(replies.length + 1)] } : null;
  }

  // The lane of each item by index: requests have the first, others the first that is free when they begin.
  lanes() {
    const begun = this.items.filter((item) => item.started !== null);
    begun.sort((a, b) => a.started - b.started || a.index - b.index);
    const free = [Infinity];
    const lane = new Map();
    for (const item of begun) {
      if (item.kind === "request") {
        lane.set(item.index, 0);
        continue;
      }
      let place = free.findIndex((until) => until <= item.started);
      if (place < 0) place = free.length < MOST_LANES ? free.length : 1 + (item.index % (MOST_LANES - 1));
      free[place] = this.endOf(item);
      lane.set(item.index, place);
    }
    return { lane, count: Math.max(1, free.length) };
  }
}

function pairs(flat) {
  const found = [];
  for (let place = 0; place < flat.length; place += 2) found.push({ kind: flat[place], at: flat[place + 1] });
  return found;
}

function rank(item) {
  return item.kind === "request" ? 0 : 1;
}

const PASSES = {
  failed: (item) => FAILED.has(item.status),
  critical: (item, critical) => critical.has(item.index),
  retry: (item) => item.marks.some((mark) => mark.kind === "retry"),
  stall: (item) => item.marks.some((mark) => mark.kind === "stall"),
  approval: (item) => item.marks.some((mark) => mark.kind === "approval"),
};

// A filter by words, which must all occur, and by choice: "" for all, one of `PASSES`, or a status.
export function makeFilter(words, choice, critical) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (!wanted.length && !choice) return null;
  const chosen = PASSES[choice] || ((item) => item.status === choice);
  return (item) => {
    if (choice && !chosen(item, critical)) return false;
    if (!wanted.length) return true;
    const text = `${item.id} ${item.name} ${item.kind} ${item.label} ${item.error} ${item.note}`.toLowerCase();
    return wanted.every((word) => text.includes(word));
  };
}
