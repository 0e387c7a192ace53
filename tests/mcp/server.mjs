// A server of the TypeScript SDK with the tool `add`, like that of server.py, and one with a tuple.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "test", version: "1" });
const config = { description: "Add two numbers.", inputSchema: { a: z.number().int(), b: z.number().int() } };
server.registerTool("add", config, ({ a, b }) => ({ content: [{ type: "text", text: String(a + b) }] }));
const pair = { description: "Join a pair.", inputSchema: { pair: z.tuple([z.string(), z.number().int()]) } };
server.registerTool("join", pair, ({ pair }) => ({ content: [{ type: "text", text: pair.join(" ") }] }));
await server.connect(new StdioServerTransport());
