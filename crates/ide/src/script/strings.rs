//! Completion in strings whose values the project knows: modules and tools. No completion in comments.

use std::path::Path;

use deftool_lang::spec::ToolKind;
use deftool_lang::text::Span;
use deftool_project::{display_name, is_test_script};

use crate::completion::{Completion, CompletionKind, plain};
use crate::project::Project;

/// Returns the completions at a position in a comment, in the path of a `require` or in the name of a `tool.load`.
/// Returns `None` at other positions.
pub fn string_completions(project: &Project, path: &Path, offset: usize) -> Option<Vec<Completion>> {
    let text = project.text(path)?;
    let (before, start) = match Place::of(&text, offset) {
        Place::Code => return None,
        Place::Comment => return Some(Vec::new()),
        Place::String { before, start } => (before, start),
    };
    let called = before.trim_end().trim_end_matches('(').trim_end();
    let is_call_of = |name: &str| {
        let rest = called.strip_suffix(name);
        rest.is_some_and(|rest| {
            !rest.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':'))
        })
    };
    let replaces = Span::new(start, end_of_content(&text, offset));
    if is_call_of("require") {
        Some(modules(project, path, replaces))
    } else if is_call_of("tool.load") {
        Some(tools(project, replaces))
    } else {
        None
    }
}

/// What an offset is in, as far as its line shows.
enum Place<'t> {
    Code,
    Comment,
    /// A string in quotation marks.
    String {
        /// The line before the string.
        before: &'t str,
        /// The start of the content.
        start: usize,
    },
}

impl<'t> Place<'t> {
    fn of(text: &'t str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.get(line_start..).unwrap_or_default();
        let mut open: Option<(usize, u8)> = None;
        let mut bytes = line.bytes().enumerate().peekable();
        while let Some((at, byte)) = bytes.next() {
            match open {
                Some(_) if byte == b'\\' => drop(bytes.next()),
                Some((_, quote)) if byte == quote => open = None,
                Some(_) => {}
                None if matches!(byte, b'"' | b'\'' | b'`') => open = Some((at, byte)),
                None if byte == b'-' && bytes.peek().is_some_and(|(_, next)| *next == b'-') => {
                    return Self::Comment;
                }
                None => {}
            }
        }
        open.map_or(Self::Code, |(at, _)| Self::String {
            before: line.get(..at).unwrap_or_default(),
            start: line_start + at + 1,
        })
    }
}

/// Returns the end of the word at `offset` in a string.
pub(super) fn end_of_content(text: &str, offset: usize) -> usize {
    let rest = text.get(offset..).unwrap_or_default();
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    offset + rest.find(|c| !is_word(c)).unwrap_or(rest.len())
}

/// Returns the start of the content of the string at `offset`, as far as its line shows.
pub(super) fn start_of_content(text: &str, offset: usize) -> usize {
    match Place::of(text, offset) {
        Place::String { start, .. } => start,
        Place::Code | Place::Comment => offset,
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
