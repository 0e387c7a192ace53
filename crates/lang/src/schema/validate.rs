//! Validates the arguments of calls with a compiled parameters schema.

use std::borrow::Cow;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, ValidationError, Validator};
use serde_json::Value;

use super::arguments::Arguments;
use super::cost::BoundedSchema;
use super::pointer::{steps, unescape};
use super::strict_reply::restore;
use crate::spec::nearest;

/// A schema that cannot be compiled.
#[derive(Debug, thiserror::Error)]
#[error("the schema of `{tool}` does not compile at {path}: {message}")]
pub struct SchemaError {
    /// The tool's name.
    pub tool: String,
    /// JSON pointer into the parameters schema; `/` for its root.
    pub path: String,
    /// One clause that describes the error.
    pub message: String,
}

/// A violation of a schema by arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Violation {
    /// Path into the arguments, as in `.items[2].name`; empty for all arguments.
    pub path: String,
    /// One clause that describes the violation.
    pub message: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl Violation {
    /// Returns the violation as displayed, but without a leading dot: `n: …` instead of `.n: …`.
    pub(super) fn in_value(&self) -> String {
        let shown = self.to_string();
        shown.strip_prefix('.').map(str::to_owned).unwrap_or(shown)
    }
}

/// Maximum number of violations reported per call; malicious arguments could have thousands.
const MAX_VIOLATIONS: usize = 20;

/// Maximum number of allowed values in a message.
const MAX_LISTED: usize = 20;

/// The message for a value whose errors are not known.
const MISMATCH: &str = "it does not match the schema";

/// Maximum length of a message, in characters.
const MAX_QUOTED: usize = 200;

/// A compiled parameters schema (JSON Schema 2020-12, formats asserted).
#[derive(Debug)]
pub struct ArgumentValidator {
    validator: Validator,
    cost: BoundedSchema,
    /// The original parameters schema, if the model uses a strict form of it.
    strict: Option<Value>,
}

impl ArgumentValidator {
    /// Compiles `parameters`, the schema of `tool`. External references are not fetched: a `$ref` must stay inside the
    /// schema.
    ///
    /// # Errors
    /// If the cost of the schema is not limited. Otherwise returns the location of the first invalid part of the schema.
    pub fn compile(tool: &str, parameters: &Value) -> Result<Self, SchemaError> {
        let error = |path: String, message: String| SchemaError {
            tool: tool.to_owned(),
            path: if path.is_empty() { String::from("/") } else { path },
            message: shorten(&message),
        };
        let cost = BoundedSchema::new(parameters).map_err(|cost| error(String::new(), cost.to_string()))?;
        jsonschema::options()
            .with_draft(Draft::Draft202012)
            .should_validate_formats(true)
            .build(parameters)
            .map(|validator| Self { validator, cost, strict: None })
            .map_err(|invalid| error(invalid.instance_path().to_string(), invalid.to_string()))
    }

    /// Like [`ArgumentValidator::compile`], but ignores the invalid parts and returns their errors.
    pub fn compile_lenient(tool: &str, mut parameters: Value) -> (Self, Vec<SchemaError>) {
        let mut problems = Vec::new();
        loop {
            match Self::compile(tool, &parameters) {
                Ok(validator) => return (validator, problems),
                Err(problem) => {
                    // The error for an external reference has no location.
                    let removed =
                        remove_at(&mut parameters, &problem.path) || remove_references(&mut parameters);
                    problems.push(problem);
                    if !removed || problems.len() > MAX_VIOLATIONS {
                        parameters = serde_json::json!({"type": "object"});
                    }
                }
            }
        }
    }

    /// Makes the validator restore arguments that use the strict form of `parameters`, the schema it was compiled from.
    #[must_use]
    pub(super) fn restoring(self, parameters: Value) -> Self {
        Self { strict: Some(parameters), ..self }
    }

    /// The schema that the validator was compiled from, if the model uses a strict form of it.
    pub(super) fn source(&self) -> Option<&Value> {
        self.strict.as_ref()
    }

    /// Removes nulls that represent absent properties, if the model uses a strict schema.
    pub(super) fn restore(&self, arguments: &mut Arguments) {
        if let Some(parameters) = &self.strict {
            restore(parameters, arguments.value_mut());
        }
    }

    /// Returns whether `arguments` are valid, without building messages.
    pub fn is_valid(&self, arguments: &Value) -> bool {
        let arguments = self.restored(arguments);
        self.cost.allows(&arguments) && self.validator.is_valid(&arguments)
    }

