//! One schema as the checks see it: its members, where it stands, and what was written but could not be read.

use std::collections::HashSet;

use super::json::{Json, JsonKind, Member};
use super::rules;
use crate::diagnostic::Diagnostic;
use crate::text::{Location, SourceId, Span, Spanned};

/// Where a schema stands.
#[derive(Clone, Copy)]
pub(in crate::spec) enum Place<'n> {
    /// It is the plist of an argument.
    Argument {
        /// Its name.
        name: &'n Spanned<String>,
        /// What its `:optional` says, where it has one.
        optional: Option<bool>,
    },
    /// It is the property of this name.
    Property(&'n Spanned<String>),
    /// It is that of the elements of an array.
    Items,
    /// It is elsewhere inside another schema.
    Nested,
}

/// One schema.
pub(in crate::spec) struct Schema<'s> {
    pub(in crate::spec) source: SourceId,
    /// The whole plist.
    pub(in crate::spec) span: Span,
    pub(in crate::spec) place: Place<'s>,
    pub(in crate::spec) members: &'s [Member],
    /// Keys whose values could not be read, and those that misspelt ones were meant for: what was meant is not missing.
    pub(in crate::spec) unread: &'s [String],
}

/// What is looked at in every schema, at every depth.
const CHECKS: [fn(&Schema<'_>, &mut Vec<Diagnostic>); 16] = [
    rules::missing_type::check,
    rules::array_without_items::check,
    rules::object_without_properties::check,
    rules::required_unknown::check,
    rules::enum_misfit::check,
    rules::enum_without_type::check,
    rules::duplicate_item::check,
    rules::nil_value::check,
    rules::keyword_value::check,
    rules::boolean_bound::check,
    rules::keyword_without_effect::check,
    rules::empty_range::check,
    rules::const_misfit::check,
    rules::unknown_format::check,
    rules::emacs_regexp::check,
    rules::contradictory_types::check,
];

impl Schema<'_> {
    /// Everything that is wrong with it.
    pub(in crate::spec) fn check(&self, findings: &mut Vec<Diagnostic>) {
        for check in CHECKS {
            check(self, findings);
        }
    }

    /// The member called `key`.
    pub(in crate::spec) fn get(&self, key: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.key == key)
    }

    /// Whether `key` was written, readable or not.
    pub(in crate::spec) fn is_written(&self, key: &str) -> bool {
        self.get(key).is_some() || self.unread.iter().any(|known| known == key)
    }

    /// Whether nothing was written, readable or not.
    pub(in crate::spec) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.unread.is_empty()
    }

    /// The type, where it is one word.
    pub(in crate::spec) fn type_name(&self) -> Option<&str> {
        self.get("type").and_then(|member| member.value.as_str())
    }

    /// The types it names, each once; none where it names none.
    pub(in crate::spec) fn types(&self) -> Vec<&str> {
        match self.get("type").map(|member| &member.value.kind) {
            Some(JsonKind::String(word)) => vec![word],
            Some(JsonKind::Array(words)) => {
                let mut seen = HashSet::new();
                words.iter().filter_map(Json::as_str).filter(|word| seen.insert(*word)).collect()
            }
            Some(JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::Object(_)) | None => {
                Vec::new()
            }
        }
    }

    /// `span` in the schema's source.
    pub(in crate::spec) fn at(&self, span: Span) -> Location {
        Location { source: self.source, span }
    }

    /// Where the type is told, or the whole schema.
    pub(in crate::spec) fn type_span(&self) -> Span {
        self.get("type").map_or(self.span, Member::span)
    }
}

impl Member {
    /// Key and value.
    pub(crate) fn span(&self) -> Span {
        self.key_span.to(self.value.span)
    }
}

/// Whether `value` is of the JSON Schema type `name`; an unknown type takes anything.
pub(crate) fn is_of_type(value: &JsonKind, name: &str) -> bool {
    match name {
        "string" => matches!(value, JsonKind::String(_)),
        "number" => matches!(value, JsonKind::Number(_)),
        // JSON Schema counts 1.0 among the integers.
        "integer" => matches!(value, JsonKind::Number(number)
            if !number.is_f64() || number.as_f64().is_none_or(|value| value.fract() == 0.0)),
        "boolean" => matches!(value, JsonKind::Bool(_)),
        "array" => matches!(value, JsonKind::Array(_)),
        "object" => matches!(value, JsonKind::Object(_)),
        "null" => matches!(value, JsonKind::Null),
        _ => true,
    }
}
