// The language server, the commands, the test explorer and the run panel of deftool.
import { commands, type ExtensionContext, window, workspace } from "vscode";
import { startLanguageClient } from "./client";
import { registerCommands } from "./commands";
import { Servers } from "./rpc";
import { registerTests } from "./tests";

/** The language client, or the attempt to start it. */
let client: ReturnType<typeof startLanguageClient>;

export function activate(context: ExtensionContext): void {
  client = startLanguageClient();
  const output = window.createOutputChannel("deftool");
  const servers = new Servers(output);
  const runTests = registerTests(context);
  context.subscriptions.push(
    output,
    servers,
    ...registerCommands(servers, output),
    commands.registerCommand("deftool.test", runTests),
    workspace.onDidChangeConfiguration((change) => {
      if (!change.affectsConfiguration("deftool")) return;
      servers.stop();
      client = deactivate().then(startLanguageClient);
    }),
  );
}

/** Ends the language server. */
export async function deactivate(): Promise<void> {
  await (await client.catch(() => undefined))?.dispose();
}
