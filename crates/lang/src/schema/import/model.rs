//! The formats of definitions, and the parts of a definition that all formats share.

use std::collections::HashSet;

use crate::diagnostic::{Diagnostic, Severity};
use crate::schema::rules;
use crate::spec::form::datum_of_json;
use crate::spec::{Effect, Json, JsonKind};
use crate::syntax::Datum;
use crate::text::{Location, SourceId, Span};

/// The format of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImportFormat {
    /// OpenAI chat completions: `{"type": "function", "function": {…}}`.
    OpenAi,
    /// OpenAI responses: the same without the inner object; also the plain `{"name", "parameters"}`.
    OpenAiResponses,
    /// Anthropic messages: `input_schema`.
    Anthropic,
    /// Gemini: `functionDeclarations`.
    Gemini,
    /// A response to MCP `tools/list`: `inputSchema`.
    Mcp,
    /// A JSON Schema of the arguments.
    JsonSchema,
}

impl ImportFormat {
    /// Every format.
    pub const ALL: [Self; 6] =
        [Self::OpenAi, Self::OpenAiResponses, Self::Anthropic, Self::Gemini, Self::Mcp, Self::JsonSchema];

    /// Returns the name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Mcp => "mcp",
            Self::JsonSchema => "json-schema",
        }
    }
}

/// What definitions are read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To write specs.
    Import,
    /// To check the definitions as they are.
    Check,
}

/// Collects the findings for one text.
pub(super) struct FindingSink {
    pub(super) source: SourceId,
    pub(super) purpose: Purpose,
    pub(super) findings: Vec<Diagnostic>,
}

impl FindingSink {
    pub(super) fn new(source: SourceId, purpose: Purpose) -> Self {
        Self { source, purpose, findings: Vec::new() }
    }

    pub(super) fn report(&mut self, finding: Diagnostic) {
        self.findings.push(finding);
    }

    /// Reports a part of a definition that a spec cannot express, if the purpose is a spec.
    pub(super) fn report_loss(&mut self, finding: Diagnostic) {
        if self.purpose == Purpose::Import {
            self.report(finding);
        }
    }

    /// Reports what the parser found. Findings about numbers and keys matter only in the definitions, not elsewhere in a
    /// request body.
    pub(super) fn report_read(&mut self, read: Vec<Diagnostic>, definitions: &[Definition<'_>]) {
        let spans: Vec<Span> = definitions.iter().map(|definition| definition.json.span).collect();
        self.findings.extend(read.into_iter().filter(|finding| {
            finding.rule == &rules::invalid_json::INVALID_JSON || is_inside(finding.primary.span, &spans)
        }));
    }

    /// Returns whether one of the findings from index `first` is an error in `span`.
    pub(super) fn has_error_in(&self, span: Span, first: usize) -> bool {
        let is_inside = |finding: &Diagnostic| {
            finding.severity == Severity::Error && is_inside(finding.primary.span, &[span])
        };
        self.findings.iter().skip(first).any(is_inside)
    }

    pub(super) fn at(&self, span: Span) -> Location {
        Location { source: self.source, span }
    }
}

/// Returns whether one of `spans`, which are sorted and disjoint, contains `span`.
pub(super) fn is_inside(span: Span, spans: &[Span]) -> bool {
    let after = spans.partition_point(|known| known.start <= span.start);
    after.checked_sub(1).and_then(|index| spans.get(index)).is_some_and(|known| span.end <= known.end)
}

/// One definition.
#[derive(Clone, Copy)]
pub(super) struct Definition<'j> {
    pub(super) format: ImportFormat,
    pub(super) json: &'j Json,
}

/// A definition without its schema details.
pub(super) struct Envelope<'j> {
    pub(super) name: Option<Datum>,
    /// The possible sources of the name, for the message that it is missing.
    pub(super) named_by: &'static str,
    pub(super) description: Option<&'j Json>,
    pub(super) parameters: Option<&'j Json>,
    pub(super) effect: Effect,
    /// The schema of the results.
    pub(super) returns: Option<&'j Json>,
    /// Keys that a spec does not support.
    pub(super) left_out: Vec<(String, Span)>,
}

impl<'j> Envelope<'j> {
    /// Reads the envelope of an object. The schema is under the first existing key of `parameters`. All other keys that
    /// are not `known` are recorded as left out.
    pub(super) fn read(tool: &'j Json, parameters: &[&str], known: &[&str]) -> Self {
        let get = |key: &str| tool.get(key).map(|member| &member.value).filter(|value| !is_null(value));
        let mut envelope = Self {
            name: get("name").map(datum_of_json),
            named_by: "`name`",
            description: get("description"),
            parameters: parameters.iter().find_map(|key| get(key)),
            effect: Effect::default(),
            returns: None,
            left_out: Vec::new(),
        };
        envelope.leave_out(tool, "", &[&["name", "description"], parameters, known].concat());
        envelope
    }

    /// Records the members of `object` that are not `known` as left out, unless they are null or false.
    pub(super) fn leave_out(&mut self, object: &'j Json, prefix: &str, known: &[&str]) {
        let JsonKind::Object(members) = &object.kind else { return };
        for member in members {
            let is_default = is_null(&member.value) || member.value.kind == JsonKind::Bool(false);
            if !is_default && !known.contains(&member.key.as_str()) {
                self.left_out.push((format!("{prefix}{}", member.key), member.key_span));
            }
        }
    }
}

pub(super) fn is_null(json: &Json) -> bool {
    json.kind == JsonKind::Null
}

/// Returns the strings of an array and its other items.
pub(super) fn strings_of(json: &Json) -> Option<(HashSet<&str>, Vec<&Json>)> {
    let JsonKind::Array(items) = &json.kind else { return None };
    let others = items.iter().filter(|item| item.as_str().is_none()).collect();
    Some((items.iter().filter_map(Json::as_str).collect(), others))
}
