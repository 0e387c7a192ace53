// Like clients.py, with the clients of both versions of the TypeScript SDK: "v1" (2025-11-25) and "v2" (2026-07-28).
import { renameSync, writeFileSync } from "node:fs";

const [version, command, ...args] = process.argv.slice(2);
const isV1 = version === "v1";
const name = isV1 ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client";
const stdio = isV1 ? "@modelcontextprotocol/sdk/client/stdio.js" : "@modelcontextprotocol/client/stdio";
const http = isV1 ? "@modelcontextprotocol/sdk/client/streamableHttp.js" : "@modelcontextprotocol/client";
const [{ Client }, { StdioClientTransport }, { StreamableHTTPClientTransport }] = await Promise.all(
  [name, stdio, http].map((module) => import(module)),
);
const types = isV1 ? await import("@modelcontextprotocol/sdk/types.js") : {};
const meta = isV1 ? {} : { _meta: { "io.modelcontextprotocol/logLevel": "info" } };

let report;
const changed = new Promise((resolve) => (report = () => resolve("ToolsListChanged()")));
const answers = ["accept", "decline"];
const client = new Client(
  { name: "test", version: "1" },
  {
    capabilities: { elicitation: {} },
    versionNegotiation: { mode: "auto" },
    listChanged: { tools: { onChanged: () => report() } },
  },
);
client.setRequestHandler(types.ElicitRequestSchema ?? "elicitation/create", async (request) => {
  console.log("asked:", request.params.message);
  return { action: answers.shift(), content: {} };
});
client.setNotificationHandler(types.LoggingMessageNotificationSchema ?? "notifications/message", ({ params }) =>
  console.log("log:", params.logger, params.level, params.data),
);
const requestInit = { headers: { Authorization: "Bearer secret" } };
await client.connect(
  command.startsWith("http")
    ? new StreamableHTTPClientTransport(new URL(command), { requestInit })
    : new StdioClientTransport({ command, args }),
);
const { tools } = await client.listTools();
console.log("tools:", tools.map((tool) => tool.name).sort().join(" "));

const shown = (value) => JSON.stringify(value).replace(":", ": ");
const call = (name, toolArguments) => {
  const onprogress = ({ progress, total, message }) => console.log("progress:", progress, total, message);
  const params = { name, arguments: toolArguments, ...meta };
  return isV1 ? client.callTool(params, undefined, { onprogress }) : client.callTool(params, { onprogress });
};
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
    const result = await call(name, toolArguments);
    console.log(`${name}: ${result.isError ? "failed: " : ""}${result.content[0].text}`);
    if (result.structuredContent) console.log("structured:", shown(result.structuredContent));
  } catch (error) {
    console.log(`${name}: ${error.message}`);
  }
}
const project = args.at(-1);
writeFileSync(`${project}/saved.lua`, "return function(text) return { length = #text } end\n");
renameSync(`${project}/saved.lua`, `${project}/scripts/count.lua`);
console.log(await changed);
const { structuredContent } = await call("count", { text: "ab" });
console.log(`count: ${shown(structuredContent)}`);
await client.close();
