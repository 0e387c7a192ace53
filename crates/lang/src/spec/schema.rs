//! A schema as input of the checks: its members, its position, and the keys with invalid values.

use std::collections::HashSet;

use super::json::{Json, JsonKind, Member};
use crate::text::{Location, SourceId, Span, Spanned};

/// The position of a schema in a spec.
#[derive(Clone, Copy)]
pub(in crate::spec) enum SchemaPosition<'n> {
    /// The plist of an argument.
    Argument {
        /// The name of the argument.
        name: &'n Spanned<String>,
        /// The value of its `:optional`, if present.
        optional: Option<bool>,
    },
    /// The property with this name.
    Property(&'n Spanned<String>),
    /// The schema of array elements.
    Items,
    /// Another position inside a schema.
    Nested,
}

/// A schema to check.
pub(in crate::spec) struct Schema<'s> {
    pub(in crate::spec) source: SourceId,
    /// The whole plist.
    pub(in crate::spec) span: Span,
    pub(in crate::spec) position: SchemaPosition<'s>,
    pub(in crate::spec) members: &'s [Member],
    /// Keys with values that could not be read, and keywords that are present but misspelt. They do not count as
    /// missing.
    pub(in crate::spec) unread: &'s [String],
}

impl Schema<'_> {
    /// Returns the member `key`.
    pub(in crate::spec) fn get(&self, key: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.key == key)
    }

    /// Whether `key` is present, with a valid value or not.
    pub(in crate::spec) fn is_written(&self, key: &str) -> bool {
        self.get(key).is_some() || self.unread.iter().any(|known| known == key)
    }

    /// Whether the schema has no keys, with valid values or not.
    pub(in crate::spec) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.unread.is_empty()
    }

    /// Returns the type if it is a single word.
    pub(in crate::spec) fn type_name(&self) -> Option<&str> {
        self.get("type").and_then(|member| member.value.as_str())
    }

    /// Returns whether it names the type `name`.
    pub(in crate::spec) fn has_type(&self, name: &str) -> bool {
        match self.get("type").map(|member| &member.value.kind) {
            Some(JsonKind::String(word)) => word == name,
            Some(JsonKind::Array(words)) => words.iter().any(|word| word.as_str() == Some(name)),
            Some(JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::Object(_)) | None => {
                false
            }
        }
    }

    /// Returns the types it names, without duplicates.
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

    /// Returns the location of `span` in the source of the schema.
    pub(in crate::spec) fn at(&self, span: Span) -> Location {
        Location { source: self.source, span }
    }

    /// Returns the span of the type, or of the whole schema if it has none.
    pub(in crate::spec) fn type_span(&self) -> Span {
        self.get("type").map_or(self.span, Member::span)
    }
}

impl Member {
    /// Returns the span of key and value.
    pub(crate) fn span(&self) -> Span {
        self.key_span.to(self.value.span)
    }
}

/// Whether `value` has the JSON Schema type `name`; every value has an unknown type.
pub(crate) fn is_of_type(value: &JsonKind, name: &str) -> bool {
    match name {
        "string" => matches!(value, JsonKind::String(_)),
        "number" => matches!(value, JsonKind::Number(_)),
        // In JSON Schema 1.0 is an integer.
        "integer" => matches!(value, JsonKind::Number(number)
            if !number.is_f64() || number.as_f64().is_none_or(|value| value.fract() == 0.0)),
        "boolean" => matches!(value, JsonKind::Bool(_)),
        "array" => matches!(value, JsonKind::Array(_)),
        "object" => matches!(value, JsonKind::Object(_)),
        "null" => matches!(value, JsonKind::Null),
        _ => true,
    }
}
