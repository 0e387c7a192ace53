//! The table of options that a host function takes last.
//!
//! A key that the function does not know is refused, so that a misspelt one is not silently without effect. Metatables
//! are not consulted.

use std::ops::RangeInclusive;

use mlua::{MultiValue, Table, Value as LuaValue};

use super::misuse;
use crate::script::error::{HostError, clean, describe};

/// What a script passed as options of `function`.
pub(super) struct Options {
    function: &'static str,
    table: Option<Table>,
}

impl Options {
    /// The options at `index` (from 0), of which `known` are taken.
    pub(super) fn new(
        function: &'static str,
        arguments: &MultiValue,
        index: usize,
        known: &[&str],
    ) -> mlua::Result<Self> {
        let table = match arguments.get(index) {
            None | Some(LuaValue::Nil) => None,
            Some(LuaValue::Table(table)) => Some(table.clone()),
            other => return Err(misuse(function, "a table of options", other)),
        };
        for pair in table.iter().flat_map(Table::pairs::<LuaValue, LuaValue>) {
            let (key, _) = pair?;
            let is_known = matches!(&key, LuaValue::String(key) if known.iter().any(|known| *key.as_bytes() == *known.as_bytes()));
            if !is_known {
                return Err(HostError::script(format!(
                    "{function}: there is no option {}; there are {}",
                    clean(&describe(&key), 60),
                    known.join(", ")
                )));
            }
        }
        Ok(Self { function, table })
    }

    /// The value under `key`; nil where there is none.
    pub(super) fn value(&self, key: &str) -> mlua::Result<LuaValue> {
        self.table.as_ref().map_or(Ok(LuaValue::Nil), |table| table.raw_get(key))
    }

    /// A whole number within `range`.
    pub(super) fn whole(&self, key: &str, range: RangeInclusive<u64>) -> mlua::Result<Option<u64>> {
        let number = match self.value(key)? {
            LuaValue::Nil => return Ok(None),
            LuaValue::Integer(integer) => u64::try_from(integer).ok(),
            // A cast of a float saturates; above 2^53 it is out of every range here.
            #[allow(clippy::cast_sign_loss)]
            LuaValue::Number(number) if number.fract() == 0.0 && number >= 0.0 => Some(number as u64),
            LuaValue::Number(_) => None,
            other => return Err(self.wrong(key, "a whole number", &other)),
        };
        match number {
            Some(number) if range.contains(&number) => Ok(Some(number)),
            _ => Err(HostError::script(format!(
                "{}: {key} must be a whole number from {} to {}",
                self.function,
                range.start(),
                range.end()
            ))),
        }
    }

    /// A positive number of seconds.
    pub(super) fn seconds(&self, key: &str) -> mlua::Result<Option<f64>> {
        #[allow(clippy::cast_precision_loss)]
        match self.value(key)? {
            LuaValue::Nil => Ok(None),
            LuaValue::Integer(integer) if integer > 0 => Ok(Some(integer as f64)),
            LuaValue::Number(number) if number.is_finite() && number > 0.0 => Ok(Some(number)),
            other => Err(self.wrong(key, "a positive number of seconds", &other)),
        }
    }

    /// Whether `key` is true.
    pub(super) fn flag(&self, key: &str) -> mlua::Result<Option<bool>> {
        match self.value(key)? {
            LuaValue::Nil => Ok(None),
            LuaValue::Boolean(flag) => Ok(Some(flag)),
            other => Err(self.wrong(key, "true or false", &other)),
        }
    }

    /// A string.
    pub(super) fn text(&self, key: &str) -> mlua::Result<Option<String>> {
        match self.value(key)? {
            LuaValue::Nil => Ok(None),
            LuaValue::String(text) => Ok(Some(text.to_string_lossy())),
            other => Err(self.wrong(key, "a string", &other)),
        }
    }

    /// The error that `key` has something else than `expected`.
    pub(super) fn wrong(&self, key: &str, expected: &str, got: &LuaValue) -> mlua::Error {
        misuse(self.function, &format!("{key} to be {expected}"), Some(got))
    }
}
