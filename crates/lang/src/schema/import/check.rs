//! Checks lists of tools that other programs wrote, with the rules for specs.

use super::definition::lower_definition;
use super::model::{FindingSink, Purpose};
use super::read::read_json;
use super::recognise::find_list;
use super::words::of_json;
use crate::diagnostic::{Diagnostic, Rule, Severity};
use crate::schema::check_tool;
use crate::schema::rules as of_schema;
use crate::spec::Tool;
use crate::spec::rules as of_spec;
use crate::spec::rules::unknown_key::UNKNOWN_KEY;
use crate::text::SourceId;

/// The rules that apply to definitions in JSON, beside all errors: those about names, descriptions and schemas. The others
/// are about Lisp, scripts, and conventions for specs.
const APPLIED: [&Rule; 22] = [
    &of_spec::duplicate::DUPLICATE,
    &of_spec::invalid_name::INVALID_NAME,
    &of_spec::missing_description::MISSING_DESCRIPTION,
    &of_spec::description_is_name::DESCRIPTION_IS_NAME,
    &of_spec::unfinished_description::UNFINISHED_DESCRIPTION,
    &of_spec::builtin_name::BUILTIN_NAME,
    &of_spec::missing_type::MISSING_TYPE,
    &of_spec::array_without_items::ARRAY_WITHOUT_ITEMS,
    &of_spec::object_without_properties::OBJECT_WITHOUT_PROPERTIES,
    &of_spec::inexact_number::INEXACT_NUMBER,
    &of_spec::keyword_without_effect::KEYWORD_WITHOUT_EFFECT,
    &of_spec::unknown_format::UNKNOWN_FORMAT,
    &of_spec::default_on_required::DEFAULT_ON_REQUIRED,
    &of_spec::enum_without_type::ENUM_WITHOUT_TYPE,
    &of_spec::argument_name::ARGUMENT_NAME,
    &of_spec::idle_description::IDLE_DESCRIPTION,
    &of_spec::optional_in_words::OPTIONAL_IN_WORDS,
    &of_spec::undescribed_argument::UNDESCRIBED_ARGUMENT,
    &of_schema::invalid_schema::INVALID_SCHEMA,
    &of_schema::invalid_pattern::INVALID_PATTERN,
    &of_schema::default_misfit::DEFAULT_MISFIT,
    &of_schema::example_misfit::EXAMPLE_MISFIT,
];

/// Checks `text`, the content of `source`: a list of tools in one of the formats of APIs and MCP. Returns the tools, with
/// those that have errors, and the findings in source order.
pub fn check_list(source: SourceId, text: &str) -> (Vec<Tool>, Vec<Diagnostic>) {
    let (values, read) = read_json(source, text);
    let mut sink = FindingSink::new(source, Purpose::Check);
    let mut definitions = Vec::new();
    for value in &values {
        find_list(value, &mut definitions, &mut sink);
    }
    sink.report_read(read, &definitions);
    let mut tools = Vec::new();
    for definition in &definitions {
        let first_finding = sink.findings.len();
        let (tool, findings) = lower_definition(definition, None, &mut sink);
        let findings = findings.into_iter().filter(|finding| applies(finding, text));
        sink.findings.extend(findings.map(of_json));
        let Some(mut tool) = tool else { continue };
        if tool.valid {
            let findings = check_tool(&tool).into_iter().filter(|finding| applies(finding, text));
            sink.findings.extend(findings.map(of_json));
        }
        tool.valid &= !sink.has_error_in(definition.json.span, first_finding);
        tools.push(tool);
    }
    sink.findings.sort_by_key(|finding| (finding.primary.span, finding.rule.code));
    (tools, sink.findings)
}

/// Returns whether a finding of the rules for specs is one about a definition in JSON.
fn applies(finding: &Diagnostic, text: &str) -> bool {
    if *finding.rule == UNKNOWN_KEY {
        // JSON Schema permits unknown keywords: only a misspelt one is a mistake. `example` is a keyword of OpenAPI.
        let key = finding.primary.span.of(text).trim_matches('"');
        let is_misspelt = finding.label.is_some() || finding.fix.is_some();
        return is_misspelt && !key.starts_with('$') && !key.starts_with("x-") && key != "example";
    }
    finding.severity == Severity::Error || APPLIED.contains(&finding.rule)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::list_places;
    use crate::text::Sources;

    #[test]
    fn every_prefix_of_a_list_is_checked() {
        let text = r##"{"tools": [{"name": "é", "inputSchema": {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object",
            "properties": {"b": {"$ref": "#/$defs/a"}, "c": {"anyOf": [{"$ref": "#/$defs/x"}, null, 7]}}}}}}]}"##;
        let source = Sources::new().id_ahead(0);
        assert_eq!(check_list(source, text).0.len(), 1);
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            assert!(!check_list(source, &text[..end]).1.is_empty(), "{}", &text[..end]);
            list_places(&text[..end]);
        }
    }
}
