// Reads COUNT streams of 50 tokens a second at once with the openai package. Arguments: URL COUNT SECONDS.
import OpenAI from "openai";

const [baseURL, count, seconds] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
async function read(number) {
  const messages = [{ role: "user", content: `stream ${number} ${seconds}` }];
  const stream = await client.chat.completions.create({ model: "stub", messages, stream: true });
  for await (const chunk of stream) chunk.choices[0]?.delta?.content;
}
await Promise.all(Array.from({ length: Number(count) }, (_, number) => read(number)));
