//! To and from [`lexpr`] values, for programs that build specs with its `sexp!` macro or read them elsewhere.
//!
//! A `lexpr` value has no places: everything in a converted [`Datum`] stands at byte 0.

use lexpr::Cons;
pub use lexpr::Value;

use super::fold::{Datum, DatumKind};
use super::number::Number;
use crate::text::Span;

/// A `lexpr` value that no spec can hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LexprError {
    /// A sort of value without a counterpart.
    #[error("a spec cannot hold {0}; use symbols, keywords, strings, numbers, lists and vectors")]
    Unsupported(&'static str),
    /// Deeper than any spec is.
    #[error("the value is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

const MAX_DEPTH: usize = 128;

/// The constant that `value` is. `#t` is the symbol `t`, `#f` and `nil` are the empty list.
///
/// # Errors
/// When it holds bytes, or is nested too deeply.
pub fn from_lexpr(value: &Value) -> Result<Datum, LexprError> {
    convert(value, 0)
}

fn convert(value: &Value, depth: usize) -> Result<Datum, LexprError> {
    if depth > MAX_DEPTH {
        return Err(LexprError::TooDeep);
    }
    let kind = match value {
        Value::Nil | Value::Null | Value::Bool(false) => DatumKind::List(Vec::new()),
        Value::Bool(true) => DatumKind::Symbol(String::from("t")),
        Value::Number(number) => DatumKind::Number(match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Number::Integer(value),
            (None, Some(value)) => Number::Unsigned(value),
            (None, None) => Number::Float(number.as_f64().unwrap_or_default()),
        }),
        Value::Char(character) => DatumKind::Number(Number::Integer(i64::from(u32::from(*character)))),
        Value::String(text) => DatumKind::String(text.to_string()),
        // `sexp!` writes keywords as `#:name`; a symbol `:name` is the same in Emacs Lisp.
        Value::Keyword(name) => DatumKind::Keyword(format!(":{name}")),
        Value::Symbol(name) if name.starts_with(':') => DatumKind::Keyword(name.to_string()),
        Value::Symbol(name) if name.as_ref() == "nil" => DatumKind::List(Vec::new()),
        Value::Symbol(name) => DatumKind::Symbol(name.to_string()),
        Value::Bytes(_) => return Err(LexprError::Unsupported("bytes")),
        Value::Vector(items) => {
            DatumKind::Vector(items.iter().map(|item| convert(item, depth + 1)).collect::<Result<_, _>>()?)
        }
        Value::Cons(cons) => return convert_list(cons, depth),
    };
    Ok(Datum { span: Span::default(), kind })
}

fn convert_list(cons: &Cons, depth: usize) -> Result<Datum, LexprError> {
    let mut items = Vec::new();
    let mut cell = cons;
    let tail = loop {
        items.push(convert(cell.car(), depth + 1)?);
        match cell.cdr() {
            Value::Cons(next) => cell = next,
            tail => break convert(tail, depth + 1)?,
        }
    };
    let kind = if tail.is_nil() { DatumKind::List(items) } else { DatumKind::Dotted(items, Box::new(tail)) };
    Ok(Datum { span: Span::default(), kind })
}

/// The `lexpr` value of a constant, to be printed or exchanged; what is no constant becomes `nil`.
pub fn to_lexpr(datum: &Datum) -> Value {
    match &datum.kind {
        DatumKind::Symbol(name) => Value::symbol(name.as_str()),
        DatumKind::Keyword(name) => Value::keyword(name.strip_prefix(':').unwrap_or(name)),
        DatumKind::String(text) | DatumKind::NotFinite(text) => Value::string(text.as_str()),
        DatumKind::Number(number) => match *number {
            Number::Integer(value) => Value::from(value),
            Number::Unsigned(value) => Value::from(value),
            Number::Float(value) | Number::Rounded(value) => Value::from(value),
        },
        DatumKind::List(items) => Value::list(items.iter().map(to_lexpr).collect::<Vec<_>>()),
        DatumKind::Dotted(items, tail) => {
            Value::append(items.iter().map(to_lexpr).collect::<Vec<_>>(), to_lexpr(tail))
        }
        DatumKind::Vector(items) => Value::vector(items.iter().map(to_lexpr).collect::<Vec<_>>()),
        DatumKind::Quoted(inner) => Value::list(vec![Value::symbol("quote"), to_lexpr(inner)]),
        DatumKind::Invalid => Value::Nil,
    }
}

/// Prints a constant in Emacs-Lisp syntax, on one line.
pub fn print(datum: &Datum) -> String {
    lexpr::to_string_custom(&to_lexpr(datum), lexpr::print::Options::elisp()).unwrap_or_default()
}