    fn restored<'v>(&self, arguments: &'v Value) -> Cow<'v, Value> {
        match &self.strict {
            None => Cow::Borrowed(arguments),
            Some(parameters) => {
                let mut arguments = arguments.clone();
                restore(parameters, &mut arguments);
                Cow::Owned(arguments)
            }
        }
    }

    /// Validates `arguments`.
    ///
    /// # Errors
    /// Returns at most twenty violations, in the order of the schema.
    pub fn validate(&self, arguments: &Value) -> Result<(), Vec<Violation>> {
        let found = self.detailed_violations(arguments);
        if found.is_empty() { Ok(()) } else { Err(found.into_iter().map(|found| found.violation).collect()) }
    }

    /// Like [`ArgumentValidator::validate`], but returns the locations in the arguments and in the schema. Arguments that
    /// would take too long to validate are invalid.
    pub(super) fn detailed_violations(&self, arguments: &Value) -> Vec<DetailedViolation> {
        let arguments = self.restored(arguments);
        if !self.cost.allows(&arguments) {
            return vec![DetailedViolation::of_all("the schema needs too many steps to validate this value")];
        }
        if self.validator.is_valid(&arguments) {
            return Vec::new();
        }
        if !self.cost.allows_errors(&arguments) {
            return vec![DetailedViolation::of_all(MISMATCH)];
        }
        let errors = self.validator.iter_errors(&arguments).take(MAX_VIOLATIONS);
        let found: Vec<_> = errors.map(|error| DetailedViolation::of(&error, self.cost.schema())).collect();
        if found.is_empty() { vec![DetailedViolation::of_all(MISMATCH)] } else { found }
    }

    /// Returns the first violation and its JSON pointer into the arguments.
    pub(super) fn first_violation(&self, arguments: &Value) -> Option<(String, Violation)> {
        let first = self.detailed_violations(arguments).into_iter().next()?;
        Some((first.instance, first.violation))
    }
}

/// A violation with its locations as JSON pointers.
pub(super) struct DetailedViolation {
    pub(super) violation: Violation,
    /// Location in the arguments.
    pub(super) instance: String,
    /// Location of the violated keyword in the parameters schema.
    pub(super) schema: String,
    /// The name of the missing member, if the violation is a missing member.
    pub(super) missing: Option<String>,
}

impl DetailedViolation {
    /// Describes an error of a validator for `schema`.
    fn of(error: &ValidationError<'_>, schema: &Value) -> Self {
        let (instance, violation) = violation(error, schema);
        let missing = match error.kind() {
            ValidationErrorKind::Required { property } => property.as_str().map(str::to_owned),
            _ => None,
        };
        Self { violation, instance, schema: error.schema_path().to_string(), missing }
    }

    /// A violation without a location.
    fn of_all(message: &str) -> Self {
        let violation = Violation { path: String::new(), message: message.to_owned() };
        Self { violation, instance: String::new(), schema: String::new(), missing: None }
    }
}

fn violation(error: &ValidationError<'_>, schema: &Value) -> (String, Violation) {
    let pointer = error.instance_path().to_string();
    let mut message = error.to_string();
    // The value comes first in the message; a long one would hide the description.
    if message.chars().nth(MAX_QUOTED).is_some() {
        message = error.masked_with("this value").to_string();
    }
    if let ValidationErrorKind::Enum { options } = error.kind()
        && let Some(options) = options.as_array()
    {
        // The message of the library names at most three values.
        let subject = message.split(" is not one of ").next().unwrap_or_default();
        let listed: Vec<String> = options.iter().take(MAX_LISTED).map(Value::to_string).collect();
        let more = if options.len() > MAX_LISTED { ", …" } else { "" };
        message = format!("{subject} is not one of {}{more}", listed.join(", "));
    }
    let suggestion = suggestion(error, schema).map(|words| format!("; did you mean {words}?"));
    let message = shorten(&message) + &suggestion.unwrap_or_default();
    let violation = Violation { path: path_of_pointer(&pointer), message };
    (pointer, violation)
}

/// Returns the value of the `enum` or the names of the members that the invalid value most likely misspells.
fn suggestion(error: &ValidationError<'_>, schema: &Value) -> Option<String> {
    match error.kind() {
        ValidationErrorKind::Enum { options } => {
            let words = options.as_array()?.iter().filter_map(Value::as_str);
            nearest(error.instance().as_str()?, words).map(|word| Value::from(word).to_string())
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let location = error.schema_path().to_string();
            let schema = schema.pointer(location.strip_suffix("/additionalProperties")?)?;
            let (known, given) = (schema.get("properties")?.as_object()?, error.instance().as_object()?);
            let absent = || known.keys().filter(move |name| !given.contains_key(*name)).map(String::as_str);
            let near = |name: &String| {
                let near = nearest(name, absent())?;
                Some(if unexpected.len() == 1 {
                    format!("`{near}`")
                } else {
                    format!("`{near}` for `{name}`")
                })
            };
            let near: Vec<String> = unexpected.iter().take(MAX_LISTED).filter_map(near).collect();
            (!near.is_empty()).then(|| near.join(", "))
        }
        _ => None,
    }
}

