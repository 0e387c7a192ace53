//! Imports tool definitions in other formats: the inverse of [`emit`](super::emit).
//!
//! The input is Emacs Lisp with forms such as `gptel-make-tool`, or JSON text: the tools of an API request (OpenAI chat
//! and responses, Anthropic, Gemini, a whole request body), an MCP response to `tools/list`, a plain JSON Schema, arrays
//! of them, or a sequence of them. The output is valid [`Tool`]s and findings located in that text;
//! [`form_of_tool`](crate::spec::form_of_tool) produces the spec.
//!
//! Each definition is read into a [`model::Envelope`] by the module of its format. `parameters.rs` converts its schema
//! to argument plists. The resulting form is lowered like any spec, so the rules for specs report invalid parts at
//! their location in the JSON. A tool compiled for its original format equals the definition, except for parts with a
//! finding, the order of the keys outside the schema, and these equivalent changes:
//! - `additionalProperties: false` and `required: []` where a target adds or omits them
//! - references into `$defs`, which are inlined
//! - keywords with the value null
//! - a missing type `object` of the parameters
//! - Gemini's upper-case types
//!
//! An object that is not described by its properties alone is marked as open, because targets would close it.
//!
//! [`check_list`] checks definitions as they are: the same rules, without what only a spec cannot express.
//!
//! This module reads no files. Formats: the vendors' documentation as of November 2026, MCP 2025-06-18.

mod anthropic;
mod check;
mod definition;
mod gemini;
mod json_schema;
mod literals;
mod mcp;
mod messages;
mod model;
mod openai;
mod parameters;
mod places;
mod read;
mod recognise;
mod schema;
mod words;

pub use check::check_list;
pub use model::ImportFormat;
pub use places::list_places;
pub use read::repeated_member;
pub use words::of_json;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use self::definition::lower_definition;
use self::model::{Definition, FindingSink, Purpose, is_inside};
use self::recognise::find_definitions;
use crate::diagnostic::{Diagnostic, Severity};
use crate::schema::check_tool;
use crate::spec::{FileKind, Tool, ToolForms, ToolSelection, lower_selected};
use crate::syntax::parse;
use crate::text::{Location, SourceId, Span};

/// Imports definitions from one or more texts.
#[derive(Debug, Default)]
pub struct Importer {
    from: Option<ImportFormat>,
    forms: ToolForms,
    tools: Vec<Tool>,
    findings: Vec<Diagnostic>,
    /// The index of each tool, by name.
    names: HashMap<String, usize>,
}

/// The result of an import.
#[derive(Debug)]
pub struct Import {
    /// The tools without errors, in order, with locations in the JSON.
    pub tools: Vec<Tool>,
    /// Findings for unsupported parts, unknown definitions and invalid JSON, in the order of the texts.
    pub findings: Vec<Diagnostic>,
}

impl Importer {
    /// Creates an importer for one format, or for all known formats.
    pub fn new(from: Option<ImportFormat>) -> Self {
        Self { from, ..Self::default() }
    }

    /// Reads the heads in `forms` like `gptel-make-tool`.
    #[must_use]
    pub fn with_tool_forms(self, forms: ToolForms) -> Self {
        Self { forms, ..self }
    }

    /// Imports `text`, the content of `source`. If no format is set, text that is not JSON is read as Emacs Lisp.
    /// `file_name` is the default name for a JSON Schema without a name.
    pub fn add(&mut self, source: SourceId, text: &str, file_name: Option<&str>) {
        // No JSON text begins like this.
        if self.from.is_none() && text.trim_start().starts_with(['(', ';']) {
            return self.add_lisp(source, text, FileKind::EmacsLisp);
        }
        let (values, read) = read::read_json(source, text);
        let mut sink = FindingSink::new(source, Purpose::Import);
        let mut definitions = Vec::new();
        for value in &values {
            find_definitions(value, self.from, &mut definitions, &mut sink);
        }
        sink.report_read(read, &definitions);
        for definition in definitions {
            if let Some(tool) = import_definition(&definition, file_name, &mut sink) {
                sink.findings.extend(self.keep(tool));
            }
        }
        sink.findings.sort_by_key(|finding| (finding.primary.span, finding.rule.code));
        self.findings.extend(sink.findings);
    }

