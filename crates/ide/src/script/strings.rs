//! Completion in strings whose values the project knows: modules and tools. No completion in comments.

use std::path::Path;

use deftool_lang::spec::ToolKind;
use deftool_lang::text::Span;
use deftool_project::{display_name, is_test_script};
use deftool_script::{ScriptPlace, place_at};

use crate::completion::{Completion, CompletionKind, plain};
use crate::project::Project;

/// Returns the completions at a position in a comment, in the path of a `require` or in the name of a `tool.load`.
/// Returns `None` at other positions.
pub fn string_completions(project: &Project, path: &Path, offset: usize) -> Option<Vec<Completion>> {
    let text = project.text(path)?;
    let (content, callee) = match place_at(&text, offset) {
        ScriptPlace::Code => return None,
        ScriptPlace::Comment(_) => return Some(Vec::new()),
        ScriptPlace::String { content, callee } => (content, callee),
    };
    let replaces = Span::new(content, end_of_content(&text, offset));
    match callee.as_str() {
        "require" => Some(modules(project, path, replaces)),
        "tool.load" => Some(tools(project, replaces)),
        _ => None,
    }
}

/// Returns the end of the word at `offset` in a string.
pub(super) fn end_of_content(text: &str, offset: usize) -> usize {
    let rest = text.get(offset..).unwrap_or_default();
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    offset + rest.find(|c| !is_word(c)).unwrap_or(rest.len())
}

/// Returns the start of the content of the string at `offset`.
pub(super) fn start_of_content(text: &str, offset: usize) -> usize {
    match place_at(text, offset) {
        ScriptPlace::String { content, .. } => content,
        ScriptPlace::Code | ScriptPlace::Comment(_) => offset,
    }
}

/// Returns the modules of the project, relative to the folder of the file.
fn modules(project: &Project, path: &Path, replaces: Span) -> Vec<Completion> {
    let file = display_name(path, project.root());
    let lib = project.root().join("scripts/lib");
    let mut found: Vec<String> = project
        .find_files(&["lua", "luau"])
        .paths
        .into_iter()
        .filter(|module| module.starts_with(&lib) && module != path && !is_test_script(module))
        .map(|module| relative(&file, &display_name(&module.with_extension(""), project.root())))
        .collect();
    found.sort_unstable();
    found.dedup();
    found.iter().map(|module| plain(module, CompletionKind::File, module, "", replaces)).collect()
}

/// Returns the path of `module` relative to the folder of `file`. Both are relative to the project.
fn relative(file: &str, module: &str) -> String {
    let folders: Vec<&str> = file.split('/').collect();
    let folders = folders.split_last().map_or(&[][..], |(_, folders)| folders);
    let names: Vec<&str> = module.split('/').collect();
    let common = folders.iter().zip(&names).take_while(|(folder, name)| folder == name).count();
    let up = folders.len() - common;
    let start = if up == 0 { String::from("./") } else { "../".repeat(up) };
    start + &names.get(common..).unwrap_or_default().join("/")
}

fn tools(project: &Project, replaces: Span) -> Vec<Completion> {
    let tools = project.load().valid_tools().filter(|loaded| loaded.tool.kind == ToolKind::Normal);
    let complete = |name: &str, doc: &str| plain(name, CompletionKind::Tool, name, doc, replaces);
    tools.map(|loaded| complete(&loaded.tool.name.value, &loaded.tool.description.value)).collect()
}
