//! The functions that folding calls with constant arguments.
//!
//! Source: the Emacs Lisp reference manual (Emacs 30) and `subr-x.el`, verified against the functions themselves. Case
//! conversion is limited to ASCII, because Emacs has rules for each language.

use super::folder::Folder;
use super::format::{format_values, print};
use crate::syntax::datum::{Datum, DatumKind, with_tail};
use crate::syntax::number::Number;
use crate::syntax::rules::not_a_constant;
use crate::text::Span;

/// The reason why a call has no value.
pub(super) enum Failure {
    /// Emacs rejects the value at `span`.
    Rejected { span: Span, expected: &'static str, found: &'static str },
    /// Not supported here; `span` is the argument, or `None` for the call.
    Unsupported { span: Option<Span>, reason: String },
}

type Outcome = Result<DatumKind, Failure>;

/// A function without side effects.
type Function = fn(&mut Folder<'_>, Vec<Datum>) -> Outcome;

/// Functions that are folded in all files.
const BASIC: [(&str, Function); 3] = [("append", append), ("concat", concat), ("format", format)];

/// Functions that are folded in Emacs Lisp only.
const EMACS: [(&str, Function); 12] = [
    ("downcase", |_, arguments| change_case(arguments, str::to_ascii_lowercase)),
    ("identity", identity),
    ("number-to-string", number_to_string),
    ("purecopy", identity),
    ("string-join", string_join),
    ("string-trim", |_, arguments| trim(arguments, |text| text.trim_matches(BLANKS))),
    ("string-trim-left", |_, arguments| trim(arguments, |text| text.trim_start_matches(BLANKS))),
    ("string-trim-right", |_, arguments| trim(arguments, |text| text.trim_end_matches(BLANKS))),
    ("substring", substring),
    ("symbol-name", symbol_name),
    ("upcase", |_, arguments| change_case(arguments, str::to_ascii_uppercase)),
    ("vconcat", vconcat),
];

/// The characters that `string-trim` removes.
const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// Returns the function that is folded under this name.
pub(super) fn function(name: &str, in_code: bool) -> Option<Function> {
    let emacs = EMACS.iter().filter(|_| in_code);
    BASIC.iter().chain(emacs).find(|(known, _)| *known == name).map(|(_, function)| *function)
}

impl Folder<'_> {
    /// Calls a function. `span` is the call.
    pub(super) fn call(
        &mut self,
        name: &str,
        function: Function,
        span: Span,
        arguments: Vec<Datum>,
    ) -> Datum {
        if arguments.iter().any(|argument| argument.kind == DatumKind::Invalid) {
            return Datum { span, kind: DatumKind::Invalid };
        }
        match function(self, arguments) {
            Ok(kind) => Datum { span, kind },
            Err(Failure::Rejected { span, expected, found }) => {
                let finding = not_a_constant::wrong_argument(self.at(span), name, expected, found);
                self.invalid(span, finding)
            }
            Err(Failure::Unsupported { span: argument, reason }) => {
                let finding = not_a_constant::because(self.at(argument.unwrap_or(span)), &reason);
                self.unknown(span, finding)
            }
        }
    }
}

fn rejected(expected: &'static str, found: &Datum) -> Failure {
    Failure::Rejected { span: found.span, expected, found: found.describe() }
}

fn unsupported(reason: impl Into<String>) -> Failure {
    Failure::Unsupported { span: None, reason: reason.into() }
}

/// Takes exactly one argument.
fn only(arguments: Vec<Datum>) -> Result<Datum, Failure> {
    let [argument] = <[Datum; 1]>::try_from(arguments).map_err(|_| unsupported("expected one argument"))?;
    Ok(argument)
}

fn string(argument: Datum) -> Result<String, Failure> {
    match argument.kind {
        DatumKind::String(text) => Ok(text),
        _ => Err(rejected("a string", &argument)),
    }
}

/// Returns the elements of a list, vector or string.
pub(super) fn elements(sequence: Datum) -> Result<Vec<Datum>, Failure> {
    let span = sequence.span;
    match sequence.kind {
        DatumKind::List(items) | DatumKind::Vector(items) => Ok(items),
        DatumKind::String(text) => {
            let code = |character| Number::Integer(i64::from(u32::from(character)));
            Ok(text.chars().map(|c| Datum { span, kind: DatumKind::Number(code(c)) }).collect())
        }
        _ => Err(rejected("lists", &sequence)),
    }
}

/// The last argument becomes the tail of the list.
fn append(_: &mut Folder<'_>, mut arguments: Vec<Datum>) -> Outcome {
    let Some(last) = arguments.pop() else { return Ok(DatumKind::List(Vec::new())) };
    let mut all = Vec::new();
    for argument in arguments {
        all.extend(elements(argument)?);
    }
    Ok(with_tail(all, last.kind, last.span))
}

fn vconcat(_: &mut Folder<'_>, arguments: Vec<Datum>) -> Outcome {
    let mut all = Vec::new();
    for argument in arguments {
        all.extend(elements(argument)?);
    }
    Ok(DatumKind::Vector(all))
}

