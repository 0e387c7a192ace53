// Connections to `deftool rpc`, one for each project.
import { type ChildProcess, spawn } from "node:child_process";
import { type Disposable, type OutputChannel, window } from "vscode";
import {
  type CancellationToken,
  createMessageConnection,
  type MessageConnection,
  ParameterStructures,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-languageclient/node";
import type { Approval, ApproveParams, EventParams, Protocol } from "../../../docs/schemas/rpc";
import { program, reportStartFailure, setting } from "./client";

type Requests = Protocol["requests"];
type Notifications = Protocol["server_notifications"];

/** Receives what the server reports about one request. */
export interface RequestListener {
  event(event: EventParams["event"]): void;
  /** A log line, or the progress of a script. */
  log(text: string): void;
  /** Asks the user to approve a call. `canceled`: the answer is no longer needed. */
  approve(params: ApproveParams, canceled: CancellationToken): Promise<Approval>;
}

/** A running `deftool rpc`. */
export class Server {
  readonly listeners = new Map<string, RequestListener>();
  private readonly process: ChildProcess;
  private readonly connection: MessageConnection;

  constructor(
    readonly root: string,
    private readonly output: OutputChannel,
    onEnd: () => void,
  ) {
    const server = spawn(program(), ["rpc", "-C", root, ...setting<string[]>("rpcArguments", [])]);
    this.process = server;
    this.connection = createMessageConnection(
      new StreamMessageReader(server.stdout),
      new StreamMessageWriter(server.stdin),
    );
    server.stderr.setEncoding("utf8").on("data", (text: string) => output.append(text));
    server.on("error", (error) => void reportStartFailure(error));
    server.on("close", (code) => {
      this.connection.dispose();
      onEnd();
      // A program that was not started has a negative code, and its error was reported.
      if (code !== null && code > 0) {
        output.show(true);
        void window.showErrorMessage(`deftool rpc has ended with exit code ${code}; see its output.`);
      }
    });
    // The end of the process is reported above.
    this.connection.onError(() => {});
    this.connection.onRequest<Approval, void>("approve", (params: ApproveParams, canceled: CancellationToken) => {
      const listener = this.listeners.get(params.request_id);
      return listener ? listener.approve(params, canceled) : askInDialog(params);
    });
    this.on("event", ({ request_id, event }) => this.listeners.get(request_id)?.event(event));
    this.on("log", ({ id, tool, level, text }) => this.log(id, `${level}: ${tool}: ${text}`));
    this.on("progress", ({ id, tool, fraction, text }) => {
      const percent = fraction === undefined ? "" : `${Math.round(fraction * 100)} % `;
      this.log(id, `${tool}: ${percent}${text}`);
    });
    this.on("reloaded", ({ changes, error }) => output.appendLine(error ?? changes));
    this.connection.listen();
  }

  request<M extends keyof Requests>(
    method: M,
    params: Requests[M]["params"],
    canceled?: CancellationToken,
  ): Promise<Requests[M]["result"]> {
    return canceled
      ? this.connection.sendRequest(method, ParameterStructures.byName, params, canceled)
      : this.connection.sendRequest(method, ParameterStructures.byName, params);
  }

  /** Ends the server: it stops when its input ends. */
  stop(): void {
    this.process.stdin?.end();
  }

  private on<M extends keyof Notifications>(method: M, handle: (params: Notifications[M]) => void): void {
    this.connection.onNotification(method, handle);
  }

  private log(id: string, text: string): void {
    const listener = this.listeners.get(id);
    if (listener) listener.log(text);
    else this.output.appendLine(text);
  }
}

/** The running servers. */
export class Servers implements Disposable {
  private readonly running = new Map<string, Server>();

  constructor(private readonly output: OutputChannel) {}

  /** Returns the server of a project; starts it if necessary. */
  get(root: string): Server {
    const running = this.running.get(root);
    if (running) return running;
    const server: Server = new Server(root, this.output, () => {
      if (this.running.get(root) === server) this.running.delete(root);
    });
    this.running.set(root, server);
    return server;
  }

  /** Ends all servers. The next call starts new ones. */
  stop(): void {
    for (const server of this.running.values()) server.stop();
    this.running.clear();
  }

  dispose(): void {
    this.stop();
  }
}

/** Asks the user to approve a call. */
async function askInDialog({ text }: ApproveParams): Promise<Approval> {
  const allow = "Allow";
  const answer = await window.showWarningMessage("Allow this call?", { modal: true, detail: text }, allow);
  return answer === allow ? { answer: "allowed" } : { answer: "refused" };
}
