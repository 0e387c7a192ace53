//! JSON objects of which some members are read, filled where they lie.
//!
//! In: the bytes of one JSON value. Out: a [`Record`] that borrows from them. A value of another type than an object
//! leaves its record empty, members that nobody reads are skipped without being kept.

use std::fmt;

use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;

use super::loose::LooseKey;

/// An object that knows some of its members.
pub(super) trait Record<'de>: Default {
    /// Takes the value of the member `key`, or leaves it (`false`) to be skipped.
    fn take<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error>;
}

/// Reads one record.
///
/// # Errors
/// The bytes are not one JSON value.
pub(super) fn decode_record<'a, T: Record<'a>>(data: &'a [u8]) -> serde_json::Result<T> {
    // Checking the whole for UTF-8 at once is cheaper than string by string. Bytes that are not UTF-8 do no harm in
    // fields that are skipped.
    match str::from_utf8(data) {
        Ok(text) => read_record(Deserializer::from_str(text)),
        Err(_) => read_record(Deserializer::from_slice(data)),
    }
}

fn read_record<'a, T: Record<'a>, R: serde_json::de::Read<'a>>(
    mut json: Deserializer<R>,
) -> serde_json::Result<T> {
    let mut record = T::default();
    Fill(&mut record).deserialize(&mut json)?;
    json.end()?;
    Ok(record)
}

/// Fills a record where it lies (moving these large structs about costs as much as parsing). The result tells whether
/// there was an object; a value of another type leaves the record empty.
pub(super) struct Fill<'r, T>(pub(super) &'r mut T);

impl<'de, T: Record<'de>> DeserializeSeed<'de> for Fill<'_, T> {
    type Value = bool;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// The answers of a visitor to values that are neither a list nor an object.
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

impl<'de, T: Record<'de>> Visitor<'de> for Fill<'_, T> {
    type Value = bool;

    skip_scalars!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(false)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        while let Some(LooseKey(key)) = map.next_key()? {
            if !self.0.take(&key, &mut map)? {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(true)
    }
}
