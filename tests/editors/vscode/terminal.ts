// Runs a program in a terminal in Chromium. Types keys, waits for text, and optionally takes a picture at the end.
// Arguments: the file of the picture or "", the steps as JSON, the program, its arguments.
import { createRequire } from "node:module";
import type { ITerminalInitOnlyOptions, ITerminalOptions, Terminal } from "@xterm/xterm";
import { spawn } from "node-pty";
import { chromium } from "playwright-core";

interface Step {
  type?: string;
  /** A text that the screen shows after the keys. */
  wait: string;
}

declare global {
  interface Window {
    Terminal: new (options: ITerminalOptions & ITerminalInitOnlyOptions) => Terminal;
    terminal: Terminal;
    type: (keys: string) => void;
  }
}

const [picture, json, program, ...parameters] = process.argv.slice(2);
const steps = JSON.parse(json!) as Step[];
const size = { cols: 110, rows: 26 };

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1280, height: 720 } });
const { resolve } = createRequire(import.meta.url);
await page.setContent("<div id=screen style='display: inline-block'></div>");
await page.addStyleTag({ path: resolve("@xterm/xterm/css/xterm.css") });
await page.addScriptTag({ path: resolve("@xterm/xterm/lib/xterm.js") });

await page.exposeFunction("type", (keys: string) => child.write(keys));
await page.evaluate((size) => {
  const theme = { background: "#ffffff", foreground: "#000000", cursor: "#000000" };
  window.terminal = new window.Terminal({ ...size, fontFamily: "monospace", fontSize: 15, theme });
  window.terminal.open(document.getElementById("screen")!);
  window.terminal.onData(window.type);
}, size);
// Starts after the terminal, which must receive all output.
const child = spawn(program!, parameters, { ...size, name: "xterm-256color", env: { ...process.env, COLORTERM: "truecolor" } });
child.onData((data) => void page.evaluate((data) => window.terminal.write(data), data).catch(() => undefined));

/** Returns the lines of the screen. */
function screen(): Promise<string> {
  return page.evaluate(() => {
    const buffer = window.terminal.buffer.active;
    const line = (_: unknown, row: number) => buffer.getLine(buffer.baseY + row)!.translateToString(true);
    return Array.from({ length: window.terminal.rows }, line).join("\n");
  });
}

try {
  for (const { type, wait } of steps) {
    if (type) child.write(type);
    for (let attempts = 0; !(await screen()).includes(wait); attempts++) {
      if (attempts === 1_000) throw new Error(`${JSON.stringify(wait)} is not on the screen:\n${await screen()}`);
      await page.waitForTimeout(20);
    }
  }
  if (picture) await page.locator("#screen").screenshot({ path: picture });
} finally {
  child.kill();
  await browser.close();
}
