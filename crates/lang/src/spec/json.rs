//! JSON values with source spans: the schema of an argument before it is emitted. Findings can point to single
//! keywords.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};

use crate::text::Span;

/// A JSON value with its source span.
#[derive(Debug, Clone, PartialEq)]
pub struct Json {
    /// Span in the source.
    pub span: Span,
    /// The value.
    pub kind: JsonKind,
}

/// The kinds of JSON values.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonKind {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number; integers and floats are distinct.
    Number(Number),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object, in source order, without duplicates.
    Object(Vec<Member>),
}

/// One member of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The key.
    pub key: String,
    /// Span of the key.
    pub key_span: Span,
    /// The value.
    pub value: Json,
}

impl Json {
    /// Returns the value without spans.
    pub fn to_value(&self) -> Value {
        match &self.kind {
            JsonKind::Null => Value::Null,
            JsonKind::Bool(value) => Value::Bool(*value),
            JsonKind::Number(number) => Value::Number(number.clone()),
            JsonKind::String(text) => Value::String(text.clone()),
            JsonKind::Array(items) => items.iter().map(Self::to_value).collect(),
            JsonKind::Object(members) => Value::Object(members_to_map(members)),
        }
    }

    /// Returns `value` with the spans of the parts that it has in common with `like`. Others have the span of what is
    /// around them.
    pub(crate) fn with_spans(value: Value, like: &Self) -> Self {
        let kind = match value {
            Value::Null => JsonKind::Null,
            Value::Bool(value) => JsonKind::Bool(value),
            Value::Number(number) => JsonKind::Number(number),
            Value::String(text) => JsonKind::String(text),
            Value::Array(items) => {
                let old = if let JsonKind::Array(old) = &like.kind { old.as_slice() } else { &[] };
                let items = items.into_iter().enumerate();
                JsonKind::Array(
                    items.map(|(at, item)| Self::with_spans(item, old.get(at).unwrap_or(like))).collect(),
                )
            }
            Value::Object(members) => {
                let old = if let JsonKind::Object(old) = &like.kind { old.as_slice() } else { &[] };
                let old: HashMap<&str, &Member> =
                    old.iter().map(|member| (member.key.as_str(), member)).collect();
                let member = |(key, value): (String, Value)| match old.get(key.as_str()) {
                    Some(old) => {
                        let value = Self::with_spans(value, &old.value);
                        Member { key, key_span: old.key_span, value }
                    }
                    None => Member { key, key_span: like.span, value: Self::with_spans(value, like) },
                };
                JsonKind::Object(members.into_iter().map(member).collect())
            }
        };
        Self { span: like.span, kind }
    }

    /// Returns the member `key` if the value is an object with this member.
    pub fn get(&self, key: &str) -> Option<&Member> {
        match &self.kind {
            JsonKind::Object(members) => members.iter().find(|member| member.key == key),
            _ => None,
        }
    }

    /// Returns the string if the value is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            JsonKind::String(text) => Some(text),
            _ => None,
        }
    }
}

/// Converts a value that has no source: all spans are empty.
impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self::with_spans(value, &Self { span: Span::default(), kind: JsonKind::Null })
    }
}

/// Converts members to a map without spans, in the same order.
pub(crate) fn members_to_map(members: &[Member]) -> Map<String, Value> {
    members.iter().map(|member| (member.key.clone(), member.value.to_value())).collect()
}

/// Whether two values are equal in JSON Schema, where 1 and 1.0 are equal at every depth.
pub fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || whole(one).is_some_and(|one| Some(one) == whole(other))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_there =
                |(key, value): (&String, &Value)| other.get(key).is_some_and(|other| is_same(value, other));
            one.len() == other.len() && one.iter().all(is_there)
        }
        _ => one == other,
    }
}

/// Returns a hash key that is the same for equal values.
pub(crate) fn same_key(value: &Json) -> String {
    plain(value.to_value()).to_string()
}

/// Normalizes a value: whole numbers become integers, and members are sorted by key.
fn plain(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(whole(&number).map_or(number, Number::from)),
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(members) => {
            let mut members: Vec<(String, Value)> =
                members.into_iter().map(|(key, value)| (key, plain(value))).collect();
            members.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(members.into_iter().collect())
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value,
    }
}

/// Returns the integer value of a number, if floats can represent it exactly.
fn whole(number: &Number) -> Option<i64> {
    number.as_i64().or_else(|| {
        let value = number.as_f64()?;
        let is_whole = value.fract() == 0.0 && value.abs() < 9e15;
        #[allow(clippy::cast_possible_truncation)] // it is whole and small
        is_whole.then_some(value as i64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_the_same_key() {
        let values = [
            "1",
            "1.0",
            "1e0",
            "1.5",
            "-0.0",
            "0",
            "\"1\"",
            "true",
            "null",
            "[1]",
            "[1.0]",
            "[1,2]",
            r#"{"a":1,"b":[2]}"#,
            r#"{"b":[2.0],"a":1}"#,
            r#"{"a":1}"#,
            "9007199254740993",
            "9007199254740992.0",
            "18446744073709551615",
            "1e300",
        ];
        let values = values.map(|text| serde_json::from_str::<Value>(text).unwrap());
        let keys = values.clone().map(|value| plain(value).to_string());
        for (one, key) in values.iter().zip(&keys) {
            for (other, other_key) in values.iter().zip(&keys) {
                assert_eq!(is_same(one, other), key == other_key, "{one} {other}");
            }
        }
        let same = |one: usize, other: usize| is_same(&values[one], &values[other]);
        assert!(same(0, 1) && same(1, 2) && same(4, 5) && same(9, 10) && same(12, 13));
        assert!(!same(0, 3) && !same(0, 6) && !same(9, 11) && !same(12, 14) && !same(15, 16));
    }
}
