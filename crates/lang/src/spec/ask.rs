//! Asks: prompts, each with the calls that a model should make.
//!
//! An ask is an entry of `:asks` of a tool, or a `(defask …)` of the project. Both lower to the same type.

use super::json::{Json, JsonKind, Member};
use crate::text::{Location, SourceId, Span, Spanned};

/// A prompt, and what the model should do in its first reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// The file that contains it.
    pub source: SourceId,
    /// Span of the whole entry.
    pub span: Span,
    /// The message of the user.
    pub prompt: Spanned<String>,
    /// Calls that the model has made after the prompt, with their results. The next reply is judged.
    pub history: Vec<PastCall>,
    /// What the model should do.
    pub expected: ExpectedReply,
}

/// A call before the judged reply.
#[derive(Debug, Clone, PartialEq)]
pub struct PastCall {
    /// The tool.
    pub tool: Spanned<String>,
    /// The arguments, an object.
    pub arguments: Json,
    /// The result that the tool gave.
    pub result: Json,
}

/// What a reply should contain.
#[derive(Debug, Clone, PartialEq)]
pub enum ExpectedReply {
    /// No call at all.
    NoCall,
    /// No call of this tool; calls of other tools do not matter.
    NoCallOf(String),
    /// These calls, and no other.
    Calls {
        /// The calls, at least one.
        calls: Vec<ExpectedCall>,
        /// Whether the order matters.
        is_ordered: bool,
    },
}

/// A call that a reply should contain.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedCall {
    /// The tool.
    pub tool: Spanned<String>,
    /// The arguments; `None`: any that are valid.
    pub arguments: Option<Pattern>,
    /// Arguments that do not matter.
    pub ignored: Vec<Spanned<String>>,
}

/// A pattern of a JSON value.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern {
    /// Span in the source.
    pub span: Span,
    /// The pattern.
    pub kind: PatternKind,
}

/// The kinds of patterns.
#[derive(Debug, Clone, PartialEq)]
pub enum PatternKind {
    /// `null`, a boolean, a number or a string.
    Scalar(Json),
    /// An array with these elements.
    Array(Vec<Pattern>),
    /// An object with these members. Others must have the default of their schema.
    Object(Vec<(Spanned<String>, Pattern)>),
    /// `(any …)`: one of these.
    Any(Vec<Pattern>),
    /// `(optional …)`: absent, or this.
    Optional(Box<Pattern>),
    /// `(schema …)`: a value that is valid under this JSON Schema.
    Schema(Json),
}

impl Ask {
    /// Returns where it is written.
    pub fn location(&self) -> Location {
        Location { source: self.source, span: self.span }
    }

    /// Returns the calls that it expects, none for a negative ask.
    pub fn calls(&self) -> &[ExpectedCall] {
        match &self.expected {
            ExpectedReply::Calls { calls, .. } => calls,
            ExpectedReply::NoCall | ExpectedReply::NoCallOf(_) => &[],
        }
    }

    /// Returns the schemas in `(schema …)`.
    pub(crate) fn schemas(&self) -> impl Iterator<Item = &Json> {
        self.calls().iter().flat_map(ExpectedCall::schemas)
    }
}

impl ExpectedCall {
    /// Returns the schemas in `(schema …)`.
    pub fn schemas(&self) -> Vec<&Json> {
        let mut pending: Vec<&Pattern> = self.arguments.iter().collect();
        let mut schemas = Vec::new();
        while let Some(pattern) = pending.pop() {
            match &pattern.kind {
                PatternKind::Scalar(_) => {}
                PatternKind::Array(patterns) | PatternKind::Any(patterns) => pending.extend(patterns),
                PatternKind::Object(members) => pending.extend(members.iter().map(|(_, pattern)| pattern)),
                PatternKind::Optional(pattern) => pending.push(pattern),
                PatternKind::Schema(schema) => schemas.push(schema),
            }
        }
        schemas
    }
}

impl Pattern {
    /// Returns the pattern that only this value matches.
    pub(crate) fn of_json(json: &Json) -> Self {
        let kind = match &json.kind {
            JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number(_) | JsonKind::String(_) => {
                PatternKind::Scalar(json.clone())
            }
            JsonKind::Array(items) => PatternKind::Array(items.iter().map(Self::of_json).collect()),
            JsonKind::Object(members) => {
                let member = |member: &Member| {
                    let key = Spanned::new(member.key.clone(), member.key_span);
                    (key, Self::of_json(&member.value))
                };
                PatternKind::Object(members.iter().map(member).collect())
            }
        };
        Self { span: json.span, kind }
    }

    /// Returns the value that the pattern states, `None` if it contains `any`, `optional` or `schema`.
    pub(crate) fn literal(&self) -> Option<Json> {
        let kind = match &self.kind {
            PatternKind::Scalar(json) => return Some(json.clone()),
            PatternKind::Array(items) => {
                JsonKind::Array(items.iter().map(Self::literal).collect::<Option<_>>()?)
            }
            PatternKind::Object(members) => {
                let member = |(key, value): &(Spanned<String>, Self)| {
                    Some(Member { key: key.value.clone(), key_span: key.span, value: value.literal()? })
                };
                JsonKind::Object(members.iter().map(member).collect::<Option<_>>()?)
            }
            PatternKind::Any(_) | PatternKind::Optional(_) | PatternKind::Schema(_) => return None,
        };
        Some(Json { span: self.span, kind })
    }
}
