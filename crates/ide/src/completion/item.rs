//! The items of a completion, and their texts.

use deftool_lang::spec::reference::{Key, KeyValue, PATTERNS, PatternDoc, Plist, types};
use deftool_lang::text::Span;

/// Maximum number of items. An editor asks again for the others when more of a word is typed.
const MAX_ITEMS: usize = 200;

/// What can be inserted at a position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completions {
    /// The items, at most 200.
    pub items: Vec<Completion>,
    /// Whether other texts are possible: there are more items, or the text may have words that are unknown here.
    pub is_incomplete: bool,
}

/// A text to insert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The text to show and to filter by.
    pub label: String,
    /// The kind.
    pub kind: CompletionKind,
    /// The documentation in Markdown. May be empty.
    pub documentation: String,
    /// The replaced span.
    pub replaces: Span,
    /// The text to insert, a snippet in the syntax of the Language Server Protocol.
    pub snippet: String,
}

/// The kind of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletionKind {
    /// A form.
    Form,
    /// A key of a plist.
    Key,
    /// A symbol or string with a fixed meaning.
    Value,
    /// A type.
    Type,
    /// A tool.
    Tool,
    /// A rule.
    Rule,
    /// A file.
    File,
    /// A global of scripts.
    Global,
    /// A function of scripts.
    Function,
    /// A variable of a script.
    Variable,
    /// A field of a value in a script.
    Field,
    /// A keyword of scripts.
    Keyword,
}

/// Returns the candidates to build, and whether these are all. If there are more than [`MAX_ITEMS`], they are those whose names
/// begin with `typed`.
pub(super) fn choose<T>(
    candidates: impl Iterator<Item = T>,
    name: impl Fn(&T) -> &str,
    typed: &str,
) -> (Vec<T>, bool) {
    let mut candidates: Vec<T> = candidates.collect();
    let are_all = candidates.len() <= MAX_ITEMS;
    if !are_all {
        let begins =
            |name: &str| name.get(..typed.len()).is_some_and(|start| start.eq_ignore_ascii_case(typed));
        candidates.retain(|candidate| begins(name(candidate)));
        candidates.truncate(MAX_ITEMS);
    }
    (candidates, are_all)
}

/// Creates a completion. `snippet` is text, unless it has the placeholder `$1`.
pub(crate) fn plain(
    label: &str,
    kind: CompletionKind,
    snippet: &str,
    doc: &str,
    replaces: Span,
) -> Completion {
    Completion {
        label: label.to_owned(),
        kind,
        documentation: doc.to_owned(),
        replaces,
        snippet: if snippet.contains("$1") { snippet.to_owned() } else { escaped(snippet) },
    }
}

/// Returns the snippet for the value of a key.
pub(super) fn value_snippet(key: &Key) -> String {
    match key.value {
        KeyValue::Text | KeyValue::Quantity | KeyValue::Strings(_) | KeyValue::Script => {
            String::from("\"$1\"")
        }
        KeyValue::Flag | KeyValue::JsonFlag | KeyValue::Confirm => String::from("t"),
        KeyValue::Number | KeyValue::Status | KeyValue::Dialect | KeyValue::Any => String::from("$1"),
        KeyValue::Words(words) => format!("${{1|{}|}}", words.join(",")),
        KeyValue::Type => format!("${{1|{}|}}", types().join(",")),
        KeyValue::List | KeyValue::Tools(_) => String::from("[\"$1\"]"),
        KeyValue::Rules | KeyValue::Statuses | KeyValue::WordList(_) => String::from("[$1]"),
        KeyValue::Plist(_) | KeyValue::Named(_) | KeyValue::Previews | KeyValue::Arguments => {
            String::from("($1)")
        }
        KeyValue::Entries(Plist::Ask) => String::from("[(\"$1\" :call ${2:t})]"),
        KeyValue::Entries(_) => String::from("[($1 :call ${2:t})]"),
        KeyValue::Call(_) => String::from("${1:t}"),
        KeyValue::Plists(Plist::Argument) => {
            String::from("((:name \"$1\" :type ${2:string} :description \"$3\"))")
        }
        KeyValue::Plists(_) => String::from("(($1))"),
        KeyValue::VectorOf(_) | KeyValue::Calls => String::from("[($1)]"),
    }
}

/// Returns the heads of the lists in asks that stand for several values.
pub(super) fn pattern_heads(replaces: Span) -> Vec<Completion> {
    let complete = |PatternDoc { head, doc }| {
        let snippet = if replaces.is_empty() { format!("{head} $1") } else { head.to_owned() };
        plain(head, CompletionKind::Form, &snippet, doc, replaces)
    };
    PATTERNS.map(complete).to_vec()
}

/// Returns `text` as a snippet without placeholders.
pub(super) fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('$', "\\$").replace('}', "\\}")
}
