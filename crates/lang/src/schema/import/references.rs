//! Resolves a `$ref` inside its own schema.

use std::collections::HashMap;

use crate::schema::pointer::{self, enter, of_reference};
use crate::spec::{Json, JsonKind};

/// The definitions of one schema.
pub(super) struct References<'j> {
    root: &'j Json,
    /// Definitions by container and name, for fast lookup.
    definitions: HashMap<(&'j str, &'j str), &'j Json>,
}

impl<'j> References<'j> {
    pub(super) fn new(root: &'j Json) -> Self {
        let mut definitions = HashMap::new();
        for container in ["$defs", "definitions"] {
            if let Some(member) = root.get(container)
                && let JsonKind::Object(named) = &member.value.kind
            {
                definitions
                    .extend(named.iter().map(|one| ((member.key.as_str(), one.key.as_str()), &one.value)));
            }
        }
        Self { root, definitions }
    }

    /// Returns the target of `reference`, such as `#/$defs/Colour`; `None` if it does not exist.
    pub(super) fn find(&self, reference: &str) -> Option<&'j Json> {
        let steps: Vec<String> = pointer::steps(&of_reference(reference)?).collect();
        let (mut found, rest) = match steps.as_slice() {
            [container, name, rest @ ..] => {
                match self.definitions.get(&(container.as_str(), name.as_str())) {
                    Some(definition) => (*definition, rest),
                    None => (self.root, steps.as_slice()),
                }
            }
            _ => (self.root, steps.as_slice()),
        };
        for step in rest {
            found = enter(found, step)?.value();
        }
        Some(found)
    }
}
