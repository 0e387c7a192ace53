// Uses the features of the language client in VS Code, and writes what it provides.
//
// The file in the variable ROWS has the rows of `features.md`. The file in RESULT gets a line of JSON for each row: what is
// shown, or null if VS Code does not have the feature.
import { execFileSync } from "node:child_process";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import {
  type CodeAction,
  type CodeLens,
  commands,
  type CompletionList,
  type DocumentHighlight,
  type DocumentSymbol,
  type FoldingRange,
  type Hover,
  type InlayHint,
  languages,
  type Location,
  type LocationLink,
  Position,
  Range,
  type SelectionRange,
  type SemanticTokens,
  type SemanticTokensLegend,
  type SignatureHelp,
  type SymbolInformation,
  type TextDocument,
  type TextEdit,
  Uri,
  window,
  workspace,
  WorkspaceEdit,
} from "vscode";

interface Row {
  feature: string;
  file: string;
  /** The position of the cursor, from 0. */
  line: number;
  column: number;
  input: string;
  expected: string[];
}

/** The use of a feature. */
interface Use {
  document: TextDocument;
  uri: Uri;
  at: Position;
  input: string;
}

/** Asks the providers of a feature. Returns nothing if there are none yet. */
function ask<T>(command: string, ...parameters: unknown[]): Thenable<T | undefined> {
  return commands.executeCommand<T | undefined>(`vscode.${command}`, ...parameters);
}

function place(found: Location | LocationLink): string {
  const [uri, range] = "uri" in found ? [found.uri, found.range] : [found.targetUri, found.targetRange];
  return `${workspace.asRelativePath(uri)}:${range.start.line + 1}`;
}

function position({ line, character }: Position): string {
  return `${line + 1}:${character + 1}`;
}

function lines(shown: string[] | undefined): string {
  return (shown ?? []).join("\n");
}

function whole(document: TextDocument): Range {
  return new Range(0, 0, document.lineCount, 0);
}

/** Returns the lines that differ from the files, and restores the texts of the files. */
async function takeChanges(): Promise<string> {
  const restored = new WorkspaceEdit();
  const changed: string[] = [];
  for (const document of workspace.textDocuments.filter((document) => document.isDirty)) {
    const saved = readFileSync(document.fileName, "utf8");
    const before = saved.split("\n");
    document.getText().split("\n").forEach((line, index) => {
      if (line !== before[index]) changed.push(`${workspace.asRelativePath(document.uri)}:${index + 1}: ${line}`);
    });
    restored.replace(document.uri, whole(document), saved);
  }
  await workspace.applyEdit(restored);
  return lines(changed);
}

async function findings({ uri }: Use): Promise<string> {
  return lines(languages.getDiagnostics(uri).map(({ range, message }) => `${range.start.line + 1}: ${message}`));
}

async function completions({ uri, at, input }: Use): Promise<string> {
  const typed = new WorkspaceEdit();
  typed.insert(uri, at, input);
  await workspace.applyEdit(typed);
  const list = await ask<CompletionList>("executeCompletionItemProvider", uri, at.translate(0, input.length));
  await takeChanges();
  return lines(list?.items.map(({ label }) => (typeof label === "string" ? label : label.label)));
}

function names(symbols: DocumentSymbol[] | undefined): string[] {
  return (symbols ?? []).flatMap((symbol) => [symbol.name, ...names(symbol.children)]);
}

async function rename({ uri, at, input }: Use): Promise<void> {
  const edit = await ask<WorkspaceEdit>("executeDocumentRenameProvider", uri, at, input);
  if (edit) await workspace.applyEdit(edit);
}

/** Renames a tool, and returns the places of its name, and the scripts. */
async function moveFiles(use: Use): Promise<string> {
  await rename(use);
  await workspace.saveAll();
  const list = `grep -rn ${use.input} specs scripts; ls scripts`;
  return execFileSync("sh", ["-c", list], { cwd: workspace.workspaceFolders![0]!.uri.fsPath, encoding: "utf8" });
}

/** Returns the type of the semantic token at a position. */
async function tokenType({ uri, at }: Use): Promise<string> {
  const legend = await ask<SemanticTokensLegend>("provideDocumentSemanticTokensLegend", uri);
  const tokens = await ask<SemanticTokens>("provideDocumentSemanticTokens", uri);
  let [line, start] = [0, 0];
  for (let index = 0; tokens && index < tokens.data.length; index += 5) {
    const [deltaLine, deltaStart, length, type] = Array.from(tokens.data.subarray(index, index + 4)) as [number, number, number, number];
    line += deltaLine;
    start = deltaLine > 0 ? deltaStart : start + deltaStart;
    const isHere = line === at.line && start <= at.character && at.character < start + length;
    if (isHere) return legend?.tokenTypes[type] ?? "";
  }
  return "";
}

