//! Lossless repairs of the arguments of a call.
//!
//! Models, servers and clients damage arguments in known ways that leave no doubt about the meaning: an object is sent
//! as the text of its JSON, an integer as `"5"`, an absent argument as null or `""`. A repair applies only to arguments that are
//! invalid, only to the value at the path of a violation, and only if the result is valid. A value for which the schema
//! accepts a string stays a string. For each damaged value at most one repair is possible, so no repair is a guess.
//!
//! The text of the arguments is repaired in the same way before it is parsed: [`repair_text`].

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::applicable::ApplicableSchemas;
use super::arguments::Arguments;
use super::pointer::unescape;
use super::target::accepts_type;
use super::validate::{ArgumentValidator, path_of_pointer};

/// Maximum number of validations of one call. Each finds the violations that the repairs of the one before uncovered.
const MAX_ROUNDS: usize = 8;

/// 2^53: a float represents every integer up to this exactly.
const MAX_EXACT: i64 = 1 << 53;

/// A lossless repair of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct Repair {
    /// Path into the arguments, as in `.items[2].name`; empty for all arguments and for the name of the tool.
    pub path: String,
    /// What was repaired.
    pub kind: RepairKind,
}

/// The damage that a repair removes. The names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum RepairKind {
    /// Control characters in the strings of the JSON text were not escaped.
    ControlCharacters,
    /// A call written as text was a Python literal, or lacked its last brace.
    NotJson,
    /// The arguments were a JSON string that contains the object.
    EncodedTwice,
    /// An object or an array was sent as a string that contains its JSON.
    EncodedValue,
    /// An integer was sent as a string.
    IntegerAsString,
    /// A boolean was sent as a string.
    BooleanAsString,
    /// An optional argument was sent as null instead of being left out.
    NullForAbsent,
    /// An optional argument was sent as an empty string, which the schema rejects, instead of being left out.
    EmptyForAbsent,
    /// A control token of the model's template followed the name of the tool.
    ControlTokenInName,
}

impl RepairKind {
    /// Returns the stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ControlCharacters => "control_characters",
            Self::NotJson => "not_json",
            Self::EncodedTwice => "encoded_twice",
            Self::EncodedValue => "encoded_value",
            Self::IntegerAsString => "integer_as_string",
            Self::BooleanAsString => "boolean_as_string",
            Self::NullForAbsent => "null_for_absent",
            Self::EmptyForAbsent => "empty_for_absent",
            Self::ControlTokenInName => "control_token_in_name",
        }
    }

    /// Returns a clause about the damage, for people.
    pub fn description(self) -> &'static str {
        match self {
            Self::ControlCharacters => "control characters were not escaped",
            Self::NotJson => "the call was not JSON, but its meaning is certain",
            Self::EncodedTwice => "the arguments were encoded twice",
            Self::EncodedValue => "the value was sent as a string of JSON",
            Self::IntegerAsString => "the integer was sent as a string",
            Self::BooleanAsString => "the boolean was sent as a string",
            Self::NullForAbsent => "the absent argument was sent as null",
            Self::EmptyForAbsent => "the absent argument was sent as an empty string",
            Self::ControlTokenInName => "a control token followed the name",
        }
    }
}

impl std::fmt::Display for Repair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(self.kind.description())
    }
}

impl Repair {
    /// A repair of all arguments, or of the name.
    pub fn of_call(kind: RepairKind) -> Self {
        Self { path: String::new(), kind }
    }
}

/// Returns the part of a name before the first control token of a template: `<|channel|>`, `<｜tool▁sep｜>`, `</s>`,
/// `[ARGS]`. `None` if the name contains none.
pub fn before_control_token(name: &str) -> Option<&str> {
    let begins_token = |at: &usize| {
        let mut chars = name.get(*at..).unwrap_or_default().chars();
        match (chars.next(), chars.next()) {
            (Some('<'), Some(ch)) => matches!(ch, '|' | '｜' | '/') || ch.is_ascii_alphabetic(),
            (Some('['), Some(ch)) => ch == '/' || ch.is_ascii_uppercase(),
            _ => false,
        }
    };
    let token = name.match_indices(['<', '[']).map(|(at, _)| at).find(begins_token)?;
    Some(name.get(..token)?.trim_end())
}

