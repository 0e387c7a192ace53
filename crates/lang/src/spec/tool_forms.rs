//! Heads of forms in Emacs Lisp that are read like `gptel-make-tool`: functions and macros of the user that call it.

use std::collections::{BTreeMap, BTreeSet};

use super::lower::{plist_of_form, starts_plist};
use super::reference::Plist;
use super::{FileKind, ProjectSettings};
use crate::syntax::{Kind, parse};
use crate::text::{SourceId, Span, Spanned};

/// An entry of `:tool-forms` in `defproject`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolForm {
    /// The head.
    pub name: Spanned<String>,
    /// Number of arguments before the plist.
    pub skip: usize,
}

/// The heads that a project declares, each with the number of arguments before the plist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolForms {
    heads: BTreeMap<String, usize>,
}

impl ToolForms {
    /// Adds the heads of a form `defproject`. The first entry of a head applies.
    pub fn add(&mut self, settings: &ProjectSettings) {
        for ToolForm { name, skip } in &settings.tool_forms {
            self.heads.entry(name.value.clone()).or_insert(*skip);
        }
    }

    /// Adds the heads of other projects.
    pub fn extend(&mut self, other: &Self) {
        for (name, skip) in &other.heads {
            self.heads.entry(name.clone()).or_insert(*skip);
        }
    }

    /// Adds a wrapper as if it was declared.
    pub fn add_wrapper(&mut self, wrapper: &Wrapper) {
        self.heads.entry(wrapper.name.value.clone()).or_insert(wrapper.skip);
    }

    /// Returns the heads of the forms in `text` that have a plist, or its first key, as an argument.
    pub fn used_in(&self, source: SourceId, text: &str, kind: FileKind) -> BTreeSet<&str> {
        let mut used = BTreeSet::new();
        if !kind.is_code() || self.is_empty() {
            return used;
        }
        let code = kind.code_of(text);
        let (tree, _) = parse(source, &code);
        for node in tree.iter().filter(|node| tree.kind(*node) == Kind::List) {
            let mut children = tree.children(node);
            let head = children.next().and_then(|head| self.heads.get_key_value(tree.text(head, text)));
            if let Some((name, skip)) = head
                && children.nth(*skip).is_some_and(|argument| starts_plist(&tree, &code, argument))
            {
                used.insert(name.as_str());
            }
        }
        used
    }

    /// Returns the number of arguments before the plist of a declared head.
    pub(super) fn skip(&self, head: &str) -> Option<usize> {
        self.heads.get(head).copied()
    }

    /// Returns whether no heads are declared.
    pub(super) fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Returns the plist of a spec form, and the number of elements before it. `None` if no plist follows the head.
    pub fn plist_of_form(&self, head: &str) -> Option<(Plist, usize)> {
        let declared = || Some((Plist::Tool, 1 + self.skip(head)?));
        plist_of_form(head).map(|plist| (plist, 1)).or_else(declared)
    }
}

/// A function or macro that takes the keys of a tool and passes them to a function that makes tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapper {
    /// The name in its definition.
    pub name: Spanned<String>,
    /// Number of parameters before the keys.
    pub skip: usize,
    /// The function that makes tools, or another wrapper, where this one names it.
    pub function: Spanned<String>,
    /// Whether the project declares it.
    pub is_declared: bool,
    /// Whether a loop in the same file calls it for each plist of a table.
    pub is_applied: bool,
}

impl Wrapper {
    /// Returns the entry of `:tool-forms` for the wrapper.
    pub fn declaration(&self) -> String {
        match self.skip {
            0 => self.name.value.clone(),
            skip => format!("({} :skip {skip})", self.name.value),
        }
    }

    /// Returns the span of the name in the definition.
    pub(super) fn span(&self) -> Span {
        self.name.span
    }
}
