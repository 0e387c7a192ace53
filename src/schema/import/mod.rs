//! Tool definitions of others → tools: the way back from what [`emit`](super::emit) makes.
//!
//! In goes JSON text: what an API is sent (OpenAI chat and responses, Anthropic, Gemini, a whole request body), what an
//! MCP server answers to `tools/list`, a plain JSON Schema, arrays of them, or one after the other. Out come valid
//! [`Tool`]s and findings whose places are in that text; [`form_of_tool`](crate::spec::form_of_tool) makes the spec.
//!
//! Each definition is read into an [`Envelope`] by the file of its format; its schema becomes argument plists in
//! `parameters.rs`, and the form that they make is lowered like any spec: what a spec cannot be is told by the rules
//! of specs, where the JSON says it. Compiled for the format that it came from, a tool is the definition again, but
//! for what has a finding, the order of keys around the schema, and these, which mean the same:
//! `additionalProperties: false` and `required: []` where a target adds or omits them, references into `$defs`, which
//! are written out, keywords that are null, the type `object` of the parameters where it was left out, the upper-case
//! types of Gemini.
//!
//! An object that is not described by its properties alone is said to be open, for targets would close it.
//!
//! Nothing here reads a file. Formats: the vendors' documentation as of November 2026, MCP 2025-06-18.

mod anthropic;
mod gemini;
mod json_schema;
mod literals;
mod mcp;
mod openai;
mod parameters;
mod read;
mod recognise;
mod references;
mod schema;

use std::collections::{HashMap, HashSet};

use self::recognise::{Definition, find_definitions};
use crate::diagnostic::{Diagnostic, Severity};
use crate::schema::rules;
use crate::spec::form::{datum_of_json, keyword, list, plist_of_argument, symbol};
use crate::spec::{Effect, Json, JsonKind, Tool, lower_tool};
use crate::syntax::Datum;
use crate::text::{Location, SourceId, Span};

/// Whose definitions they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImportFormat {
    /// OpenAI chat completions: `{"type": "function", "function": {…}}`.
    OpenAi,
    /// OpenAI responses, the same without the inner object; also the bare `{"name", "parameters"}`.
    OpenAiResponses,
    /// Anthropic messages: `input_schema`.
    Anthropic,
    /// Gemini: `functionDeclarations`.
    Gemini,
    /// An answer to MCP `tools/list`: `inputSchema`.
    Mcp,
    /// A JSON Schema of the arguments.
    JsonSchema,
}

impl ImportFormat {
    /// Every format.
    pub const ALL: [Self; 6] =
        [Self::OpenAi, Self::OpenAiResponses, Self::Anthropic, Self::Gemini, Self::Mcp, Self::JsonSchema];

    /// Its name on the command line.
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

/// Takes definitions in, text by text.
#[derive(Debug, Default)]
pub struct Importer {
    from: Option<ImportFormat>,
    tools: Vec<Tool>,
    findings: Vec<Diagnostic>,
    /// Where the tool of each name stands.
    names: HashMap<String, Location>,
}

/// What was imported.
#[derive(Debug)]
pub struct Import {
    /// The tools without errors, in order; their places are in the JSON.
    pub tools: Vec<Tool>,
    /// What a spec cannot say, what is no tool, and what is no JSON, in the order of the texts.
    pub findings: Vec<Diagnostic>,
}

impl Importer {
    /// An importer of definitions of one format, or of any whose shape is known.
    pub fn new(from: Option<ImportFormat>) -> Self {
        Self { from, ..Self::default() }
    }

    /// Takes in `text`, the whole of `source`. A JSON Schema that does not say its name is called `file_name`.
    pub fn add(&mut self, source: SourceId, text: &str, file_name: Option<&str>) {
        let (values, mut read) = read::read_json(source, text);
        let mut told = Told { source, findings: Vec::new() };
        let mut definitions = Vec::new();
        for value in &values {
            find_definitions(value, self.from, &mut definitions, &mut told);
        }
        // Numbers and keys matter where a tool is; a conversation beside the tools may hold what it likes.
        let spans: Vec<Span> = definitions.iter().map(|definition| definition.json.span).collect();
        read.retain(|finding| {
            finding.rule == &rules::INVALID_JSON || is_inside(finding.primary.span, &spans)
        });
        told.findings.extend(read);
        for definition in definitions {
            self.tools.extend(import_definition(&definition, file_name, &mut told, &mut self.names));
        }
        told.findings.sort_by_key(|finding| (finding.primary.span, finding.rule.code));
        self.findings.extend(told.findings);
    }

    /// What came of it.
    pub fn finish(self) -> Import {
        Import { tools: self.tools, findings: self.findings }
    }
}

/// Whether one of `spans`, which stand one after the other, holds `span`.
fn is_inside(span: Span, spans: &[Span]) -> bool {
    let after = spans.partition_point(|known| known.start <= span.start);
    after.checked_sub(1).and_then(|index| spans.get(index)).is_some_and(|known| span.end <= known.end)
}

/// Findings of one text.
struct Told {
    source: SourceId,
    findings: Vec<Diagnostic>,
}

impl Told {
    fn tell(&mut self, finding: Diagnostic) {
        self.findings.push(finding);
    }

