// The projects in the workspace: folders that contain `specs`.
import { homedir } from "node:os";
import * as path from "node:path";
import { window, workspace } from "vscode";

/** The spec files of all projects. */
const SPECS = "**/specs/**/*.{eld,lisp,sexp,el}";

/** Returns the folders of all projects. */
export async function findProjects(): Promise<string[]> {
  const files = await workspace.findFiles(SPECS);
  const separator = `${path.sep}specs${path.sep}`;
  const roots = files.map(({ fsPath }) => fsPath.slice(0, fsPath.lastIndexOf(separator)));
  return [...new Set(roots)].sort();
}

/** Returns the project that contains a file. */
export function projectOf(file: string, projects: string[]): string | undefined {
  const containing = projects.filter((root) => file.startsWith(root + path.sep));
  return containing.sort((a, b) => b.length - a.length)[0];
}

/**
 * Returns the project of the active editor, or asks the user. Without a project, returns the open folder: there, the server
 * offers the user's tools for all projects.
 */
export async function chooseProject(): Promise<string | undefined> {
  const projects = await findProjects();
  const file = window.activeTextEditor?.document.uri.fsPath;
  const current = file === undefined ? undefined : projectOf(file, projects);
  if (current !== undefined) return current;
  if (projects.length === 0) return workspace.workspaceFolders?.[0]?.uri.fsPath ?? homedir();
  return projects.length > 1 ? window.showQuickPick(projects, { placeHolder: "Project" }) : projects[0];
}
