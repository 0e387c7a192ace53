//! What Emacs evaluates before a tool is made, and cannot: `:args (list (:name "x" …))` calls a function `:name`.
//!
//! It is read here as it is meant, so that nothing else tells of it.

use std::collections::HashSet;

use crate::syntax::{Kind, NodeId, Tree};

/// Something that lacks its quote.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Guilty {
    /// A list that starts with this.
    Call(NodeId),
    /// A symbol, which Emacs takes for a variable.
    Variable,
    /// The same, where it names a category.
    Category,
}

/// Functions whose arguments are data that is put together; of any other nothing is known.
const BUILDERS: [&str; 9] =
    ["list", "vector", "cons", "append", "nconc", "vconcat", "concat", "format", "identity"];

/// The outermost forms among `items`, the keys and values of a call, that Emacs cannot evaluate, in source order.
pub(super) fn unquoted(
    tree: &Tree,
    text: &str,
    items: impl Iterator<Item = NodeId>,
    variables: &mut Variables,
) -> Vec<(NodeId, Guilty)> {
    let mut found = Vec::new();
    let mut key = "";
    for item in items {
        let is_category = key == ":category" && tree.kind(item) == Kind::Symbol;
        if is_category && variables.is_unknown(tree, text, item) {
            found.push((item, Guilty::Category));
        } else if key != ":function" {
            look_into(tree, text, item, &mut found);
        }
        key = if tree.kind(item) == Kind::Keyword { tree.text(item, text) } else { "" };
    }
    found
}

fn look_into(tree: &Tree, text: &str, value: NodeId, found: &mut Vec<(NodeId, Guilty)>) {
    // With each whether it is evaluated.
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
                                found.push((child, Guilty::Variable));
                            }
                            key = if tree.kind(child) == Kind::Keyword { word } else { "" };
                            pending.push((child, true));
                        }
                    }
                    // Any other function or macro is left alone, `((lambda …) …)` as well.
                    Kind::Symbol => {}
                    Kind::List
                        if tree.children(head).next().is_some_and(|c| tree.text(c, text) == "lambda") => {}
                    _ => found.push((node, Guilty::Call(head))),
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

/// The symbols of a file that may be variables: those that stand elsewhere than as a category. Made when it is asked for.
#[derive(Default)]
pub(super) struct Variables {
    known: Option<HashSet<String>>,
}

impl Variables {
    /// Whether nothing suggests that the symbol is a variable: it is a plain word, and the file has it nowhere else.
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
