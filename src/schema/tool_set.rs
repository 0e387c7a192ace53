//! The tools that one request may call: definitions to send, validators to hold calls against.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::target::strict_parameters;
use super::{ArgumentValidator, Confirmation, SchemaError, ToolKind, Violation};

/// One callable tool.
#[derive(Debug)]
pub struct ToolEntry {
    /// Its name, as the model writes it.
    pub name: String,
    /// Executed or recorded.
    pub kind: ToolKind,
    /// The definition, as it is sent in a request's `tools`: that of `openai`, or of `openai-strict`.
    pub definition: Value,
    /// The compiled parameters schema.
    pub validator: ArgumentValidator,
    /// The tool's own time limit for one call; wins over the worker's.
    pub timeout: Option<Duration>,
    /// Which calls a person is asked about.
    pub confirm: Confirmation,
}

impl ToolEntry {
    /// A tool from its `openai` definition (`{"type": "function", "function": {name, description, parameters}}`).
    ///
    /// # Errors
    /// When `parameters` is not a JSON Schema.
    pub fn new(kind: ToolKind, definition: Value, timeout: Option<Duration>) -> Result<Self, SchemaError> {
        let (name, parameters) = split_definition(&definition);
        let validator = ArgumentValidator::compile(&name, &parameters)?;
        Ok(Self { name, kind, definition, validator, timeout, confirm: Confirmation::Never })
    }

    /// As [`ToolEntry::new`], but a keyword that is no JSON Schema is left out of the validator and told.
    pub fn lenient(kind: ToolKind, definition: Value, timeout: Option<Duration>) -> (Self, Vec<SchemaError>) {
        let (name, parameters) = split_definition(&definition);
        let (validator, problems) = ArgumentValidator::compile_lenient(&name, parameters);
        (Self { name, kind, definition, validator, timeout, confirm: Confirmation::Never }, problems)
    }

    /// The tool as strict mode takes it: its definition is that of `openai-strict`, and its validator takes the nulls
    /// out that stand for absent properties. Ask [`super::check_target`] first whether strict mode takes it at all.
    #[must_use]
    pub fn into_strict(mut self) -> Self {
        let parameters = split_definition(&self.definition).1;
        if let Some(Value::Object(function)) = self.definition.get_mut("function") {
            function.shift_remove("parameters");
            function.insert(String::from("strict"), Value::Bool(true));
            function.insert(String::from("parameters"), strict_parameters(&parameters));
        }
        self.validator = self.validator.restoring(parameters);
        self
    }

    /// Whether a person must be asked before a call with `arguments`, which are valid.
    pub fn needs_approval(&self, arguments: &Map<String, Value>) -> bool {
        self.confirm.holds(arguments)
    }

    /// The arguments that the tool gets for those that the model wrote.
    ///
    /// # Errors
    /// The violations, if there is one, with the arguments that have them.
    pub fn accept(&self, mut arguments: Value) -> Result<Value, (Value, Vec<Violation>)> {
        self.validator.restore(&mut arguments);
        match self.validator.validate(&arguments) {
            Ok(()) => Ok(arguments),
            Err(violations) => Err((arguments, violations)),
        }
    }
}

fn split_definition(definition: &Value) -> (String, Value) {
    let name = definition.pointer("/function/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let parameters =
        definition.pointer("/function/parameters").cloned().unwrap_or_else(|| json!({"type": "object"}));
    (name, parameters)
}

/// An immutable set of tools, cheap to clone, in the order they were given. Of two tools of a name the first stays.
#[derive(Debug, Clone, Default)]
pub struct ToolSet {
    entries: Vec<Arc<ToolEntry>>,
    by_name: HashMap<String, usize>,
    digest: String,
}

impl ToolSet {
    /// The set of `entries`.
    pub fn new(entries: impl IntoIterator<Item = Arc<ToolEntry>>) -> Self {
        let mut set = Self::default();
        let mut hash = Sha256::new();
        for entry in entries {
            if set.by_name.contains_key(&entry.name) {
                continue;
            }
            hash.update([entry.kind as u8]);
            hash.update(entry.definition.to_string());
            hash.update([0]);
            set.by_name.insert(entry.name.clone(), set.entries.len());
            set.entries.push(entry);
        }
        for byte in hash.finalize() {
            // Writing to a string does not fail.
            let _ = write!(set.digest, "{byte:02x}");
        }
        set
    }

    /// Those of its tools that `names` lists, in their own order.
    #[must_use]
    pub fn only(&self, names: &[String]) -> Self {
        let names: HashSet<&str> = names.iter().map(String::as_str).collect();
        Self::new(self.entries.iter().filter(|entry| names.contains(entry.name.as_str())).cloned())
    }

    /// The tool called `name`.
    pub fn get(&self, name: &str) -> Option<&ToolEntry> {
        self.by_name.get(name).and_then(|&index| self.entries.get(index)).map(AsRef::as_ref)
    }

    /// Every tool, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ToolEntry>> {
        self.entries.iter()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The `openai` definitions, in order, of the tools that `keep` accepts.
    pub fn definitions(&self, keep: impl Fn(&ToolEntry) -> bool) -> Vec<Value> {
        self.entries.iter().filter(|entry| keep(entry)).map(|entry| entry.definition.clone()).collect()
    }

    /// SHA-256 (hex) over kinds and definitions in order: two sets that send the same have the same.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(tools: &[(ToolKind, &str, &str)]) -> ToolSet {
        ToolSet::new(tools.iter().map(|(kind, name, description)| {
            let definition =
                json!({"type": "function", "function": {"name": name, "description": description}});
            Arc::new(ToolEntry::new(*kind, definition, None).unwrap())
        }))
    }

    #[test]
    fn of_two_tools_of_a_name_the_first_stays() {
        let tools = set(&[(ToolKind::Normal, "a", "first"), (ToolKind::Exit, "a", "second")]);
        assert_eq!(tools.get("a").map(|tool| tool.kind), Some(ToolKind::Normal));
        assert_eq!((tools.iter().count(), tools.definitions(|_| true).len()), (1, 1));
    }

    #[test]
    fn the_digest_tells_every_difference() {
        let of = |kind, name, description| set(&[(kind, name, description)]).digest().to_owned();
        let digest = of(ToolKind::Normal, "a", "b");
        assert_eq!(digest, of(ToolKind::Normal, "a", "b"));
        for other in [
            of(ToolKind::Exit, "a", "b"),
            of(ToolKind::Normal, "c", "b"),
            of(ToolKind::Normal, "a", "c"),
            set(&[]).digest().to_owned(),
        ] {
            assert_ne!(digest, other);
        }
    }
}
