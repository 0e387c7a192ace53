// The run panel: a conversation with a worker, whose events appear as they arrive.
import { type CancellationToken, Uri, ViewColumn, type WebviewPanel, window } from "vscode";
import * as path from "node:path";
import type { Approval, ApproveParams, Message } from "../../../docs/schemas/rpc";
import type { FromPanel, ToPanel } from "./panel";
import type { Server } from "./rpc";

/** Opens a panel for a worker. Asks for the worker if the project has several: the default one is selected. */
export async function openRunPanel(server: Server): Promise<void> {
  const { workers } = await server.request("list", {});
  const worker = workers.length > 1 ? await window.showQuickPick(workers, { placeHolder: "Worker" }) : workers[0];
  if (worker !== undefined) new RunPanel(server, worker);
}

class RunPanel {
  private readonly panel: WebviewPanel;
  private messages: Message[] = [];
  /** The running request. */
  private requestId: string | undefined;
  /** Whether a reply is awaited. */
  private isRunning = false;
  private isClosed = false;
  private readonly questions = new Map<string, (answer: Approval) => void>();

  constructor(
    private readonly server: Server,
    private readonly worker: string,
  ) {
    const media = Uri.file(path.join(__dirname, "..", "media"));
    const dist = Uri.file(__dirname);
    const title = `${worker} (${path.basename(server.root)})`;
    this.panel = window.createWebviewPanel("deftool.run", title, ViewColumn.Beside, {
      enableScripts: true,
      retainContextWhenHidden: true,
      localResourceRoots: [media, dist],
    });
    const { webview } = this.panel;
    const script = webview.asWebviewUri(Uri.joinPath(dist, "panel.js"));
    const style = webview.asWebviewUri(Uri.joinPath(media, "panel.css"));
    webview.onDidReceiveMessage((message: FromPanel) => this.receive(message));
    webview.html = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src ${webview.cspSource}; style-src ${webview.cspSource}">
<link rel="stylesheet" href="${style}">
</head>
<body><main></main><script src="${script}"></script></body>
</html>`;
    this.panel.onDidDispose(() => {
      this.isClosed = true;
      this.cancel();
    });
  }

  private receive(message: FromPanel): void {
    switch (message.type) {
      case "send":
        void this.send(message.text);
        break;
      case "cancel":
        this.cancel();
        break;
      case "answer":
        this.questions.get(message.id)?.(message.answer);
        break;
    }
  }

  private post(message: ToPanel): void {
    if (!this.isClosed) void this.panel.webview.postMessage(message);
  }

  /** Sends a message of the user, and shows the reply. */
  private async send(text: string): Promise<void> {
    if (this.isRunning) return;
    this.isRunning = true;
    this.post({ type: "started", text });
    const messages: Message[] = [...this.messages, { role: "user", content: text }];
    try {
      const submitted = await this.server.request("submit", { messages, worker: this.worker });
      const id = submitted.request_id;
      this.requestId = id;
      this.server.listeners.set(id, {
        event: (event) => this.post({ type: "event", event }),
        log: (text) => this.post({ type: "log", text }),
        approve: (params, canceled) => this.ask(params, canceled),
      });
      if (this.isClosed) this.cancel();
      await this.server.request("events", { request_id: id });
      this.messages = (await this.server.request("result", { request_id: id })).messages;
    } catch (error) {
      this.post({ type: "error", text: error instanceof Error ? error.message : String(error) });
    } finally {
      if (this.requestId !== undefined) this.server.listeners.delete(this.requestId);
      this.requestId = undefined;
      this.isRunning = false;
      this.post({ type: "ended" });
    }
  }

  private cancel(): void {
    if (this.requestId === undefined) return;
    // Fails only if the server has ended, which ends the request.
    this.server.request("cancel", { request_id: this.requestId }).catch(() => {});
  }

  /** Asks the user to approve a call. */
  private ask({ call_id: id, text }: ApproveParams, canceled: CancellationToken): Promise<Approval> {
    this.panel.reveal(undefined, true);
    this.post({ type: "question", id, text });
    return new Promise<Approval>((resolve) => {
      this.questions.set(id, resolve);
      canceled.onCancellationRequested(() => resolve({ answer: "refused" }));
    }).finally(() => {
      this.questions.delete(id);
      this.post({ type: "answered", id });
    });
  }
}
