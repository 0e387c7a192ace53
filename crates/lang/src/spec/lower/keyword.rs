//! Keywords that gptel interprets specially or that are often written in another way: `:type`, `:enum`, `:required`.

use super::lowerer::Lowerer;
use crate::spec::keywords::TYPES;
use crate::spec::rules::{self, wrong_value::schema as wrong};
use crate::spec::schema::SchemaPosition;
use crate::spec::{Json, JsonKind};
use crate::syntax::{Datum, DatumKind};
use crate::text::Span;

impl Lowerer {
    /// Lowers the value of `:type`: a symbol becomes its name, as in gptel.
    pub(super) fn lower_type(&mut self, value: Datum) -> Option<Json> {
        let span = value.span;
        match value.kind {
            DatumKind::Symbol(word) => Some(self.type_word(word, span)),
            DatumKind::String(word) => {
                if TYPES.contains(&word.as_str()) {
                    self.findings.push(rules::type_as_string::finding(self.at(span), &word));
                }
                Some(self.type_word(word, span))
            }
            // nil is not a type, but `null` may be meant.
            DatumKind::List(items) if items.is_empty() => {
                self.findings.push(rules::unknown_name::of_type(self.at(span), "nil"));
                None
            }
            DatumKind::Keyword(word) => {
                self.findings.push(rules::unknown_name::of_type(self.at(span), &word));
                None
            }
            DatumKind::Vector(items) => {
                // gptel converts the symbol of a `:type` to a string, but not symbols in a vector.
                if let Some(finding) = wrong::type_words(self.source, &items) {
                    self.findings.push(finding);
                    return None;
                }
                let words = items.into_iter().filter_map(|item| match item.kind {
                    DatumKind::String(word) => Some(self.type_word(word, item.span)),
                    _ => None,
                });
                Some(Json { span, kind: JsonKind::Array(words.collect()) })
            }
            DatumKind::Quoted(inner) => {
                self.report_quoted(span, &inner);
                None
            }
            DatumKind::Invalid => None,
            kind @ (DatumKind::List(_)
            | DatumKind::Number(_)
            | DatumKind::NotFinite(_)
            | DatumKind::Dotted(..)) => {
                let finding = wrong::type_word(self.at(span), &Datum { span, kind });
                self.findings.push(finding);
                None
            }
        }
    }

    fn type_word(&mut self, word: String, span: Span) -> Json {
        if !TYPES.contains(&word.as_str()) {
            self.findings.push(rules::unknown_name::of_type(self.at(span), &word));
        }
        Json { span, kind: JsonKind::String(word) }
    }

    /// Lowers the value of `:enum`, a vector of constants. `types` are the types of the schema, if it names any.
    pub(super) fn lower_enum(&mut self, value: Datum, types: &[String]) -> Option<Json> {
        let span = value.span;
        match value.kind {
            DatumKind::Vector(items) => {
                self.findings.extend(wrong::enum_symbols(self.source, &items, types));
                let count = items.len();
                let constants = items.into_iter().filter(|item| wrong::symbol_of(item).is_none());
                let values: Vec<Json> = constants.filter_map(|item| self.json_value(item)).collect();
                // Without valid elements, treat the vector as missing, unless it was written empty.
                let is_reported = values.is_empty() && count > 0;
                (!is_reported).then_some(Json { span, kind: JsonKind::Array(values) })
            }
            DatumKind::Quoted(inner) if matches!(inner.kind, DatumKind::Vector(_)) => {
                self.report_quoted(span, &inner);
                None
            }
            DatumKind::Invalid => None,
            kind => {
                let finding = wrong::enumeration(self.at(span), &Datum { span, kind });
                self.findings.push(finding);
                None
            }
        }
    }

    /// Lowers the value of `:required`, the names of properties.
    pub(super) fn lower_required(
        &mut self,
        value: Datum,
        key_span: Span,
        position: SchemaPosition<'_>,
        has_properties: bool,
    ) -> Option<Json> {
        let is_flag = match &value.kind {
            DatumKind::Vector(items) if items.iter().all(|item| is_name(&item.kind)) => {
                return self.json_value(value);
            }
            DatumKind::Symbol(word) => word == "t",
            DatumKind::Keyword(_) => true,
            // On an object with properties, nil is an empty list of names; `nil-value` reports how Emacs sends it.
            DatumKind::List(items) if items.is_empty() && has_properties => return self.json_value(value),
            DatumKind::List(items) => items.is_empty(),
            DatumKind::Invalid => return None,
            DatumKind::Quoted(inner) if matches!(inner.kind, DatumKind::Vector(_)) => {
                self.report_quoted(value.span, inner);
                return None;
            }
            _ => false,
        };
        if is_flag {
            let is_true = matches!(&value.kind, DatumKind::Symbol(_));
            let at = self.at(key_span.to(value.span));
            self.findings.push(match position {
                SchemaPosition::Argument { optional, .. } => {
                    rules::useless_key::required(at, is_true, optional)
                }
                SchemaPosition::Property(_) | SchemaPosition::Items | SchemaPosition::Nested => {
                    rules::useless_key::required_inside(at)
                }
            });
            return self.json_value(value);
        }
        self.findings.extend(wrong::required(self.source, &value));
        match value.kind {
            // Emacs sends these unchanged.
            DatumKind::String(_) | DatumKind::Number(_) => self.json_value(value),
            _ => None,
        }
    }
}

fn is_name(kind: &DatumKind) -> bool {
    matches!(kind, DatumKind::String(_) | DatumKind::Invalid)
}
