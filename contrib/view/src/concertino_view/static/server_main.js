// The pages of `concertino view`: the runs, one run, two runs compared.

import { showDifference } from "./difference_view.js";
import { showEvaluations } from "./evaluations_view.js";
import { el } from "./page_parts.js";
import { replayForm } from "./replay_form.js";
import { showRun } from "./run_view.js";
import { showRuns } from "./runs_view.js";

async function asked(address, body) {
  const posted = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(address, body ? posted : {});
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error || answer.statusText);
  return value;
}

// A run of the server: bodies come when they are opened, patches as they are written.
function sourceOf(id) {
  const base = `/api/runs/${encodeURIComponent(id)}`;
  let version = 0;
  return {
    link: (other) => `/run/${encodeURIComponent(other)}`,
    start: async () => {
      const patch = await asked(`${base}/data`);
      version = patch.version;
      return patch;
    },
    body: async (index) => (await asked(`${base}/bodies?from=${index}&to=${index + 1}`))[0],
    follow: (listener, say) => {
      const events = new EventSource(`${base}/events?from=${version}`);
      say("live");
      events.addEventListener("message", (event) => {
        const patch = JSON.parse(event.data);
        say(patch.head.over ? "" : "live");
        listener(patch);
        if (patch.head.over) events.close();
      });
      events.addEventListener("error", () => say("the connection is lost; trying again"));
      return events;
    },
  };
}

async function show() {
  const root = document.getElementById("page");
  const [, kind, id] = location.pathname.split("/");
  try {
    if (kind === "run") {
      const name = decodeURIComponent(id);
      const source = sourceOf(name);
      const first = await source.start();
      await showRun(root, { ...source, start: async () => first, follow: first.head.over ? null : source.follow });
      root.prepend(el("nav", { class: "bar" }, el("a", { href: "/" }, "all runs"),
        el("a", { href: `/api/runs/${encodeURIComponent(name)}/page` }, "save as one file")));
      const { strategies } = await asked("/api/replay");
      if (strategies.length && first.head.over) {
        const ask = (wanted) => asked(`/api/runs/${encodeURIComponent(name)}/replay`, wanted);
        root.querySelector("header").after(replayForm(strategies, first.head, ask));
      }
      const wanted = Number(new URLSearchParams(location.search).get("item") ?? -1);
      if (wanted >= 0) root.dispatchEvent(new CustomEvent("go", { detail: wanted }));
    } else if (kind === "compare") {
      showDifference(root, await asked(`/api/compare${location.search}`), new URLSearchParams(location.search));
    } else if (kind === "evaluations") await showEvaluations(root, asked);
    else await showRuns(root, asked);
  } catch (error) {
    root.replaceChildren(el("h1", {}, "This cannot be shown"), el("p", { class: "error" }, String(error.message)),
      el("p", {}, el("a", { href: "/" }, "all runs")));
  }
}

show();
