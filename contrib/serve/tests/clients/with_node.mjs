// OpenAI's client for node, and the AI SDK. The first argument is the folder of their packages.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const find = createRequire(pathToFileURL(process.argv[2] + "/node_modules/"));
const load = (name) => import(pathToFileURL(find.resolve(name)));
const { default: OpenAI } = await load("openai");
const { createOpenAI } = await load("@ai-sdk/openai");
const { generateText, streamText, Output, jsonSchema } = await load("ai");

const ASK = "What does a kilo cost?", ANSWER = "A kilo costs $4, says the shop.";
const SCHEMA_ASK = "Give the price as an object.", model = "helper";
const messages = [{ role: "user", content: ASK }];
const PRICE = {
  type: "object", properties: { usd: { type: "integer" } }, required: ["usd"], additionalProperties: false,
};
const client = new OpenAI();
const sdk = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL, apiKey: process.env.OPENAI_API_KEY });

function same(found, expected = ANSWER) {
  if (JSON.stringify(found) !== JSON.stringify(expected)) {
    throw new Error(`${JSON.stringify(found)}; expected ${JSON.stringify(expected)}`);
  }
}

async function joined(stream) {
  let text = "";
  for await (const piece of stream) text += piece;
  return text;
}

const trials = {
  async openai_models() {
    const names = [];
    for await (const each of await client.models.list()) names.push(each.id);
    same(names, ["helper"]);
  },
  async openai_chat() {
    same((await client.chat.completions.create({ model, messages })).choices[0].message.content);
  },
  async openai_chat_stream() {
    let text = "";
    for await (const chunk of await client.chat.completions.create({ model, messages, stream: true })) {
      text += chunk.choices[0]?.delta?.content ?? "";
    }
    same(text);
  },
  async openai_chat_schema() {
    const form = { type: "json_schema", json_schema: { name: "price", schema: PRICE, strict: true } };
    const asked = [{ role: "user", content: SCHEMA_ASK }];
    const got = await client.chat.completions.parse({ model, messages: asked, response_format: form });
    same(JSON.parse(got.choices[0].message.content), { usd: 4 });
  },
  async openai_response() {
    const got = await client.responses.create({ model, input: ASK });
    same(got.output_text);
    same((await client.responses.retrieve(got.id)).status, "completed");
  },
  async openai_response_stream() {
    const stream = client.responses.stream({ model, input: ASK });
    let text = "";
    for await (const event of stream) if (event.type === "response.output_text.delta") text += event.delta;
    same(text);
    same((await stream.finalResponse()).output_text);
  },
  async openai_cancel() {
    const begun = await client.responses.create({ model, input: "Take long.", background: true });
    same((await client.responses.cancel(begun.id)).status, "cancelled");
  },
  async ai_chat() { same((await generateText({ model: sdk.chat(model), prompt: ASK })).text); },
  async ai_chat_stream() { same(await joined(streamText({ model: sdk.chat(model), prompt: ASK }).textStream)); },
  async ai_chat_schema() {
    const output = Output.object({ schema: jsonSchema(PRICE) });
    same((await generateText({ model: sdk.chat(model), prompt: SCHEMA_ASK, output })).output, { usd: 4 });
  },
  async ai_response() { same((await generateText({ model: sdk.responses(model), prompt: ASK })).text); },
  async ai_response_stream() {
    same(await joined(streamText({ model: sdk.responses(model), prompt: ASK }).textStream));
  },
  async ai_response_schema() {
    const output = Output.object({ schema: jsonSchema(PRICE) });
    same((await generateText({ model: sdk.responses(model), prompt: SCHEMA_ASK, output })).output, { usd: 4 });
  },
};

const said = {};
for (const [name, run] of Object.entries(trials)) {
  try {
    await run();
    said[name] = "ok";
  } catch (error) {
    said[name] = String(error.stack).slice(0, 800);
  }
}
process.stdout.write(JSON.stringify(said));
