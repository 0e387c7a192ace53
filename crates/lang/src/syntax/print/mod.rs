//! The formatter: prints a text in canonical layout, with the same tree and the same comments.
//!
//! Input is a text and a [`Scope`], which identifies its tool forms. The output has the layout of carefully written
//! Emacs Lisp. The formatter changes only the whitespace between tokens: every string, number and symbol stays
//! byte-identical, and comments keep their position and order. The layout depends on the tokens, comments and blank
//! lines, not on the previous line breaks.
//!
//! Rules:
//!
//! - A tool form has its head on the first line, then one key per line with the value next to it, indented to one
//!   column inside the parenthesis.
//! - An inner plist stays on one line if it fits into 100 columns and has at most five keys, including
//!   those of nested plists. Otherwise it has one key per line, aligned after its parenthesis.
//! - The items of a list or vector stay on one line if they fit; otherwise they have one aligned line each. Atoms fill
//!   their lines. Two or more plists in a list, such as arguments, always have one line each, and so have two or more
//!   asks or calls in a vector.
//! - The arguments of `list`, `vector`, `append`, `concat` and similar functions are aligned under the first one.
//! - A value that must be broken goes below its key if it would start right of column 50 or is a plist of
//!   plists, such as the value of `:properties`.
//! - Code (a `lambda` or any other call) keeps its layout and is moved as a block with its first line. Lines that start
//!   inside a string never move.
//! - Blank lines between items stay; several become one; blank lines at the edges of a list are removed.
//! - A comment on a line of its own stays on its own line, indented like the text after it. A comment with three
//!   semicolons keeps its column, as in Emacs. A comment at the end of a line stays there, and keeps its column if it
//!   was aligned by hand. A list with a comment is never on one line.
//! - There is no trailing whitespace and one line end at the end of a file. Line ends are CRLF if all line ends of the
//!   file are; a byte order mark stays.
//!
//! A list that starts at column 100 or further right keeps its layout. Each level adds a column, so this bounds
//! indentation and recursion. Time and output size are linear.
//!
//! Out of scope: options, wrapping or joining of strings, an indenter for Emacs Lisp. Text that cannot be moved
//! safely stays unchanged: lists with labels (`#1=`) or unusual whitespace, and files with `#@`, which counts bytes.

mod block;
mod gap;
mod layout;
mod printer;
mod same;
mod shape;

use super::tree::{Kind, Tree};
use super::{NodeId, parse};
use crate::diagnostic::{Diagnostic, Severity};
use crate::text::SourceId;
use printer::Printer;
use shape::{Role, Shapes};

/// The parts of a text to format.
#[derive(Clone, Copy)]
pub struct Scope<'f> {
    /// Whether to format the whole text. Otherwise only the tool forms are formatted, and every other byte stays.
    pub whole_file: bool,
    /// Returns the layout of a list that starts with this symbol, if it is a tool form.
    pub layout: &'f dyn Fn(&str) -> Option<FormLayout>,
}

/// The layout of a tool form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormLayout {
    /// The head with the arguments before the keys, then one key per line.
    Keys {
        /// Number of arguments before the keys.
        skip: usize,
    },
    /// Like a defining macro in Emacs: head, name and arguments, then the rest indented by two columns.
    Definition,
}

/// The reason why a text is not formatted.
#[derive(Debug)]
pub enum FormatError {
    /// The text has syntax errors: the findings of the reader.
    Syntax(Vec<Diagnostic>),
    /// The result differs from the input in more than layout. This is a bug in the formatter.
    Damaged,
}

/// Formats `text`, the complete text of `source`.
///
/// # Errors
/// Returns an error if the text has syntax errors or the result would have a different tree.
pub fn format(source: SourceId, text: &str, scope: Scope<'_>) -> Result<String, FormatError> {
    let (tree, findings) = parse(source, text);
    let has_errors =
        |findings: &[Diagnostic]| findings.iter().any(|finding| finding.severity == Severity::Error);
    if has_errors(&findings) {
        return Err(FormatError::Syntax(findings));
    }
    let counts_bytes = tree.comments().iter().any(|comment| comment.of(text).starts_with("#@"));
    if counts_bytes {
        return Ok(text.to_owned());
    }
    let forms = if scope.whole_file { roots(&tree, text, scope) } else { inner_forms(&tree, text, scope) };
    let shapes = Shapes::of(&tree, text, &forms);
    let mut printer = Printer::new(&tree, text, &shapes);
    if scope.whole_file {
        printer.print_file();
    } else {
        printer.print_forms(&forms);
    }
    let Some(formatted) = printer.finish() else { return Ok(text.to_owned()) };
    if formatted != text {
        let (again, findings) = parse(source, &formatted);
        if has_errors(&findings) || !same::is_same((&tree, text), (&again, &formatted)) {
            return Err(FormatError::Damaged);
        }
    }
    Ok(formatted)
}

/// Returns the top-level forms. Forms that are not specs are code.
fn roots(tree: &Tree, text: &str, scope: Scope<'_>) -> Vec<(NodeId, Role)> {
    let role = |root| match form_layout(tree, text, root, scope) {
        Some(layout) => layout.role(),
        None if is_list_with(tree, root, 0, Kind::Keyword) => Role::Form,
        None => Role::Code,
    };
    tree.roots().map(|root| (root, role(root))).collect()
}

/// Returns the outermost tool forms at any depth. `(deftool …)` without keys may be the macro of another package.
fn inner_forms(tree: &Tree, text: &str, scope: Scope<'_>) -> Vec<(NodeId, Role)> {
    let mut forms = Vec::new();
    let mut next = 0;
    while let Some(node) = tree.nodes.get(next as usize) {
        let id = NodeId(next);
        let layout = form_layout(tree, text, id, scope).filter(|layout| match layout {
            FormLayout::Definition => {
                let is_nil = |specs| tree.text(specs, text) == "nil";
                [Kind::Symbol, Kind::String].iter().any(|kind| is_list_with(tree, id, 1, *kind))
                    && tree.children(id).nth(2).is_some_and(|c| tree.kind(c) == Kind::List || is_nil(c))
            }
            FormLayout::Keys { skip } => is_list_with(tree, id, 1 + skip, Kind::Keyword),
        });
        next = if layout.is_some() { node.end } else { next + 1 };
        forms.extend(layout.map(|layout| (id, layout.role())));
    }
    forms
}

fn form_layout(tree: &Tree, text: &str, id: NodeId, scope: Scope<'_>) -> Option<FormLayout> {
    let head = tree.children(id).next().filter(|_| is_list_with(tree, id, 0, Kind::Symbol))?;
    (scope.layout)(tree.text(head, text))
}

impl FormLayout {
    fn role(self) -> Role {
        match self {
            Self::Keys { .. } => Role::Form,
            Self::Definition => Role::Collection,
        }
    }
}

fn is_list_with(tree: &Tree, id: NodeId, index: usize, kind: Kind) -> bool {
    tree.kind(id) == Kind::List && tree.children(id).nth(index).is_some_and(|child| tree.kind(child) == kind)
}