/// Joins strings, and lists and vectors of characters.
fn concat(_: &mut Folder<'_>, arguments: Vec<Datum>) -> Outcome {
    let mut text = String::new();
    for argument in arguments {
        match argument.kind {
            DatumKind::String(piece) => text.push_str(&piece),
            DatumKind::List(items) | DatumKind::Vector(items) => {
                for item in items {
                    text.push(character(&item).ok_or_else(|| rejected("strings and characters", &item))?);
                }
            }
            _ => return Err(rejected("strings", &argument)),
        }
    }
    Ok(DatumKind::String(text))
}

fn character(datum: &Datum) -> Option<char> {
    let DatumKind::Number(Number::Integer(code)) = datum.kind else { return None };
    u32::try_from(code).ok().and_then(char::from_u32)
}

fn format(folder: &mut Folder<'_>, arguments: Vec<Datum>) -> Outcome {
    let mut arguments = arguments.into_iter();
    let template = arguments.next().ok_or_else(|| unsupported("`format` has no template"))?;
    let DatumKind::String(text) = &template.kind else {
        return Err(rejected("a string first", &template));
    };
    let values: Vec<Datum> = arguments.collect();
    format_values(text, &values, &mut folder.budget).map(DatumKind::String).map_err(|failed| {
        let argument = failed.argument.and_then(|index| values.get(index));
        let span = argument.map_or(template.span, |value| value.span);
        Failure::Unsupported { span: Some(span), reason: failed.message }
    })
}

fn identity(_: &mut Folder<'_>, arguments: Vec<Datum>) -> Outcome {
    only(arguments).map(|argument| argument.kind)
}

fn symbol_name(_: &mut Folder<'_>, arguments: Vec<Datum>) -> Outcome {
    let argument = only(arguments)?;
    match argument.kind {
        DatumKind::Symbol(name) | DatumKind::Keyword(name) => Ok(DatumKind::String(name)),
        DatumKind::List(items) if items.is_empty() => Ok(DatumKind::String(String::from("nil"))),
        _ => Err(rejected("a symbol", &argument)),
    }
}

fn number_to_string(_: &mut Folder<'_>, arguments: Vec<Datum>) -> Outcome {
    let argument = only(arguments)?;
    match &argument.kind {
        number @ (DatumKind::Number(_) | DatumKind::NotFinite(_)) => {
            print(number, false).map(DatumKind::String).map_err(unsupported)
        }
        _ => Err(rejected("a number", &argument)),
    }
}

fn string_join(folder: &mut Folder<'_>, arguments: Vec<Datum>) -> Outcome {
    let mut arguments = arguments.into_iter();
    let strings = arguments.next().ok_or_else(|| unsupported("`string-join` has no strings"))?;
    join(folder, elements(strings)?, arguments.next())
}

/// Joins strings with a separator, which may be nil.
pub(super) fn join(folder: &mut Folder<'_>, parts: Vec<Datum>, separator: Option<Datum>) -> Outcome {
    let separator = match separator {
        Some(separator) if !separator.is_nil() => string(separator)?,
        Some(_) | None => String::new(),
    };
    if !folder.grow(separator.len().saturating_mul(parts.len())) {
        return Err(unsupported("the result is too long"));
    }
    let parts: Result<Vec<String>, Failure> = parts.into_iter().map(string).collect();
    Ok(DatumKind::String(parts?.join(&separator)))
}

fn change_case(arguments: Vec<Datum>, convert: fn(&str) -> String) -> Outcome {
    let text = string(only(arguments)?)?;
    if !text.is_ascii() {
        return Err(unsupported("the case of non-ASCII text is not folded"));
    }
    Ok(DatumKind::String(convert(&text)))
}

fn trim(arguments: Vec<Datum>, trim: fn(&str) -> &str) -> Outcome {
    // Regular expressions for other characters may follow the string.
    let text = string(only(arguments)?)?;
    Ok(DatumKind::String(trim(&text).to_owned()))
}

/// Returns the characters from a start up to an end; negative positions count from the end.
fn substring(_: &mut Folder<'_>, arguments: Vec<Datum>) -> Outcome {
    let mut arguments = arguments.into_iter();
    let text = string(arguments.next().ok_or_else(|| unsupported("`substring` has no string"))?)?;
    let characters: Vec<char> = text.chars().collect();
    let mut position = |default: usize| {
        let Some(argument) = arguments.next().filter(|argument| !argument.is_nil()) else {
            return Ok(default);
        };
        let DatumKind::Number(Number::Integer(at)) = argument.kind else {
            return Err(rejected("an integer", &argument));
        };
        let at = if at < 0 { at.saturating_add_unsigned(characters.len() as u64) } else { at };
        usize::try_from(at).map_err(|_| unsupported("a position is before the start of the string"))
    };
    let (from, to) = (position(0)?, position(characters.len())?);
    let part = characters.get(from..to).ok_or_else(|| unsupported("a position is outside the string"))?;
    Ok(DatumKind::String(part.iter().collect()))
}
