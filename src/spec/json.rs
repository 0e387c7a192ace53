//! JSON with places: what an argument's schema is before it is emitted, so that every finding can point at the
//! keyword it is about.

use serde_json::{Map, Number, Value};

use crate::text::Span;

/// A JSON value and where it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Json {
    /// Where.
    pub span: Span,
    /// What.
    pub kind: JsonKind,
}

/// What a JSON value is.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonKind {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number; integers and floats are told apart.
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
    /// Its key.
    pub key: String,
    /// Where the key was written.
    pub key_span: Span,
    /// Its value.
    pub value: Json,
}

impl Json {
    /// The value without places.
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

    /// The member called `key`, if this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Member> {
        match &self.kind {
            JsonKind::Object(members) => members.iter().find(|member| member.key == key),
            JsonKind::Null
            | JsonKind::Bool(_)
            | JsonKind::Number(_)
            | JsonKind::String(_)
            | JsonKind::Array(_) => None,
        }
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            JsonKind::String(text) => Some(text),
            JsonKind::Null
            | JsonKind::Bool(_)
            | JsonKind::Number(_)
            | JsonKind::Array(_)
            | JsonKind::Object(_) => None,
        }
    }
}

/// Members as a map without places, order kept.
pub(crate) fn members_to_map(members: &[Member]) -> Map<String, Value> {
    members.iter().map(|member| (member.key.clone(), member.value.to_value())).collect()
}
