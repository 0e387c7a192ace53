//! The features of the language server in real editors. `tests/editors/features.md` has the uses and what an editor must show,
//! and a table in `docs/editors.md` which editor has which feature.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use deftool_test_support::can_use;
use deftool_test_support::markdown::blocks;
use serde_json::{Value, json};

use super::emacs::documented_setup;
use super::{are_installed, folder, path_with_deftool, vscode};
use crate::support::project::{Project, STATE};

const CURSOR: char = '‸';

/// A use of a feature.
struct Row<'p> {
    feature: &'p str,
    /// Whether the program `deftool-analyze` is necessary.
    needs_analyzer: bool,
    file: &'p str,
    /// A text of the file with the cursor, or empty.
    cursor: &'p str,
    input: &'p str,
    /// The texts that the editor must show.
    expected: Vec<&'p str>,
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// Returns the contents of the code spans in a cell.
fn code_spans(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Returns the rows of a page that this build can run.
fn rows(page: &str) -> Vec<Row<'_>> {
    let (_, table) = page.split_once("|---|---|---|---|---|\n").unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|')).map(|line| {
        let [feature, file, cursor, input, expected] = cells(line)[..] else { panic!("{line}") };
        let all = feature.strip_suffix(" \\*");
        Row {
            feature: all.unwrap_or(feature),
            needs_analyzer: all.is_some(),
            file,
            cursor: code_spans(cursor).next().unwrap_or_default(),
            input: code_spans(input).next().unwrap_or_default(),
            expected: code_spans(expected).collect(),
        }
    });
    rows.filter(|row| cfg!(feature = "analyze") || !row.needs_analyzer).collect()
}

impl Row<'_> {
    /// Returns the row for an editor. `text`: that of the file.
    fn for_editor(&self, text: &str) -> Value {
        let searched = self.cursor.replace(CURSOR, "");
        let start = text.find(&searched).unwrap_or_else(|| panic!("no {searched} in {}", self.file));
        let before = &text[..start + self.cursor.find(CURSOR).unwrap_or_default()];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        json!({
            "feature": self.feature,
            "file": self.file,
            "line": before.matches('\n').count(),
            "column": before.len() - line_start,
            "input": self.input,
            "expected": self.expected,
        })
    }
}

/// Opens the project of the page in an editor, and compares what it shows with the rows, and the features that it has with a
/// column of the table in `docs/editors.md`. `editor` returns the command for the folder with the project `tools`.
fn check(column: &str, editor: impl FnOnce(&Project) -> Command) {
    let page = fs::read_to_string(folder().join("features.md")).unwrap();
    let rows = rows(&page);
    let folder = Project::empty();
    let mut files = BTreeMap::new();
    for block in blocks(&page) {
        let (_, name) = block.info.split_once(' ').unwrap();
        folder.write(&format!("tools/{name}"), block.text);
        files.insert(name, block.text);
    }
    let project = folder.path("tools");
    assert!(Command::new("git").args(["init", "-q"]).current_dir(&project).status().unwrap().success());
    let for_editor: Vec<Value> = rows.iter().map(|row| row.for_editor(files[row.file])).collect();
    folder.write("rows.json", json!(for_editor).to_string());
    fs::create_dir(folder.path("home")).unwrap();
    let mut command = editor(&folder);
    for home in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"] {
        command.env(home, folder.path("home"));
    }
    command.env("XDG_STATE_HOME", STATE).env("PATH", path_with_deftool()).current_dir(&project);
    command.env("ROWS", folder.path("rows.json")).env("RESULT", folder.path("result"));
    let ended = command.output().unwrap();
    let result = fs::read_to_string(folder.path("result")).unwrap_or_else(|_| panic!("{ended:?}"));
    let shown: Vec<Option<String>> = result.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(shown.len(), rows.len(), "{column}: {ended:?}");

    let (mut has, mut wrong) = (BTreeMap::new(), Vec::new());
    for (row, shown) in rows.iter().zip(shown) {
        let text = shown.as_deref().unwrap_or_default();
        if shown.is_some() && !row.expected.iter().all(|part| text.contains(part)) {
            let Row { feature, file, expected, .. } = row;
            wrong.push(format!("{feature} in {file}: expected {expected:?}, found {text:?}"));
        }
        has.insert(row.feature, shown.is_some());
    }
    assert!(wrong.is_empty(), "{column}:\n{}", wrong.join("\n"));
    let page = fs::read_to_string(super::folder().join("../../docs/editors.md")).unwrap();
    assert_eq!(has, documented(&page, column), "{column} in docs/editors.md");
}

