//! The table of options that a host function takes last.
//!
//! A key that the function does not know is refused, so that a misspelt one is not silently without effect. Metatables
//! are not consulted.

use std::ops::RangeInclusive;
use std::time::Duration;

use mlua::{MultiValue, Table, Value as LuaValue};

use super::misuse;
use crate::script::error::{HostError, clean, describe};

/// Most seconds that can be asked for; the call's deadline is nearer.
const MAX_SECONDS: f64 = 86_400.0;

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
        let value = self.value(key)?;
        let number = match &value {
            LuaValue::Nil => return Ok(None),
            LuaValue::Integer(integer) => u64::try_from(*integer).ok(),
            // A cast of a float saturates; above 2^53 it is out of every range here.
            #[allow(clippy::cast_sign_loss)]
            LuaValue::Number(number) if number.fract() == 0.0 && *number >= 0.0 => Some(*number as u64),
            _ => None,
        };
        match number {
            Some(number) if range.contains(&number) => Ok(Some(number)),
            _ => {
                let expected = format!("a whole number from {} to {}", range.start(), range.end());
                Err(self.wrong(key, &expected, &value))
            }
        }
    }

    /// A positive number of seconds; above a day it is a day, which no call lasts.
    pub(super) fn seconds(&self, key: &str) -> mlua::Result<Option<Duration>> {
        let value = self.value(key)?;
        let seconds = match &value {
            LuaValue::Nil => return Ok(None),
            // It was a float before mlua looked at it.
            #[allow(clippy::cast_precision_loss)]
            LuaValue::Integer(integer) => *integer as f64,
            LuaValue::Number(number) => *number,
            _ => f64::NAN,
        };
        if seconds > 0.0 {
            Ok(Some(Duration::from_secs_f64(seconds.min(MAX_SECONDS))))
        } else {
            Err(self.wrong(key, "a positive number of seconds", &value))
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
        let expected = format!("{key} to be {expected}");
        match got {
            // Of a number that is wrong its type says nothing.
            LuaValue::Integer(_) | LuaValue::Number(_) => {
                HostError::script(format!("{}: expected {expected}, got {}", self.function, describe(got)))
            }
            _ => misuse(self.function, &expected, Some(got)),
        }
    }
}
