//! Values of schema keywords.

use super::{WRONG_VALUE, finding, fixed_elements, vector};
use crate::diagnostic::{Diagnostic, Severity};
use crate::spec::keywords::{self, TYPES, ValueKind};
use crate::spec::rules::quoted;
use crate::spec::schema::Schema;
use crate::spec::{Json, JsonKind};
use crate::syntax::{Datum, DatumKind};
use crate::text::{Location, SourceId};

/// Checks the values of the keywords that do not contain schemas.
pub(in crate::spec) fn check(schema: &Schema<'_>, findings: &mut Vec<Diagnostic>) {
    for member in schema.members {
        let Some(keyword) = keywords::find(&member.key) else { continue };
        let value = &member.value;
        // `nil-value` reports nil.
        let is_nil = matches!(&value.kind, JsonKind::Object(members) if members.is_empty());
        if is_nil || is_right(keyword.value_kind, &value.kind) {
            continue;
        }
        let finding =
            finding(schema.at(value.span), keyword.name, keyword.value_kind.describe(), &describe(value));
        let number = value.as_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty());
        let bound = match (&value.kind, keyword.name) {
            (JsonKind::Bool(_), "exclusiveMinimum") => Some("minimum"),
            (JsonKind::Bool(_), "exclusiveMaximum") => Some("maximum"),
            _ => None,
        };
        findings.push(match (keyword.value_kind, number, bound) {
            (ValueKind::Count | ValueKind::Number, Some(number), _) => {
                finding.fixed_by(format!("write {number}"), value.span, number)
            }
            (_, _, Some(bound)) => finding.note(format!(
                "since draft 6 of JSON Schema, it is the bound itself: write `:{0} 0` instead of `:{bound} 0 :{0} t`",
                keyword.name
            )),
            _ => finding,
        });
    }
}

fn is_right(value_kind: ValueKind, value: &JsonKind) -> bool {
    match value_kind {
        ValueKind::Text => matches!(value, JsonKind::String(_)),
        ValueKind::Flag => matches!(value, JsonKind::Bool(_)),
        ValueKind::Number => matches!(value, JsonKind::Number(_)),
        ValueKind::Positive => matches!(value, JsonKind::Number(number) if number.as_f64().is_some_and(|n| n > 0.0)),
        ValueKind::Count => matches!(value, JsonKind::Number(number)
            if number.as_f64().is_some_and(|number| number >= 0.0 && number.fract() == 0.0)),
        ValueKind::Vector => matches!(value, JsonKind::Array(_)),
        ValueKind::Schemas => !matches!(value, JsonKind::Array(items) if items.is_empty()),
        // Values that are not schemas have been reported during lowering.
        ValueKind::Schema | ValueKind::Named | ValueKind::Own | ValueKind::Any => true,
    }
}

fn describe(value: &Json) -> String {
    match &value.kind {
        JsonKind::Null => String::from("null"),
        JsonKind::Bool(true) => String::from("t"),
        JsonKind::Bool(false) => String::from(":json-false"),
        JsonKind::Number(number) => number.to_string(),
        JsonKind::String(_) => String::from("a string"),
        JsonKind::Array(items) if items.is_empty() => String::from("an empty vector"),
        JsonKind::Array(_) => String::from("a vector"),
        JsonKind::Object(_) => String::from("a plist"),
    }
}

/// Reports a value that is not a schema. A property with a value that Emacs can write as JSON is a warning: only the
/// property is lost.
pub(in crate::spec) fn schema(at: Location, key: &str, found: &Datum) -> Diagnostic {
    let mut finding = finding(at, key, ValueKind::Schema.describe(), found.describe());
    let is_writable = match &found.kind {
        DatumKind::Vector(items) => is_writable(items),
        DatumKind::String(_) | DatumKind::Number(_) => true,
        _ => false,
    };
    if is_writable && key != "items" {
        finding.severity = Severity::Warning;
    }
    if let Some(schema) = schema_of(found) {
        return finding.fixed_by(format!("write `{schema}`"), at.span, schema);
    }
    match &found.kind {
        DatumKind::Vector(_) if key == "items" => {
            finding.note("`:items` is one schema for all elements; use `:prefixItems` for one schema per position")
        }
        _ if ["required", "type", "description", "additionalProperties"].contains(&key) => {
            finding.note(format!("`{key}` is a property here; write keywords of the object next to `:properties`"))
        }
        _ => finding,
    }
}

