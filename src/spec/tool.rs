//! A tool as its spec says it.

use std::time::Duration;

use super::confirm::Confirm;
use super::json::{Json, Member};
use super::permissions::Permissions;
use crate::text::{SourceId, Span, Spanned};

/// Whether calls of a tool are executed or only recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToolKind {
    /// Executed; its result goes back to the model.
    Normal,
    /// A one-way signal: recorded, never executed.
    Exit,
}

/// What running a tool twice means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effect {
    /// Nothing: it may run again.
    Pure,
    /// Nothing, for one call id.
    Keyed,
    /// Harm: it never runs again after a doubt.
    #[default]
    Once,
}

/// A tool or exit tool.
#[allow(clippy::struct_excessive_bools)] // each is a key of the spec
#[derive(Debug, Clone)]
pub struct Tool {
    /// Which file it stands in.
    pub source: SourceId,
    /// The whole form.
    pub span: Span,
    /// Executed or recorded.
    pub kind: ToolKind,
    /// Its name, as the model writes it.
    pub name: Spanned<String>,
    /// What it is for, told to the model; empty where the spec has none.
    pub description: Spanned<String>,
    /// Its arguments, in order.
    pub arguments: Vec<Argument>,
    /// Whether the script takes a callback first.
    pub is_async: bool,
    /// Path of the script, relative to the project, where the spec names one.
    pub script: Option<Spanned<String>>,
    /// Whether the spec holds an Emacs Lisp `:function`.
    pub has_function: bool,
    /// Time limit of one call.
    pub timeout: Option<Duration>,
    /// Memory limit of one call, in bytes.
    pub memory: Option<u64>,
    /// What the script may use.
    pub permissions: Permissions,
    /// What running it twice means.
    pub effect: Effect,
    /// The group that Emacs shows it in.
    pub category: Option<Spanned<String>>,
    /// Which calls a person is asked about.
    pub confirm: Confirm,
    /// Whether Emacs shows its results in the conversation.
    pub include: bool,
    /// Arguments that its schema must accept, as objects.
    pub accepts: Vec<Json>,
    /// Arguments that its schema must refuse, as objects.
    pub rejects: Vec<Json>,
    /// What is different for some targets.
    pub overrides: Vec<TargetOverride>,
    /// Whether its form has no error; only a valid tool is compiled, called or offered to a model.
    pub valid: bool,
}

/// What is different for one target: `:targets (:gemini (:description "…"))`.
#[derive(Debug, Clone)]
pub struct TargetOverride {
    /// The target's name, without its colon.
    pub target: Spanned<String>,
    /// The description it gets instead.
    pub description: Option<Spanned<String>>,
}

/// One argument.
#[derive(Debug, Clone)]
pub struct Argument {
    /// Its name.
    pub name: Spanned<String>,
    /// Whether it may be left out.
    pub optional: bool,
    /// Its JSON Schema: every key but `:name` and `:optional`, in source order.
    pub schema: Vec<Member>,
    /// The whole plist.
    pub span: Span,
}

impl Argument {
    /// The value of a schema keyword.
    pub fn keyword(&self, key: &str) -> Option<&Json> {
        self.schema.iter().find(|member| member.key == key).map(|member| &member.value)
    }

    /// The `type`, where it is one word.
    pub fn type_name(&self) -> Option<&str> {
        self.keyword("type").and_then(Json::as_str)
    }
}
