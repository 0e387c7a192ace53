//! Completion in scripts.

use deftool_lang::text::Span;
use deftool_script::{ScriptPlace, host_tables, known_globals, place_at};

use super::comment::directives;
use super::item::{Completion, CompletionKind, Completions, escaped};

/// Completes host tables, libraries and their functions, and directives in comments.
pub(super) fn in_script(text: &str, offset: usize) -> Completions {
    match place_at(text, offset) {
        ScriptPlace::Code => {}
        ScriptPlace::Comment(comment) => {
            return directives(comment.of(text), offset - comment.start as usize, offset);
        }
        ScriptPlace::String { .. } => return Completions::default(),
    }
    let before = text.get(..offset).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    let word = line.rsplit(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').next().unwrap_or_default();
    let is_code = !before.ends_with(':');
    let start = word.rfind('.').map_or(0, |dot| dot + 1);
    let table = word.get(..start).unwrap_or_default();
    let replaces = Span::new(offset - (word.len() - start), offset);
    let complete = |name: String| {
        let rest = name.strip_prefix(table).filter(|rest| !rest.contains('.'))?.to_owned();
        let function = host_function(&name);
        let is_table = host_tables().iter().any(|doc| doc.name == name);
        let about = host_tables().iter().find(|doc| doc.name == name).map_or("", |doc| doc.about);
        Some(Completion {
            kind: if table.is_empty() || is_table {
                CompletionKind::Global
            } else {
                CompletionKind::Function
            },
            documentation: function
                .map_or_else(|| about.to_owned(), |(table, function)| function_doc(table, function)),
            replaces,
            snippet: escaped(&rest),
            label: rest,
        })
    };
    let items: Vec<_> =
        if is_code { known_globals().into_iter().filter_map(complete).collect() } else { Vec::new() };
    // The script has variables of its own, which the editor completes.
    Completions { is_incomplete: is_code, items }
}

/// Returns the host function called `name`, such as `fs.read`, and its table.
pub(crate) fn host_function(name: &str) -> Option<(&'static str, &'static deftool_script::FunctionDoc)> {
    let (table, function) = name.split_once('.')?;
    let doc = host_tables().iter().find(|doc| doc.name == table)?;
    doc.functions.iter().find(|known| known.name == function).map(|function| (doc.name, function))
}

/// Returns the documentation of a host function in Markdown.
pub(crate) fn function_doc(table: &str, function: &deftool_script::FunctionDoc) -> String {
    let mut parts = vec![
        format!("```luau\n{table}.{}{}\n```\n{}", function.name, function.signature, function.about),
        function.errors.to_owned(),
    ];
    if !function.example.is_empty() {
        parts.push(format!("```luau\n{}\n```", function.example));
    }
    if !function.permissions.is_empty() {
        let keys: Vec<String> = function.permissions.iter().map(|key| format!("`:{key}`")).collect();
        parts.push(format!("Requires {} in `:allow`.", keys.join(" or ")));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}
