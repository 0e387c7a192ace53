//! The tools available to one request: the definitions to send, the validators for calls, and the source locations of
//! violations.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::locate::locate_near;
use super::repair::{Repair, RepairKind, before_control_token, repair_arguments};
use super::target::strict_parameters;
use super::validate::DetailedViolation;
use super::{ArgumentValidator, Arguments, Confirmation, SchemaError, ToolKind, Violation};
use crate::spec::{Effect, Tool};
use crate::text::Span;

/// One callable tool.
#[derive(Debug)]
pub struct ToolEntry {
    /// The tool's name.
    pub name: String,
    /// Whether calls are executed (normal) or only recorded (exit).
    pub kind: ToolKind,
    /// The definition sent in a request's `tools`, in the `openai` or `openai-strict` format.
    pub definition: Value,
    /// The compiled parameters schema.
    pub validator: ArgumentValidator,
    /// The compiled schema of the results, if the tool has one.
    pub returns: Option<ArgumentValidator>,
    /// The tool's own time limit for one call; overrides the worker's limit.
    pub timeout: Option<Duration>,
    /// Which calls need the user's approval.
    pub confirm: Confirmation,
    /// The consequence of running a call twice.
    pub effect: Effect,
    /// Whether the model gets a result that is a string as it is, without JSON quotes.
    pub text_results: bool,
    /// The size of a result for the model, in bytes; overrides the worker's.
    pub max_result: Option<u64>,
}

impl ToolEntry {
    /// Creates a tool from its `openai` definition
    /// (`{"type": "function", "function": {name, description, parameters}}`).
    ///
    /// # Errors
    /// Returns an error if `parameters` is not a valid JSON Schema.
    pub fn new(kind: ToolKind, definition: Value, timeout: Option<Duration>) -> Result<Self, SchemaError> {
        let (name, parameters) = split_definition(&definition);
        let validator = ArgumentValidator::compile(&name, &parameters)?;
        Ok(Self::with_validator(name, kind, definition, validator, timeout))
    }

    /// Like [`ToolEntry::new`], but the validator ignores invalid keywords, which are returned as errors.
    pub fn lenient(kind: ToolKind, definition: Value, timeout: Option<Duration>) -> (Self, Vec<SchemaError>) {
        let (name, parameters) = split_definition(&definition);
        let (validator, problems) = ArgumentValidator::compile_lenient(&name, parameters);
        (Self::with_validator(name, kind, definition, validator, timeout), problems)
    }

    /// Creates a tool whose calls are validated by another schema than the one in its definition.
    pub fn with_validator(
        name: String,
        kind: ToolKind,
        definition: Value,
        validator: ArgumentValidator,
        timeout: Option<Duration>,
    ) -> Self {
        let (confirm, effect) = (Confirmation::default(), Effect::default());
        Self {
            name,
            kind,
            definition,
            validator,
            returns: None,
            timeout,
            confirm,
            effect,
            text_results: false,
            max_result: None,
        }
    }

    /// Converts the tool to strict mode: the definition is in the `openai-strict` format, and the validator removes
    /// nulls that represent absent properties. Check with [`super::check_target`] first that strict mode supports the
    /// tool.
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

    /// Returns the schema of the arguments as the spec has it, also if the model gets a strict form of it.
    pub fn parameters(&self) -> Option<&Value> {
        self.validator.source().or_else(|| self.definition.pointer("/function/parameters"))
    }

    /// Returns whether a call with `arguments`, which must be valid, needs the user's approval.
    pub fn needs_approval(&self, arguments: &Arguments) -> bool {
        self.confirm.matches(arguments)
    }

    /// Validates the arguments from the model and returns those to pass to the tool.
    ///
    /// # Errors
    /// Returns the invalid arguments and their violations.
    pub fn accept(&self, mut arguments: Arguments) -> Result<Arguments, (Arguments, Vec<Violation>)> {
        self.validator.restore(&mut arguments);
        match self.validator.validate(&arguments) {
            Ok(()) => Ok(arguments),
            Err(violations) => Err((arguments, violations)),
        }
    }

    /// Like [`ToolEntry::accept`], but repairs invalid arguments if that is possible without loss. For arguments that a
    /// model wrote.
    ///
    /// # Errors
    /// Returns the invalid arguments, unrepaired, and their violations.
    pub fn accept_repaired(&self, arguments: Arguments) -> Result<Accepted, (Arguments, Vec<Violation>)> {
        let (arguments, violations) = match self.accept(arguments) {
            Ok(arguments) => return Ok(Accepted { arguments, repairs: Vec::new() }),
            Err(invalid) => invalid,
        };
        let repaired =
            self.parameters().and_then(|schema| repair_arguments(&self.validator, schema, &arguments));
        let accepted = repaired.and_then(|(value, repairs)| {
            let mut arguments = Arguments::try_from(value).ok()?;
            self.validator.restore(&mut arguments);
            Some(Accepted { arguments, repairs })
        });
        accepted.ok_or((arguments, violations))
    }
}

