// Uses the extension in VS Code, in Chromium, with keys and the mouse. Prints what it sees.
// Arguments: the project, the folder of the extensions, the folder of the user data, and optionally a folder for pictures.
import { readFileSync } from "node:fs";
import type { Frame, Locator } from "playwright-core";
import { startWorkbench } from "./workbench.js";

const [project, extensions, data, pictures] = process.argv.slice(2);
const workbench = await startWorkbench(extensions!, data!);
const { page } = workbench;

/** Runs a command of the palette. */
async function command(title: string): Promise<void> {
  await page.keyboard.press("F1");
  await page.locator(".quick-input-widget input").fill(`>${title}`);
  await choose(title);
}

/** Chooses an item of a list. */
async function choose(label: string): Promise<void> {
  await page.locator(".quick-input-widget .monaco-list-row", { hasText: label }).first().click();
}

async function open(file: string): Promise<void> {
  await page.keyboard.press("Control+P");
  await page.locator(".quick-input-widget input").fill(file);
  await choose(file);
  await page.locator(`.tab.active[data-resource-name="${file}"]`).waitFor();
}

/** Moves the cursor to a line and a column. */
async function goTo(line: number, column: number): Promise<void> {
  await page.keyboard.press("Control+G");
  await page.locator(".quick-input-widget input").fill(`:${line}:${column}`);
  await page.keyboard.press("Enter");
  await page.locator(".quick-input-widget").waitFor({ state: "hidden" });
}

async function text(locator: Locator): Promise<string> {
  return (await locator.innerText()).replaceAll("\u00a0", " ").trim();
}

/** Waits until `ready` returns a value. */
async function until<T>(ready: () => Promise<T | undefined> | T | undefined): Promise<T> {
  for (let attempts = 0; attempts < 1_000; attempts++) {
    const value = await ready();
    if (value !== undefined) return value;
    await page.waitForTimeout(50);
  }
  throw new Error(`timeout: ${ready}`);
}

async function picture(name: string): Promise<void> {
  if (pictures) await page.screenshot({ path: `${pictures}/${name}.png` });
}

/** Returns the lines of a file that contain `part`, once there are any. */
function saved(file: string, part: string): Promise<string> {
  return until(() => {
    const lines = readFileSync(`${project}/${file}`, "utf8").split("\n").filter((line) => line.includes(part));
    return lines.length > 0 ? lines.map((line) => line.trim()).join("|") : undefined;
  });
}

const dialog = page.locator(".monaco-dialog-box");