/// Returns the features in the table of a page, and whether an editor has them.
fn documented<'p>(page: &'p str, column: &str) -> BTreeMap<&'p str, bool> {
    let of_editors = |line: &&str| line.starts_with('|') && cells(line).contains(&column);
    let header = page.lines().find(of_editors).unwrap_or_else(|| panic!("no column {column}"));
    let index = cells(header).iter().position(|cell| *cell == column).unwrap();
    let rows = page.lines().skip_while(|line| *line != header).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|')).map(cells);
    rows.map(|row| (row[0], row[index].starts_with('✓'))).collect()
}

/// Returns the programs of Emacs with their major versions: the one in `PATH`, and a newer one from `tests/editors/install`.
pub(super) fn emacsen() -> Vec<(PathBuf, u32)> {
    let newer = Some(folder().join(".emacs/emacs")).filter(|program| program.exists());
    let all = std::iter::once(PathBuf::from("emacs")).chain(newer);
    let with_versions = all.map(|program| {
        let printed = Command::new(&program).arg("--version").output().unwrap().stdout;
        let printed = String::from_utf8(printed).unwrap();
        let version = printed.split([' ', '.', '\n']).find_map(|word| word.parse().ok());
        (program, version.unwrap_or_else(|| panic!("{printed}")))
    });
    let found: Vec<(PathBuf, u32)> = with_versions.collect();
    let has_newer = found.iter().any(|(_, version)| *version >= 30);
    can_use("Emacs 30", has_newer, "DEFTOOL_EDITORS", "tests/editors/install");
    found
}

/// Returns the command that runs the rows with a client in Emacs.
fn emacs(program: &Path, client: &str, folder: &Project) -> Command {
    folder.write("init.el", documented_setup());
    let mut command = Command::new(program);
    command
        .args(["--batch", "-q", "-f", "package-activate-all", "-l", "../init.el", "-l"])
        .arg(super::folder().join("features.el"));
    command.env("CLIENT", client);
    command
}

#[test]
fn emacs_has_the_documented_features_with_eglot() {
    if !are_installed() {
        return;
    }
    for (program, version) in emacsen() {
        let column = if version < 30 { "Emacs 28, Eglot 1.9" } else { "Emacs 30, Eglot 1.17" };
        check(column, |folder| emacs(&program, "eglot", folder));
    }
}

#[test]
fn emacs_has_the_documented_features_with_lsp_mode() {
    if !are_installed() {
        return;
    }
    let found = Command::new("emacs").args(["--batch", "-q", "-l", "lsp-mode"]).output().unwrap();
    if can_use("lsp-mode", found.status.success(), "DEFTOOL_EDITORS", ".ci/run") {
        check("Emacs 28, lsp-mode 8", |folder| emacs(Path::new("emacs"), "lsp", folder));
    }
}

/// Neovim with the plugin.
#[test]
fn neovim_has_the_documented_features() {
    if !are_installed() {
        return;
    }
    check("Neovim 0.12", |project| {
        let plugin = folder().join("../../editors/nvim").canonicalize().unwrap();
        project.write("init.lua", format!("vim.opt.rtp:prepend({plugin:?})"));
        let mut command = Command::new(folder().join(".venv/bin/neovim"));
        command.args(["--headless", "--clean", "-u", "../init.lua", "-S"]).arg(folder().join("features.lua"));
        command
    });
}

#[test]
fn vscode_has_the_documented_features() {
    if vscode::is_installed() {
        check("VS Code 1.100", vscode::features);
    }
}