/** Returns the texts of a selection that grows. */
function selections(document: TextDocument, range: SelectionRange | undefined): string[] {
  return range ? [document.getText(range.range), ...selections(document, range.parent)] : [];
}

const features: Record<string, (use: Use) => Promise<string>> = {
  findings,
  "findings in `.el`": findings,
  "quick fixes": async ({ uri, at }) => {
    const actions = await ask<CodeAction[]>("executeCodeActionProvider", uri, new Range(at, at));
    const edit = actions?.[0]?.edit;
    if (edit) await workspace.applyEdit(edit);
    return takeChanges();
  },
  completion: completions,
  "signature help": async ({ uri, at }) => {
    const help = await ask<SignatureHelp>("executeSignatureHelpProvider", uri, at);
    return lines(help?.signatures.map((signature) => signature.label));
  },
  hover: async ({ uri, at }) => {
    const hovers = await ask<Hover[]>("executeHoverProvider", uri, at);
    const contents = hovers?.flatMap((hover) => hover.contents);
    return lines(contents?.map((content) => (typeof content === "string" ? content : content.value)));
  },
  definition: async ({ uri, at }) => lines((await ask<Location[]>("executeDefinitionProvider", uri, at))?.map(place)),
  references: async ({ uri, at }) => lines((await ask<Location[]>("executeReferenceProvider", uri, at))?.map(place)),
  highlights: async ({ uri, at }) => {
    const found = await ask<DocumentHighlight[]>("executeDocumentHighlights", uri, at);
    return lines(found?.map(({ range }) => position(range.start)));
  },
  rename: async (use) => {
    await rename(use);
    return takeChanges();
  },
  "symbols of a file": async ({ uri }) => lines(names(await ask<DocumentSymbol[]>("executeDocumentSymbolProvider", uri))),
  "symbols of the project": async ({ input }) => {
    const found = await ask<SymbolInformation[]>("executeWorkspaceSymbolProvider", input);
    return lines(found?.map(({ location }) => place(location)));
  },
  formatting: async ({ uri }) => {
    const options = { tabSize: 2, insertSpaces: true };
    const edits = await ask<TextEdit[]>("executeFormatDocumentProvider", uri, options);
    const edit = new WorkspaceEdit();
    edit.set(uri, edits ?? []);
    await workspace.applyEdit(edit);
    return takeChanges();
  },
  folding: async ({ uri }) => {
    const ranges = await ask<FoldingRange[]>("executeFoldingRangeProvider", uri);
    return lines(ranges?.map(({ start, end }) => `${start + 1}-${end + 1}`));
  },
  selection: async ({ document, uri, at }) => {
    const ranges = await ask<SelectionRange[]>("executeSelectionRangeProvider", uri, [at]);
    return lines(selections(document, ranges?.[0]));
  },
  "semantic tokens": tokenType,
  "inlay hints": async ({ document, uri }) => {
    const hints = await ask<InlayHint[]>("executeInlayHintProvider", uri, whole(document));
    return lines(hints?.map(({ label }) => (typeof label === "string" ? label : lines(label.map(({ value }) => value)))));
  },
  "code lenses": async ({ uri }) => {
    const found = await ask<CodeLens[]>("executeCodeLensProvider", uri);
    return lines(found?.map(({ command }) => command?.title ?? ""));
  },
  "moved files": moveFiles,
};

/** Returns what the feature of a row shows. Repeats it until this contains the expected texts. */
async function show(row: Row): Promise<string | null> {
  const use = features[row.feature];
  if (!use) return null;
  const uri = Uri.joinPath(workspace.workspaceFolders![0]!.uri, row.file);
  const document = await workspace.openTextDocument(uri);
  await window.showTextDocument(document);
  const end = Date.now() + 60_000;
  for (;;) {
    const at = new Position(row.line, row.column);
    const shown = await use({ document, uri, at, input: row.input }).catch(String);
    if (row.expected.every((part) => shown.includes(part)) || Date.now() > end) return shown;
    // The server may not have read the project yet.
    await setTimeout(50);
  }
}

export async function activate(): Promise<void> {
  const rows = JSON.parse(readFileSync(process.env["ROWS"]!, "utf8")) as Row[];
  let result = "";
  for (const row of rows) result += `${JSON.stringify(await show(row))}\n`;
  // The result is complete once the file exists.
  const file = process.env["RESULT"]!;
  writeFileSync(`${file}.new`, result);
  renameSync(`${file}.new`, file);
}