/// Returns the schema of the type that a symbol or string names.
fn schema_of(found: &Datum) -> Option<String> {
    type_of(found).map(|word| format!("(:type {word})"))
}

fn type_of(datum: &Datum) -> Option<&str> {
    match &datum.kind {
        DatumKind::Symbol(word) | DatumKind::String(word) if TYPES.contains(&word.as_str()) => Some(word),
        _ => None,
    }
}

/// Reports words in a vector of schemas.
pub(in crate::spec) fn schema_words(source: SourceId, key: &str, items: &[Datum]) -> Option<Diagnostic> {
    let mut words = items.iter().filter(|item| match &item.kind {
        DatumKind::Symbol(word) => word != "t",
        DatumKind::String(_) => true,
        _ => false,
    });
    let all = words.clone();
    let first = words.next()?;
    let mut finding = schema(Location { source, span: first.span }, key, first);
    finding.fix = None;
    if all.clone().any(|item| matches!(item.kind, DatumKind::Symbol(_))) {
        finding.severity = Severity::Error;
    }
    Some(fixed_elements(finding, "write schemas", all, schema_of))
}

/// Whether Emacs can write a vector of these elements, without inspecting nested values.
pub(in crate::spec) fn is_writable(items: &[Datum]) -> bool {
    !items.iter().any(|item| matches!(&item.kind, DatumKind::Symbol(word) if word != "t"))
}

/// Reports a value that is not a plist of schemas.
pub(in crate::spec) fn named(at: Location, key: &str, found: &str) -> Diagnostic {
    finding(at, key, ValueKind::Named.describe(), found)
        .note("write `(:first (:type string) :second (:type number))`")
}

/// Reports a value that is not a vector of schemas.
pub(in crate::spec) fn union(at: Location, key: &str, found: &Datum) -> Diagnostic {
    let is_list = |item: &Datum| matches!(item.kind, DatumKind::List(_));
    vector(at, key, ValueKind::Schemas.describe(), found, is_list)
        .note(format!("write `:{key} [(:type string) (:type null)]`"))
}

