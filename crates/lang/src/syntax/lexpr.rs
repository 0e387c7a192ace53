//! Conversion from and to [`lexpr`] values, for programs that write specs with the `sexp!` macro or read them
//! elsewhere.
//!
//! A `lexpr` value has no spans: everything in a converted [`Datum`] has the span at byte 0.

use lexpr::Cons;
pub use lexpr::Value;

use super::datum::{Datum, DatumKind};
use super::number::Number;
use crate::text::Span;

/// An error for a `lexpr` value without a spec counterpart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LexprError {
    /// The kind of value is not supported.
    #[error("a spec cannot contain {0}; use symbols, keywords, strings, numbers, lists and vectors")]
    Unsupported(&'static str),
    /// The nesting is too deep.
    #[error("the value is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

const MAX_DEPTH: usize = 128;

/// Converts a value to a constant. `#t` becomes the symbol `t`; `#f` and `nil` become the empty list.
///
/// # Errors
/// Returns an error if the value contains bytes or is nested too deeply.
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
        // `sexp!` writes keywords as `#:name`. A symbol `:name` is a keyword in Emacs Lisp.
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

/// Converts a constant to a `lexpr` value; [`DatumKind::Invalid`] becomes `nil`.
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

/// Prints a constant in Emacs Lisp syntax on one line.
pub fn print(datum: &Datum) -> String {
    lexpr::to_string_custom(&to_lexpr(datum), lexpr::print::Options::elisp()).unwrap_or_default()
}
