//! The schemas that may apply to a value, found by its place in the arguments.
//!
//! References and all branches of `anyOf`, `oneOf` and `allOf` are followed, whether or not the value is valid under them.

use serde_json::Value;

use super::pointer::{resolve, steps};

/// Maximum number of schemas that may apply to one value. If there are more, none is known.
const MAX_SCHEMAS: usize = 64;

/// The schemas that may apply to one value of the arguments of a call.
#[derive(Debug, Clone)]
pub struct ApplicableSchemas<'s> {
    root: &'s Value,
    /// Without those that they refer to, and without their branches.
    schemas: Vec<&'s Value>,
}

impl<'s> ApplicableSchemas<'s> {
    /// Returns the schema of all arguments, `root`.
    pub fn of(root: &'s Value) -> Self {
        Self { root, schemas: vec![root] }
    }

    /// Returns the schemas of the value at a JSON pointer.
    pub(super) fn at(root: &'s Value, pointer: &str) -> Self {
        steps(pointer).fold(Self::of(root), |around, step| around.inside(&step))
    }

    /// Returns the schemas of a member of the value, or of an item by its index. Empty if they are not known.
    #[must_use]
    pub fn inside(&self, step: &str) -> Self {
        let parents = self.with_branches();
        Self {
            root: self.root,
            schemas: parents.into_iter().filter_map(|parent| child(parent, step)).collect(),
        }
    }

    /// Returns the defaults of the value. Branches may have different ones.
    pub fn defaults(&self) -> impl Iterator<Item = &'s Value> {
        self.with_branches().into_iter().filter_map(|schema| schema.get("default"))
    }

    /// Returns the schemas, without those that they refer to.
    pub(super) fn direct(&self) -> &[&'s Value] {
        &self.schemas
    }

    /// Returns the schemas, with those that they refer to and their branches. Empty if there are too many.
    pub(super) fn with_branches(&self) -> Vec<&'s Value> {
        let mut found = self.schemas.clone();
        let mut next = 0;
        while let Some(schema) = found.get(next).copied() {
            next += 1;
            let target = schema.get("$ref").and_then(|reference| resolve(self.root, reference));
            let branches =
                ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|key| schema.get(key)?.as_array());
            for inner in target.into_iter().chain(branches.flatten()) {
                // References may be recursive.
                if !found.iter().any(|known| std::ptr::eq(*known, inner)) {
                    found.push(inner);
                }
            }
            if found.len() > MAX_SCHEMAS {
                return Vec::new();
            }
        }
        found
    }
}

/// Returns the schema of a member or an item.
fn child<'s>(schema: &'s Value, step: &str) -> Option<&'s Value> {
    let property = schema.get("properties").and_then(|properties| properties.get(step));
    // The patterns of `patternProperties` are not compared with the name.
    let other = || schema.get("additionalProperties").filter(|_| schema.get("patternProperties").is_none());
    let item = || {
        let index: usize = step.parse().ok()?;
        let first = schema.get("prefixItems").and_then(Value::as_array);
        first.and_then(|first| first.get(index)).or_else(|| schema.get("items"))
    };
    property.or_else(other).or_else(item)
}
