//! A tool as defined by its spec.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ask::Ask;
use super::command::ToolCommand;
use super::confirm::Confirm;
use super::json::{Json, Member};
use crate::text::{SourceId, Span, Spanned};

/// Whether calls of a tool are executed or only recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToolKind {
    /// Executed; the result is returned to the model.
    Normal,
    /// A one-way signal: recorded, never executed.
    Exit,
}

/// The consequence of running a tool twice, the least harmful first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// No harm: it may run again.
    Pure,
    /// No harm if the call ID is the same.
    Keyed,
    /// Harm: the call is never repeated after an uncertain outcome.
    #[default]
    Once,
}

/// What gptel shows of a call in the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Include {
    /// The call and its result.
    Everything,
    /// The call without its result.
    Call,
    /// Nothing.
    Nothing,
}

/// The folder that the relative paths of a tool belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathBase {
    /// The project that defines it.
    #[default]
    Own,
    /// The current project, also if the tool is in the user's own one.
    Project,
}

/// The form that defines a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// A form of this language.
    #[default]
    Spec,
    /// An Emacs Lisp call that registers the tool under its category and name, as `gptel-make-tool` does.
    Registered,
    /// An Emacs Lisp call that only returns the tool, as `llm-make-tool` does, or a call in a test.
    Returned,
}

/// A tool or exit tool.
#[allow(clippy::struct_excessive_bools)] // each is a key of the spec
#[derive(Debug, Clone)]
pub struct Tool {
    /// The file that defines it.
    pub source: SourceId,
    /// Span of the whole form.
    pub span: Span,
    /// The form that defines it.
    pub origin: Origin,
    /// Whether calls are executed or recorded.
    pub kind: ToolKind,
    /// The name, as the model writes it.
    pub name: Spanned<String>,
    /// The description for the model; empty if the spec has none.
    pub description: Spanned<String>,
    /// The arguments, in order.
    pub arguments: Vec<Argument>,
    /// Whether the script takes a callback as its first argument.
    pub is_async: bool,
    /// Path of the script relative to the project, if the spec has one.
    pub script: Option<Spanned<String>>,
    /// The program that it runs in place of a script.
    pub command: Option<ToolCommand>,
    /// Span of the Emacs Lisp `:function`, if the spec has one.
    pub function: Option<Span>,
    /// Time limit of one call.
    pub timeout: Option<Duration>,
    /// Memory limit of one call, in bytes.
    pub memory: Option<u64>,
    /// Size of a result for the model, in bytes; overrides the worker's.
    pub max_result: Option<u64>,
    /// The permissions of the script.
    pub permissions: Permissions,
    /// The folder that its relative paths belong to.
    pub base: PathBase,
    /// The consequence of running it twice.
    pub effect: Effect,
    /// The group in which Emacs shows it.
    pub category: Option<Spanned<String>>,
    /// The calls that need the user's confirmation.
    pub confirm: Confirm,
    /// Span of the Emacs Lisp function that decides whether a call needs confirmation, if the spec has one.
    pub confirm_function: Option<Span>,
    /// What gptel shows of a call; `None`: gptel decides.
    pub include: Option<Include>,
    /// The JSON Schema of its results, if the spec has one.
    pub returns: Option<Json>,
    /// Calls that its schema must accept.
    pub accepts: Vec<SampleCall>,
    /// Arguments that its schema must reject, as objects.
    pub rejects: Vec<Json>,
    /// Prompts, each with the call that a model should make. They are never sent.
    pub asks: Vec<Ask>,
    /// Overrides for some targets.
    pub overrides: Vec<TargetOverride>,
    /// Whether the form has no errors; only a valid tool is compiled, called or offered to a model.
    pub valid: bool,
}

impl Tool {
    /// Creates a tool without a name and with default settings.
    pub fn empty(source: SourceId, span: Span, kind: ToolKind, origin: Origin) -> Self {
        Self {
            source,
            span,
            kind,
            name: Spanned::default(),
            description: Spanned::default(),
            arguments: Vec::new(),
            is_async: false,
            script: None,
            command: None,
            function: None,
            confirm_function: None,
            origin,
            timeout: None,
            memory: None,
            max_result: None,
            permissions: Permissions::default(),
            base: PathBase::default(),
            effect: Effect::default(),
            category: None,
            confirm: Confirm::Never,
            include: None,
            returns: None,
            accepts: Vec::new(),
            rejects: Vec::new(),
            asks: Vec::new(),
            overrides: Vec::new(),
            valid: true,
        }
    }

    /// Whether the spec has no `:description`.
    pub(crate) fn lacks_description(&self) -> bool {
        self.description.value.is_empty() && self.description.span == Span::default()
    }
}

/// The overrides for one target: `:targets (:gemini (:description "…"))`.
#[derive(Debug, Clone)]
pub struct TargetOverride {
    /// Name of the target, without its colon.
    pub target: Spanned<String>,
    /// The replacement for the description.
    pub description: Option<Spanned<String>>,
}

/// A sample call of a tool: its arguments, or `(:args (…) :returns …)`.
#[derive(Debug, Clone)]
pub struct SampleCall {
    /// The arguments, an object.
    pub arguments: Json,
    /// The result that the script must return.
    pub returns: Option<Json>,
}

/// An argument of a tool.
#[derive(Debug, Clone)]
pub struct Argument {
    /// The name.
    pub name: Spanned<String>,
    /// Whether the model may omit it.
    pub optional: bool,
    /// Its JSON Schema: every key except `:name` and `:optional`, in source order.
    pub schema: Vec<Member>,
    /// Span of the whole plist.
    pub span: Span,
}

impl Argument {
    /// Returns the value of a schema keyword.
    pub fn keyword(&self, key: &str) -> Option<&Json> {
        self.schema.iter().find(|member| member.key == key).map(|member| &member.value)
    }

    /// Returns the `type` if it is a single word.
    pub fn type_name(&self) -> Option<&str> {
        self.keyword("type").and_then(Json::as_str)
    }
}

/// The permissions of one tool, as written in `:allow`. Everything that is not listed is denied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Permissions {
    /// Hosts that `http` may access.
    pub net: Vec<String>,
    /// Files and folders that `fs` may read, relative to the project, absolute, or in a folder of the user.
    pub read: Vec<String>,
    /// Files and folders that `fs` may write.
    pub write: Vec<String>,
    /// Programs that `process.run` may start, and the program of `:command`.
    pub run: Vec<String>,
    /// Environment variables that `env.get` may read and programs get.
    pub env: Vec<String>,
}

impl Permissions {
    /// Returns the list for a key of `:allow`.
    pub(super) fn list_mut(&mut self, key: &str) -> Option<&mut Vec<String>> {
        match key {
            "net" => Some(&mut self.net),
            "read" => Some(&mut self.read),
            "write" => Some(&mut self.write),
            "run" => Some(&mut self.run),
            "env" => Some(&mut self.env),
            _ => None,
        }
    }
}