async function main(): Promise<void> {
  await workbench.open(project!);
  await page.getByRole("button", { name: "Yes, I trust the authors" }).click();

  await open("a.eld");
  const squiggle = page.locator(".squiggly-error");
  await squiggle.first().waitFor();
  await command("Problems: Focus on Problems View");
  const problem = page.locator(".markers-panel .monaco-list-row .marker-code, .markers-panel .monaco-list-row .code-link");
  console.log("diagnostics:", await text(problem.first()));

  await open("a.eld");
  await goTo(2, 32);
  await page.keyboard.press("Control+.");
  await page.locator(".action-widget .monaco-list-row").first().waitFor();
  console.log("fix:", await text(page.locator(".action-widget .monaco-list-row .title").first()));
  await page.keyboard.press("Enter");
  await squiggle.waitFor({ state: "detached" });
  await page.keyboard.press("Control+S");
  console.log("fixed:", await saved("specs/a.eld", "string"));
  const lens = page.locator(".codelens-decoration a");
  await lens.first().waitFor();
  console.log("lenses:", (await lens.allInnerTexts()).join(" "));

  await goTo(4, 1);
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.type(" :time");
  const suggestion = page.locator(".suggest-widget .monaco-list-row .label-name").first();
  await suggestion.waitFor();
  console.log("completion:", await text(suggestion));
  await page.keyboard.press("Enter");
  // The cursor is between the quotes of the snippet.
  await page.keyboard.type("2s");
  await page.keyboard.press("Control+S");
  console.log("completed:", await saved("specs/a.eld", ":timeout"));

  await goTo(2, 18);
  await page.keyboard.press("F2");
  await page.locator(".rename-box input").fill("town");
  await page.keyboard.press("Enter");
  await until(async () => ((await text(page.locator(".view-lines").first())).includes(":town") ? true : undefined));
  await command("File: Save All Files");
  console.log("renamed:", await saved("specs/a.eld", "town"), await saved("scripts/weather.lua", "town"));

  await command("deftool: Call a Tool");
  const ofUser = page.locator(".quick-input-widget .monaco-list-row", { hasText: "shout" });
  console.log("offered:", await ofUser.getAttribute("aria-label"));
  await choose("weather");
  await callWeather();
  const notification = page.locator(".notifications-toasts .notification-list-item-message");
  console.log("not trusted:", await text(notification.filter({ hasText: "trust grant" })));
  await command("deftool: Grant Permissions");
  console.log("asked:", await text(dialog.locator(".dialog-message-detail")));
  await dialog.getByRole("button", { name: "Grant" }).click();
  await notification.filter({ hasText: "trusted: " }).waitFor();
  await command("Notifications: Clear All Notifications");

  await lens.filter({ hasText: "test" }).click();
  await page.locator(".test-output-peek-tree .monaco-list-row").first().waitFor();
  await command("Testing: Focus on Test Explorer View");
  const tests = page.locator(".test-explorer .monaco-list-row");
  await tests.first().click();
  await tests.filter({ hasText: "specs/a.eld" }).click();
  await tests.filter({ hasText: "scripts/weather_test.lua" }).click();
  await tests.filter({ hasText: "knows Rome" }).waitFor();
  // The durations differ.
  const states = await tests.evaluateAll((rows) => rows.map((row) => row.getAttribute("aria-label")!.split(",")[0]));
  console.log(`tests: ${states.slice(1).join(", ")}`);

  await open("a.eld");
  await lens.filter({ hasText: "compile" }).click();
  await page.locator(".tab.active", { hasText: "Untitled" }).waitFor();
  console.log("compiled:", (await text(page.locator(".view-lines").last())).includes('"weather"'));
  await command("View: Revert and Close Editor");

  await open("a.eld");
  await lens.filter({ hasText: "call" }).click();
  await callWeather();
  const output = page.locator(".panel .view-lines").first();
  console.log("called:", await until(async () => /^sunny.*/m.exec(await text(output))?.[0]));

  await open("a.eld");
  await page.keyboard.press("Control+J");
  await command("deftool: Run a Worker");
  const panel = await until(findPanel);
  const message = panel.locator("textarea");
  await message.fill("What is the weather in Paris?");
  await message.press("Enter");
  console.log("asked:", await text(panel.locator("section pre")));
  await picture("vscode");
  await panel.getByRole("button", { name: "Allow" }).click();
  await panel.getByRole("button", { name: "Send" }).waitFor();
  const call = panel.locator("details");
  console.log("call:", await text(call.locator("summary")), await call.getAttribute("data-state"));
  console.log("reply:", await text(panel.locator(".text")));
  await call.locator("summary").click();
  console.log("result:", await text(call.locator("pre")));
  await message.fill("Wait.");
  await message.press("Enter");
  await panel.locator(".text", { hasText: "I wait" }).waitFor();
  await panel.getByRole("button", { name: "Cancel" }).click();
  await panel.getByRole("button", { name: "Send" }).waitFor();
  console.log("canceled:", await text(panel.locator("main > div").last()));
}

/** Enters the arguments of a call, and allows it. */
async function callWeather(): Promise<void> {
  const input = page.locator(".quick-input-widget");
  await input.filter({ hasText: "Arguments of weather" }).waitFor();
  await input.locator("input").fill('{"town": "Paris"}');
  await page.keyboard.press("Enter");
  console.log("asked:", await text(dialog.locator(".dialog-message-detail")));
  await dialog.getByRole("button", { name: "Allow" }).click();
}

/** Returns the frame of the run panel. */
async function findPanel(): Promise<Frame | undefined> {
  for (const frame of page.frames()) {
    if (await frame.locator("textarea[placeholder=Message]").count().catch(() => 0)) return frame;
  }
  return undefined;
}

try {
  await main();
} catch (error) {
  console.error("see", `${data}/failure.png`);
  await page.screenshot({ path: `${data}/failure.png` });
  throw error;
} finally {
  await workbench.close();
}
