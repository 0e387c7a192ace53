//! The keywords that gptel reads in its own way or that are often written in another: `:type`, `:enum`, `:required`.

use super::Lowerer;
use crate::spec::keywords::TYPES;
use crate::spec::rules;
use crate::spec::schema::Place;
use crate::spec::{Json, JsonKind};
use crate::syntax::{Datum, DatumKind};
use crate::text::Span;

impl Lowerer {
    /// The value of `:type`: a symbol becomes its name, as gptel has it.
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
            // nil is no type, but `null` may be meant.
            DatumKind::List(items) if items.is_empty() => {
                self.findings.push(rules::unknown_type::finding(self.at(span), "nil"));
                None
            }
            DatumKind::Keyword(word) => {
                self.findings.push(rules::unknown_type::finding(self.at(span), &word));
                None
            }
            DatumKind::Vector(items) => {
                // gptel makes a string of the symbol that is a `:type`, not of one in a vector.
                if let Some(finding) = rules::type_not_a_word::in_vector(self.source, &items) {
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
                self.tell_quoted(span, &inner);
                None
            }
            DatumKind::Invalid => None,
            kind @ (DatumKind::List(_)
            | DatumKind::Number(_)
            | DatumKind::NotFinite(_)
            | DatumKind::Dotted(..)) => {
                let finding = rules::type_not_a_word::finding(self.at(span), &Datum { span, kind });
                self.findings.push(finding);
                None
            }
        }
    }

    fn type_word(&mut self, word: String, span: Span) -> Json {
        if !TYPES.contains(&word.as_str()) {
            self.findings.push(rules::unknown_type::finding(self.at(span), &word));
        }
        Json { span, kind: JsonKind::String(word) }
    }

    /// The value of `:enum`: a vector of constants, of `types` where the schema names some.
    pub(super) fn lower_enum(&mut self, value: Datum, types: &[String]) -> Option<Json> {
        let span = value.span;
        match value.kind {
            DatumKind::Vector(items) => {
                self.findings.extend(rules::enum_not_a_vector::of_symbols(self.source, &items, types));
                let count = items.len();
                let constants =
                    items.into_iter().filter(|item| rules::enum_not_a_vector::symbol_of(item).is_none());
                let values: Vec<Json> = constants.filter_map(|item| self.json_value(item)).collect();
                // An empty vector was not written.
                let is_told = values.is_empty() && count > 0;
                (!is_told).then_some(Json { span, kind: JsonKind::Array(values) })
            }
            DatumKind::Quoted(inner) if matches!(inner.kind, DatumKind::Vector(_)) => {
                self.tell_quoted(span, &inner);
                None
            }
            DatumKind::Invalid => None,
            kind => {
                let finding = rules::enum_not_a_vector::finding(self.at(span), &Datum { span, kind });
                self.findings.push(finding);
                None
            }
        }
    }

    /// The value of `:required`: the names of properties.
    pub(super) fn lower_required(
        &mut self,
        value: Datum,
        key_span: Span,
        place: Place<'_>,
        has_properties: bool,
    ) -> Option<Json> {
        let is_flag = match &value.kind {
            DatumKind::Vector(items) if items.iter().all(|item| is_name(&item.kind)) => {
                return self.json_value(value);
            }
            DatumKind::Symbol(word) => word == "t",
            DatumKind::Keyword(_) => true,
            // Where names could stand, nil is an empty list of them: `nil-value` tells what it is sent as.
            DatumKind::List(items) if items.is_empty() && has_properties => return self.json_value(value),
            DatumKind::List(items) => items.is_empty(),
            DatumKind::Invalid => return None,
            DatumKind::Quoted(inner) if matches!(inner.kind, DatumKind::Vector(_)) => {
                self.tell_quoted(value.span, inner);
                return None;
            }
            DatumKind::Vector(_)
            | DatumKind::String(_)
            | DatumKind::Number(_)
            | DatumKind::NotFinite(_)
            | DatumKind::Dotted(..)
            | DatumKind::Quoted(_) => false,
        };
        if is_flag {
            let is_true = matches!(&value.kind, DatumKind::Symbol(_));
            let at = self.at(key_span.to(value.span));
            self.findings.push(match place {
                Place::Argument { optional, .. } => rules::required_misplaced::finding(at, is_true, optional),
                Place::Property(_) | Place::Items | Place::Nested => {
                    rules::required_misplaced::of_property(at)
                }
            });
            return self.json_value(value);
        }
        self.findings.extend(rules::required_not_a_vector::check(self.source, &value));
        match value.kind {
            // As Emacs sends it.
            DatumKind::String(_) | DatumKind::Number(_) => self.json_value(value),
            DatumKind::Symbol(_)
            | DatumKind::Keyword(_)
            | DatumKind::NotFinite(_)
            | DatumKind::List(_)
            | DatumKind::Dotted(..)
            | DatumKind::Vector(_)
            | DatumKind::Quoted(_)
            | DatumKind::Invalid => None,
        }
    }
}

fn is_name(kind: &DatumKind) -> bool {
    matches!(kind, DatumKind::String(_) | DatumKind::Invalid)
}
