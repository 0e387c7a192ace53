//! The formatter: a text in canonical layout, with the same tree and the same comments.
//!
//! In goes text and a [`Scope`] that says which of its forms are tool forms, out comes the text as a careful Emacs
//! user would have laid it out. Where it says nothing is written is between the tokens: every string, number and
//! symbol stays byte for byte, comments stay in their place and order. Layout depends on the tokens, the comments and
//! the blank lines, and not on how lines were broken before.
//!
//! The rules:
//!
//! - A tool form has its head on the first line and one key a line, its value beside it, one column inside the
//!   parenthesis.
//! - An inner plist stays on one line where it fits in [`WIDTH`] columns and has at most [`MAX_KEYS`] keys, those
//!   inside of it included; otherwise it has one key a line, aligned after its parenthesis.
//! - Items of a list or vector stay on one line where they fit, or stand one a line, aligned. Atoms fill their lines.
//!   Two plists or more in a list, such as arguments, are always one a line.
//! - Arguments of `list`, `vector`, `append`, `concat` and their like are aligned under the first.
//! - A value that has to be broken goes below its key if it would start right of column [`BESIDE`] or is a plist of
//!   plists, as the value of `:properties` is.
//! - What is code (a `lambda`, any other call) is left as it is, and moved as a block with the place it starts at.
//!   Lines that start inside a string never move.
//! - Blank lines between items stay, several become one, at the edges of a list there are none.
//! - A comment on a line of its own stays on one, indented like what follows it; one with three semicolons stays in
//!   its column, as Emacs has it. A comment at the end of a line stays at the end of that line, and in its column if
//!   it was aligned by hand. A list with a comment in it is never on one line.
//! - No blanks at the end of a line, one line end at the end of a file. Line ends are CRLF where all of the
//!   file are, and a byte order mark stays.
//!
//! A list that starts at column [`WIDTH`] or further right is left as it is, which bounds indentation and recursion:
//! every level costs a column. Time and output are linear.
//!
//! Deliberately absent: options, wrapping or joining of strings, an indenter for Emacs Lisp. What cannot be moved
//! without knowing more stays: lists that hold labels (`#1=`) or odd blanks, and files with `#@`, which counts bytes.

mod block;
mod gap;
mod layout;
mod same;
mod shape;

use super::tree::{Kind, Tree};
use super::{NodeId, parse};
use crate::diagnostic::{Diagnostic, Severity};
use crate::text::SourceId;
use layout::Printer;
use shape::{Role, Shapes};

/// Lines are at most this long, where there is a choice.
pub const WIDTH: usize = 100;

/// A plist of more keys than this is never on one line.
pub const MAX_KEYS: u32 = 5;

/// The last column (from 0) in which a value that does not fit on its line starts beside its key.
pub const BESIDE: usize = 50;

/// What of a text is laid out.
#[derive(Debug, Clone, Copy)]
pub struct Scope {
    /// All of it; otherwise the tool forms alone, wherever they stand, and every other byte stays.
    pub whole_file: bool,
    /// How a list that starts with this symbol is laid out, where it is a tool form.
    pub layout: fn(&str) -> Option<FormLayout>,
}

/// How a tool form is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormLayout {
    /// The head, then one key a line.
    Keys,
    /// As Emacs indents the macro of a definition with a name: head, name and arguments, then the rest two columns in.
    Definition,
}

/// Why a text is left as it is.
#[derive(Debug)]
pub enum FormatError {
    /// It cannot be read: the findings of the reader.
    Faults(Vec<Diagnostic>),
    /// What came out does not read as what went in. A mistake in here.
    Damaged,
}

/// `text`, the whole of `source`, in canonical layout.
///
/// # Errors
/// When it cannot be read without an error, or the result would read as something else.
pub fn format(source: SourceId, text: &str, scope: Scope) -> Result<String, FormatError> {
    let (tree, findings) = parse(source, text);
    let has_errors =
        |findings: &[Diagnostic]| findings.iter().any(|finding| finding.severity == Severity::Error);
    if has_errors(&findings) {
        return Err(FormatError::Faults(findings));
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

/// Every top-level form; those that are no specs are code.
fn roots(tree: &Tree, text: &str, scope: Scope) -> Vec<(NodeId, Role)> {
    let role = |root| match form_role(tree, text, root, scope) {
        Some(role) => role,
        None if is_list_with(tree, root, 0, Kind::Keyword) => Role::Form,
        None => Role::Code,
    };
    tree.roots().map(|root| (root, role(root))).collect()
}

/// The outermost tool forms, wherever they stand. `(deftool …)` may be anybody's macro: those with keys are ours.
fn inner_forms(tree: &Tree, text: &str, scope: Scope) -> Vec<(NodeId, Role)> {
    let mut forms = Vec::new();
    let mut next = 0;
    while let Some(node) = tree.nodes.get(next as usize) {
        let id = NodeId(next);
        let role = form_role(tree, text, id, scope).filter(|role| match role {
            Role::Collection => {
                let is_nil = |specs| tree.text(specs, text) == "nil";
                [Kind::Symbol, Kind::String].iter().any(|kind| is_list_with(tree, id, 1, *kind))
                    && tree.children(id).nth(2).is_some_and(|c| tree.kind(c) == Kind::List || is_nil(c))
            }
            _ => is_list_with(tree, id, 1, Kind::Keyword),
        });
        next = if role.is_some() { node.end } else { next + 1 };
        forms.extend(role.map(|role| (id, role)));
    }
    forms
}

fn form_role(tree: &Tree, text: &str, id: NodeId, scope: Scope) -> Option<Role> {
    let head = tree.children(id).next().filter(|_| is_list_with(tree, id, 0, Kind::Symbol))?;
    Some(match (scope.layout)(tree.text(head, text))? {
        FormLayout::Keys => Role::Form,
        FormLayout::Definition => Role::Collection,
    })
}

fn is_list_with(tree: &Tree, id: NodeId, index: usize, kind: Kind) -> bool {
    tree.kind(id) == Kind::List && tree.children(id).nth(index).is_some_and(|child| tree.kind(child) == kind)
}
