//! One definition to a tool: the envelope of its format, the arguments of its schema, and the rules for specs.

use super::messages;
use super::model::{Definition, FindingSink, ImportFormat, Purpose};
use super::schema::Rewriter;
use super::{anthropic, gemini, json_schema, mcp, openai, parameters};
use crate::diagnostic::Diagnostic;
use crate::schema::to_current_draft;
use crate::spec::form::{datum_of_json, datum_of_schema, keyword, list, plist_of_argument, symbol};
use crate::spec::rules::invalid_name::{ANTHROPIC, EVERY_API, GEMINI, MCP, NameGrammar, OPENAI};
use crate::spec::{Effect, Json, JsonKind, Tool, lower_tool};
use crate::text::Span;

/// Lowers a definition like a spec. Returns the tool, and the findings of the rules for specs. All others are reported to
/// `sink`. `file_name` is the default name for a JSON Schema without a name.
pub(super) fn lower_definition(
    definition: &Definition<'_>,
    file_name: Option<&str>,
    sink: &mut FindingSink,
) -> (Option<Tool>, Vec<Diagnostic>) {
    let Definition { format, json } = *definition;
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
        sink.report(messages::nameless(sink.at(brace), envelope.named_by));
        return (None, Vec::new());
    };
    // Like the schemas of a running MCP server. Gemini's is a dialect of its own.
    let current = |schema: &Json| Json::with_spans(to_current_draft(&schema.to_value()), schema);
    let (parameters, returns);
    if format != ImportFormat::Gemini {
        parameters = envelope.parameters.map(current);
        returns = envelope.returns.map(current);
        (envelope.parameters, envelope.returns) = (parameters.as_ref(), returns.as_ref());
    }
    let arguments = parameters::read_parameters(&mut envelope, format, sink);
    if let Some((_, span)) = envelope.left_out.first() {
        sink.report_loss(messages::left_out(sink.at(*span), &envelope.left_out));
    }
    let name_span = name.span;
    let mut form = vec![symbol("deftool", json.span), keyword("name", name_span), name];
    // gptel sends `{}` for a tool without a description.
    let is_given = |json: &&Json| match &json.kind {
        JsonKind::Object(members) => !members.is_empty(),
        kind => *kind != JsonKind::Null,
    };
    if let Some(description) = envelope.description.filter(is_given) {
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
    if let Some(returns) = envelope.returns {
        let mut schema = Rewriter::new(returns, false).rewrite(returns, 0, sink);
        if let JsonKind::Object(members) = &mut schema.kind {
            members.retain(|member| member.key != "$schema");
        }
        form.extend([keyword("returns", json.span), datum_of_schema(&schema)]);
    }
    lower_tool(sink.source, list(form, json.span), names_of(format, sink.purpose))
}

/// Returns the names of tools that a list in a format may have. A spec may be sent to every API.
fn names_of(format: ImportFormat, purpose: Purpose) -> &'static NameGrammar {
    match (purpose, format) {
        (Purpose::Import, _) | (Purpose::Check, ImportFormat::JsonSchema) => &EVERY_API,
        (Purpose::Check, ImportFormat::OpenAi | ImportFormat::OpenAiResponses) => &OPENAI,
        (Purpose::Check, ImportFormat::Anthropic) => &ANTHROPIC,
        (Purpose::Check, ImportFormat::Gemini) => &GEMINI,
        (Purpose::Check, ImportFormat::Mcp) => &MCP,
    }
}
