// Reads replies of the Messages API with the TypeScript SDK. The argument is JSON: `address` of the stub, `models`, `tools`,
// whether to `follow` calls, and the `limit` of each in milliseconds. Prints JSON for each model: the content of
// its replies, the last stop reason, and the error that ended it.
import Anthropic from "@anthropic-ai/sdk";

const { address, models, tools, follow, limit } = JSON.parse(process.argv[2]);
const client = new Anthropic({ baseURL: address, apiKey: "none", maxRetries: 0, timeout: limit });

// The SDK parses the input of a call when it is read.
function plain(block) {
  try {
    return JSON.parse(JSON.stringify(block));
  } catch (error) {
    return { type: block.type, name: block.name, input: error.name };
  }
}

async function read(model, result) {
  const messages = [{ role: "user", content: "How is the sea?" }];
  for (;;) {
    const at = result.contents.length;
    const keep = ({ content, stop_reason }) => {
      result.contents[at] = content;
      result.stop = stop_reason;
    };
    const request = { model, max_tokens: 1000, tools, messages };
    if (model === "whole") {
      keep(await client.messages.create(request));
    } else {
      const stream = client.messages.stream(request);
      stream.on("streamEvent", (_, snapshot) => keep(snapshot));
      keep(await stream.finalMessage());
    }
    const calls = result.contents[at].filter((block) => block.type === "tool_use");
    if (!follow || calls.length === 0) return;
    messages.push({ role: "assistant", content: result.contents[at] });
    const results = calls.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: "calm" }));
    messages.push({ role: "user", content: results });
  }
}

async function readWithin(model) {
  const result = { contents: [], stop: null };
  const timeout = new Promise((_, reject) => setTimeout(() => reject(new Error("no end")), limit));
  try {
    await Promise.race([read(model, result), timeout]);
  } catch (error) {
    result.error = error.message === "no end" ? "no end" : `error ${error.constructor.name}`;
  }
  return { ...result, model, contents: result.contents.map((content) => content.map(plain)) };
}

// A reply that fails after its limit.
process.on("unhandledRejection", () => {});
const results = await Promise.all(models.map(readWithin));
// Some streams do not end.
process.stdout.write(JSON.stringify(results), () => process.exit(0));
