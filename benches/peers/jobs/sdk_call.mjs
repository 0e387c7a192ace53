// Calls a tool COUNT times through the MCP SDK's client in memory. Argument: COUNT.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { z } from "zod";

const server = new McpServer({ name: "peer", version: "1" });
server.registerTool("add", { inputSchema: { a: z.number().int(), b: z.number().int() } }, ({ a, b }) => ({
  content: [{ type: "text", text: JSON.stringify({ sum: a + b }) }],
}));
const [ours, theirs] = InMemoryTransport.createLinkedPair();
const client = new Client({ name: "peer", version: "1" });
await Promise.all([server.connect(ours), client.connect(theirs)]);
for (let done = 0; done < Number(process.argv[2]); done++) {
  await client.callTool({ name: "add", arguments: { a: 1, b: 2 } });
}
await client.close();
