//! Converts the parameters schema to arguments.
//!
//! The schema of each parameter becomes that argument's plist. Of the keywords for the whole object, a spec supports
//! only `required` and the order.

use std::collections::HashSet;

use super::messages;
use super::model::{Envelope, FindingSink, ImportFormat, Purpose, is_null, strings_of};
use super::schema::Rewriter;
use crate::spec::keywords::is_annotation;
use crate::spec::{Argument, Json, JsonKind, Member};
use crate::text::{Span, Spanned};

/// Keywords at the root, other than annotations, that do not restrict values.
const OF_DOCUMENTS: [&str; 5] = ["$schema", "$id", "id", "$anchor", "example"];

/// Keywords that the envelope of a plain schema already uses.
const NAMING: [&str; 3] = ["$id", "title", "description"];

/// Keywords that OpenAI and Anthropic reject at the root.
const REJECTED_AT_TOP: [&str; 5] = ["anyOf", "oneOf", "allOf", "not", "enum"];

/// Keywords that may describe members that are not in `properties`.
const OTHER_PROPERTY_KEYWORDS: [&str; 8] = [
    "anyOf",
    "oneOf",
    "allOf",
    "$ref",
    "if",
    "patternProperties",
    "dependentSchemas",
    "unevaluatedProperties",
];

/// Returns the arguments of a definition and reports the unsupported keywords of its schema.
pub(super) fn read_parameters(
    envelope: &mut Envelope<'_>,
    format: ImportFormat,
    sink: &mut FindingSink,
) -> Vec<Argument> {
    let Some(schema) = envelope.parameters else { return Vec::new() };
    let mut rewriter = Rewriter::new(schema, format == ImportFormat::Gemini);
    let Some((members, siblings)) = find_root(schema, &mut rewriter, sink) else { return Vec::new() };
    let mut root = Root::default();
    for member in members.iter().chain(siblings.iter().copied()) {
        root.read(member, format, envelope, sink);
    }
    if root.is_not_an_object {
        return Vec::new();
    }
    if let Some((_, span)) = root.constraints.first() {
        sink.report_loss(messages::root_keywords(sink.at(*span), &root.constraints));
    }
    if sink.purpose == Purpose::Check {
        let rejected = root.constraints.iter().filter(|(key, _)| REJECTED_AT_TOP.contains(&key.as_str()));
        rejected.for_each(|(key, span)| sink.report(messages::rejected_at_top(sink.at(*span), key)));
    }
    let required = root.required.map(|required| read_required(required, root.properties, sink));
    let required = required.unwrap_or_default();
    let mut arguments: Vec<Argument> = Vec::new();
    for property in root.properties {
        if let Some(schema) = read_property(property, &mut rewriter, sink) {
            let name = Spanned::new(property.key.clone(), property.key_span);
            let optional = !required.contains(property.key.as_str());
            arguments.push(Argument { name, optional, schema, span: property.value.span });
        }
    }
    if let Some(ordering) = root.ordering {
        order(&mut arguments, ordering);
    }
    arguments
}

/// Returns the members of the parameters schema. If the schema is a reference, returns the members of its target and
/// the members next to the reference.
fn find_root<'j>(
    schema: &'j Json,
    rewriter: &mut Rewriter<'j>,
    sink: &mut FindingSink,
) -> Option<(&'j [Member], Vec<&'j Member>)> {
    let JsonKind::Object(members) = &schema.kind else {
        sink.report(messages::not_an_object(sink.at(schema.span), describe(schema)));
        return None;
    };
    let Some(reference) = members.iter().find(|member| member.key == "$ref") else {
        return Some((members, Vec::new()));
    };
    let pointer = reference.value.as_str().unwrap_or_default();
    rewriter.is_moved = true;
    match rewriter.references.find(pointer).map(|found| &found.kind) {
        Some(JsonKind::Object(found)) if !found.iter().any(|member| member.key == "$ref") => {
            let siblings = members.iter().filter(|member| member.key != "$ref");
            Some((found, siblings.collect()))
        }
        Some(_) | None => {
            let why = "does not refer to an object schema";
            sink.report(messages::reference(sink.at(reference.value.span), pointer, why));
            None
        }
    }
}

/// The contents of the parameters schema.
#[derive(Default)]
struct Root<'j> {
    properties: &'j [Member],
    required: Option<&'j Json>,
    ordering: Option<&'j Json>,
    /// Constraints that a spec cannot express.
    constraints: Vec<(String, Span)>,
    /// Whether the schema is not an object. This is reported, and the rest of the schema is ignored.
    is_not_an_object: bool,
}

