//! Constant folding: evaluates forms without executing code.
//!
//! `quote`, `function`, `list`, `vector`, `cons`, `append`, `concat`, `format` and backquote are folded, and in Emacs Lisp
//! also other functions without side effects, conditionals, `let`, and variables that the file assigns only once. Any
//! other form is reported and becomes [`DatumKind::Invalid`], for which later checks report nothing more.

mod calls;
mod folder;
mod format;
mod functions;
mod special;
mod variables;

pub use folder::Folder;

use self::folder::{Constants, Mode, Value};
use super::datum::{Datum, DatumKind, with_tail};
use super::escape;
use super::number::{Number, parse_number};
use super::tree::{Kind, NodeId};
use crate::diagnostic::{Diagnostic, Edit};
use crate::syntax::rules::{self, comma_between, not_a_constant, too_deep};
use crate::text::Span;

/// Stands in the code of an Org file for each byte that Org removes when it extracts a block.
pub(crate) const ORG_REMOVES: char = '\u{c}';

/// Maximum nesting of constants; real specs stay below 20.
const MAX_DEPTH: usize = 128;

impl Folder<'_> {
    /// Folds the form `id`.
    pub fn fold(&mut self, id: NodeId) -> Datum {
        self.fold_in(id, Mode::Evaluated, 0)
    }

    /// Folds the form `id` as quoted data.
    pub fn fold_quoted(&mut self, id: NodeId) -> Datum {
        self.fold_in(id, Mode::Quoted, 0)
    }

    /// Folds the form `id` as data in which only forms after a comma are evaluated.
    pub fn fold_backquoted(&mut self, id: NodeId) -> Datum {
        self.fold_in(id, Mode::Backquoted, 0)
    }

    /// Folds the form `id` as the unevaluated argument of a macro.
    pub fn fold_macro_data(&mut self, id: NodeId) -> Datum {
        self.is_macro_data = true;
        let datum = self.fold_in(id, Mode::Quoted, 0);
        self.is_macro_data = false;
        datum
    }

    /// Folds the form `id` as an evaluated argument.
    pub fn fold_argument(&mut self, id: NodeId) -> Datum {
        self.fold_value(id, 0)
    }

    /// Folds a form in code, where a symbol is a variable.
    pub(super) fn fold_value(&mut self, id: NodeId, depth: usize) -> Datum {
        let name = self.tree.text(id, self.text);
        if self.tree.kind(id) == Kind::Symbol && !matches!(name, "nil" | "t") {
            if let Some(value) = self.value_of_variable(name, depth) {
                return value;
            }
            let span = self.tree.span(id);
            let finding = not_a_constant::variable(self.at(span), name);
            return self.unknown(span, finding);
        }
        self.fold_in(id, Mode::Evaluated, depth)
    }

    /// Returns the value of a variable in Emacs Lisp; `None` if it is not known.
    pub(super) fn value_of_variable(&mut self, name: &str, depth: usize) -> Option<Datum> {
        if !self.in_code || self.budget == 0 || depth > MAX_DEPTH {
            return None;
        }
        let local = self.locals.iter().rev().find(|(local, _)| *local == name);
        let value = match local {
            Some((_, value)) => value.clone(),
            None => self.constant(name, depth)?,
        };
        let size = size_of(&value, MAX_DEPTH)?;
        self.grow(size).then_some(value)
    }

    /// Whether the file gives the variable a value that does not change.
    pub fn is_constant(&mut self, name: &str) -> bool {
        self.constant(name, 0).is_some()
    }

    fn constant(&mut self, name: &str, depth: usize) -> Option<Datum> {
        let (tree, text) = (self.tree, self.text);
        let constants = self.constants.get_or_insert_with(|| Constants::of(tree, text));
        let value = constants.values.get_mut(name)?;
        let form = match value {
            Value::Known(value) => return Some(value.clone()),
            Value::Pending | Value::Unknown => return None,
            Value::Form(form) => *form,
        };
        *value = Value::Pending;
        let locals = std::mem::take(&mut self.locals);
        let reported = self.findings.len();
        let datum = self.fold_value(form, depth + 1);
        let is_known = self.findings.len() == reported;
        self.findings.truncate(reported);
        self.locals = locals;
        let value = self.constants.as_mut()?.values.get_mut(name)?;
        *value = if is_known { Value::Known(datum.clone()) } else { Value::Unknown };
        is_known.then_some(datum)
    }

    fn fold_in(&mut self, id: NodeId, mode: Mode, depth: usize) -> Datum {
        let span = self.tree.span(id);
        if depth > MAX_DEPTH {
            let finding = too_deep::finding(self.at(span), MAX_DEPTH);
            return self.invalid(span, finding);
        }
        let text = self.tree.text(id, self.text);
        let kind = match self.tree.kind(id) {
            Kind::Symbol | Kind::Keyword => named(unescape_symbol(text)),
            Kind::String => DatumKind::String(self.decode_string(text, span)),
            Kind::Integer | Kind::Float => match parse_number(text) {
                Some(number) => DatumKind::Number(number),
                None => DatumKind::NotFinite(text.to_owned()),
            },
            // The reader has reported an invalid character literal.
            Kind::Character if self.tree.syntax_error(id).is_some() => DatumKind::Invalid,
            Kind::Character => {
                let code = escape::decode_character(text.get(1..).unwrap_or("")).0;
                code.map_or(DatumKind::Invalid, |code| DatumKind::Number(Number::Integer(i64::from(code))))
            }
            Kind::List if mode == Mode::Evaluated => return self.fold_evaluated_list(id, depth),
            Kind::List => match self.call_in_data(id) {
                Some(finding) if !self.is_macro_data => return self.invalid(span, finding),
                Some(_) | None => return self.fold_data_list(id, mode, depth),
            },
            Kind::Vector => {
                // A vector evaluates to itself: its elements are data, except after a comma.
                let mode = if mode == Mode::Backquoted { mode } else { Mode::Quoted };
                let (items, _) = self.fold_items(id, mode, depth);
                DatumKind::Vector(items)
            }
            Kind::Quote | Kind::Function if mode != Mode::Evaluated => {
                DatumKind::Quoted(Box::new(self.fold_prefixed(id, mode, depth)))
            }
            Kind::Quote => match self.quoted_call(id) {
                Some(finding) => return self.invalid(span, finding),
                None => return self.fold_prefixed(id, Mode::Quoted, depth),
            },
            Kind::Function => return self.fold_function(id, span),
            Kind::Backquote if mode == Mode::Evaluated => {
                return self.fold_prefixed(id, Mode::Backquoted, depth);
            }
            Kind::Unquote if mode == Mode::Backquoted => return self.fold_unquoted(id, depth),
            // The reader has reported a comma without a form.
            Kind::Unquote if self.tree.children(id).next().is_none() => DatumKind::Invalid,
            Kind::Unquote if self.separates(id) => return self.fold_prefixed(id, mode, depth),
            Kind::Backquote | Kind::Unquote | Kind::Splice => {
                let finding = not_a_constant::comma(self.at(span));
                return self.invalid(span, finding);
            }
            // The reader has reported a misplaced dot.
            Kind::Dot => DatumKind::Invalid,
            Kind::Opaque if self.tree.syntax_error(id).is_some() => DatumKind::Invalid,
            Kind::Opaque => {
                let finding = not_a_constant::reader_syntax(self.at(span), text);
                return self.unknown(span, finding);
            }
        };
        Datum { span, kind }
    }

    /// Whether the comma `id` separates two items, as in JSON. Such commas are kept for [`Folder::report_commas`].
    fn separates(&mut self, id: NodeId) -> bool {
        let start = self.tree.span(id).start as usize;
        let (before, after) =
            (self.text.get(..start).unwrap_or(""), self.text.get(start + 1..).unwrap_or(""));
        let blank = after.starts_with(char::is_whitespace);
        let touches = before.ends_with(|last: char| !last.is_whitespace() && !"([{'`,@".contains(last));
        if !blank && !touches {
            return false;
        }
        let is_number = touches && before.ends_with(|last: char| last.is_ascii_digit());
        let is_thousand = is_number && after.bytes().take_while(u8::is_ascii_digit).count() == 3;
        let replacement = if blank || is_thousand { "" } else { " " };
        let span = Span::new(start, start + 1);
        self.commas.push(Edit { span, replacement: replacement.to_owned() });
        true
    }

    /// Reports the separating commas found since the last call, in one finding.
    pub fn report_commas(&mut self) {
        let mut edits = std::mem::take(&mut self.commas);
        edits.sort_unstable_by_key(|edit| edit.span);
        edits.dedup();
        if let Some(first) = edits.first() {
            let at = self.at(first.span);
            self.findings.push(comma_between::finding(at, edits));
        }
    }

    /// Decodes a string literal and reports escapes without a JSON form. The reader has reported invalid escapes.
    fn decode_string(&mut self, literal: &str, span: Span) -> String {
        // The quotes may be typographic, which the reader has reported.
        let mut inside = literal.chars();
        let quote = inside.next().map_or(0, char::len_utf8);
        inside.next_back();
        let inside = inside.as_str();
        let mut problems = Vec::new();
        let mut value = escape::decode_string(inside, &mut problems).into_owned();
        if self.is_org && inside.contains(ORG_REMOVES) {
            value = escape::decode_string(&inside.replace(ORG_REMOVES, ""), &mut Vec::new()).into_owned();
        }
        for problem in problems.into_iter().filter(|problem| problem.rule != &rules::bad_escape::BAD_ESCAPE) {
            let start = span.start as usize + quote + problem.at;
            let at = self.at(Span::new(start, start + problem.len));
            self.findings.push(if problem.rule == &rules::raw_byte::RAW_BYTE {
                rules::raw_byte::finding(at, problem.message)
            } else {
                Diagnostic::new(problem.rule, at, problem.message)
            });
        }
        value
    }

    /// Folds the form after a prefix in the given mode. The reader has reported a missing form.
    fn fold_prefixed(&mut self, id: NodeId, mode: Mode, depth: usize) -> Datum {
        match self.tree.children(id).next() {
            Some(inner) => self.fold_in(inner, mode, depth + 1),
            None => Datum { span: self.tree.span(id), kind: DatumKind::Invalid },
        }
    }

    /// Folds the form after a comma, where a symbol is a variable.
    fn fold_unquoted(&mut self, id: NodeId, depth: usize) -> Datum {
        match self.tree.children(id).next() {
            Some(inner) => self.fold_value(inner, depth + 1),
            None => Datum { span: self.tree.span(id), kind: DatumKind::Invalid },
        }
    }

    /// Folds `#'name` to the name; `#'(lambda …)` is code.
    fn fold_function(&mut self, id: NodeId, span: Span) -> Datum {
        let inner = self.tree.children(id).next();
        match inner.filter(|&inner| self.tree.kind(inner) == Kind::Symbol) {
            Some(inner) => {
                Datum { span, kind: DatumKind::Symbol(unescape_symbol(self.tree.text(inner, self.text))) }
            }
            None => self.not_a_constant(id),
        }
    }

    fn fold_evaluated_list(&mut self, id: NodeId, depth: usize) -> Datum {
        let head = self.tree.children(id).next();
        match head.filter(|&head| self.tree.kind(head) == Kind::Symbol) {
            Some(head) if self.tree.text(head, self.text) != "nil" => self.fold_call(id, head, depth),
            Some(_) | None => self.fold_data_list(id, Mode::Evaluated, depth),
        }
    }

    fn fold_data_list(&mut self, id: NodeId, mode: Mode, depth: usize) -> Datum {
        let (items, tail) = self.fold_items(id, mode, depth);
        let kind = tail.map_or_else(|| DatumKind::List(Vec::new()), |tail| tail.kind);
        Datum { span: self.tree.span(id), kind: with_tail(items, kind, self.tree.span(id)) }
    }

    /// Folds the elements of a list or vector, and the tail after a dot.
    fn fold_items(&mut self, id: NodeId, mode: Mode, depth: usize) -> (Vec<Datum>, Option<Datum>) {
        let is_list = self.tree.kind(id) == Kind::List;
        let mut children = self.tree.children(id);
        let mut items = Vec::with_capacity(children.clone().count());
        while let Some(child) = children.next() {
            match self.tree.kind(child) {
                Kind::Dot => {
                    let mut rest = children.clone();
                    if let (Some(tail), None, false) = (rest.next(), rest.next(), items.is_empty()) {
                        let tail = self.fold_in(tail, mode, depth + 1);
                        return (items, Some(tail));
                    }
                    // Reported by the reader.
                    items.push(Datum { span: self.tree.span(child), kind: DatumKind::Invalid });
                }
                Kind::Splice if mode == Mode::Backquoted => {
                    let span = self.tree.span(child);
                    let spliced = self.fold_unquoted(child, depth + 1);
                    let is_last = is_list && children.clone().next().is_none();
                    match spliced.kind {
                        DatumKind::List(more) => items.extend(more),
                        DatumKind::Invalid => items.push(spliced),
                        // The last element becomes the tail, whatever it is.
                        _ if is_last => return (items, Some(spliced)),
                        DatumKind::Vector(more) => items.extend(more),
                        _ => {
                            let finding = not_a_constant::splice(self.at(span), spliced.describe());
                            items.push(self.invalid(span, finding));
                        }
                    }
                }
                Kind::Unquote if mode != Mode::Backquoted && self.is_rest_of_number(child) => {
                    // `1,000` is reported; neither part is used.
                    self.separates(child);
                    if let Some(last) = items.last_mut() {
                        last.kind = DatumKind::Invalid;
                    }
                }
                _ => items.push(self.fold_in(child, mode, depth + 1)),
            }
        }
        (items, None)
    }

    /// Whether the form is `,000` directly after a digit.
    fn is_rest_of_number(&self, id: NodeId) -> bool {
        let span = self.tree.span(id);
        let before = self.text.get(..span.start as usize).unwrap_or("");
        let digits = span.of(self.text).get(1..).unwrap_or("");
        before.ends_with(|last: char| last.is_ascii_digit())
            && digits.len() == 3
            && digits.bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// Returns the value of a symbol with this name.
fn named(name: String) -> DatumKind {
    match name.as_str() {
        "nil" => DatumKind::List(Vec::new()),
        keyword if keyword.starts_with(':') => DatumKind::Keyword(name),
        _ => DatumKind::Symbol(name),
    }
}

/// Removes the backslash escapes from a symbol's name.
fn unescape_symbol(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut name = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '\\' {
            name.extend(characters.next());
        } else {
            name.push(character);
        }
    }
    name
}

/// Returns the approximate size of a value in bytes; `None` if it is nested more deeply than `depth`.
fn size_of(value: &Datum, depth: usize) -> Option<usize> {
    let of_items = |items: &[Datum]| -> Option<usize> {
        let inside = depth.checked_sub(1)?;
        items.iter().map(|item| size_of(item, inside)).sum()
    };
    let inside = match &value.kind {
        DatumKind::String(text) | DatumKind::Symbol(text) | DatumKind::Keyword(text) => text.len(),
        DatumKind::List(items) | DatumKind::Vector(items) => of_items(items)?,
        DatumKind::Dotted(items, tail) => of_items(items)? + of_items(std::slice::from_ref(tail))?,
        DatumKind::Quoted(inner) => of_items(std::slice::from_ref(inner))?,
        DatumKind::Number(_) | DatumKind::NotFinite(_) | DatumKind::Invalid => 0,
    };
    Some(inside + 8)
}
