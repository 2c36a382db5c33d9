// The pages of a server: the runs, one run, two runs compared. Where it wants a key, the page asks for it once.

import { showDifference } from "./difference_view.js";
import { showEvaluations } from "./evaluations_view.js";
import { el } from "./page_parts.js";
import { replayForm } from "./replay_form.js";
import { showRun } from "./run_view.js";
import { showRuns } from "./runs_view.js";
import { allRuns, runAddress, SITE } from "./site.js";

// address: below the site.
async function asked(address, body) {
  const posted = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(SITE + address, body ? posted : {});
  const value = await answer.json();
  if (answer.status === 401) {
    askForKey(document.getElementById("page"));
    return new Promise(() => {}); // the page begins again with the key
  }
  if (!answer.ok) throw new Error(value.error?.message || value.error || answer.statusText);
  return value;
}

// A run of the server: bodies come when they are opened, patches as they are written.
function sourceOf(id) {
  const base = `api/runs/${encodeURIComponent(id)}`;
  let version = 0;
  return {
    link: (other) => runAddress(other),
    start: async () => {
      const patch = await asked(`${base}/data`);
      version = patch.version;
      return patch;
    },
    body: async (index) => (await asked(`${base}/bodies?from=${index}&to=${index + 1}`))[0],
    follow: (listener, say) => {
      const events = new EventSource(`${SITE}${base}/events?from=${version}`);
      const state = (patch) => (patch.more ? "reading" : patch.head.over ? "" : "live");
      say("live");
      events.addEventListener("message", (event) => {
        const patch = JSON.parse(event.data);
        say(state(patch));
        listener(patch);
        if (patch.head.over && !patch.more) events.close();
      });
      events.addEventListener("error", () => say("the connection is lost; trying again"));
      return events;
    },
  };
}

function askForKey(root) {
  const key = el("input", { type: "password", autocomplete: "off", "aria-label": "Key", on: { keydown: (event) => { if (event.key === "Enter") open(); } } });
  const told = el("p", { class: "error", role: "status" });
  const open = async () => {
    const answer = await fetch(`${SITE}key`, { method: "POST", headers: { Authorization: `Bearer ${key.value}` } });
    if (answer.ok) location.reload();
    else told.textContent = "The server does not know this key.";
  };
  root.replaceChildren(
    el("h1", {}, "This server wants a key"), el("p", {}, "Its pages show the runs that were begun with this key."),
    el("div", { class: "bar" }, key, el("button", { type: "button", on: { click: open } }, "Open")), told,
  );
  key.focus();
}

async function show() {
  const root = document.getElementById("page");
  const [kind, id] = location.pathname.slice(SITE.length).split("/");
  try {
    if (kind === "run") {
      const name = decodeURIComponent(id);
      const source = sourceOf(name);
      const first = await source.start();
      await showRun(root, { ...source, start: async () => first, follow: first.head.over && !first.more ? null : source.follow });
      root.prepend(el("nav", { class: "bar" }, allRuns(),
        el("a", { href: `${SITE}api/runs/${encodeURIComponent(name)}/page` }, "save as one file")));
      const { strategies } = await asked("api/replay");
      if (strategies.length && first.head.over) {
        const ask = (wanted) => asked(`api/runs/${encodeURIComponent(name)}/replay`, wanted);
        root.querySelector("header").after(replayForm(strategies, first.head, ask));
      }
      const wanted = Number(new URLSearchParams(location.search).get("item") ?? -1);
      if (wanted >= 0) root.dispatchEvent(new CustomEvent("go", { detail: wanted }));
    } else if (kind === "compare") {
      showDifference(root, await asked(`api/compare${location.search}`), new URLSearchParams(location.search));
    } else if (kind === "evaluations") await showEvaluations(root, asked);
    else await showRuns(root, asked);
  } catch (error) {
    root.replaceChildren(el("h1", {}, "This cannot be shown"), el("p", { class: "error" }, String(error.message)),
      el("p", {}, allRuns()));
  }
}

show();
