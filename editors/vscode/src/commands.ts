// The commands that call and compile tools, and that grant permissions.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import {
  commands,
  type Disposable,
  type OutputChannel,
  ProgressLocation,
  ViewColumn,
  window,
  workspace,
} from "vscode";
import { ErrorCodes, ResponseError } from "vscode-languageclient/node";
import type { CallParams, ToolError, ToolInfo } from "../../../docs/schemas/rpc";
import { program, setting } from "./client";
import { chooseProject } from "./projects";
import type { Server, Servers } from "./rpc";
import { openRunPanel } from "./run";

/** The tool of a code lens. */
export interface LensTool {
  root: string;
  tool: string;
}

export function registerCommands(servers: Servers, output: OutputChannel): Disposable[] {
  /** Registers a command that reports its errors. `lens` is absent if it was not started by a code lens. */
  const register = (name: string, run: (root: string, lens?: LensTool) => Promise<void>): Disposable =>
    commands.registerCommand(name, async (lens?: LensTool) => {
      const root = lens?.root ?? (await chooseProject());
      if (root === undefined) return;
      try {
        await run(root, lens);
      } catch (error) {
        reportError(error, output);
      }
    });
  return [
    register("deftool.run", (root) => openRunPanel(servers.get(root))),
    register("deftool.call", (root, lens) => callTool(servers.get(root), lens?.tool, output)),
    register("deftool.compile", (root, lens) => compileTool(servers.get(root), lens?.tool)),
    register("deftool.trust", grantPermissions),
  ];
}

/** Shows an error. The details are in the output. */
function reportError(error: unknown, output: OutputChannel): void {
  // The end of the server was reported.
  if (error instanceof ResponseError && error.code === ErrorCodes.PendingResponseRejected) return;
  const message = error instanceof Error ? error.message : String(error);
  const details = error instanceof ResponseError ? (error.data as ToolError | undefined)?.details : undefined;
  output.appendLine(details === undefined ? `error: ${message}` : `error: ${message}\n${details}`);
  void window.showErrorMessage(message);
}

/** Asks for arguments, calls a tool and shows the result in the output. */
async function callTool(server: Server, name: string | undefined, output: OutputChannel): Promise<void> {
  const tool = await chooseTool(server, name, ({ kind }) => kind === "normal");
  if (!tool) return;
  const required = (tool.parameters as { required?: string[] }).required ?? [];
  const text = await window.showInputBox({
    title: `Arguments of ${tool.name}`,
    prompt: tool.description,
    value: JSON.stringify(Object.fromEntries(required.map((key) => [key, ""]))),
    ignoreFocusOut: true,
    validateInput: (text) => (parseObject(text) ? undefined : "Write a JSON object."),
  });
  const args = parseObject(text ?? "");
  if (!args) return;
  const where = { location: ProgressLocation.Notification, title: tool.name, cancellable: true };
  const { text: result } = await window.withProgress(where, (_, canceled) =>
    server.request("call", { tool: tool.name, arguments: args, call_id: tool.name }, canceled),
  );
  output.appendLine(`${tool.name} ${text}\n${result}`);
  output.show(true);
}

type Arguments = NonNullable<CallParams["arguments"]>;

function parseObject(text: string): Arguments | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value && !Array.isArray(value) ? (value as Arguments) : undefined;
  } catch {
    return undefined;
  }
}

/** Shows the JSON of a tool. */
async function compileTool(server: Server, name: string | undefined): Promise<void> {
  const tool = await chooseTool(server, name, () => true);
  if (!tool) return;
  const target = setting("target", "openai");
  const { definitions } = await server.request("compile", { target, tools: [tool.name] });
  // A target whose format is not JSON has a text.
  const isText = typeof definitions === "string";
  const content = isText ? definitions : `${JSON.stringify(definitions, null, 2)}\n`;
  const document = await workspace.openTextDocument({ language: isText ? "plaintext" : "json", content });
  await window.showTextDocument(document, ViewColumn.Beside);
}

/** Returns the tool with a name, or asks the user. */
async function chooseTool(
  server: Server,
  name: string | undefined,
  filter: (tool: ToolInfo) => boolean,
): Promise<ToolInfo | undefined> {
  const tools = (await server.request("list", {})).tools.filter(filter);
  if (name !== undefined) {
    const tool = tools.find((tool) => tool.name === name);
    if (!tool) throw new Error(`${name} has errors or is not saved`);
    return tool;
  }
  const items = tools.map((tool) => ({
    label: tool.name,
    description: tool.origin === "user" ? "yours" : "",
    detail: tool.description,
    tool,
  }));
  return (await window.showQuickPick(items, { placeHolder: "Tool" }))?.tool;
}

/** Shows the permissions of a project, and grants them if the user agrees. */
async function grantPermissions(root: string): Promise<void> {
  const grantAll = (...options: string[]) =>
    promisify(execFile)(program(), ["trust", "grant", ...options], { cwd: root });
  const { stdout: required } = await grantAll("--dry-run");
  const grant = "Grant";
  const options = { modal: true, detail: required };
  if (
    required === "" ||
    (await window.showWarningMessage("Grant these permissions to the project?", options, grant)) === grant
  ) {
    const { stderr } = await grantAll();
    void window.showInformationMessage(stderr.trim());
  }
}
