//! Constants to JSON values, by the rules of the spec language.

use serde_json::Number as JsonNumber;

use super::lowerer::Lowerer;
use super::plist::Entry;
use super::schema::alist_entries;
use crate::spec::rules;
use crate::spec::{Json, JsonKind, Member};
use crate::syntax::rules::not_json;
use crate::syntax::{Datum, DatumKind, Number};
use crate::text::Span;

impl Lowerer {
    /// Returns `word`, and reports it if Emacs uses another name.
    pub(super) fn constant<'w>(&mut self, word: &'w str, span: Span) -> &'w str {
        if self.is_called() {
            self.findings.extend(rules::constant_of_ours::check(self.at(span), word));
        }
        word
    }

    /// Converts a constant to JSON: `t`, `:json-false` and `:null` become true, false and null, nil becomes `{}`, a
    /// plist becomes an object and a vector an array. Returns `None` if it has no JSON form, which has been reported.
    pub(super) fn json_value(&mut self, datum: Datum) -> Option<Json> {
        let span = datum.span;
        let kind = match datum.kind {
            DatumKind::Invalid => return None,
            DatumKind::String(text) => JsonKind::String(text),
            DatumKind::Number(number) => self.json_number(number, span),
            DatumKind::Keyword(word) => match self.constant(&word, span) {
                ":json-false" | ":false" => JsonKind::Bool(false),
                ":null" | ":json-null" => JsonKind::Null,
                _ => {
                    self.findings.push(not_json::keyword(self.at(span), &word));
                    return None;
                }
            },
            DatumKind::Symbol(word) if word == "t" => JsonKind::Bool(true),
            DatumKind::Symbol(word) => {
                self.findings.push(not_json::symbol(self.at(span), &word));
                return None;
            }
            DatumKind::Vector(items) => {
                JsonKind::Array(items.into_iter().filter_map(|item| self.json_value(item)).collect())
            }
            DatumKind::List(items) => match items.first().map(|first| &first.kind) {
                None => JsonKind::Object(Vec::new()),
                Some(DatumKind::Keyword(_)) => {
                    let entries = self.read_members(items);
                    self.json_object(entries)?
                }
                Some(_) => {
                    if let Some(entries) = alist_entries(&items) {
                        self.findings.push(rules::alist_object::finding(self.at(span)));
                        self.json_object(entries)?
                    } else {
                        let found = Datum { span, kind: DatumKind::List(items) };
                        self.findings.push(not_json::list(self.at(span), &found));
                        return None;
                    }
                }
            },
            DatumKind::Quoted(inner) => {
                self.report_quoted(span, &inner);
                return None;
            }
            DatumKind::Dotted(..) => {
                self.findings.push(not_json::dotted(self.at(span)));
                return None;
            }
            DatumKind::NotFinite(number) => {
                self.findings.push(not_json::not_finite(self.at(span), &number));
                return None;
            }
        };
        Some(Json { span, kind })
    }

    /// Converts entries to an object. Returns `None` if there are entries but none of them has a JSON form.
    fn json_object(&mut self, entries: Vec<Entry>) -> Option<JsonKind> {
        let is_empty = entries.is_empty();
        let members = entries.into_iter().filter_map(|entry| {
            let value = match entry.value.kind {
                // `:type string` is converted to `"type": "string"`, as in schemas.
                DatumKind::Symbol(word) if entry.key == "type" && word != "t" => {
                    Json { span: entry.value.span, kind: JsonKind::String(word) }
                }
                kind => self.json_value(Datum { span: entry.value.span, kind })?,
            };
            Some(Member { key: entry.key, key_span: entry.key_span, value })
        });
        let members: Vec<Member> = members.collect();
        (is_empty || !members.is_empty()).then_some(JsonKind::Object(members))
    }

    /// Reports a quote inside data that is already quoted.
    pub(super) fn report_quoted(&mut self, span: Span, inner: &Datum) {
        self.findings.push(rules::quoted_in_data::finding(self.at(span), inner.span));
    }

    pub(super) fn json_number(&mut self, number: Number, span: Span) -> JsonKind {
        match number {
            Number::Integer(value) => JsonKind::Number(value.into()),
            Number::Unsigned(value) => JsonKind::Number(value.into()),
            Number::Float(value) => JsonNumber::from_f64(value).map_or(JsonKind::Null, JsonKind::Number),
            Number::Rounded(value) => {
                self.findings.push(rules::inexact_number::finding(self.at(span), value));
                JsonNumber::from_f64(value).map_or(JsonKind::Null, JsonKind::Number)
            }
        }
    }
}
