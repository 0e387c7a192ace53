// The test explorer: the examples and script tests of all projects, as `deftool test` lists and runs them.
import { execFile } from "node:child_process";
import * as path from "node:path";
import {
  type CancellationToken,
  commands,
  type ExtensionContext,
  Location,
  Range,
  type TestController,
  type TestItem,
  TestMessage,
  type TestRun,
  TestRunProfileKind,
  TestRunRequest,
  tests,
  Uri,
  workspace,
} from "vscode";
import { program } from "./client";
import type { LensTool } from "./commands";
import { findProjects, projectOf } from "./projects";

/** A place in a file. Lines and columns start at 1. */
interface Place {
  file: string;
  line: number;
  column: number;
  end_line: number;
  end_column: number;
}

/** A test of `deftool test --list`. */
interface Test extends Place {
  tool?: string;
  name: string;
}

/** A result of `deftool test`. */
interface Result extends Test {
  ok: boolean;
  message?: string;
  failed_at?: Place;
  details?: string[];
  log?: string[];
  elapsed_ms?: number;
}

/** What an item selects. `filter`: the value of `--filter`. */
interface Selection {
  root: string;
  file?: string;
  filter?: string;
}

/** Shows the tests. Returns the action of the code lens `test`; without a tool it runs all tests. */
export function registerTests(context: ExtensionContext): (lens?: LensTool) => Promise<void> {
  const explorer = new Explorer(tests.createTestController("deftool", "deftool"));
  context.subscriptions.push(
    explorer.controller,
    workspace.onDidSaveTextDocument(({ uri }) => explorer.saved(uri.fsPath)),
  );
  return (lens) => explorer.runLens(lens);
}

class Explorer {
  private readonly selections = new WeakMap<TestItem, Selection>();
  private isListed = false;

  constructor(readonly controller: TestController) {
    controller.resolveHandler = (item) => (item ? undefined : this.listAll());
    controller.refreshHandler = () => this.listAll();
    controller.createRunProfile("Run", TestRunProfileKind.Run, (request, token) => this.run(request, token), true);
  }

  /** Lists the tests of a project again, if one of its files was saved. */
  async saved(file: string): Promise<void> {
    if (!this.isListed) return;
    const root = projectOf(file, await findProjects());
    if (root !== undefined) await this.list(root);
  }

  async runLens(lens?: LensTool): Promise<void> {
    await this.listAll();
    const run = this.controller.createTestRun(new TestRunRequest());
    const selections: Selection[] = lens
      ? [{ root: lens.root, filter: lens.tool }]
      : (await findProjects()).map((root) => ({ root }));
    await this.runSelections(run, selections);
    await commands.executeCommand("workbench.panel.testResults.view.focus");
  }

  private async listAll(): Promise<void> {
    this.isListed = true;
    const projects = await findProjects();
    const known = new Set(projects);
    for (const [id] of this.controller.items) {
      if (!known.has(id)) this.controller.items.delete(id);
    }
    await Promise.all(projects.map((root) => this.list(root)));
  }

  private async list(root: string): Promise<void> {
    const project = this.project(root);
    const { output, error } = await deftoolTest({ root }, ["--list"]);
    if (output === undefined) {
      project.error = error;
      return;
    }
    const { tests } = JSON.parse(output) as { tests: Test[] };
    project.error = undefined;
    const before = new Set(tests.map(({ file }) => file));
    for (const [id] of project.children) {
      if (!before.has(id)) project.children.delete(id);
    }
    const ids = new Set(tests.map((test) => this.item(root, test).id));
    for (const [, file] of project.children) {
      for (const [id] of file.children) {
        if (!ids.has(id)) file.children.delete(id);
      }
    }
  }

  private project(root: string): TestItem {
    return this.child(this.controller.items, root, path.basename(root), Uri.file(root), { root });
  }

  /** Returns the item of a test. */
  private item(root: string, test: Test): TestItem {
    const uri = Uri.file(path.resolve(root, test.file));
    const file = this.child(this.project(root).children, test.file, test.file, uri, { root, file: test.file });
    const label = test.tool === undefined ? test.name : `${test.tool} ${test.name}`;
    const filter = test.tool ?? test.name;
    const item = this.child(file.children, `${test.file} ${label}`, label, uri, { root, file: test.file, filter });
    item.range = rangeOf(test);
    return item;
  }

  private child(
    children: TestItem["children"],
    id: string,
    label: string,
    uri: Uri,
    selection: Selection,
  ): TestItem {
    const known = children.get(id);
    if (known) return known;
    const item = this.controller.createTestItem(id, label, uri);
    this.selections.set(item, selection);
    children.add(item);
    return item;
  }

  private async run(request: TestRunRequest, token: CancellationToken): Promise<void> {
    const items = request.include ?? [...this.controller.items].map(([, item]) => item);
    const run = this.controller.createTestRun(request);
    await this.runSelections(run, items.map((item) => this.selections.get(item)).filter((one) => !!one), token);
  }

  private async runSelections(run: TestRun, selections: Selection[], token?: CancellationToken): Promise<void> {
    for (const selection of selections) {
      if (token?.isCancellationRequested) break;
      const { output, error } = await deftoolTest(selection, [], token);
      if (token?.isCancellationRequested) break;
      if (output === undefined) {
        run.appendOutput(`${error.replaceAll("\n", "\r\n")}\r\n`);
        run.errored(this.project(selection.root), new TestMessage(error));
        continue;
      }
      const { results } = JSON.parse(output) as { results: Result[] };
      for (const result of results) this.report(run, selection.root, result);
    }
    run.end();
  }

  private report(run: TestRun, root: string, result: Result): void {
    const item = this.item(root, result);
    const lines = [`${result.ok ? "ok  " : "FAIL"} ${item.label}`, result.message, ...(result.details ?? []), ...(result.log ?? [])];
    const shown = lines.filter((line) => line !== undefined);
    run.appendOutput(`${shown.join("\r\n     ")}\r\n`, undefined, item);
    if (result.ok) {
      run.passed(item, result.elapsed_ms);
      return;
    }
    const message = new TestMessage(shown.slice(1).join("\n"));
    const at = result.failed_at ?? result;
    message.location = new Location(Uri.file(path.resolve(root, at.file)), rangeOf(at));
    run.failed(item, message, result.elapsed_ms);
  }
}

function rangeOf({ line, column, end_line, end_column }: Place): Range {
  return new Range(line - 1, column - 1, end_line - 1, end_column - 1);
}

/** Runs `deftool test`. Returns its output, or the reason why it has none. */
function deftoolTest(
  { root, file, filter }: Selection,
  options: string[],
  token?: CancellationToken,
): Promise<{ output: string; error?: never } | { output?: never; error: string }> {
  const args = ["test", "--format", "json", ...options];
  if (filter !== undefined) args.push(`--filter=${filter}`);
  if (file !== undefined) args.push("--", file);
  return new Promise((resolve) => {
    const settings = { cwd: root, maxBuffer: 256 << 20 };
    const test = execFile(program(), args, settings, (error, stdout, stderr) => {
      const failed = stderr.trim() || error?.message || "deftool test has no output";
      resolve(stdout === "" ? { error: failed } : { output: stdout });
    });
    token?.onCancellationRequested(() => test.kill());
  });
}