/// Parses the text of arguments that is not a JSON object. Returns `None` if nothing can be repaired.
pub fn repair_text(text: &str) -> Option<(Arguments, Vec<Repair>)> {
    let mut repairs = Vec::new();
    let mut value = read_json(text, &mut repairs)?;
    if let Value::String(inner) = &value {
        repairs.push(RepairKind::EncodedTwice);
        value = read_json(inner, &mut repairs)?;
    }
    let arguments = Arguments::try_from(value).ok().filter(|_| !repairs.is_empty())?;
    Some((arguments, repairs.into_iter().map(Repair::of_call).collect()))
}

/// Parses JSON. If necessary, escapes the control characters in its strings.
fn read_json(text: &str, repairs: &mut Vec<RepairKind>) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let value = serde_json::from_str(&escape_control_characters(text)).ok()?;
    repairs.push(RepairKind::ControlCharacters);
    Some(value)
}

/// Escapes the control characters in the strings of a JSON text.
fn escape_control_characters(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let (mut in_string, mut after_backslash) = (false, false);
    for ch in text.chars() {
        // After a backslash, the character is not certain.
        if in_string && ch < ' ' && !after_backslash {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(ch));
        } else {
            in_string ^= ch == '"' && !after_backslash;
            escaped.push(ch);
        }
        after_backslash = in_string && ch == '\\' && !after_backslash;
    }
    escaped
}

/// Repairs `arguments` that violate the schema `root`, which `validator` was compiled from. Returns `None` if no repairs
/// make them valid.
pub(super) fn repair_arguments(
    validator: &ArgumentValidator,
    root: &Value,
    arguments: &Value,
) -> Option<(Value, Vec<Repair>)> {
    let mut value = arguments.clone();
    let mut repairs = Vec::new();
    let mut repaired = HashSet::new();
    for _ in 0..MAX_ROUNDS {
        let violations = validator.detailed_violations(&value);
        if violations.is_empty() {
            return Some((value, repairs));
        }
        // Several keywords may reject the same value.
        let failing: BTreeSet<String> = violations.into_iter().map(|violation| violation.instance).collect();
        for pointer in failing {
            let kinds = repair_at(root, &mut value, &pointer)?;
            let path = path_of_pointer(&pointer);
            repairs.extend(kinds.into_iter().map(|kind| Repair { path: path.clone(), kind }));
            if !repaired.insert(pointer) {
                return None;
            }
        }
    }
    None
}

/// Repairs the invalid value at `pointer`. Returns `None` if no repair applies.
fn repair_at(root: &Value, arguments: &mut Value, pointer: &str) -> Option<Vec<RepairKind>> {
    match arguments.pointer(pointer)? {
        Value::String(text) if text.is_empty() => {
            leave_out(root, arguments, pointer, RepairKind::EmptyForAbsent)
        }
        Value::String(text) => {
            let schemas = ApplicableSchemas::at(root, pointer);
            let schemas = schemas.direct();
            if schemas.is_empty() || schemas.iter().any(|schema| accepts_type(root, schema, "string")) {
                return None;
            }
            let (meant, kinds) = meant_by(text)?;
            *arguments.pointer_mut(pointer)? = meant;
            Some(kinds)
        }
        Value::Null => leave_out(root, arguments, pointer, RepairKind::NullForAbsent),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Removes the member at `pointer`, unless it has a default.
fn leave_out(
    root: &Value,
    arguments: &mut Value,
    pointer: &str,
    kind: RepairKind,
) -> Option<Vec<RepairKind>> {
    let schemas = ApplicableSchemas::at(root, pointer).with_branches();
    if schemas.is_empty() || schemas.iter().any(|schema| schema.get("default").is_some()) {
        return None;
    }
    let (parent, name) = pointer.rsplit_once('/')?;
    // A required member is then missing, which no repair makes valid.
    arguments.pointer_mut(parent)?.as_object_mut()?.shift_remove(&unescape(name))?;
    Some(vec![kind])
}

/// Returns the only value other than a string that `text` can stand for.
fn meant_by(text: &str) -> Option<(Value, Vec<RepairKind>)> {
    match text {
        "true" | "false" => Some((Value::Bool(text == "true"), vec![RepairKind::BooleanAsString])),
        _ if text.trim_start().starts_with(['{', '[']) => {
            let mut kinds = vec![RepairKind::EncodedValue];
            Some((read_json(text, &mut kinds)?, kinds))
        }
        _ => {
            let number: i64 = text.parse().ok()?;
            let is_exact = number.to_string() == text && (-MAX_EXACT..=MAX_EXACT).contains(&number);
            is_exact.then(|| (Value::from(number), vec![RepairKind::IntegerAsString]))
        }
    }
}
