//! The arguments of host functions, and the options table that many take as their last argument.
//!
//! An unknown option is an error, so that a misspelt option is not silently ignored. Metatables are not used.

use std::ops::RangeInclusive;
use std::time::Duration;

use mlua::{MultiValue, Table, Value as LuaValue};

use crate::error::{HostError, clean, describe, type_name};

/// Maximum number of seconds. The deadline of a call is always earlier.
const MAX_SECONDS: f64 = 86_400.0;

/// Creates an argument error, such as `task.wait: expected a number of seconds, got table`.
pub(super) fn argument_error(function: &str, expected: &str, got: Option<&LuaValue>) -> mlua::Error {
    let got = got.map_or("nothing", type_name);
    HostError::script(format!("{function}: expected {expected}, got {got}"))
}

/// Returns the argument at `index` (from 0) as a string.
pub(super) fn text_argument(function: &str, arguments: &MultiValue, index: usize) -> mlua::Result<String> {
    match arguments.get(index) {
        Some(LuaValue::String(text)) => Ok(text.to_string_lossy()),
        Some(LuaValue::Integer(integer)) => Ok(integer.to_string()),
        Some(LuaValue::Number(number)) => Ok(number.to_string()),
        other => Err(argument_error(function, "a string", other)),
    }
}

/// Returns the argument at `index` (from 0) as a finite number.
pub(super) fn number_argument(
    function: &str,
    arguments: &MultiValue,
    index: usize,
    what: &str,
) -> mlua::Result<f64> {
    match arguments.get(index) {
        // mlua converted it from a float.
        #[allow(clippy::cast_precision_loss)]
        Some(LuaValue::Integer(integer)) => Ok(*integer as f64),
        Some(LuaValue::Number(number)) if number.is_finite() => Ok(*number),
        other => Err(argument_error(function, what, other)),
    }
}

/// The options that a script passed to `function`.
pub(super) struct Options {
    function: &'static str,
    table: Option<Table>,
}

impl Options {
    /// Reads the options at `index` (from 0).
    ///
    /// # Errors
    /// When the argument is not a table or has keys that are not in `known`.
    pub(super) fn new(
        function: &'static str,
        arguments: &MultiValue,
        index: usize,
        known: &[&str],
    ) -> mlua::Result<Self> {
        let table = match arguments.get(index) {
            None | Some(LuaValue::Nil) => None,
            Some(LuaValue::Table(table)) => Some(table.clone()),
            other => return Err(argument_error(function, "a table of options", other)),
        };
        for pair in table.iter().flat_map(Table::pairs::<LuaValue, LuaValue>) {
            let (key, _) = pair?;
            let is_known = matches!(&key, LuaValue::String(key) if known.iter().any(|known| *key.as_bytes() == *known.as_bytes()));
            if !is_known {
                return Err(HostError::script(format!(
                    "{function}: unknown option `{}`, expected one of `{}`",
                    clean(&describe(&key), 60),
                    known.join("`, `")
                )));
            }
        }
        Ok(Self { function, table })
    }

    /// Returns the value of `key`, or nil.
    pub(super) fn value(&self, key: &str) -> mlua::Result<LuaValue> {
        self.table.as_ref().map_or(Ok(LuaValue::Nil), |table| table.raw_get(key))
    }

    /// Returns an integer in `range`.
    pub(super) fn integer(&self, key: &str, range: RangeInclusive<u64>) -> mlua::Result<Option<u64>> {
        let value = self.value(key)?;
        let number = match &value {
            LuaValue::Nil => return Ok(None),
            LuaValue::Integer(integer) => u64::try_from(*integer).ok(),
            // Casting a float saturates. All ranges end at or below 2^53.
            #[allow(clippy::cast_sign_loss)]
            LuaValue::Number(number) if number.fract() == 0.0 && *number >= 0.0 => Some(*number as u64),
            _ => None,
        };
        match number {
            Some(number) if range.contains(&number) => Ok(Some(number)),
            _ => {
                let expected = format!("a whole number from {} to {}", range.start(), range.end());
                Err(self.option_error(key, &expected, &value))
            }
        }
    }

    /// Returns a positive number of seconds, at most a day, which is longer than any call.
    pub(super) fn seconds(&self, key: &str) -> mlua::Result<Option<Duration>> {
        let value = self.value(key)?;
        let seconds = match &value {
            LuaValue::Nil => return Ok(None),
            // mlua converted it from a float.
            #[allow(clippy::cast_precision_loss)]
            LuaValue::Integer(integer) => *integer as f64,
            LuaValue::Number(number) => *number,
            _ => f64::NAN,
        };
        if seconds > 0.0 {
            Ok(Some(Duration::from_secs_f64(seconds.min(MAX_SECONDS))))
        } else {
            Err(self.option_error(key, "a positive number of seconds", &value))
        }
    }

    /// Returns a boolean.
    pub(super) fn flag(&self, key: &str) -> mlua::Result<Option<bool>> {
        match self.value(key)? {
            LuaValue::Nil => Ok(None),
            LuaValue::Boolean(flag) => Ok(Some(flag)),
            other => Err(self.option_error(key, "true or false", &other)),
        }
    }

    /// Returns a string.
    pub(super) fn text(&self, key: &str) -> mlua::Result<Option<String>> {
        match self.value(key)? {
            LuaValue::Nil => Ok(None),
            LuaValue::String(text) => Ok(Some(text.to_string_lossy())),
            other => Err(self.option_error(key, "a string", &other)),
        }
    }

    /// Creates an error for an invalid value of `key`.
    pub(super) fn option_error(&self, key: &str, expected: &str, got: &LuaValue) -> mlua::Error {
        let expected = format!("{key} to be {expected}");
        match got {
            // For a number, print the value: the type is not useful.
            LuaValue::Integer(_) | LuaValue::Number(_) => {
                HostError::script(format!("{}: expected {expected}, got {}", self.function, describe(got)))
            }
            _ => argument_error(self.function, &expected, Some(got)),
        }
    }
}
