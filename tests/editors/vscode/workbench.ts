// VS Code in Chromium.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { chromium, type Page } from "playwright-core";

export interface Workbench {
  page: Page;
  /** Opens the folder of a project. */
  open(project: string): Promise<void>;
  close(): Promise<void>;
}

/** Starts VS Code with folders for extensions and user data, and with more options. */
export async function startWorkbench(extensions: string, data: string, more: string[] = []): Promise<Workbench> {
  const entry = new URL("../node_modules/code-server/out/node/entry.js", import.meta.url).pathname;
  const folders = ["--extensions-dir", extensions, "--user-data-dir", data];
  const options = ["--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry", "--disable-update-check"];
  const server = spawn("node", [entry, ...options, ...folders, ...more], { stdio: ["ignore", "pipe", "inherit"] });
  const address = new Promise<string>((resolve) => {
    createInterface(server.stdout).on("line", (line) => {
      const found = /listening on (http:\S+)/.exec(line);
      if (found) resolve(found[1]!);
    });
  });

  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 } });
  page.setDefaultTimeout(60_000);
  return {
    page,
    open: async (project) => {
      await page.goto(new URL(`?folder=${project}`, await address).href);
      await page.locator(".monaco-workbench").waitFor();
    },
    close: async () => {
      await browser.close();
      server.kill();
      await once(server, "exit");
    },
  };
}