impl<'j> Root<'j> {
    fn read(
        &mut self,
        member: &'j Member,
        format: ImportFormat,
        envelope: &mut Envelope<'j>,
        sink: &mut FindingSink,
    ) {
        let (value, key) = (&member.value, member.key.as_str());
        let is_gemini = format == ImportFormat::Gemini;
        if is_null(value) {
            return;
        }
        match key {
            "type" => {
                let word = value.as_str().unwrap_or_default();
                if word != "object" && !(is_gemini && word == "OBJECT") {
                    let found =
                        value.as_str().map_or_else(|| describe(value).to_owned(), |word| format!("`{word}`"));
                    sink.report(messages::not_an_object(sink.at(value.span), &found));
                    self.is_not_an_object = true;
                }
            }
            "properties" => match &value.kind {
                JsonKind::Object(properties) => self.properties = properties,
                _ => {
                    sink.report(messages::no_properties(sink.at(value.span), describe(value)));
                }
            },
            "required" => self.required = Some(value),
            "propertyOrdering" => self.ordering = Some(value),
            "additionalProperties" => match &value.kind {
                JsonKind::Bool(false) | JsonKind::Null => {}
                JsonKind::Bool(true) => sink.report_loss(messages::open_arguments(sink.at(member.key_span))),
                JsonKind::Object(members) if members.is_empty() => {
                    sink.report_loss(messages::open_arguments(sink.at(member.key_span)));
                }
                JsonKind::Number(_) | JsonKind::String(_) | JsonKind::Array(_) | JsonKind::Object(_) => {
                    self.constraints.push((member.key.clone(), member.key_span));
                }
            },
            // Inlined where they are referenced.
            "$defs" | "definitions" => {}
            _ if format == ImportFormat::JsonSchema && NAMING.contains(&key) => {}
            _ if is_annotation(key)
                || OF_DOCUMENTS.contains(&key)
                || key.starts_with("x-")
                || key == "nullable" =>
            {
                if value.kind != JsonKind::Bool(false) {
                    envelope.left_out.push((member.key.clone(), member.key_span));
                }
            }
            _ => self.constraints.push((member.key.clone(), member.key_span)),
        }
    }
}

/// Returns the required names and reports invalid ones.
fn read_required<'j>(required: &'j Json, properties: &[Member], sink: &mut FindingSink) -> HashSet<&'j str> {
    let Some((names, others)) = strings_of(required) else {
        sink.report(messages::required_without_names(sink.at(required.span)));
        return HashSet::new();
    };
    if let Some(other) = others.first() {
        sink.report(messages::required_without_names(sink.at(other.span)));
    }
    let known: HashSet<&str> = properties.iter().map(|property| property.key.as_str()).collect();
    let JsonKind::Array(items) = &required.kind else { return names };
    for item in items {
        if let Some(name) = item.as_str().filter(|name| !known.contains(name)) {
            let at = sink.at(item.span);
            sink.report(match sink.purpose {
                Purpose::Import => messages::unknown_required(at, name),
                Purpose::Check => messages::unknown_name(at, name, properties),
            });
        }
    }
    names
}

/// Returns the keywords of one argument.
fn read_property<'j>(
    property: &'j Member,
    rewriter: &mut Rewriter<'j>,
    sink: &mut FindingSink,
) -> Option<Vec<Member>> {
    let mut members = match &property.value.kind {
        JsonKind::Object(members) => rewriter.rewrite_members(members, 0, sink),
        // Accepts any value.
        JsonKind::Bool(true) => Vec::new(),
        JsonKind::Null
        | JsonKind::Bool(false)
        | JsonKind::Number(_)
        | JsonKind::String(_)
        | JsonKind::Array(_) => {
            sink.report(messages::accepts_nothing(sink.at(property.value.span), &property.key));
            return None;
        }
    };
    members.retain(|member| {
        let is_taken = matches!(member.key.as_str(), "name" | "optional");
        if is_taken {
            sink.report_loss(messages::argument_key(sink.at(member.key_span), &member.key));
        }
        !is_taken
    });
    if is_open_object(&members) {
        members.push(Member {
            key: String::from("additionalProperties"),
            key_span: property.key_span,
            value: Json { span: property.key_span, kind: JsonKind::Bool(true) },
        });
    }
    Some(members)
}

/// Returns whether targets would close an object that is not described by its properties alone.
fn is_open_object(members: &[Member]) -> bool {
    let find = |key: &str| members.iter().find(|member| member.key == key).map(|member| &member.value);
    let has_properties = find("properties")
        .is_some_and(|named| matches!(&named.kind, JsonKind::Object(named) if !named.is_empty()));
    find("type").and_then(Json::as_str) == Some("object")
        && find("additionalProperties").is_none()
        && (!has_properties || OTHER_PROPERTY_KEYWORDS.iter().any(|key| find(key).is_some()))
}

/// Sorts the arguments by `ordering`; the others follow.
fn order(arguments: &mut [Argument], ordering: &Json) {
    let JsonKind::Array(names) = &ordering.kind else { return };
    let positions: std::collections::HashMap<&str, usize> =
        names.iter().enumerate().filter_map(|(position, name)| Some((name.as_str()?, position))).collect();
    arguments
        .sort_by_key(|argument| positions.get(argument.name.value.as_str()).copied().unwrap_or(names.len()));
}

fn describe(json: &Json) -> &'static str {
    match &json.kind {
        JsonKind::Null => "null",
        JsonKind::Bool(_) => "a boolean",
        JsonKind::Number(_) => "a number",
        JsonKind::String(_) => "a string",
        JsonKind::Array(_) => "an array",
        JsonKind::Object(_) => "an object",
    }
}
