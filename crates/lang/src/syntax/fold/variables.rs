//! Variables of an Emacs Lisp file that have one known value.
//!
//! The file must assign the variable once, at top level, and no other occurrence may bind or change it. A symbol may be
//! bound or changed if it is quoted, in a vector, or the head of a list. It may also be if it is an argument of a form,
//! or in its first list, and the name of the form suggests binding or changing (`let`, `setq`, `dolist`, `add-to-list`,
//! …). This includes harmless positions, which only means that the value stays unknown.

use std::collections::HashMap;

use super::folder::{Constants, Value};
use super::functions::function;
use crate::syntax::tree::{Kind, NodeId, Tree};

/// Parts of the names of forms that bind or change variables, or change the lists in them.
const WRITERS: [&str; 22] = [
    "set", "let", "def", "lambda", "bind", "do", "for", "loop", "case", "slots", "label", "push", "pop",
    "add", "inc", "dec", "put", "del", "rem", "sort", "nconc", "reverse",
];

/// The position of a form.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Evaluated.
    Code,
    /// In a backquoted form, outside of a comma.
    Template,
    /// Where a symbol may be bound or changed.
    Written,
}

impl<'t> Constants<'t> {
    pub(super) fn of(tree: &'t Tree, text: &'t str) -> Self {
        let mut constants = Self { values: HashMap::new() };
        let others = constants.read_assignments(tree, text);
        constants.forget_written(tree, text, others);
        constants
    }

    /// Reads the assignments at top level. Returns the assigned values and all other forms.
    fn read_assignments(&mut self, tree: &'t Tree, text: &'t str) -> Vec<(NodeId, Position)> {
        let mut others = Vec::new();
        let mut pending: Vec<NodeId> = tree.roots().collect();
        while let Some(form) = pending.pop() {
            let mut children = tree.children(form);
            let head = children.next().filter(|_| tree.kind(form) == Kind::List);
            let assigned = match head.map(|head| tree.text(head, text)) {
                Some("progn" | "eval-when-compile" | "eval-and-compile") => {
                    pending.extend(children);
                    continue;
                }
                // A documentation string may follow.
                Some("defconst" | "defvar") => 1,
                Some("setq") => usize::MAX,
                Some(_) | None => {
                    others.push((form, Position::Code));
                    continue;
                }
            };
            for _ in 0..assigned {
                let (Some(name), Some(value)) = (children.next(), children.next()) else { break };
                let name = tree.text(name, text);
                let is_first = !self.values.contains_key(name);
                self.values.insert(name, if is_first { Value::Form(value) } else { Value::Unknown });
                others.push((value, Position::Code));
            }
        }
        others
    }

    /// Forgets the variables that the forms may bind or change.
    fn forget_written(&mut self, tree: &'t Tree, text: &'t str, mut pending: Vec<(NodeId, Position)>) {
        while let Some((node, position)) = pending.pop() {
            let within = match tree.kind(node) {
                Kind::Symbol if position != Position::Code => {
                    self.forget(tree.text(node, text));
                    continue;
                }
                Kind::List if position == Position::Code => {
                    Self::add_call(tree, text, node, &mut pending);
                    continue;
                }
                Kind::Unquote | Kind::Splice if position == Position::Template => Position::Code,
                Kind::Backquote if position == Position::Code => Position::Template,
                Kind::Quote | Kind::Function | Kind::Vector if position == Position::Code => {
                    Position::Written
                }
                _ => position,
            };
            pending.extend(tree.children(node).map(|child| (child, within)));
        }
    }

    /// Adds the elements of a list in code to `pending`.
    fn add_call(tree: &Tree, text: &str, list: NodeId, pending: &mut Vec<(NodeId, Position)>) {
        let mut children = tree.children(list);
        let Some(head) = children.next() else { return };
        let name = tree.text(head, text);
        pending.push((head, Position::Written));
        if tree.kind(head) != Kind::Symbol {
            // A list of bindings, or a clause with a pattern.
            pending.extend(children.map(|child| (child, Position::Written)));
            return;
        }
        let writes = function(name, true).is_none() && WRITERS.iter().any(|part| name.contains(part));
        let first_list = children.clone().find(|child| tree.kind(*child) == Kind::List).filter(|_| writes);
        pending.extend(children.map(|child| {
            let is_written = first_list == Some(child) || (writes && tree.kind(child) == Kind::Symbol);
            (child, if is_written { Position::Written } else { Position::Code })
        }));
    }

    fn forget(&mut self, name: &str) {
        if let Some(value) = self.values.get_mut(name) {
            *value = Value::Unknown;
        }
    }
}
