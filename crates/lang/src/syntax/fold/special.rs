//! Special forms and macros of Emacs Lisp, and functions that call a function.

use super::folder::Folder;
use super::functions::{Failure, elements, function, join};
use crate::syntax::datum::{Datum, DatumKind};
use crate::syntax::rules::not_a_constant;
use crate::syntax::tree::{Kind, NodeId};

/// The names of the forms that are folded here.
pub(super) const SPECIAL: [&str; 10] = [
    "if",
    "or",
    "and",
    "progn",
    "let",
    "let*",
    "eval-when-compile",
    "eval-and-compile",
    "mapconcat",
    "mapcar",
];

/// A function that is passed to another.
enum Callee<'t> {
    Named(&'t str),
    /// A lambda with one parameter.
    Lambda {
        parameter: &'t str,
        body: Vec<NodeId>,
    },
}

impl<'t> Folder<'t> {
    /// Folds the form `id`, whose head is one of [`SPECIAL`].
    pub(super) fn fold_special(
        &mut self,
        id: NodeId,
        name: &str,
        arguments: &[NodeId],
        depth: usize,
    ) -> Datum {
        match (name, arguments) {
            ("if", [condition, then, otherwise @ ..]) => match self.fold_value(*condition, depth + 1) {
                condition if condition.kind == DatumKind::Invalid => condition,
                condition if condition.is_nil() => self.fold_body(id, otherwise, depth),
                _ => self.fold_value(*then, depth + 1),
            },
            ("or" | "and", forms) => {
                let nil = Datum { span: self.tree.span(id), kind: DatumKind::List(Vec::new()) };
                let t = DatumKind::Symbol(String::from("t"));
                let mut value = if name == "and" { Datum { kind: t, ..nil } } else { nil };
                for form in forms {
                    value = self.fold_value(*form, depth + 1);
                    if value.kind == DatumKind::Invalid || value.is_nil() == (name == "and") {
                        break;
                    }
                }
                value
            }
            ("progn" | "eval-when-compile" | "eval-and-compile", body) => self.fold_body(id, body, depth),
            ("let" | "let*", [bindings, body @ ..]) => {
                let outer = self.locals.len();
                let is_bound = self.bind_locals(*bindings, name == "let*", depth);
                let value = if is_bound { self.fold_body(id, body, depth) } else { self.not_a_constant(id) };
                self.locals.truncate(outer);
                value
            }
            ("mapconcat" | "mapcar", [callee, sequence, separator @ ..]) => {
                self.fold_map(id, *callee, *sequence, separator, depth)
            }
            _ => self.not_a_constant(id),
        }
    }

    /// Folds forms to the value of the last one.
    fn fold_body(&mut self, id: NodeId, body: &[NodeId], depth: usize) -> Datum {
        let mut value = Datum { span: self.tree.span(id), kind: DatumKind::List(Vec::new()) };
        for form in body {
            value = self.fold_value(*form, depth + 1);
        }
        value
    }

    /// Adds the variables of a `let`. Returns whether the bindings are well-formed.
    fn bind_locals(&mut self, bindings: NodeId, in_sequence: bool, depth: usize) -> bool {
        let (tree, text) = (self.tree, self.text);
        let mut bound = Vec::new();
        for binding in tree.children(bindings) {
            let mut parts = tree.children(binding);
            let (name, value) = match tree.kind(binding) {
                Kind::Symbol => (Some(binding), None),
                Kind::List => (parts.next(), parts.next()),
                _ => return false,
            };
            let Some(name) = name.filter(|name| tree.kind(*name) == Kind::Symbol) else { return false };
            let nil = Datum { span: tree.span(binding), kind: DatumKind::List(Vec::new()) };
            let value = value.map_or(nil, |value| self.fold_value(value, depth + 1));
            let local = (tree.text(name, text), value);
            if in_sequence {
                self.locals.push(local);
            } else {
                bound.push(local);
            }
        }
        self.locals.extend(bound);
        true
    }

    /// Folds `mapconcat` and `mapcar`.
    fn fold_map(
        &mut self,
        id: NodeId,
        callee: NodeId,
        sequence: NodeId,
        separator: &[NodeId],
        depth: usize,
    ) -> Datum {
        let span = self.tree.span(id);
        let is_join =
            self.tree.children(id).next().is_some_and(|head| self.tree.text(head, self.text) == "mapconcat");
        let Some(callee) = self.callee(callee) else { return self.not_a_constant(id) };
        let sequence = self.fold_value(sequence, depth + 1);
        let separator = separator.first().map(|separator| self.fold_value(*separator, depth + 1));
        let is_known = |datum: &Datum| datum.kind != DatumKind::Invalid;
        if !is_known(&sequence) || !separator.as_ref().is_none_or(is_known) {
            return Datum { span, kind: DatumKind::Invalid };
        }
        let Ok(items) = elements(sequence) else { return self.not_a_constant(id) };
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            let value = self.apply(id, &callee, item, depth);
            if !is_known(&value) {
                return Datum { span, kind: DatumKind::Invalid };
            }
            values.push(value);
        }
        if !is_join {
            return Datum { span, kind: DatumKind::List(values) };
        }
        match join(self, values, separator) {
            Ok(kind) => Datum { span, kind },
            Err(Failure::Rejected { span, expected, found }) => {
                let finding = not_a_constant::wrong_argument(self.at(span), "mapconcat", expected, found);
                self.invalid(span, finding)
            }
            Err(Failure::Unsupported { .. }) => self.not_a_constant(id),
        }
    }

    /// Reads `#'name`, `'name` or a lambda with one parameter.
    fn callee(&self, id: NodeId) -> Option<Callee<'t>> {
        let (tree, text) = (self.tree, self.text);
        let inner = match tree.kind(id) {
            Kind::Quote | Kind::Function => tree.children(id).next()?,
            _ => id,
        };
        if tree.kind(inner) == Kind::Symbol {
            return (inner != id).then(|| Callee::Named(tree.text(inner, text)));
        }
        let mut parts = tree.children(inner);
        parts.next().filter(|head| tree.text(*head, text) == "lambda")?;
        let mut parameters = tree.children(parts.next()?);
        let parameter = tree.text(parameters.next()?, text);
        parameters.next().is_none().then(|| Callee::Lambda { parameter, body: parts.collect() })
    }

    /// Calls a function with one argument. `id` is the call that passed the function.
    fn apply(&mut self, id: NodeId, callee: &Callee<'t>, argument: Datum, depth: usize) -> Datum {
        match callee {
            Callee::Named(name) => match function(name, true) {
                Some(known) => self.call(name, known, self.tree.span(id), vec![argument]),
                None => self.not_a_constant(id),
            },
            Callee::Lambda { parameter, body } => {
                let len: usize = body.iter().map(|form| self.tree.text(*form, self.text).len()).sum();
                if !self.grow(len) {
                    return self.not_a_constant(id);
                }
                self.locals.push((parameter, argument));
                let value = self.fold_body(id, body, depth);
                self.locals.pop();
                value
            }
        }
    }
}