/// Reports a `:type` that is neither a word nor a vector.
pub(in crate::spec) fn type_word(at: Location, found: &Datum) -> Diagnostic {
    let finding = finding(at, "type", "a symbol such as `string`", found.describe());
    let DatumKind::List(items) = &found.kind else { return finding };
    let Some(words) = items.iter().map(type_of).collect::<Option<Vec<&str>>>() else { return finding };
    let written = match words.as_slice() {
        [word] => (*word).to_owned(),
        words => format!("[{}]", words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")),
    };
    finding.maybe_fixed_by(format!("write `{written}`"), at.span, written)
}

/// Reports elements of a `:type` vector that are not strings.
pub(in crate::spec) fn type_words(source: SourceId, items: &[Datum]) -> Option<Diagnostic> {
    let wrong = items.iter().filter(|item| is_not_string(item));
    let first = wrong.clone().next()?;
    let message = format!("types in a vector must be strings, found {}", first.describe());
    let finding = Diagnostic::new(&WRONG_VALUE, Location { source, span: first.span }, message);
    Some(fixed_elements(finding, "write strings", wrong, |item| {
        let inside = match &item.kind {
            DatumKind::Quoted(inner) => inner,
            _ => item,
        };
        Some(quoted(if inside.is_nil() { "null" } else { type_of(inside)? }))
    }))
}

fn is_not_string(item: &Datum) -> bool {
    !matches!(item.kind, DatumKind::String(_) | DatumKind::Invalid)
}

/// Reports an `:enum` that is not a vector.
pub(in crate::spec) fn enumeration(at: Location, found: &Datum) -> Diagnostic {
    let is_plain = |item: &Datum| matches!(item.kind, DatumKind::String(_) | DatumKind::Number(_));
    let inside = match &found.kind {
        DatumKind::Quoted(inner) if matches!(inner.kind, DatumKind::List(_)) => inner,
        _ => found,
    };
    let mut finding = vector(at, "enum", "a vector", inside, is_plain).note("write `:enum [\"first\" \"second\"]`");
    // The fix also replaces the quote.
    if let Some(edit) = finding.fix.as_mut().and_then(|fix| fix.edits.first_mut()) {
        edit.span.start = at.span.start;
    }
    finding
}

/// Reports symbols and keywords among the values of `:enum`. They are fixed if their meaning is clear from `types`, the
/// types of the schema; an empty list means any type.
pub(in crate::spec) fn enum_symbols(source: SourceId, items: &[Datum], types: &[String]) -> Option<Diagnostic> {
    let symbols = items.iter().filter(|item| symbol_of(item).is_some());
    let first = symbols.clone().next()?;
    let word = symbol_of(first)?;
    let sort = if word.starts_with(':') { "keyword" } else { "symbol" };
    let message = format!("`:enum` values must be constants, found the {sort} `{word}`");
    let finding = Diagnostic::new(&WRONG_VALUE, Location { source, span: first.span }, message);
    let written = |item: &Datum| constant_of(symbol_of(item)?, types);
    let mut finding = fixed_elements(finding, "write strings", symbols, written);
    if let Some(fix) = &mut finding.fix
        && !fix.edits.iter().all(|edit| edit.replacement.starts_with('"'))
    {
        fix.title = String::from("write constants");
        // Without a type, `true` may be an ordinary word.
        fix.is_safe = !types.is_empty();
    }
    Some(finding)
}

/// Returns the constant of one of `types` for a symbol.
fn constant_of(word: &str, types: &[String]) -> Option<String> {
    let word = word.strip_prefix(':').unwrap_or(word);
    let takes = |name: &str| {
        types.is_empty() || types.iter().any(|known| known == name || !TYPES.contains(&known.as_str()))
    };
    match word {
        "true" if takes("boolean") => Some(String::from("t")),
        "false" if takes("boolean") => Some(String::from(":json-false")),
        "null" if takes("null") => Some(String::from(":null")),
        _ => takes("string").then(|| quoted(word)),
    }
}

/// Returns the name of a symbol that is not a constant.
pub(in crate::spec) fn symbol_of(datum: &Datum) -> Option<&str> {
    match &datum.kind {
        DatumKind::Symbol(word) if word != "t" => Some(word),
        DatumKind::Keyword(word)
            if ![":json-false", ":false", ":null", ":json-null"].contains(&word.as_str()) =>
        {
            Some(word)
        }
        DatumKind::Quoted(inner) => match &inner.kind {
            DatumKind::Symbol(word) => Some(word),
            _ => None,
        },
        _ => None,
    }
}

/// Checks the value of `:required`.
pub(in crate::spec) fn required(source: SourceId, value: &Datum) -> Option<Diagnostic> {
    let at = |span| Location { source, span };
    let DatumKind::Vector(items) = &value.kind else {
        let is_string = |item: &Datum| matches!(item.kind, DatumKind::String(_));
        let finding = vector(at(value.span), "required", "a vector of property names", value, is_string);
        return Some(match &value.kind {
            DatumKind::Symbol(word) if matches!(word.as_str(), "true" | "false") => {
                finding.note("`:required` is not a flag; an argument is required unless it has `:optional t`")
            }
            DatumKind::String(name) => {
                finding.maybe_fixed_by("write a vector", value.span, format!("[{}]", quoted(name)))
            }
            _ => finding.note("write `:required [\"first\" \"second\"]`"),
        });
    };
    let wrong = items.iter().filter(|item| is_not_string(item));
    let first = wrong.clone().next()?;
    let finding = finding(at(first.span), "required", "property names as strings", first.describe());
    Some(fixed_elements(finding, "write strings", wrong, |item| match &item.kind {
        DatumKind::Symbol(word) | DatumKind::Keyword(word) => {
            Some(quoted(word.strip_prefix(':').unwrap_or(word)))
        }
        _ => None,
    }))
}
