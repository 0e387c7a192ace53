//! Checks a value against the schema that contains it.
//!
//! Most schemas have only a type, an `:enum` and one or two limits, which are checked directly. A validator is compiled
//! only for other keywords. A schema with a `$ref` is not checked, because its target is outside the schema.

use std::cell::OnceCell;
use std::collections::HashSet;

use serde_json::Value;

use super::ArgumentValidator;
use crate::diagnostic::Diagnostic;
use crate::spec::keywords::is_annotation;
use crate::spec::schema::is_of_type;
use crate::spec::{Json, JsonKind, Member, members_to_map, nearest, same_key};
use crate::syntax::quoted;
use crate::text::{Span, count};

/// Keywords that are checked without a validator.
const DIRECT: [&str; 8] =
    ["type", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"];

/// A value that does not match its schema.
pub(in crate::schema) struct Misfit {
    /// The reason.
    pub(in crate::schema) message: String,
    /// The location of the value and a suggested replacement.
    suggestion: Option<(Span, String)>,
}

impl Misfit {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), suggestion: None }
    }

    /// Adds the suggestion to `finding`.
    pub(in crate::schema) fn suggest(&self, finding: Diagnostic) -> Diagnostic {
        match &self.suggestion {
            Some((span, known)) => finding.did_you_mean(*span, known.clone()),
            None => finding,
        }
    }
}

/// Checks values against one schema.
pub(super) struct ValueChecker<'s> {
    schema: &'s [Member],
    types: Option<&'s Json>,
    values: Option<&'s [Json]>,
    /// Whether all keywords can be checked without a validator.
    is_plain: bool,
    known: OnceCell<HashSet<String>>,
    validator: OnceCell<Option<ArgumentValidator>>,
}

impl<'s> ValueChecker<'s> {
    pub(super) fn new(schema: &'s [Member]) -> Self {
        let types = get(schema, "type");
        let values = match get(schema, "enum").map(|values| &values.kind) {
            Some(JsonKind::Array(values)) => Some(values.as_slice()),
            _ => None,
        };
        let is_direct = |member: &Member| DIRECT.contains(&member.key.as_str()) || is_annotation(&member.key);
        let is_plain = types.is_none_or(|types| types.as_str().is_some()) && schema.iter().all(is_direct);
        Self { schema, types, values, is_plain, known: OnceCell::new(), validator: OnceCell::new() }
    }

    /// Returns the values of the `:enum`.
    pub(super) fn values(&self) -> Option<&'s [Json]> {
        self.values
    }

    /// Returns why `value` does not match the schema, if it does not.
    pub(super) fn misfit(&self, value: &Json) -> Option<Misfit> {
        if let Some(name) = self.types.and_then(Json::as_str)
            && !is_of_type(&value.kind, name)
        {
            return Some(Misfit::new(format!("it is not of type {name}")));
        }
        if let Some(known) = self.values {
            let all = self.known.get_or_init(|| known.iter().map(same_key).collect());
            if !all.contains(&same_key(value)) {
                let words = known.iter().filter_map(Json::as_str);
                let near = value.as_str().and_then(|word| nearest(word, words));
                let suggestion = near.map(|known| (value.span, quoted(known)));
                return Some(Misfit { suggestion, ..Misfit::new("it is not in the `:enum`") });
            }
        }
        if self.is_plain {
            return self.beyond_limits(value);
        }
        let validator = self.validator.get_or_init(|| {
            let schema = Value::Object(members_to_map(self.schema));
            // A schema that does not compile is reported elsewhere.
            if has_reference(&schema) { None } else { ArgumentValidator::compile("", &schema).ok() }
        });
        let (_, violation) = validator.as_ref()?.first_violation(&value.to_value())?;
        Some(Misfit::new(violation.in_value()))
    }

    fn beyond_limits(&self, value: &Json) -> Option<Misfit> {
        let limit = |key: &str| match get(self.schema, key).map(|limit| &limit.kind) {
            Some(JsonKind::Number(number)) => number.as_f64(),
            _ => None,
        };
        let exceeds = |size: f64, key: &str| match key {
            "minimum" | "minLength" => limit(key).is_some_and(|limit| size < limit),
            "exclusiveMinimum" => limit(key).is_some_and(|limit| size <= limit),
            "exclusiveMaximum" => limit(key).is_some_and(|limit| size >= limit),
            _ => limit(key).is_some_and(|limit| size > limit),
        };
        let (size, found, keys): (f64, String, &[&str]) = match &value.kind {
            JsonKind::Number(number) => (
                number.as_f64()?,
                String::new(),
                &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
            ),
            JsonKind::String(text) => {
                let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
                let found = format!("it has {}, and ", count(length as usize, "character"));
                (f64::from(length), found, &["minLength", "maxLength"])
            }
            JsonKind::Null | JsonKind::Bool(_) | JsonKind::Array(_) | JsonKind::Object(_) => return None,
        };
        let key = keys.iter().find(|key| exceeds(size, key))?;
        let limit = get(self.schema, key)?.to_value();
        Some(Misfit::new(format!("{found}`:{key}` is {limit}")))
    }
}

fn get<'s>(schema: &'s [Member], key: &str) -> Option<&'s Json> {
    schema.iter().find(|member| member.key == key).map(|member| &member.value)
}

fn has_reference(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.contains_key("$ref") || members.values().any(has_reference),
        Value::Array(items) => items.iter().any(has_reference),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
