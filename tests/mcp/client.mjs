// Like clients.py, with the client of the TypeScript SDK: client.mjs PROGRAM ARGUMENT...
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [command, ...args] = process.argv.slice(2);
const answers = ["accept", "decline"];
const client = new Client({ name: "test", version: "1" }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, async (request) => {
  console.log("asked:", request.params.message);
  return { action: answers.shift(), content: {} };
});
await client.connect(new StdioClientTransport({ command, args }));
const { tools } = await client.listTools();
console.log("tools:", tools.map((tool) => tool.name).sort().join(" "));
const calls = [
  ["count", { text: "äöü" }],
  ["count", { txt: "a" }],
  ["broken", {}],
  ["careful", { path: "a" }],
  ["careful", { path: "b" }],
  ["missing", {}],
];
for (const [name, toolArguments] of calls) {
  try {
    const onprogress = ({ progress, total, message }) => console.log("progress:", progress, total, message);
    const result = await client.callTool({ name, arguments: toolArguments }, undefined, { onprogress });
    console.log(`${name}: ${result.isError ? "failed: " : ""}${result.content[0].text}`);
  } catch (error) {
    console.log(`${name}: ${error.message}`);
  }
}
await client.close();