    fn at(&self, span: Span) -> Location {
        Location { source: self.source, span }
    }
}

/// What stands around the schema of one definition.
struct Envelope<'j> {
    name: Option<Datum>,
    /// What could have been the name, for the message that it is missing.
    named_by: &'static str,
    description: Option<&'j Json>,
    parameters: Option<&'j Json>,
    effect: Effect,
    /// Keys that a spec has no place for.
    left_out: Vec<(String, Span)>,
}

impl<'j> Envelope<'j> {
    /// The envelope of an object whose schema is the first there is of `parameters`; every other key that is not
    /// `known` is left out.
    fn read(tool: &'j Json, parameters: &[&str], known: &[&str]) -> Self {
        let get = |key: &str| tool.get(key).map(|member| &member.value).filter(|value| !is_null(value));
        let mut envelope = Self {
            name: get("name").map(datum_of_json),
            named_by: "`name`",
            description: get("description"),
            parameters: parameters.iter().find_map(|key| get(key)),
            effect: Effect::default(),
            left_out: Vec::new(),
        };
        envelope.leave_out(tool, "", &[&["name", "description"], parameters, known].concat());
        envelope
    }

    /// Leaves out the members of `object` that are not `known`, unless they say nothing.
    fn leave_out(&mut self, object: &'j Json, prefix: &str, known: &[&str]) {
        let JsonKind::Object(members) = &object.kind else { return };
        for member in members {
            let says_nothing = is_null(&member.value) || member.value.kind == JsonKind::Bool(false);
            if !says_nothing && !known.contains(&member.key.as_str()) {
                self.left_out.push((format!("{prefix}{}", member.key), member.key_span));
            }
        }
    }
}

fn is_null(json: &Json) -> bool {
    json.kind == JsonKind::Null
}

fn import_definition(
    definition: &Definition<'_>,
    file_name: Option<&str>,
    told: &mut Told,
    names: &mut HashMap<String, Location>,
) -> Option<Tool> {
    let Definition { format, json } = *definition;
    let first_finding = told.findings.len();
    let mut envelope = match format {
        ImportFormat::OpenAi => openai::read_chat(json),
        ImportFormat::OpenAiResponses => openai::read_responses(json),
        ImportFormat::Anthropic => anthropic::read(json),
        ImportFormat::Gemini => gemini::read(json),
        ImportFormat::Mcp => mcp::read(json),
        ImportFormat::JsonSchema => json_schema::read(json, file_name),
    };
    let Some(name) = envelope.name.take() else {
        let brace = Span { start: json.span.start, end: json.span.start + 1 };
        told.tell(rules::nameless_tool::finding(told.at(brace), envelope.named_by));
        return None;
    };
    let arguments = parameters::read_parameters(&mut envelope, format, told);
    if let Some((_, span)) = envelope.left_out.first() {
        told.tell(rules::left_out::finding(told.at(*span), &envelope.left_out));
    }
    let name_span = name.span;
    let mut form = vec![symbol("deftool", json.span), keyword("name", name_span), name];
    if let Some(description) = envelope.description {
        form.extend([keyword("description", description.span), datum_of_json(description)]);
    }
    let plists = arguments.iter().map(plist_of_argument).collect();
    form.extend([keyword("args", json.span), list(plists, json.span)]);
    let effect = match envelope.effect {
        Effect::Pure => Some("pure"),
        Effect::Keyed => Some("keyed"),
        Effect::Once => None,
    };
    form.extend(effect.iter().flat_map(|word| [keyword("effect", json.span), symbol(word, json.span)]));
    let (tool, findings) = lower_tool(told.source, list(form, json.span));
    // What is only doubtful is for `check` to say, of the spec; repairs and advice are of specs, too.
    let errors = findings.into_iter().filter(|finding| finding.severity == Severity::Error);
    let note = String::from("said of the spec that this would be");
    told.findings.extend(errors.map(|finding| Diagnostic {
        fix: None,
        notes: vec![note.clone()],
        ..finding
    }));
    let is_mine = |finding: &Diagnostic| {
        finding.severity == Severity::Error && is_inside(finding.primary.span, &[json.span])
    };
    let tool = tool.filter(|tool| tool.valid && !told.findings.iter().skip(first_finding).any(is_mine))?;
    let location = told.at(name_span);
    if let Some(&first) = names.get(&tool.name.value) {
        told.tell(rules::imported_twice::finding(location, &tool.name.value, first));
        return None;
    }
    names.insert(tool.name.value.clone(), location);
    Some(tool)
}

/// The strings of an array, and what else it holds.
fn strings_of(json: &Json) -> Option<(HashSet<&str>, Vec<&Json>)> {
    let JsonKind::Array(items) = &json.kind else { return None };
    let others = items.iter().filter(|item| item.as_str().is_none()).collect();
    Some((items.iter().filter_map(Json::as_str).collect(), others))
}
