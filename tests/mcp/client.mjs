// Like clients.py, with the client of the TypeScript SDK: client.mjs PROGRAM ARGUMENT... PROJECT
import { renameSync, writeFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

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
const changed = new Promise((resolve) =>
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve("ToolsListChanged()")),
);
const project = args.at(-1);
writeFileSync(`${project}/saved.lua`, "return function(text) return #text end\n");
renameSync(`${project}/saved.lua`, `${project}/scripts/count.lua`);
console.log(await changed);
const { content } = await client.callTool({ name: "count", arguments: { text: "ab" } });
console.log(`count: ${content[0].text}`);
await client.close();
