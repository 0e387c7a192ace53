//! Completion of fixes. The rules have only spans; this module has the text.
//!
//! A removal is extended over the surrounding whitespace or the whole line, a fix that would remove a comment is
//! dropped, and a new symbol in evaluated Emacs Lisp is quoted.

use std::collections::HashSet;

use crate::diagnostic::{Diagnostic, Fix};
use crate::spec::FileKind;
use crate::syntax::{Kind, Tree};
use crate::text::removal;

pub(super) fn complete_fixes(findings: &mut [Diagnostic], text: &str, tree: &Tree, kind: FileKind) {
    for finding in findings.iter_mut() {
        if let Some(fix) = &mut finding.fix {
            extend_over_layout(fix, text);
            if removes_comment(fix, tree) || leaves_prefix(fix, text) {
                finding.fix = None;
            }
        }
    }
    if kind.is_code() {
        quote_symbols(findings, text, tree);
    }
}

fn extend_over_layout(fix: &mut Fix, text: &str) {
    let mut edits = fix.edits.clone();
    for edit in edits.iter_mut().filter(|edit| edit.replacement.is_empty()) {
        edit.span = removal(text, edit.span);
    }
    // Two removed neighbours may both be extended over the same whitespace.
    if edits.iter().zip(edits.iter().skip(1)).all(|(edit, next)| edit.span.end <= next.span.start) {
        fix.edits = edits;
    }
}

fn removes_comment(fix: &Fix, tree: &Tree) -> bool {
    let comments = tree.comments();
    fix.edits.iter().any(|edit| {
        let first = comments.partition_point(|comment| comment.end <= edit.span.start);
        comments.get(first).is_some_and(|comment| comment.start < edit.span.end)
    })
}

/// Whether the fix would leave a prefix that then applies to the next form, such as the quote that remains after
/// `:required t` is removed from `':required t`.
fn leaves_prefix(fix: &Fix, text: &str) -> bool {
    fix.edits.iter().filter(|edit| edit.replacement.is_empty()).any(|edit| {
        let before = text.get(..edit.span.start as usize).unwrap_or("").trim_end();
        let is_entry = edit.span.of(text).trim_start().starts_with(':');
        is_entry && before.ends_with(['\'', '`', ',', '@', '#'])
    })
}

/// Quotes new symbols and plists in evaluated calls, where they would be variables and calls: `(list :type "string")`
/// becomes `(list :type 'string)`.
fn quote_symbols(findings: &mut [Diagnostic], text: &str, tree: &Tree) {
    let edits = || findings.iter().filter_map(|finding| finding.fix.as_ref()).flat_map(|fix| &fix.edits);
    if !edits().any(|edit| quoted_where_evaluated(&edit.replacement).is_some()) {
        return;
    }
    let evaluated = evaluated_arguments(text, tree);
    for fix in findings.iter_mut().filter_map(|finding| finding.fix.as_mut()) {
        let Fix { title, edits, .. } = fix;
        for edit in edits.iter_mut().filter(|edit| evaluated.contains(&edit.span.start)) {
            if let Some(quoted) = quoted_where_evaluated(&edit.replacement) {
                *title =
                    title.replace(&format!("`{}`", edit.replacement.trim()), &format!("`{}`", quoted.trim()));
                edit.replacement = quoted;
            }
        }
    }
}

/// Quotes `string` to `'string`, `(:type string)` to `'(:type string)`, `:type string ` to `:type 'string `.
fn quoted_where_evaluated(replacement: &str) -> Option<String> {
    let is_name = |text: &str| {
        let first = text.bytes().next();
        first.is_some_and(|first| first.is_ascii_alphabetic()) && !matches!(text.trim_end(), "t" | "nil")
    };
    if is_name(replacement) || replacement.starts_with('(') {
        return Some(format!("'{replacement}"));
    }
    let (key, value) = replacement.split_once(' ').filter(|_| replacement.starts_with(':'))?;
    is_name(value).then(|| format!("{key} '{value}"))
}

/// Returns the start offsets of the arguments of evaluated calls.
fn evaluated_arguments(text: &str, tree: &Tree) -> HashSet<u32> {
    let mut found = HashSet::new();
    let mut pending: Vec<_> = tree.roots().map(|root| (root, true)).collect();
    while let Some((node, is_evaluated)) = pending.pop() {
        let mut children = tree.children(node);
        let head = children.clone().next();
        match tree.kind(node) {
            Kind::List if is_evaluated && head.is_some_and(|head| tree.kind(head) == Kind::Symbol) => {
                children.next();
                let is_quote = head.is_some_and(|head| matches!(tree.text(head, text), "quote" | "function"));
                found.extend(children.clone().filter(|_| !is_quote).map(|child| tree.span(child).start));
                pending.extend(children.map(|child| (child, !is_quote)));
            }
            Kind::Unquote | Kind::Splice => {
                found.extend(children.clone().map(|child| tree.span(child).start));
                pending.extend(children.map(|child| (child, true)));
            }
            Kind::List | Kind::Vector | Kind::Quote | Kind::Function | Kind::Backquote | Kind::Opaque => {
                pending.extend(children.map(|child| (child, false)));
            }
            Kind::Dot
            | Kind::Symbol
            | Kind::Keyword
            | Kind::String
            | Kind::Integer
            | Kind::Float
            | Kind::Character => {}
        }
    }
    found
}
