// The chat page: asks, shows calls while they are made, has the reader decide about those that need approval, stops, and
// opens the run on a page of its own or saves it as one. Every text that comes from the server becomes a text node, so none
// of it can be markup.

const part = (id) => document.getElementById(id);
let previous = null, running = null;

function headers(more = {}) {
  const key = part("key").value;
  return key ? { ...more, authorization: `Bearer ${key}` } : more;
}

async function call(path, options = {}) {
  const answer = await fetch(path, { ...options, headers: headers(options.headers) });
  if (answer.status === 401) part("locked").hidden = false;
  if (!answer.ok) {
    const said = await answer.json().catch(() => ({}));
    throw new Error(said.error?.message ?? `the server answered ${answer.status}`);
  }
  return answer;
}

function add(parent, kind, text) {
  const line = document.createElement("p");
  line.className = kind;
  line.textContent = text;
  parent.append(line);
  return line;
}

async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const frames = (held + value).split("\n\n");
    held = frames.pop();
    for (const frame of frames) {
      const data = frame.split("\n").find((line) => line.startsWith("data: "));
      if (data) yield JSON.parse(data.slice(6));
    }
  }
}

function show(turn, calls, waiting, event) {
  const item = event.item;
  switch (event.type) {
    case "response.created":
      running = event.response.id;
      part("stop").disabled = false;
      break;
    case "response.mcp_call_arguments.done":
      calls.get(event.item_id).append(` ${event.arguments}`);
      break;
    case "response.output_item.added":
      if (item.type === "mcp_call") calls.set(item.id, add(turn, "call", item.name));
      else if (item.type === "message") calls.set(item.id, add(turn, "answer", ""));
      break;
    case "response.output_item.done":
      if (item.type === "mcp_call") {
        const line = calls.get(item.id);
        line.classList.add(item.status);
        line.title = item.output ?? item.error?.content?.[0]?.text ?? "";
      } else if (item.type === "mcp_approval_request") waiting.push(item);
      break;
    case "response.output_text.delta":
      calls.get(event.item_id).append(event.delta);
      break;
    case "response.completed":
    case "response.incomplete":
      previous = event.response.id;
      finish(turn, event.response);
      break;
    case "response.failed":
      add(turn, "note", event.response.error?.message ?? `The run was ${event.response.status}.`);
      finish(turn, event.response);
  }
}

function finish(turn, response) {
  const usage = response.usage;
  const line = add(turn, "note", usage ? `${usage.total_tokens} tokens, $${usage.usd.toFixed(4)} ` : "");
  const look = () => openPages(`/run/${response.id.split(".")[0]}`);
  const ways = { "Look at the run": look, "Save the trace": () => saveTrace(response.id) };
  for (const [name, does] of Object.entries(ways)) {
    const button = document.createElement("button");
    button.textContent = name;
    button.onclick = () => does().catch((error) => add(turn, "note", error.message));
    line.append(button, " ");
  }
}

// Opens pages of runs beside this one. The browser sends no key with them, so the server gives it a ticket first.
async function openPages(path = "") {
  await call("/view/key", { method: "POST" });
  window.open(`/view${path}`, "_blank", "noopener");
}

async function saveTrace(id) {
  const page = await (await call(`/v1/responses/${id}/trace`)).blob();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(page);
  link.download = `${id}.html`;
  link.click();
  URL.revokeObjectURL(link.href);
}

function decide(turn, waiting) {
  const decisions = [];
  for (const item of waiting) {
    const line = add(turn, "call waits", `${item.name} ${item.arguments} `);
    for (const approve of [true, false]) {
      const button = document.createElement("button");
      button.textContent = approve ? "Approve" : "Deny";
      button.onclick = () => {
        line.replaceChildren(`${item.name} ${item.arguments} was ${approve ? "approved" : "denied"}`);
        line.classList.remove("waits");
        decisions.push({ type: "mcp_approval_response", approval_request_id: item.id, approve });
        if (decisions.length === waiting.length) send(turn, decisions);
      };
      line.append(button, " ");
    }
  }
}

async function send(turn, input) {
  const calls = new Map(), waiting = [];
  part("ask").disabled = true;
  try {
    const body = { model: part("model").value, input, stream: true };
    if (previous) body.previous_response_id = previous;
    const made = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const answer = await call("/v1/responses", made);
    if (typeof input === "string") part("question").value = "";
    for await (const event of events(answer)) show(turn, calls, waiting, event);
  } catch (error) {
    add(turn, "note", error.message);
  }
  running = null;
  part("stop").disabled = true;
  part("ask").disabled = waiting.length > 0;
  decide(turn, waiting);
}

function ask() {
  const turn = document.createElement("article"), question = part("question").value;
  part("talk").append(turn);
  add(turn, "question", question);
  send(turn, question);
}

async function models() {
  const found = (await (await call("/v1/models")).json()).data;
  part("model").replaceChildren(...found.map((model) => new Option(model.id)));
}

part("form").onsubmit = (event) => { event.preventDefault(); ask(); };
part("stop").onclick = () => { if (running) call(`/v1/responses/${running}/cancel`, { method: "POST" }); };
part("runs").onclick = () => openPages().catch((error) => add(part("talk"), "note", error.message));
part("new").onclick = () => {
  previous = null;
  part("ask").disabled = running !== null;
  part("talk").replaceChildren();
};
part("key").onchange = () => models().catch(() => {});
models().catch(() => {});
