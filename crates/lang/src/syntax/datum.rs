//! Constants: the values of forms that need no execution.

use super::number::Number;
use crate::text::Span;

/// A constant with its source span.
#[derive(Debug, Clone, PartialEq)]
pub struct Datum {
    /// Span in the source.
    pub span: Span,
    /// The value.
    pub kind: DatumKind,
}

/// The value of a constant. `nil` is the empty list.
#[derive(Debug, Clone, PartialEq)]
pub enum DatumKind {
    /// A symbol other than `nil`.
    Symbol(String),
    /// A keyword, with its colon.
    Keyword(String),
    /// A string.
    String(String),
    /// A number; a character literal is its code.
    Number(Number),
    /// A float without a JSON form, as written.
    NotFinite(String),
    /// A proper list.
    List(Vec<Datum>),
    /// A dotted list: its elements and the tail after the dot.
    Dotted(Vec<Datum>, Box<Datum>),
    /// A vector.
    Vector(Vec<Datum>),
    /// A quote inside data that is already quoted; harmless in code, wrong in data.
    Quoted(Box<Datum>),
    /// Not a constant; already reported.
    Invalid,
}

impl Datum {
    /// Whether it is `nil` or `()`.
    pub fn is_nil(&self) -> bool {
        matches!(&self.kind, DatumKind::List(items) if items.is_empty())
    }

    /// Returns a noun phrase for messages: `a string`, `a vector`.
    pub fn describe(&self) -> &'static str {
        match &self.kind {
            DatumKind::Symbol(_) => "a symbol",
            DatumKind::Keyword(_) => "a keyword",
            DatumKind::String(_) => "a string",
            DatumKind::Number(Number::Integer(_) | Number::Unsigned(_)) => "an integer",
            DatumKind::Number(Number::Float(_) | Number::Rounded(_)) | DatumKind::NotFinite(_) => "a float",
            DatumKind::List(items) if items.is_empty() => "nil",
            DatumKind::List(_) => "a list",
            DatumKind::Dotted(..) => "a dotted list",
            DatumKind::Vector(_) => "a vector",
            DatumKind::Quoted(_) => "a quoted form",
            DatumKind::Invalid => "no constant",
        }
    }
}

/// Builds the list of `items` with the tail `tail`, written at `span`.
pub(super) fn with_tail(mut items: Vec<Datum>, tail: DatumKind, span: Span) -> DatumKind {
    match tail {
        tail if items.is_empty() => tail,
        DatumKind::List(rest) => {
            items.extend(rest);
            DatumKind::List(items)
        }
        DatumKind::Dotted(rest, tail) => {
            items.extend(rest);
            DatumKind::Dotted(items, tail)
        }
        tail => DatumKind::Dotted(items, Box::new(Datum { span, kind: tail })),
    }
}
