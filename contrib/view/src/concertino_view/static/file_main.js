// The page in one file: its data stand in the document, the bodies of items in blocks that are read when they are opened.

import { showRun } from "./run_view.js";

const blocks = new Map();
const held = (id) => JSON.parse(document.getElementById(id).textContent);
const first = held("run-data");
const source = {
  start: async () => first.patch,
  body: async (index) => {
    const block = Math.floor(index / first.block);
    if (!blocks.has(block)) blocks.set(block, held(`bodies-${block}`));
    return blocks.get(block)[index % first.block];
  },
};
showRun(document.getElementById("page"), source);
