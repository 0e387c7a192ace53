// Holds a conversation of TURNS turns with a tool call in each, with the openai package. Arguments: URL TURNS.
import OpenAI from "openai";

const [baseURL, turns] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
const parameters = { type: "object", properties: { location: { type: "string" } }, required: ["location"] };
const tools = [{ type: "function", function: { name: "get_weather", description: "The weather.", parameters } }];
const messages = [{ role: "user", content: turns }];
for (;;) {
  const stream = await client.chat.completions.create({ model: "stub", messages, tools, stream: true });
  const calls = [];
  for await (const chunk of stream) calls.push(...(chunk.choices[0]?.delta?.tool_calls ?? []));
  if (calls.length === 0) break;
  messages.push({ role: "assistant", content: "", tool_calls: calls.map(({ index, ...call }) => call) });
  for (const call of calls) {
    const { location } = JSON.parse(call.function.arguments);
    const content = JSON.stringify({ location, temperature: 21 });
    messages.push({ role: "tool", tool_call_id: call.id, content });
  }
}
