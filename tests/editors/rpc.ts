// A client of `deftool rpc` with the library of VS Code and the published types. Arguments: the command.
import { spawn } from "node:child_process";
import {
  CancellationTokenSource,
  createMessageConnection,
  type HandlerResult,
  ParameterStructures,
  ResponseError,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-jsonrpc/node";
import type { Protocol } from "../../docs/schemas/rpc.js";

type Requests = Protocol["requests"];
type Notifications = Protocol["server_notifications"];

const [command, ...args] = process.argv.slice(2);
const server = spawn(command!, args, { stdio: ["pipe", "pipe", "inherit"] });
const connection = createMessageConnection(
  new StreamMessageReader(server.stdout),
  new StreamMessageWriter(server.stdin),
);

function request<M extends keyof Requests>(
  method: M,
  params: Requests[M]["params"],
  canceled = new CancellationTokenSource().token,
): Promise<Requests[M]["result"]> {
  return connection.sendRequest(method, ParameterStructures.byName, params, canceled);
}

function on<M extends keyof Notifications>(method: M, handle: (params: Notifications[M]) => void) {
  connection.onNotification(method, handle);
}

type Approve = Protocol["server_requests"]["approve"];
const answers: Approve["result"][] = [
  { answer: "allowed" },
  { answer: "refused", reason: "not now" },
];
connection.onRequest("approve", ({ text }: Approve["params"]): HandlerResult<Approve["result"], void> => {
  console.log("asked:", text);
  return answers.shift()!;
});
on("log", ({ id, tool, level, text }) => console.log("log:", id, tool, level, text));
on("progress", ({ id, tool, fraction, text }) => console.log("progress:", id, tool, fraction, text));
on("event", ({ event }) => {
  if (event.type === "text") console.log("text:", event.text);
  if (event.type === "tool_finished") console.log("finished:", event.name, event.result);
  if (event.type === "finished") console.log("state:", event.state);
});
const reloaded = new Promise<void>((resolve) => on("reloaded", ({ generation }) => {
  console.log("reloaded:", generation);
  resolve();
}));
connection.listen();

const { tools } = await request("list", {});
console.log("tools:", tools.map(({ name, confirm }) => `${name} ${confirm}`).join(", "));
const { summary } = await request("check", { targets: ["openai"] });
console.log("errors:", summary.errors);
console.log("called:", (await request("call", { tool: "count", arguments: { text: "äöü" }, call_id: "c" })).text);
const path = { path: "a" };
console.log("called:", (await request("call", { tool: "careful", arguments: path })).text);
const failed = (error: unknown) => {
  if (!(error instanceof ResponseError)) throw error;
  const data: Protocol["call_error"] | undefined = error.data;
  console.log("failed:", error.code, data?.kind, error.message);
};
await request("call", { tool: "careful", arguments: path }).catch(failed);
await request("call", { tool: "cuont" }).catch(failed);
const source = new CancellationTokenSource();
const waiting = request("call", { tool: "wait" }, source.token).catch(failed);
source.cancel();
await waiting;
const submitted = await request("submit", { prompt: "Count." });
await request("events", submitted);
const { messages } = await request("result", submitted);
console.log("roles:", messages.map(({ role }) => role).join(" "));
console.log("save");
await reloaded;
const ended = new Promise((resolve) => server.on("exit", resolve));
await request("shutdown", {});
console.log("exit:", await ended);
process.exit(0);
