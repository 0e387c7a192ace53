//! `format` with constant arguments, where the result can be computed exactly.
//!
//! Source: "Formatting Strings" of the Emacs Lisp reference manual (Emacs 30), verified against the function itself.
//! Not supported: widths of non-ASCII text, which count display columns.

use crate::syntax::datum::{Datum, DatumKind};
use crate::syntax::number::Number;

/// Maximum width of a field.
const MAX_FIELD: usize = 1_000;

/// The reason why a call cannot be folded.
pub(super) struct Reason {
    /// Index of the invalid argument, not counting the template; `None` for the template.
    pub(super) argument: Option<usize>,
    pub(super) message: String,
}

fn reason(argument: Option<usize>, message: impl Into<String>) -> Reason {
    Reason { argument, message: message.into() }
}

/// One `%…` directive of a template.
#[allow(clippy::struct_excessive_bools)] // each is a flag of the directive
#[derive(Default)]
struct Directive {
    plus: bool,
    space: bool,
    minus: bool,
    zero: bool,
    hash: bool,
    width: usize,
    precision: Option<usize>,
    conversion: char,
}

/// Formats `values` with `template`. Output in addition to the text of the values is subtracted from `budget`.
pub(super) fn format_values(template: &str, values: &[Datum], budget: &mut usize) -> Result<String, Reason> {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    let mut next = 0;
    let mut is_named = vec![false; values.len()];
    while let Some(at) = rest.find('%') {
        text.push_str(rest.get(..at).unwrap_or(""));
        let (field, directive, len) = read_directive(rest.get(at + 1..).unwrap_or(""))?;
        rest = rest.get(at + 1 + len..).unwrap_or("");
        if directive.conversion == '%' {
            text.push('%');
            continue;
        }
        let index = field.map_or(next, |field| field - 1);
        next = index + 1;
        let Some(value) = values.get(index) else {
            return Err(reason(None, "`format` has more directives than arguments"));
        };
        let written = written_len(&value.kind);
        if is_named.get_mut(index).is_some_and(|is_named| std::mem::replace(is_named, true)) {
            grow(budget, written)?;
        }
        let body = convert(&directive, &value.kind).map_err(|message| reason(Some(index), message))?;
        grow(budget, body.len().max(directive.width).saturating_sub(written))?;
        pad(&mut text, &directive, &body).map_err(|message| reason(Some(index), message))?;
    }
    text.push_str(rest);
    Ok(text)
}

/// Returns the length of a text value before conversion. Numbers are too short to count.
fn written_len(value: &DatumKind) -> usize {
    match value {
        DatumKind::String(text) | DatumKind::Symbol(text) | DatumKind::Keyword(text) => text.len(),
        _ => 0,
    }
}

/// Subtracts `bytes` from the budget. A failed call uses up the budget, so that later calls fail at once.
fn grow(budget: &mut usize, bytes: usize) -> Result<(), Reason> {
    let is_enough = bytes <= *budget;
    *budget = budget.saturating_sub(bytes);
    if is_enough {
        return Ok(());
    }
    Err(reason(None, "the output of `format` exceeds the limit for this file"))
}

/// Reads the directive after a percent sign. Returns its field number, the directive and its length.
fn read_directive(text: &str) -> Result<(Option<usize>, Directive, usize), Reason> {
    let mut directive = Directive::default();
    let bytes = text.as_bytes();
    let number = |from: usize| -> (usize, usize) {
        let digits = bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
        let value = text.get(from..from + digits).and_then(|digits| digits.parse().ok());
        (value.unwrap_or(if digits == 0 { 0 } else { usize::MAX }), digits)
    };
    let (value, digits) = number(0);
    let is_field = digits > 0 && value > 0 && bytes.get(digits) == Some(&b'$');
    let field = is_field.then_some(value);
    let mut at = if is_field { digits + 1 } else { 0 };
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'+' => directive.plus = true,
            b' ' => directive.space = true,
            b'-' => directive.minus = true,
            b'0' => directive.zero = true,
            b'#' => directive.hash = true,
            _ => break,
        }
        at += 1;
    }
    let (width, digits) = number(at);
    directive.width = width;
    at += digits;
    if bytes.get(at) == Some(&b'.') {
        let (precision, digits) = number(at + 1);
        directive.precision = Some(precision);
        at += 1 + digits;
    }
    let Some(conversion) = text.get(at..).and_then(|rest| rest.chars().next()) else {
        return Err(reason(None, "the template of `format` ends inside a directive"));
    };
    directive.conversion = conversion;
    let is_plain = at == 0 || conversion != '%';
    if !is_plain || !"sSdoxXcefg%".contains(conversion) {
        let directive = text.get(..at + conversion.len_utf8()).unwrap_or("");
        return Err(reason(None, format!("unknown `format` directive `%{directive}`")));
    }
    if directive.width.max(directive.precision.unwrap_or(0)) > MAX_FIELD {
        return Err(reason(None, format!("a `format` field is wider than {MAX_FIELD}")));
    }
    Ok((field, directive, at + conversion.len_utf8()))
}

