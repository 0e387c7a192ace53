//! Forms that Emacs cannot evaluate before a tool is made: `:args (list (:name "x" …))` calls a function `:name`.
//!
//! deftool reads such forms as intended, so that no other rule reports them.

use std::collections::HashSet;

use super::tool::is_own_key;
use crate::syntax::{Kind, NodeId, Tree};

/// A form with a missing quote.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unquoted {
    /// A list with this head.
    Call(NodeId),
    /// A symbol, which Emacs evaluates as a variable.
    Variable,
    /// A symbol used as a category.
    Category,
}

/// Functions that build data from their arguments; nothing is known about other functions.
const BUILDERS: [&str; 9] =
    ["list", "vector", "cons", "append", "nconc", "vconcat", "concat", "format", "identity"];

/// Returns the outermost forms that Emacs cannot evaluate in `items`, the keys and values of a call, in source order.
/// `is_declared`: the function may be a macro that does not evaluate the values of its own keys.
pub(super) fn unquoted(
    tree: &Tree,
    text: &str,
    (items, is_declared): (impl Iterator<Item = NodeId>, bool),
    variables: &mut Variables,
) -> Vec<(NodeId, Unquoted)> {
    let mut found = Vec::new();
    let mut key = "";
    for item in items {
        let is_category = key == ":category" && tree.kind(item) == Kind::Symbol;
        if is_category && variables.is_unknown(tree, text, item) {
            found.push((item, Unquoted::Category));
        } else if key != ":function" && !(is_declared && is_own_key(key.trim_start_matches(':'))) {
            look_into(tree, text, item, &mut found);
        }
        key = if tree.kind(item) == Kind::Keyword { tree.text(item, text) } else { "" };
    }
    found
}

fn look_into(tree: &Tree, text: &str, value: NodeId, found: &mut Vec<(NodeId, Unquoted)>) {
    // Each node, and whether it is evaluated.
    let mut pending = vec![(value, true)];
    while let Some((node, is_evaluated)) = pending.pop() {
        let start = pending.len();
        match tree.kind(node) {
            Kind::List if is_evaluated => {
                let mut children = tree.children(node);
                let Some(head) = children.next() else { continue };
                match tree.kind(head) {
                    Kind::Symbol if BUILDERS.contains(&tree.text(head, text)) => {
                        let mut key = "";
                        for child in children {
                            let word = tree.text(child, text);
                            let is_type = key == ":type" && tree.kind(child) == Kind::Symbol;
                            if is_type && !matches!(word, "nil" | "t") {
                                found.push((child, Unquoted::Variable));
                            }
                            key = if tree.kind(child) == Kind::Keyword { word } else { "" };
                            pending.push((child, true));
                        }
                    }
                    // Other functions and macros are skipped, including `((lambda …) …)`.
                    Kind::Symbol => {}
                    Kind::List
                        if tree.children(head).next().is_some_and(|c| tree.text(c, text) == "lambda") => {}
                    _ => found.push((node, Unquoted::Call(head))),
                }
            }
            Kind::Unquote | Kind::Splice => pending.extend(tree.children(node).map(|child| (child, true))),
            Kind::Backquote => pending.extend(tree.children(node).map(|child| (child, false))),
            Kind::List | Kind::Vector if !is_evaluated => {
                pending.extend(tree.children(node).map(|child| (child, false)));
            }
            _ => {}
        }
        if let Some(added) = pending.get_mut(start..) {
            added.reverse();
        }
    }
}

/// The symbols of a file that may be variables: those that are used anywhere except as a category. Computed on first
/// use.
#[derive(Default)]
pub(super) struct Variables {
    known: Option<HashSet<String>>,
}

impl Variables {
    /// Whether the symbol is probably not a variable: a lowercase word that the file uses only as a category.
    fn is_unknown(&mut self, tree: &Tree, text: &str, symbol: NodeId) -> bool {
        let word = tree.text(symbol, text);
        if matches!(word, "nil" | "t") || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return false;
        }
        let known = self.known.get_or_insert_with(|| {
            let mut before = "";
            let mut known = HashSet::new();
            for node in tree.iter() {
                let word = tree.text(node, text);
                if tree.kind(node) == Kind::Symbol && before != ":category" {
                    known.insert(word.to_owned());
                }
                before = if tree.kind(node) == Kind::Keyword { word } else { "" };
            }
            known
        });
        !known.contains(word)
    }
}
