//! The tools that presets of gptel name.

use crate::syntax::{Datum, DatumKind, Folder, Kind, NodeId, Tree};
use crate::text::Spanned;

/// Returns the names under `:tools` in `(gptel-make-preset NAME :tools '("a" "b"))`, also in `'(:append ("a"))`. Without those
/// that Emacs computes.
pub(super) fn tools_of(
    folder: &mut Folder<'_>,
    tree: &Tree,
    text: &str,
    node: NodeId,
) -> Vec<Spanned<String>> {
    let head = tree.children(node).next().filter(|_| tree.kind(node) == Kind::List);
    if head.is_none_or(|head| tree.text(head, text) != "gptel-make-preset") {
        return Vec::new();
    }
    let mut items = tree.children(node).skip_while(|item| tree.text(*item, text) != ":tools");
    let Some(list) = items.nth(1) else { return Vec::new() };
    let (mut names, reported) = (Vec::new(), folder.findings.len());
    folder.in_code = true;
    add_names(folder.fold_argument(list), &mut names);
    folder.in_code = false;
    // Any other code is the user's.
    folder.findings.truncate(reported);
    names
}

fn add_names(datum: Datum, names: &mut Vec<Spanned<String>>) {
    match datum.kind {
        DatumKind::String(value) => names.push(Spanned { value, span: datum.span }),
        DatumKind::List(items) => items.into_iter().for_each(|item| add_names(item, names)),
        _ => {}
    }
}