/// Valid arguments, and how they differ from those that were received.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted {
    /// The arguments to pass to the tool.
    pub arguments: Arguments,
    /// The repairs; usually none.
    pub repairs: Vec<Repair>,
}

fn split_definition(definition: &Value) -> (String, Value) {
    let name = definition.pointer("/function/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let parameters =
        definition.pointer("/function/parameters").cloned().unwrap_or_else(|| json!({"type": "object"}));
    (name, parameters)
}

/// An immutable, ordered set of tools that is cheap to clone. The first of several tools with the same name is kept.
#[derive(Debug, Clone, Default)]
pub struct ToolSet {
    entries: Vec<Arc<ToolEntry>>,
    by_name: HashMap<String, usize>,
    digest: Arc<str>,
}

impl ToolSet {
    /// Creates a set of `entries`.
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
        let mut digest = String::new();
        for byte in hash.finalize() {
            // Writing to a string cannot fail.
            let _ = write!(digest, "{byte:02x}");
        }
        set.digest = digest.into();
        set
    }

    /// Returns the subset of tools in `names`, in the order of this set.
    #[must_use]
    pub fn only(&self, names: &[String]) -> Self {
        let names: HashSet<&str> = names.iter().map(String::as_str).collect();
        Self::new(self.entries.iter().filter(|entry| names.contains(entry.name.as_str())).cloned())
    }

    /// Returns the tool `name`.
    pub fn get(&self, name: &str) -> Option<&ToolEntry> {
        self.by_name.get(name).and_then(|&index| self.entries.get(index)).map(AsRef::as_ref)
    }

    /// Returns the tool that a model calls by `name`, and the repair of the name. The name of a tool may be followed by
    /// a control token of the model's template and more text, as in `get_weather<|channel|>commentary`.
    pub fn called(&self, name: &str) -> Option<(&ToolEntry, Option<Repair>)> {
        if let Some(tool) = self.get(name) {
            return Some((tool, None));
        }
        let tool = self.get(before_control_token(name)?)?;
        Some((tool, Some(Repair::of_call(RepairKind::ControlTokenInName))))
    }

    /// Whether a model calls an exit tool by `name`.
    pub fn is_exit(&self, name: &str) -> bool {
        self.called(name).is_some_and(|(tool, _)| tool.kind == ToolKind::Exit)
    }

    /// Iterates over the tools in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ToolEntry>> {
        self.entries.iter()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the definitions of the tools that `keep` accepts, in order.
    pub fn definitions(&self, keep: impl Fn(&ToolEntry) -> bool) -> Vec<Value> {
        self.entries.iter().filter(|entry| keep(entry)).map(|entry| entry.definition.clone()).collect()
    }

    /// Returns the SHA-256 (hex) of the kinds and definitions in order. Equal sets have equal digests.
    pub fn digest(&self) -> &Arc<str> {
        &self.digest
    }
}

/// A violation of a tool's schema, with the spec source that it violates.
#[derive(Debug, Clone, PartialEq)]
pub struct LocatedViolation {
    /// The violation and its path in the arguments.
    pub violation: Violation,
    /// The violated part of the tool's source: a keyword of an argument, the missing argument, or the tool's name if
    /// the violation concerns the whole tool.
    pub span: Span,
    /// The invalid value in the arguments; `None` if it is missing.
    pub value: Option<Value>,
}

/// Returns the violations of the schema of `tool` in `arguments`, at most twenty. `entry` is the compiled `tool`.
pub fn locate_violations(tool: &Tool, entry: &ToolEntry, arguments: &Value) -> Vec<LocatedViolation> {
    let found = entry.validator.detailed_violations(arguments);
    let locate = |found: DetailedViolation| {
        let argument = found.missing.as_ref().filter(|_| found.instance.is_empty());
        let argument =
            argument.and_then(|name| tool.arguments.iter().find(|known| known.name.value == *name));
        let span = argument.map_or_else(|| locate_near(tool, &found.schema), |argument| argument.name.span);
        let value = if found.missing.is_some() { None } else { arguments.pointer(&found.instance).cloned() };
        LocatedViolation { violation: found.violation, span, value }
    };
    found.into_iter().map(locate).collect()
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
    fn keeps_the_first_of_two_tools_with_the_same_name() {
        let tools = set(&[(ToolKind::Normal, "a", "first"), (ToolKind::Exit, "a", "second")]);
        assert_eq!(tools.get("a").map(|tool| tool.kind), Some(ToolKind::Normal));
        assert_eq!((tools.iter().count(), tools.definitions(|_| true).len()), (1, 1));
    }

    #[test]
    fn the_digest_depends_on_every_part() {
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
