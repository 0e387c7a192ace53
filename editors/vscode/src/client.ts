// The language client. The server executes nothing of a project, so it also runs in folders that are not trusted.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { commands, window, workspace } from "vscode";
import { LanguageClient } from "vscode-languageclient/node";

/** Returns the program of the setting `deftool.path`. */
export function program(): string {
  return setting("path", "deftool");
}

/** Returns a setting. */
export function setting<T>(name: string, otherwise: T): T {
  return workspace.getConfiguration("deftool").get(name, otherwise);
}

/** Tells the user that the program cannot be started. */
export async function reportStartFailure(error: unknown): Promise<void> {
  const reason = error instanceof Error ? error.message : String(error);
  const open = "Open Settings";
  const message = `Cannot start ${program()}: ${reason}. Install deftool, or set the path of the program.`;
  if ((await window.showErrorMessage(message, open)) === open) {
    await commands.executeCommand("workbench.action.openSettings", "deftool.path");
  }
}

/** Starts the language server. Returns nothing if the program cannot be started. */
export async function startLanguageClient(): Promise<LanguageClient | undefined> {
  try {
    // The client would report a missing program with its own words, too.
    await promisify(execFile)(program(), ["--version"]);
  } catch (error) {
    void reportStartFailure(error);
    return undefined;
  }
  const command = { command: program(), args: ["lsp"] };
  const client = new LanguageClient("deftool", "deftool language server", command, {
    documentSelector: [
      { scheme: "file", pattern: "**/*.{eld,lua,luau}" },
      { scheme: "file", pattern: "**/specs/**/*.{el,lisp,sexp}" },
    ],
    initializationOptions: { target: setting("target", "openai"), targets: setting("targets", []) },
  });
  // The client reports the other reasons.
  await client.start().catch(() => {});
  return client;
}
