//! Compares the arguments of a call with those that are expected.
//!
//! - Values are equal as in JSON Schema, where 1 and 1.0 are equal; strings without blanks around them.
//! - An object may have only the stated members, members with the default of their schema, and at the top those in
//!   `:ignore`.
//! - A stated member may be absent if its pattern is `(optional …)`, or if a default of its schema matches.
//! - `(optional …)` as an element of an array, as a branch of `(any …)` or as all arguments is the pattern in it: nothing
//!   can be absent there.
//! - `(schema …)` decides alone about a value and all that is in it.

use std::collections::HashMap;

use deftool_lang::schema::{ApplicableSchemas, ArgumentValidator};
use deftool_lang::spec::{ExpectedCall, Json, Pattern, PatternKind, is_same};
use deftool_lang::text::Spanned;
use serde_json::Value;

use super::problem::{Difference, code};

/// Compares `arguments` with those of the expected call, up to `limit` differences, and returns their number. `schemas` are
/// those of the arguments. The differences are added to `found`, if they are wanted: they contain copies of values.
pub(super) fn compare(
    expected: &ExpectedCall,
    arguments: &Value,
    schemas: &ApplicableSchemas<'_>,
    validators: &Validators,
    limit: usize,
    found: Option<&mut Vec<Difference>>,
) -> usize {
    let Some(pattern) = &expected.arguments else { return 0 };
    let (path, count) = (String::new(), 0);
    let mut comparison = Comparison { ignored: &expected.ignored, validators, limit, path, count, found };
    comparison.compare(pattern, arguments, schemas);
    comparison.count
}

/// The compiled schemas of all `(schema …)` patterns, by the address of the schema.
pub(super) struct Validators(HashMap<*const Json, ArgumentValidator>);

impl Validators {
    pub(super) fn of(calls: &[ExpectedCall]) -> Self {
        let validators = calls.iter().flat_map(ExpectedCall::schemas).filter_map(|schema| {
            // Nothing is valid under a schema that does not compile.
            let validator = ArgumentValidator::compile("", &schema.to_value()).ok()?;
            Some((std::ptr::from_ref(schema), validator))
        });
        Self(validators.collect())
    }

    fn is_valid(&self, schema: &Json, value: &Value) -> bool {
        self.0.get(&std::ptr::from_ref(schema)).is_some_and(|validator| validator.is_valid(value))
    }
}

struct Comparison<'e> {
    ignored: &'e [Spanned<String>],
    validators: &'e Validators,
    limit: usize,
    /// Path of the current value.
    path: String,
    count: usize,
    found: Option<&'e mut Vec<Difference>>,
}

