//! Constants → JSON values, by the rules of the spec language.

use serde_json::Number as JsonNumber;

use super::Lowerer;
use crate::spec::rules;
use crate::spec::{Json, JsonKind, Member};
use crate::syntax::rules::NOT_JSON;
use crate::syntax::{Datum, DatumKind, Number};

/// `text` as a string literal.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

impl Lowerer {
    /// The JSON value of a constant: `t`, `:json-false` and `:null` are true, false and null, nil is `{}`, a plist
    /// is an object and a vector an array. `None`: it has none; told.
    pub(super) fn json_value(&mut self, datum: Datum) -> Option<Json> {
        let span = datum.span;
        let described = datum.describe();
        let kind = match datum.kind {
            DatumKind::Invalid => return None,
            DatumKind::String(text) => JsonKind::String(text),
            DatumKind::Number(number) => self.json_number(number, span),
            DatumKind::Keyword(word) => match word.as_str() {
                ":json-false" | ":false" => JsonKind::Bool(false),
                ":null" | ":json-null" => JsonKind::Null,
                _ => {
                    self.tell(&NOT_JSON, span, format!("the keyword `{word}` has no JSON form"));
                    return None;
                }
            },
            DatumKind::Symbol(word) if word == "t" => JsonKind::Bool(true),
            DatumKind::Symbol(word) => {
                self.findings.push(
                    self.finding(&NOT_JSON, span, format!("the symbol `{word}` has no JSON form"))
                        .labelled("expected a string, a number, a vector, a plist, t or :json-false")
                        .maybe_fixed_by("write a string", span, quoted(&word)),
                );
                return None;
            }
            DatumKind::Vector(items) => {
                JsonKind::Array(items.into_iter().filter_map(|item| self.json_value(item)).collect())
            }
            DatumKind::List(items) => match items.first().map(|first| &first.kind) {
                None => JsonKind::Object(Vec::new()),
                Some(DatumKind::Keyword(_)) => {
                    let entries = self.read_plist(items, &[]);
                    let members = entries.into_iter().filter_map(|entry| {
                        let value = match entry.value.kind {
                            // As everywhere, `:type string` is `"type": "string"`.
                            DatumKind::Symbol(word) if entry.key == "type" && word != "t" => {
                                Json { span: entry.value.span, kind: JsonKind::String(word) }
                            }
                            kind => self.json_value(Datum { span: entry.value.span, kind })?,
                        };
                        Some(Member { key: entry.key, key_span: entry.key_span, value })
                    });
                    JsonKind::Object(members.collect())
                }
                Some(_) => {
                    let message = String::from("a list has no JSON form; write a vector `[…]` for an array");
                    let finding = self.finding(&NOT_JSON, span, message);
                    self.findings.push(finding.note("an object is a plist `(:key value)`"));
                    return None;
                }
            },
            DatumKind::Quoted(inner) => {
                self.tell_quoted(span, &inner);
                return None;
            }
            DatumKind::Dotted(..) | DatumKind::NotFinite(_) => {
                self.tell(&NOT_JSON, span, format!("{described} of this sort has no JSON form"));
                return None;
            }
        };
        Some(Json { span, kind })
    }

    /// A quote where everything is quoted already.
    pub(super) fn tell_quoted(&mut self, span: crate::text::Span, inner: &Datum) {
        // The quote is what stands before the quoted form.
        let quote = crate::text::Span { start: span.start, end: inner.span.start };
        self.findings.push(
            self.finding(
                &rules::QUOTED_IN_DATA,
                span,
                String::from("a quote inside data that is already quoted"),
            )
            .note("Emacs reads it as the list `(quote …)`, which no API takes")
            .fixed_by("remove the quote", quote, ""),
        );
    }

    fn json_number(&mut self, number: Number, span: crate::text::Span) -> JsonKind {
        match number {
            Number::Integer(value) => JsonKind::Number(value.into()),
            Number::Unsigned(value) => JsonKind::Number(value.into()),
            Number::Float(value) => JsonNumber::from_f64(value).map_or(JsonKind::Null, JsonKind::Number),
            Number::Rounded(value) => {
                let message = format!("an integer beyond 64 bits; sent as the nearest float {value:e}");
                self.tell(&rules::INEXACT_NUMBER, span, message);
                JsonNumber::from_f64(value).map_or(JsonKind::Null, JsonKind::Number)
            }
        }
    }
}
