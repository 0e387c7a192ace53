// The tool `add` of the MCP SDK. Argument: a port for streamable HTTP; without it, the server uses stdin and stdout.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const server = new McpServer({ name: "peer", version: "1" });
const numbers = { a: z.number().int(), b: z.number().int() };
server.registerTool("add", { description: "Add two numbers.", inputSchema: numbers }, ({ a, b }) => ({
  content: [{ type: "text", text: JSON.stringify({ sum: a + b }) }],
}));
const port = process.argv[2];
if (port) {
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID });
  await server.connect(transport);
  createServer((request, response) => transport.handleRequest(request, response)).listen(Number(port), "127.0.0.1");
} else {
  await server.connect(new StdioServerTransport());
}