fn convert(directive: &Directive, value: &DatumKind) -> Result<String, String> {
    let is_float = matches!(directive.conversion, 'e' | 'f' | 'g');
    if directive.hash && !is_float && (directive.width > 0 || directive.precision.is_some()) {
        return Err(String::from("the flag `#` with a width or precision is not folded"));
    }
    if directive.conversion == 'c' && directive.precision.is_some() {
        return Err(String::from("`%c` with a precision is not folded"));
    }
    match directive.conversion {
        's' | 'S' => {
            let text = print(value, directive.conversion == 'S')?;
            match directive.precision {
                Some(precision) if !text.is_ascii() || text.contains(|c: char| c.is_control()) => {
                    Err(not_ascii(precision))
                }
                Some(precision) => Ok(text.chars().take(precision).collect()),
                None => Ok(text),
            }
        }
        'c' => match value {
            DatumKind::Number(Number::Integer(code)) => {
                let character = u32::try_from(*code).ok().and_then(char::from_u32);
                character.map(String::from).ok_or_else(|| format!("`{code}` is not a character"))
            }
            _ => Err(String::from("`%c` takes a character")),
        },
        'e' | 'f' | 'g' => {
            let value = float(value).ok_or_else(|| expected_number(directive.conversion))?;
            if directive.hash {
                return Err(String::from("the flag `#` of a float is not folded"));
            }
            let precision = directive.precision.unwrap_or(6);
            Ok(match directive.conversion {
                'f' => format!("{value:.precision$}"),
                'e' => exponential(value, precision),
                _ => general(value, precision.max(1)),
            })
        }
        _ => integer_text(directive, value),
    }
}

fn integer_text(directive: &Directive, value: &DatumKind) -> Result<String, String> {
    let conversion = directive.conversion;
    let (is_negative, magnitude) = match value {
        DatumKind::Number(Number::Integer(value)) => (*value < 0, u128::from(value.unsigned_abs())),
        DatumKind::Number(Number::Unsigned(value)) => (false, u128::from(*value)),
        // Rounds towards zero, like Emacs.
        DatumKind::Number(Number::Float(value)) if value.abs() < 1e18 => {
            let whole = value.trunc() as i64;
            (whole < 0, u128::from(whole.unsigned_abs()))
        }
        _ => return Err(expected_number(conversion)),
    };
    let (prefix, digits) = match conversion {
        'x' => ("0x", format!("{magnitude:x}")),
        'X' => ("0X", format!("{magnitude:X}")),
        'o' => ("0", format!("{magnitude:o}")),
        _ => ("", magnitude.to_string()),
    };
    // A float zero keeps its digit.
    let is_float = matches!(value, DatumKind::Number(Number::Float(_)));
    let digits = match directive.precision {
        Some(0) if magnitude == 0 && !is_float => String::new(),
        Some(precision) => format!("{digits:0>precision$}"),
        None => digits,
    };
    let sign = if is_negative { "-" } else { "" };
    let prefix = if directive.hash && magnitude != 0 { prefix } else { "" };
    Ok(format!("{sign}{prefix}{digits}"))
}

fn expected_number(conversion: char) -> String {
    format!("`%{conversion}` takes a number")
}

fn not_ascii(width: usize) -> String {
    format!("the width of non-ASCII text in {width} columns depends on the display")
}

