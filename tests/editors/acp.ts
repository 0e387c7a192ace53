// A client of `deftool acp` with the library of the Agent Client Protocol. Arguments: the folder of the session, the command.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { client, type ClientContext, methods, ndJsonStream, type PromptRequest, type SessionUpdate } from "@agentclientprotocol/sdk";

const [cwd, command, ...args] = process.argv.slice(2);

function show(update: SessionUpdate) {
  switch (update.sessionUpdate) {
    case "user_message_chunk":
    case "agent_message_chunk":
      if (update.content.type === "text") console.log(update.sessionUpdate, update.content.text);
      break;
    case "tool_call":
      console.log("call", update.title, update.status ?? "", update.rawInput);
      break;
    case "tool_call_update":
      console.log("update", update.status, update.rawOutput ?? "");
      break;
    default:
      console.log(update.sessionUpdate);
  }
}

/** Starts the agent, and runs `work` with a connection to it. */
async function connect<T>(work: (agent: ClientContext) => Promise<T>): Promise<T> {
  const agent = spawn(command!, args, { stdio: ["pipe", "pipe", "inherit"] });
  const stream = ndJsonStream(
    Writable.toWeb(agent.stdin) as WritableStream<Uint8Array>,
    Readable.toWeb(agent.stdout) as ReadableStream<Uint8Array>,
  );
  const app = client({ name: "test" })
    .onNotification(methods.client.session.update, ({ params }) => show(params.update))
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      console.log("asked", params.toolCall.title, params.options.map((option) => option.kind).join(" "));
      return { outcome: { outcome: "selected", optionId: params.options[0]!.optionId } };
    });
  const result = await app.connectWith(stream, async (agent) => {
    const initialized = await agent.request(methods.agent.initialize, {
      protocolVersion: 1,
      clientCapabilities: {},
    });
    console.log("agent", initialized.agentInfo?.name, initialized.protocolVersion);
    return work(agent);
  });
  agent.stdin.end();
  console.log("exit", await new Promise((resolve) => agent.on("exit", resolve)));
  return result;
}

const sessionId = await connect(async (agent) => {
  const { sessionId } = await agent.request(methods.agent.session.new, { cwd: cwd!, mcpServers: [] });
  const prompt: PromptRequest = { sessionId, prompt: [{ type: "text", text: "How long is abcd?" }] };
  const { stopReason } = await agent.request(methods.agent.session.prompt, prompt);
  console.log("stop", stopReason);
  const canceled = agent.request(methods.agent.session.prompt, prompt);
  await agent.notify(methods.agent.session.cancel, { sessionId });
  console.log("stop", (await canceled).stopReason);
  return sessionId;
});
await connect((agent) => agent.request(methods.agent.session.load, { sessionId, cwd: cwd!, mcpServers: [] }));