/// Removes every external `$ref`. Returns false if there is none.
fn remove_references(value: &mut Value) -> bool {
    let mut removed = false;
    match value {
        Value::Object(members) => {
            let is_outside = |target: &Value| target.as_str().is_none_or(|target| !target.starts_with('#'));
            if members.get("$ref").is_some_and(is_outside) {
                removed = members.shift_remove("$ref").is_some();
            }
            for member in members.values_mut() {
                removed |= remove_references(member);
            }
        }
        Value::Array(items) => {
            for item in items {
                removed |= remove_references(item);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    removed
}

/// Removes the value at a JSON pointer. Returns false if there is none.
fn remove_at(value: &mut Value, pointer: &str) -> bool {
    let Some((parent, last)) = pointer.rsplit_once('/') else { return false };
    match value.pointer_mut(parent) {
        Some(Value::Object(members)) => members.shift_remove(&unescape(last)).is_some(),
        Some(Value::Array(items)) => match last.parse::<usize>() {
            Ok(index) if index < items.len() => {
                items.remove(index);
                true
            }
            Ok(_) | Err(_) => false,
        },
        Some(_) | None => false,
    }
}

/// Converts `/items/2/name` to `.items[2].name`.
pub(super) fn path_of_pointer(pointer: &str) -> String {
    let mut path = String::new();
    for step in steps(pointer) {
        if !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit()) {
            path.extend(["[", &step, "]"]);
        } else {
            path.push('.');
            path.push_str(&step);
        }
    }
    path
}

fn shorten(message: &str) -> String {
    let one_line = message.replace(['\n', '\r'], " ");
    match one_line.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}…", one_line.get(..end).unwrap_or_default()),
        None => one_line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn validator() -> ArgumentValidator {
        let schema = json!({
            "type": "object",
            "properties": {
                "location": {"type": "string", "description:": "a typo that changes nothing"},
                "unit": {"type": "string", "enum": ["celsius", "farenheit"]},
                "items": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}
            },
            "required": ["location"],
            "additionalProperties": false
        });
        ArgumentValidator::compile("get_weather", &schema).unwrap()
    }

    #[test]
    fn reports_every_violation_with_its_path() {
        let found = validator()
            .validate(&json!({"unit": "kelvin", "items": [{"n": 1}, {"n": "x"}], "extra": 1}))
            .unwrap_err();
        let reported: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(reported.len(), 4, "{reported:?}");
        assert!(reported.iter().any(|line| line.starts_with(".unit: ")), "{reported:?}");
        assert!(reported.iter().any(|line| line.starts_with(".items[1].n: ")), "{reported:?}");
        assert!(reported.iter().any(|line| line.contains("location")), "{reported:?}");
        assert!(reported.iter().any(|line| line.contains("extra")), "{reported:?}");
    }

    #[test]
    fn misspelled_members_and_values_have_a_suggestion() {
        for (arguments, expected) in [
            (
                json!({"location": "x", "unti": "celsius"}),
                vec!["'unti' was unexpected); did you mean `unit`?"],
            ),
            (
                json!({"locatoin": "x", "itmes": [], "other": 1}),
                vec![
                    "did you mean `location` for `locatoin`, `items` for `itmes`?",
                    "\"location\" is a required property",
                ],
            ),
            // A member that is there is not suggested.
            (json!({"location": "x", "unit": "celsius", "unti": 1}), vec!["'unti' was unexpected)"]),
            (json!({"location": "x", "unit": "Celcius"}), vec!["\"farenheit\"; did you mean \"celsius\"?"]),
            (json!({"location": "x", "unit": "kelvin"}), vec!["\"farenheit\""]),
        ] {
            let found = validator().validate(&arguments).unwrap_err();
            let mut found: Vec<String> = found.iter().map(ToString::to_string).collect();
            found.sort_unstable_by_key(|line| line.contains("required"));
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.ends_with(expected), "{found}");
            }
        }
    }

    #[test]
    fn a_long_value_does_not_hide_the_message() {
        let found = validator().validate(&json!({"location": "x", "unit": "é".repeat(500)})).unwrap_err();
        assert_eq!(
            found.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [".unit: this value is not one of \"celsius\", \"farenheit\""]
        );
    }

    #[test]
    fn ignores_invalid_keywords_and_enforces_the_rest() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"$ref": "http://example.org/x.json"},
                "b": {"type": "strin"},
                "c": {"pattern": "("},
                "d": {"type": "integer"},
                "e": {"required": true, "type": "string"}
            },
            "required": ["d"],
            "additionalProperties": false
        });
        let (validator, problems) = ArgumentValidator::compile_lenient("t", schema);
        assert_eq!(problems.len(), 4, "{problems:?}");
        assert!(validator.is_valid(&json!({"a": 1, "b": 2, "c": 3, "d": 4, "e": "x"})));
        for broken in [json!({}), json!({"d": "x"}), json!({"d": 1, "e": 2}), json!({"d": 1, "f": 2})] {
            assert!(!validator.is_valid(&broken), "{broken}");
        }
    }

    #[test]
    fn an_invalid_schema_is_reported_with_its_location() {
        let error =
            ArgumentValidator::compile("t", &json!({"properties": {"x": {"type": "strin"}}})).unwrap_err();
        assert_eq!(error.path, "/properties/x/type", "{error}");
    }
}