/// Appends `body`, padded to its field.
fn pad(text: &mut String, directive: &Directive, body: &str) -> Result<(), String> {
    if directive.width > 0 && body.contains(|character: char| character.is_control()) {
        return Err(String::from("the width of tabs and control characters depends on the display"));
    }
    let is_number = !"sSc".contains(directive.conversion);
    let (sign, digits) = match body.strip_prefix('-') {
        Some(digits) if is_number => ("-", digits),
        Some(_) | None if !is_number => ("", body),
        Some(_) | None if directive.plus => ("+", body),
        Some(_) | None if directive.space => (" ", body),
        Some(_) | None => ("", body),
    };
    if directive.width > 0 && !body.is_ascii() {
        return Err(not_ascii(directive.width));
    }
    let missing = directive.width.saturating_sub(sign.len() + digits.len());
    let has_integer_precision = directive.precision.is_some() && "doxX".contains(directive.conversion);
    if directive.minus {
        text.extend([sign, digits]);
        text.extend(std::iter::repeat_n(' ', missing));
    } else if directive.zero && is_number && !has_integer_precision {
        text.push_str(sign);
        text.extend(std::iter::repeat_n('0', missing));
        text.push_str(digits);
    } else {
        text.extend(std::iter::repeat_n(' ', missing));
        text.extend([sign, digits]);
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss)] // exact below 2⁵³
fn float(value: &DatumKind) -> Option<f64> {
    match value {
        DatumKind::Number(Number::Integer(value)) if value.unsigned_abs() < 1 << 53 => Some(*value as f64),
        DatumKind::Number(Number::Float(value)) => Some(*value),
        _ => None,
    }
}

/// Prints a value like `princ` or, if `escaped`, like `prin1`.
pub(super) fn print(value: &DatumKind, escaped: bool) -> Result<String, String> {
    match value {
        // Unlike `quoted`, `prin1` keeps line ends and control characters.
        DatumKind::String(text) if escaped => {
            Ok(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
        }
        DatumKind::String(text) => Ok(text.clone()),
        DatumKind::Symbol(name) | DatumKind::Keyword(name) => {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_:*/<>=!&%".contains(c);
            let is_like_number = name.starts_with(|c: char| c.is_ascii_digit() || c == '-');
            if escaped && (is_like_number || !name.chars().all(is_plain)) {
                return Err(format!("printing the symbol `{name}` is not folded"));
            }
            Ok(name.clone())
        }
        DatumKind::Number(Number::Integer(value)) => Ok(value.to_string()),
        DatumKind::Number(Number::Unsigned(value)) => Ok(value.to_string()),
        DatumKind::Number(Number::Float(value)) => Ok(print_float(*value)),
        DatumKind::NotFinite(text) => Ok(text.clone()),
        DatumKind::List(items) if items.is_empty() => Ok(String::from("nil")),
        DatumKind::Number(Number::Rounded(_)) => Err(String::from("an integer beyond 64 bits is not folded")),
        DatumKind::List(items) => match items.as_slice() {
            [Datum { kind: DatumKind::Symbol(head), .. }, form] if head == "quote" => {
                Ok(format!("'{}", print(&form.kind, escaped)?))
            }
            [Datum { kind: DatumKind::Symbol(head), .. }, form] if head == "function" => {
                Ok(format!("#'{}", print(&form.kind, escaped)?))
            }
            items => Ok(format!("({})", print_items(items, escaped)?)),
        },
        DatumKind::Dotted(items, tail) => {
            Ok(format!("({} . {})", print_items(items, escaped)?, print(&tail.kind, escaped)?))
        }
        DatumKind::Vector(items) => Ok(format!("[{}]", print_items(items, escaped)?)),
        // `'x` and `#'x` are not distinguished.
        DatumKind::Quoted(_) | DatumKind::Invalid => {
            Err(String::from("printing a quoted form is not folded"))
        }
    }
}

fn print_items(items: &[Datum], escaped: bool) -> Result<String, String> {
    let items: Result<Vec<String>, String> = items.iter().map(|item| print(&item.kind, escaped)).collect();
    Ok(items?.join(" "))
}

/// Prints the shortest digits that read back as the same number, at least 15 except for the smallest numbers, with a
/// dot or an exponent.
fn print_float(value: f64) -> String {
    let fewest = if value.abs() < f64::MIN_POSITIVE { 1 } else { 15 };
    let shortest = (fewest..=17).map(|precision| general(value, precision));
    let text = shortest.into_iter().find(|text| text.parse() == Ok(value));
    let mut text = text.unwrap_or_else(|| general(value, 17));
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        text.push_str(".0");
    }
    text
}

/// Formats as `%e`, with at least two digits of exponent.
fn exponential(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// Formats as `%g`: the shorter notation, without trailing zeros.
fn general(value: f64, precision: usize) -> String {
    let text = exponential(value, precision - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "+00"));
    let power: i64 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| {
        let has_zeros = text.contains('.');
        if has_zeros { text.trim_end_matches('0').trim_end_matches('.') } else { text }.to_owned()
    };
    let digits = i64::try_from(precision).unwrap_or(i64::MAX);
    if power < -4 || power >= digits {
        return format!("{}e{exponent}", trim(mantissa));
    }
    let decimals = usize::try_from(digits - 1 - power).unwrap_or(0);
    trim(&format!("{value:.decimals$}"))
}
