//! JSON objects that are parsed in place. Only some of their members are read.
//!
//! In: the bytes of one JSON value. Out: a [`LooseObject`] that borrows from them. A value that is not an object leaves
//! it empty. Unknown members are skipped without being stored.

use std::fmt;

use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;

use super::loose::LooseKey;

/// An object that reads some of its members.
pub(super) trait LooseObject<'de>: Default {
    /// Reads the value of the member `key`. Returns false if the member is unknown and must be skipped.
    fn read_member<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error>;
}

/// Parses one object.
///
/// # Errors
/// The bytes are not one JSON value.
pub(super) fn decode_object<'a, T: LooseObject<'a>>(data: &'a [u8]) -> serde_json::Result<T> {
    // One UTF-8 check of all bytes is faster than one per string. Invalid UTF-8 is accepted in members that are
    // skipped.
    match str::from_utf8(data) {
        Ok(text) => read_object(Deserializer::from_str(text)),
        Err(_) => read_object(Deserializer::from_slice(data)),
    }
}

fn read_object<'a, T: LooseObject<'a>, R: serde_json::de::Read<'a>>(
    mut json: Deserializer<R>,
) -> serde_json::Result<T> {
    let mut object = T::default();
    Fill(&mut object).deserialize(&mut json)?;
    json.end()?;
    Ok(object)
}

/// Fills an object in place, because moving these large structs costs as much as parsing. Returns whether the value was
/// an object; other values leave the target empty.
pub(super) struct Fill<'r, T>(pub(super) &'r mut T);

impl<'de, T: LooseObject<'de>> DeserializeSeed<'de> for Fill<'_, T> {
    type Value = bool;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Visitor methods for values that are neither a list nor an object.
macro_rules! skip_scalars {
    () => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("any JSON value")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }

        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }

        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }

        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }

        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
}
pub(super) use skip_scalars;

impl<'de, T: LooseObject<'de>> Visitor<'de> for Fill<'_, T> {
    type Value = bool;

    skip_scalars!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(false)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        while let Some(LooseKey(key)) = map.next_key()? {
            if !self.0.read_member(&key, &mut map)? {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(true)
    }
}
