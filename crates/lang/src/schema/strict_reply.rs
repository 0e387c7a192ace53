//! Converts arguments for a strict schema back to arguments for the spec's own schema.
//!
//! Strict mode requires every property, so the model passes null for an optional property that it would otherwise omit.
//! The input is the spec's own parameters and the received arguments. Nulls of optional properties that do not accept
//! null are removed at every depth. The branch of an `anyOf` is selected by types, properties and constants; the first
//! matching branch applies.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::pointer::resolve;
use super::target::{accepts_null, is_of_type, required_names};
use crate::spec::is_same;

/// Maximum number of steps per call; a schema with many similar branches could otherwise take unlimited steps.
const MAX_STEPS: usize = 1_000_000;
/// Maximum number of references and branches followed for the same value.
const MAX_HOPS: usize = 32;
/// Maximum length of a chain of references, which counts as one step. The same limit applies to the null check.
const MAX_CHAIN: usize = 1000;

/// Removes the nulls from `arguments` that represent absent properties of `parameters`.
pub fn restore(parameters: &Value, arguments: &mut Value) {
    let mut walk = Walk { root: parameters, steps: MAX_STEPS };
    walk.restore(parameters, arguments, MAX_HOPS);
}

struct Walk<'a> {
    root: &'a Value,
    steps: usize,
}

impl<'a> Walk<'a> {
    /// Follows a chain of references to its end. In a strict schema a reference has no sibling keywords.
    fn follow(&mut self, reference: &'a Value) -> Option<&'a Value> {
        let mut schema = resolve(self.root, reference)?;
        for _ in 0..MAX_CHAIN {
            let Some(reference) = schema.get("$ref") else { break };
            self.steps = self.steps.checked_sub(1)?;
            schema = resolve(self.root, reference)?;
        }
        Some(schema)
    }

    fn restore(&mut self, schema: &'a Value, value: &mut Value, hops: usize) {
        let Value::Object(members) = schema else { return };
        if self.steps == 0 || hops == 0 {
            return;
        }
        self.steps -= 1;
        if let Some(target) = members.get("$ref").and_then(|reference| self.follow(reference)) {
            self.restore(target, value, hops - 1);
        }
        for keyword in ["anyOf", "oneOf"] {
            let Some(Value::Array(branches)) = members.get(keyword) else { continue };
            if let Some(branch) = branches.iter().find(|branch| self.fits(branch, value, hops - 1)) {
                self.restore(branch, value, hops - 1);
            }
        }
        match value {
            Value::Object(given) => {
                let Some(Value::Object(properties)) = members.get("properties") else { return };
                let required = required_names(schema);
                for (name, schema) in properties {
                    let means_absent = given.get(name).is_some_and(Value::is_null)
                        && !required.contains(name.as_str())
                        && !accepts_null(self.root, schema);
                    if means_absent {
                        given.shift_remove(name);
                    } else if let Some(value) = given.get_mut(name) {
                        self.restore(schema, value, MAX_HOPS);
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = members.get("items") else { return };
                for item in items {
                    self.restore(schema, item, MAX_HOPS);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Returns whether `value` may be valid under the strict form of `schema`.
    fn fits(&mut self, schema: &'a Value, value: &Value, hops: usize) -> bool {
        let Value::Object(members) = schema else { return schema == &Value::Bool(true) };
        if self.steps == 0 || hops == 0 {
            return false;
        }
        self.steps -= 1;
        members.iter().all(|(keyword, rule)| match (keyword.as_str(), rule) {
            ("$ref", reference) => {
                self.follow(reference).is_some_and(|target| self.fits(target, value, hops - 1))
            }
            ("anyOf" | "oneOf", Value::Array(branches)) => {
                branches.iter().any(|branch| self.fits(branch, value, hops - 1))
            }
            ("type", Value::String(word)) => is_of_type(value, word),
            ("type", Value::Array(words)) => {
                words.iter().filter_map(Value::as_str).any(|word| is_of_type(value, word))
            }
            ("enum", Value::Array(values)) => values.iter().any(|known| is_same(known, value)),
            ("const", known) => is_same(known, value),
            ("properties", Value::Object(properties)) => {
                self.properties_fit(&required_names(schema), properties, value)
            }
            ("items", schema @ Value::Object(_)) => value
                .as_array()
                .is_none_or(|items| items.iter().all(|item| self.fits(schema, item, MAX_HOPS))),
            _ => true,
        })
    }

    fn properties_fit(
        &mut self,
        required: &HashSet<&str>,
        properties: &'a Map<String, Value>,
        value: &Value,
    ) -> bool {
        let Value::Object(given) = value else { return true };
        given.keys().all(|name| properties.contains_key(name))
            && properties.iter().all(|(name, schema)| {
                let is_optional = !required.contains(name.as_str());
                match given.get(name) {
                    None => is_optional,
                    Some(Value::Null) if is_optional => true,
                    Some(value) => self.fits(schema, value, MAX_HOPS),
                }
            })
    }
}
