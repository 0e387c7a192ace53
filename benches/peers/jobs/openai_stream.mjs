// Prints one streamed reply with the openai package. Arguments: URL PROMPT.
import OpenAI from "openai";

const [baseURL, content] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: "none" });
const stream = await client.chat.completions.create({
  model: "stub",
  messages: [{ role: "user", content }],
  stream: true,
});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? "");
