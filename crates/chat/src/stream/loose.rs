//! A borrowed JSON value, for fields whose type differs between servers.
//!
//! In: any JSON. Out: a tree whose strings borrow from the input unless they contain escapes. Every type is accepted.
//! Values nested deeper than the limit of `serde_json` (128) are an error of that parser.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde_json::Number;

use crate::call_keys::{Content, MemberValue};

/// Any JSON value.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Loose<'a> {
    #[default]
    Null,
    Bool(bool),
    Number(Number),
    String(Cow<'a, str>),
    Array(Vec<Loose<'a>>),
    Object(Vec<(Cow<'a, str>, Loose<'a>)>),
}

impl<'a> Loose<'a> {
    /// Returns a member of an object. For duplicate names, returns the last, like `serde_json`.
    pub(super) fn get(&self, name: &str) -> Option<&Loose<'a>> {
        match self {
            Self::Object(members) => {
                members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
            }
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) | Self::Array(_) => None,
        }
    }

    /// Like [`Loose::get`], to change the member.
    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Loose<'a>> {
        match self {
            Self::Object(members) => {
                members.iter_mut().rev().find(|(key, _)| key == name).map(|(_, value)| value)
            }
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) | Self::Array(_) => None,
        }
    }

    /// Returns the members of an object. For duplicate names, the last comes first.
    pub(super) fn members(&self) -> impl Iterator<Item = (&str, &Loose<'a>)> + Clone {
        let members = match self {
            Self::Object(members) => members.as_slice(),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::String(_) | Self::Array(_) => &[],
        };
        members.iter().rev().map(|(key, value)| (key.as_ref(), value))
    }

    /// Returns the text of a non-empty string. Servers send `""` for missing values.
    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::String(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// Returns whether it is `null` or an empty string.
    pub(super) fn is_blank(&self) -> bool {
        match self {
            Self::Null => true,
            Self::String(text) => text.is_empty(),
            Self::Bool(_) | Self::Number(_) | Self::Array(_) | Self::Object(_) => false,
        }
    }

    /// Returns a non-negative integer, including `3.0` and one in a string.
    pub(super) fn as_count(&self) -> Option<u64> {
        match self {
            Self::Number(number) => {
                number.as_u64().or_else(|| number.to_string().strip_suffix(".0")?.parse().ok())
            }
            Self::String(text) => text.parse().ok(),
            Self::Null | Self::Bool(_) | Self::Array(_) | Self::Object(_) => None,
        }
    }

    /// Returns an identifier: a non-empty string, or a number.
    pub(super) fn as_id(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Number(number) => Some(Cow::Owned(number.to_string())),
            Self::String(_) => self.as_text().map(Cow::Borrowed),
            Self::Null | Self::Bool(_) | Self::Array(_) | Self::Object(_) => None,
        }
    }

    /// Returns a string unchanged, nothing for `null`, and any other value as JSON text.
    pub(super) fn to_text(&self) -> Cow<'_, str> {
        match self {
            Self::Null => Cow::Borrowed(""),
            Self::String(text) => Cow::Borrowed(text),
            Self::Bool(_) | Self::Number(_) | Self::Array(_) | Self::Object(_) => Cow::Owned(self.to_json()),
        }
    }

    /// Returns the value as JSON text.
    pub(super) fn to_json(&self) -> String {
        // Strings, numbers and string keys cannot fail to serialise.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl MemberValue for Loose<'_> {
    fn content(&self) -> Content {
        match self {
            Self::Null => Content::Absent,
            Self::String(text) => Content::of_text(text),
            Self::Object(members) if members.is_empty() => Content::Empty,
            Self::Object(_) | Self::Bool(_) | Self::Number(_) | Self::Array(_) => Content::Filled,
        }
    }

    fn text(&self) -> Option<&str> {
        self.as_text()
    }
}

impl Serialize for Loose<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::String(text) => serializer.serialize_str(text),
            Self::Array(items) => {
                let mut seq = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    seq.serialize_element(item)?;
                }
                seq.end()
            }
            Self::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (key, value) in members {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Loose<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Loose<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Loose::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Loose::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Loose::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Loose::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Number::from_f64(value).map_or(Loose::Null, Loose::Number))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(Loose::String(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Loose::String(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Loose::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(LooseKey(key)) = map.next_key()? {
            members.push((key, map.next_value()?));
        }
        Ok(Loose::Object(members))
    }
}

/// The name of a member. Serde would always copy it into a plain `Cow`.
pub(super) struct LooseKey<'a>(pub(super) Cow<'a, str>);

impl<'de> Deserialize<'de> for LooseKey<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = LooseKey<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member name")
            }

            fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Self::Value, E> {
                Ok(LooseKey(Cow::Borrowed(value)))
            }

            fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
                Ok(LooseKey(Cow::Owned(value.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_value_is_parsed_borrowed_and_serialised() {
        let text = r#"{"a":[1,-2,0.5,true,null,"x","é\n"],"a":{"\u0062":"7"}}"#;
        let value: Loose<'_> = serde_json::from_str(text).unwrap();
        assert_eq!(value.get("a").and_then(|a| a.get("b")).and_then(Loose::as_count), Some(7));
        let Loose::Object(members) = &value else { panic!("an object") };
        let Loose::Array(items) = &members[0].1 else { panic!("an array") };
        assert!(matches!(items[5], Loose::String(Cow::Borrowed("x"))));
        assert_eq!(value.to_json(), r#"{"a":[1,-2,0.5,true,null,"x","é\n"],"a":{"b":"7"}}"#);
    }
}