    /// Imports the tool forms of Emacs Lisp or Org: `gptel-make-tool`, `llm-make-tool` and the like. Their functions are
    /// not translated.
    pub fn add_lisp(&mut self, source: SourceId, text: &str, kind: FileKind) {
        let text = &*kind.code_of(text);
        let (tree, mut findings) = parse(source, text);
        let all = ToolSelection::default();
        let (definitions, lowered) = lower_selected(source, text, &tree, kind, &all, &self.forms);
        findings.extend(lowered);
        let at = |span| Location { source, span };
        let (mut forms, mut left_out) = (Vec::new(), Vec::new());
        for tool in definitions.tools.into_iter().filter(|tool| tool.valid) {
            let checked = check_tool(&tool);
            let is_valid = checked.iter().all(|finding| finding.severity != Severity::Error);
            findings.extend(checked);
            if is_valid {
                forms.push(tool.span);
                left_out.extend(tool.confirm_function.map(|span| messages::confirm_function(at(span))));
                // A script can wait without a callback.
                findings.extend(self.keep(Tool { is_async: false, ..tool }));
            }
        }
        left_out.extend(
            first_lost(tree.comments(), &forms, text)
                .map(|(span, number)| messages::comments(at(span), number)),
        );
        // Drop notes: those about the imported file do not matter, and `check` reports those about the tools again in
        // the specs.
        findings.retain(|finding| finding.severity != Severity::Note);
        findings.extend(left_out);
        findings.sort_by_key(|finding| (finding.primary.span, finding.rule.code));
        self.findings.extend(findings.into_iter().map(|finding| Diagnostic { fix: None, ..finding }));
    }

    /// Adds a tool. The last definition of a name is kept, as in Emacs. Returns the finding about the earlier one.
    fn keep(&mut self, tool: Tool) -> Option<Diagnostic> {
        let known = match self.names.entry(tool.name.value.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(self.tools.len());
                self.tools.push(tool);
                return None;
            }
            Entry::Occupied(entry) => self.tools.get_mut(*entry.get())?,
        };
        let at = |tool: &Tool| Location { source: tool.source, span: tool.name.span };
        let last = at(&tool);
        let first = std::mem::replace(known, tool);
        Some(messages::imported_twice(at(&first), &first.name.value, last))
    }

    /// Returns the result.
    pub fn finish(self) -> Import {
        Import { tools: self.tools, findings: self.findings }
    }
}

/// Returns the first comment that belongs to one of `forms`, and the number of all: comments inside of a form, and those
/// directly above it.
fn first_lost(comments: &[Span], forms: &[Span], text: &str) -> Option<(Span, usize)> {
    let mut lost: Vec<Span> = Vec::new();
    for comment in comments.iter().rev() {
        let is_above = |next: &Span| {
            let between = Span { start: comment.end, end: next.start };
            comment.end <= next.start
                && between.of(text).trim().is_empty()
                && !between.of(text).contains("\n\n")
        };
        if is_inside(*comment, forms) || forms.iter().chain(lost.last()).any(is_above) {
            lost.push(*comment);
        }
    }
    Some((*lost.last()?, lost.len()))
}

/// Imports a definition. Warnings of the rules for specs are left to the check of the spec.
fn import_definition(
    definition: &Definition<'_>,
    file_name: Option<&str>,
    sink: &mut FindingSink,
) -> Option<Tool> {
    let first_finding = sink.findings.len();
    let (tool, findings) = lower_definition(definition, file_name, sink);
    // Fixes and notes refer to the spec source, so they are removed.
    let errors = findings.into_iter().filter(|finding| finding.severity == Severity::Error);
    let note = String::from("this error is about the resulting spec");
    sink.findings.extend(errors.map(|finding| Diagnostic {
        fix: None,
        notes: vec![note.clone()],
        ..finding
    }));
    tool.filter(|tool| tool.valid && !sink.has_error_in(definition.json.span, first_finding))
}