impl Comparison<'_> {
    fn compare(&mut self, pattern: &Pattern, value: &Value, schemas: &ApplicableSchemas<'_>) {
        match &pattern.kind {
            PatternKind::Array(patterns) => self.compare_items(pattern, patterns, value, schemas),
            PatternKind::Object(members) => self.compare_members(members, value, schemas),
            PatternKind::Optional(pattern) => self.compare(pattern, value, schemas),
            PatternKind::Scalar(expected) if is_equal(&expected.to_value(), value) => {}
            PatternKind::Any(patterns) if patterns.iter().any(|one| self.matches(one, value, schemas)) => {}
            PatternKind::Schema(schema) if self.validators.is_valid(schema, value) => {}
            PatternKind::Scalar(_) | PatternKind::Any(_) | PatternKind::Schema(_) => {
                self.report(|| Some(describe(pattern)), Some(value));
            }
        }
    }

    fn compare_items(
        &mut self,
        pattern: &Pattern,
        patterns: &[Pattern],
        value: &Value,
        schemas: &ApplicableSchemas<'_>,
    ) {
        let Some(items) = value.as_array().filter(|items| items.len() == patterns.len()) else {
            return self.report(|| Some(describe(pattern)), Some(value));
        };
        for (index, (pattern, item)) in patterns.iter().zip(items).enumerate() {
            let schemas = schemas.inside(&index.to_string());
            self.inside(&format!("[{index}]"), |comparison| comparison.compare(pattern, item, &schemas));
        }
    }

    fn compare_members(
        &mut self,
        members: &[(Spanned<String>, Pattern)],
        value: &Value,
        schemas: &ApplicableSchemas<'_>,
    ) {
        let Some(given) = value.as_object() else {
            return self.report(|| Some(String::from("an object")), Some(value));
        };
        for (name, pattern) in members {
            let schemas = schemas.inside(&name.value);
            self.inside(&format!(".{}", name.value), |comparison| match given.get(&name.value) {
                Some(value) => comparison.compare(pattern, value, &schemas),
                None => comparison.compare_absent(pattern, &schemas),
            });
        }
        let is_top = self.path.is_empty();
        for (name, value) in given {
            let is_stated = members.iter().any(|(stated, _)| stated.value == *name);
            let is_ignored = is_top && self.ignored.iter().any(|ignored| ignored.value == *name);
            if self.is_full() {
                return;
            }
            if !is_stated && !is_ignored {
                let is_default = schemas.inside(name).defaults().any(|default| is_equal(default, value));
                if !is_default {
                    self.inside(&format!(".{name}"), |comparison| comparison.report(|| None, Some(value)));
                }
            }
        }
    }

    fn compare_absent(&mut self, pattern: &Pattern, schemas: &ApplicableSchemas<'_>) {
        let may_be_absent = matches!(pattern.kind, PatternKind::Optional(_))
            || schemas.defaults().any(|default| self.matches(pattern, default, schemas));
        if !may_be_absent {
            self.report(|| Some(describe(pattern)), None);
        }
    }

    /// Returns whether a value matches, without reporting differences.
    fn matches(&self, pattern: &Pattern, value: &Value, schemas: &ApplicableSchemas<'_>) -> bool {
        let (ignored, validators, path) = (self.ignored, self.validators, self.path.clone());
        let mut comparison = Comparison { ignored, validators, limit: 1, path, count: 0, found: None };
        comparison.compare(pattern, value, schemas);
        comparison.count == 0
    }

    /// Compares a value inside the current one, unless there are enough differences.
    fn inside(&mut self, step: &str, compare: impl FnOnce(&mut Self)) {
        if !self.is_full() {
            let length = self.path.len();
            self.path.push_str(step);
            compare(self);
            self.path.truncate(length);
        }
    }

    fn is_full(&self) -> bool {
        self.count >= self.limit
    }

    fn report(&mut self, expected: impl FnOnce() -> Option<String>, value: Option<&Value>) {
        if self.is_full() {
            return;
        }
        self.count += 1;
        if let Some(found) = &mut self.found {
            let (path, expected) = (self.path.clone(), expected());
            found.push(Difference { path, expected, found: value.cloned() });
        }
    }
}

/// Whether a value is the expected one. Blanks around a string do not matter.
fn is_equal(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::String(expected), Value::String(found)) => expected.trim() == found.trim(),
        _ => is_same(expected, found),
    }
}

/// Describes the values that match, for a message.
fn describe(pattern: &Pattern) -> String {
    match &pattern.kind {
        PatternKind::Any(patterns) => {
            let values: Vec<String> = patterns.iter().map(describe).collect();
            format!("one of {}", values.join(", "))
        }
        PatternKind::Schema(schema) => {
            format!("a value that is valid under {}", code(&schema.to_value().to_string()))
        }
        PatternKind::Optional(pattern) => describe(pattern),
        PatternKind::Scalar(_) | PatternKind::Array(_) | PatternKind::Object(_) => code(&notation(pattern)),
    }
}

/// Writes a pattern as JSON, with the other patterns in the notation of specs.
fn notation(pattern: &Pattern) -> String {
    let all = |patterns: &[Pattern], separator: &str| -> String {
        patterns.iter().map(notation).collect::<Vec<_>>().join(separator)
    };
    match &pattern.kind {
        PatternKind::Scalar(value) => value.to_value().to_string(),
        PatternKind::Array(patterns) => format!("[{}]", all(patterns, ",")),
        PatternKind::Object(members) => {
            let member = |(name, pattern): &(Spanned<String>, Pattern)| {
                format!("{}:{}", Value::from(name.value.as_str()), notation(pattern))
            };
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
        }
        PatternKind::Any(patterns) => format!("(any {})", all(patterns, " ")),
        PatternKind::Optional(pattern) => format!("(optional {})", notation(pattern)),
        PatternKind::Schema(schema) => format!("(schema {})", schema.to_value()),
    }
}
