//! What a list is: a spec, or anything else.
//!
//! In a file of specs the head says so. In Emacs Lisp the same words stand in calls, declarations and patterns, too
//! (`:commands (gptel-make-tool)`, `(cl-defstruct (llm-tool …))`), so that a list is a spec only if keys follow its head.

use super::FileKind;
use crate::spec::ToolKind;
use crate::syntax::print::FormLayout;
use crate::syntax::{Kind, NodeId, Tree};

/// The sort of a top-level form.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Tool(ToolKind),
    /// `llm-tool-collection-deftool`.
    Collection,
    Worker,
    Mcp,
    Lint,
}

pub(super) const FORMS: [(&str, Form); 9] = [
    ("deftool", Form::Tool(ToolKind::Normal)),
    ("defexit", Form::Tool(ToolKind::Exit)),
    ("defworker", Form::Worker),
    ("defmcp", Form::Mcp),
    ("deflint", Form::Lint),
    ("gptel-make-tool", Form::Tool(ToolKind::Normal)),
    ("llm-make-tool", Form::Tool(ToolKind::Normal)),
    ("llm-tool", Form::Tool(ToolKind::Normal)),
    ("llm-tool-collection-deftool", Form::Collection),
];

/// Whether lists that begin so are specs.
pub(crate) fn is_spec_form(head: &str) -> bool {
    FORMS.iter().any(|(form, _)| *form == head)
}

/// Functions of Emacs that are handed a function to call.
const CALLERS: [&str; 11] = [
    "apply",
    "funcall",
    "mapc",
    "mapcar",
    "mapcan",
    "cl-mapcar",
    "cl-mapc",
    "seq-do",
    "seq-map",
    "-map",
    "apply-partially",
];

/// How a list that starts with this symbol is laid out, where it is a form of specs.
pub(in crate::spec) fn layout_of(head: &str) -> Option<FormLayout> {
    let (_, form) = FORMS.iter().find(|(form, _)| *form == head)?;
    Some(match form {
        Form::Collection => FormLayout::Definition,
        Form::Tool(_) | Form::Worker | Form::Mcp | Form::Lint => FormLayout::Keys,
    })
}

/// How the keys and values of a form are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// As data, whatever they are.
    Data,
    /// Emacs evaluates them.
    Evaluated,
    /// They stand below a quote.
    Quoted,
}

/// A list that is a form of specs.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) form: Form,
    /// The list that holds its keys and values.
    pub(super) list: NodeId,
    /// How many elements of it stand before them.
    pub(super) skipped: usize,
    pub(super) taken: Taken,
}

/// What `node` is, if it is a form of specs.
pub(super) fn form_of(tree: &Tree, text: &str, node: NodeId, kind: FileKind) -> Option<Found> {
    let mut children = tree.children(node);
    let head = children.next().filter(|_| tree.kind(node) == Kind::List)?;
    let second = children.next().map(|child| tree.kind(child));
    let name = tree.text(head, text);
    let in_code = kind == FileKind::EmacsLisp;
    match tree.kind(head) {
        Kind::Symbol => {
            let Some((_, form)) = FORMS.iter().find(|(form, _)| *form == name) else {
                return if in_code { called_by_another(tree, text, node) } else { None };
            };
            let is_meant = match form {
                Form::Collection => {
                    let specs = children.next();
                    let is_list = |specs| tree.kind(specs) == Kind::List || tree.text(specs, text) == "nil";
                    matches!(second, Some(Kind::Symbol | Kind::String)) && specs.is_some_and(is_list)
                }
                // `(gptel-make-tool "name" …)` is no declaration, and a mistake.
                Form::Tool(_) => matches!(second, Some(Kind::Keyword | Kind::String)),
                Form::Worker | Form::Mcp | Form::Lint => second == Some(Kind::Keyword),
            };
            let taken = if is_function(name) { Taken::Evaluated } else { Taken::Data };
            (is_meant || !in_code).then_some(Found { form: *form, list: node, skipped: 1, taken })
        }
        // In Emacs Lisp a list that starts with a keyword is anybody's data.
        Kind::Keyword if !in_code => {
            let form = Form::Tool(ToolKind::Normal);
            Some(Found { form, list: node, skipped: 0, taken: Taken::Data })
        }
        _ => None,
    }
}

/// `(funcall #'gptel-make-tool :name …)` and `(apply #'gptel-make-tool '(:name …))`.
fn called_by_another(tree: &Tree, text: &str, node: NodeId) -> Option<Found> {
    let mut children = tree.children(node);
    let caller = tree.text(children.next()?, text);
    let is_tool = |function: NodeId| names_function(tree, text, function);
    children.next().filter(|function| matches!(caller, "apply" | "funcall") && is_tool(*function))?;
    let (first, is_only) = (children.next()?, children.next().is_none());
    let form = Form::Tool(ToolKind::Normal);
    if caller == "funcall" {
        let found = Found { form, list: node, skipped: 2, taken: Taken::Evaluated };
        return (tree.kind(first) == Kind::Keyword).then_some(found);
    }
    let starts = |list: NodeId, word: Option<&str>| {
        tree.children(list).next().is_some_and(|head| match word {
            Some(word) => tree.text(head, text) == word,
            None => tree.kind(head) == Kind::Keyword,
        })
    };
    let quoted = |list: NodeId| {
        let is_plist = tree.kind(list) == Kind::List && starts(list, None);
        is_plist.then_some(Found { form, list, skipped: 0, taken: Taken::Quoted })
    };
    match tree.kind(first) {
        Kind::Quote if is_only => quoted(tree.children(first).next()?),
        Kind::List if is_only && starts(first, Some("quote")) => quoted(tree.children(first).nth(1)?),
        Kind::List if is_only && starts(first, Some("list")) => {
            let has_keys = tree.children(first).nth(1).is_some_and(|key| tree.kind(key) == Kind::Keyword);
            has_keys.then_some(Found { form, list: first, skipped: 1, taken: Taken::Evaluated })
        }
        _ => None,
    }
}

/// Where a function of Emacs is handed one that makes tools, so that there are tools nobody can read here.
pub(super) fn hands_on_function(tree: &Tree, text: &str, node: NodeId) -> Option<NodeId> {
    let mut children = tree.children(node);
    let head = children.next().filter(|head| CALLERS.contains(&tree.text(*head, text)))?;
    (tree.kind(head) == Kind::Symbol).then(|| children.find(|child| names_function(tree, text, *child)))?
}

/// `#'gptel-make-tool`, or with a quote alone.
fn names_function(tree: &Tree, text: &str, node: NodeId) -> bool {
    matches!(tree.kind(node), Kind::Function | Kind::Quote)
        && tree.children(node).next().is_some_and(|name| is_function(tree.text(name, text)))
}

/// Whether a form is a call in Emacs, which evaluates what stands in it.
fn is_function(head: &str) -> bool {
    matches!(head, "gptel-make-tool" | "llm-make-tool" | "llm-tool")
}
