//! Calls, and the functions that build lists and vectors.

use super::folder::{Folder, Mode};
use super::functions::function;
use super::special::SPECIAL;
use crate::diagnostic::Diagnostic;
use crate::syntax::datum::{Datum, DatumKind, with_tail};
use crate::syntax::rules::not_a_constant;
use crate::syntax::tree::{Kind, NodeId};
use crate::text::Span;

impl Folder<'_> {
    pub(super) fn not_a_constant(&mut self, id: NodeId) -> Datum {
        let span = self.tree.span(id);
        let head = self.tree.children(id).next().filter(|&head| self.tree.kind(head) == Kind::Symbol);
        let head = head.map(|head| self.tree.text(head, self.text));
        let is_folded = head.is_some_and(|head| is_folded(head, self.in_code));
        let finding = not_a_constant::call(self.at(span), self.tree.text(id, self.text), head, is_folded);
        self.unknown(span, finding)
    }

    /// Folds the call `id` with the symbol `head` as its head.
    pub(super) fn fold_call(&mut self, id: NodeId, head: NodeId, depth: usize) -> Datum {
        let span = self.tree.span(id);
        let arguments: Vec<NodeId> = self.tree.children(id).skip(1).collect();
        let is_dotted = arguments.iter().any(|&argument| self.tree.kind(argument) == Kind::Dot);
        let kind = match self.tree.text(head, self.text) {
            // A dotted pair is data, not a call: `(key . value)`.
            name if is_dotted && !is_folded(name, self.in_code) => {
                return self.fold_data_list(id, Mode::Quoted, depth);
            }
            _ if is_dotted => return self.not_a_constant(id),
            "quote" => match arguments.as_slice() {
                [form] => return self.fold_in(*form, Mode::Quoted, depth + 1),
                _ => return self.not_a_constant(id),
            },
            "function" => match arguments.as_slice() {
                [form] if self.tree.kind(*form) == Kind::Symbol => {
                    return self.fold_in(*form, Mode::Quoted, depth + 1);
                }
                _ => return self.not_a_constant(id),
            },
            "list" => DatumKind::List(fold_all(self, &arguments, depth)),
            "vector" => DatumKind::Vector(fold_all(self, &arguments, depth)),
            "cons" => match <[Datum; 2]>::try_from(fold_all(self, &arguments, depth)) {
                Ok([first, rest]) => with_tail(vec![first], rest.kind, rest.span),
                Err(_) => return self.not_a_constant(id),
            },
            name if self.in_code && SPECIAL.contains(&name) => {
                return self.fold_special(id, name, &arguments, depth);
            }
            name => match function(name, self.in_code) {
                Some(known) => {
                    let values = fold_values(self, &arguments, depth);
                    return self.call(name, known, span, values);
                }
                None if !self.in_code && starts_argument(self, name, &arguments) => {
                    return self.fold_data_list(id, Mode::Quoted, depth);
                }
                None => return self.not_a_constant(id),
            },
        };
        Datum { span, kind }
    }

    /// Reports `'(list '(…))`, which has one quote too many.
    pub(super) fn quoted_call(&self, quote: NodeId) -> Option<Diagnostic> {
        let list = self.tree.children(quote).next()?;
        let (name, arguments) = builder_in(self, list)?;
        let is_data =
            |kind: Kind| kind.is_prefix() || matches!(kind, Kind::List | Kind::Vector | Kind::String);
        let (span, inside) = (self.tree.span(quote), self.tree.span(list));
        arguments.iter().any(|argument| is_data(self.tree.kind(*argument))).then(|| {
            let quote = Span { start: span.start, end: inside.start };
            not_a_constant::quoted_call(self.at(span), quote, name)
        })
    }

    /// Reports `(concat "a" "b")` in data. Only unambiguous calls are reported: a list can start with any name.
    pub(super) fn call_in_data(&self, list: NodeId) -> Option<Diagnostic> {
        let (name, arguments) = builder_in(self, list)?;
        let first = arguments.first().map(|argument| self.tree.kind(*argument));
        matches!(first, Some(Kind::String | Kind::Quote | Kind::Backquote))
            .then(|| not_a_constant::in_data(self.at(self.tree.span(list)), name))
    }
}

/// Whether folding evaluates calls with this head.
pub(super) fn is_folded(name: &str, in_code: bool) -> bool {
    matches!(name, "quote" | "function" | "list" | "vector" | "cons")
        || function(name, in_code).is_some()
        || (in_code && SPECIAL.contains(&name))
}

/// Whether the list is an argument plist with an invalid start rather than a call: `(city :type string)`,
/// `(name "city" :type string)`.
fn starts_argument(folder: &Folder<'_>, head: &str, arguments: &[NodeId]) -> bool {
    let is_key = |argument: &NodeId| folder.tree.kind(*argument) == Kind::Keyword;
    let has_name = || arguments.iter().any(|id| folder.tree.text(*id, folder.text) == ":name");
    match arguments.first() {
        Some(first) if is_key(first) => !has_name(),
        Some(_) => head == "name" && arguments.iter().any(is_key),
        None => false,
    }
}

/// Functions that build data. In quoted data their names are ordinary elements.
const BUILDERS: [&str; 6] = ["list", "vector", "cons", "append", "concat", "format"];

/// Returns the builder function that a list seems to call, with its arguments. A list with a dot or a keyword is data.
fn builder_in<'t>(folder: &Folder<'t>, list: NodeId) -> Option<(&'t str, Vec<NodeId>)> {
    let mut children = folder.tree.children(list);
    let head = children.next().filter(|_| folder.tree.kind(list) == Kind::List)?;
    let name = folder.tree.text(head, folder.text);
    if folder.tree.kind(head) != Kind::Symbol || !BUILDERS.contains(&name) {
        return None;
    }
    let arguments: Vec<NodeId> = children.collect();
    let is_odd = |argument: &NodeId| matches!(folder.tree.kind(*argument), Kind::Dot | Kind::Keyword);
    (!arguments.iter().any(is_odd)).then_some((name, arguments))
}

/// Folds arguments. In code a symbol is a variable; an unknown one after `:type` is probably a type without its quote,
/// which is reported elsewhere.
fn fold_all(folder: &mut Folder<'_>, arguments: &[NodeId], depth: usize) -> Vec<Datum> {
    let mut after_type = false;
    let mut parts = Vec::with_capacity(arguments.len());
    for &argument in arguments {
        let name = folder.tree.text(argument, folder.text);
        let variable = if after_type { folder.value_of_variable(name, depth) } else { None };
        parts.push(match variable {
            Some(value) => value,
            None if folder.in_code && !after_type => folder.fold_value(argument, depth + 1),
            None => folder.fold_in(argument, Mode::Evaluated, depth + 1),
        });
        after_type = folder.tree.text(argument, folder.text) == ":type";
    }
    parts
}

/// Folds arguments to their values; a symbol is a variable.
fn fold_values(folder: &mut Folder<'_>, arguments: &[NodeId], depth: usize) -> Vec<Datum> {
    arguments.iter().map(|&argument| folder.fold_value(argument, depth + 1)).collect()
}
