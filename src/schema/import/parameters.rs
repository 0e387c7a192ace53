//! The schema of all parameters → arguments.
//!
//! What it says of each parameter becomes that argument's plist; what it says of all together is `required`, the
//! order, and otherwise nothing that a spec can say.

use std::collections::HashSet;

use super::schema::Rewriter;
use super::{Envelope, ImportFormat, Told, is_null, strings_of};
use crate::schema::rules;
use crate::spec::keywords::is_annotation;
use crate::spec::{Argument, Json, JsonKind, Member};
use crate::text::{Span, Spanned};

/// What may stand at the root beside annotations and allows or forbids nothing.
const OF_DOCUMENTS: [&str; 5] = ["$schema", "$id", "id", "$anchor", "example"];

/// What a plain schema's envelope was made of.
const NAMING: [&str; 3] = ["$id", "title", "description"];

/// Where the properties of an object are not all that there is to say of its members.
const BESIDE_PROPERTIES: [&str; 8] = [
    "anyOf",
    "oneOf",
    "allOf",
    "$ref",
    "if",
    "patternProperties",
    "dependentSchemas",
    "unevaluatedProperties",
];

/// The arguments of a definition; what its schema says beside them is left out.
pub(super) fn read_parameters(
    envelope: &mut Envelope<'_>,
    format: ImportFormat,
    told: &mut Told,
) -> Vec<Argument> {
    let Some(schema) = envelope.parameters else { return Vec::new() };
    let mut rewriter = Rewriter::new(schema, format == ImportFormat::Gemini);
    let Some((members, beside)) = find_root(schema, &mut rewriter, told) else { return Vec::new() };
    let mut root = Root::default();
    for member in members.iter().chain(beside.iter().copied()) {
        root.read(member, format, envelope, told);
    }
    if root.is_no_object {
        return Vec::new();
    }
    if let Some((_, span)) = root.demands.first() {
        told.tell(rules::root_keyword::finding(told.at(*span), &root.demands));
    }
    let required = root.required.map(|required| read_required(required, root.properties, told));
    let required = required.unwrap_or_default();
    let mut arguments: Vec<Argument> = Vec::new();
    for property in root.properties {
        if let Some(schema) = read_property(property, &mut rewriter, told) {
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

/// The members of the parameters' schema and those beside the reference by which it was found.
fn find_root<'j>(
    schema: &'j Json,
    rewriter: &mut Rewriter<'j>,
    told: &mut Told,
) -> Option<(&'j [Member], Vec<&'j Member>)> {
    let JsonKind::Object(members) = &schema.kind else {
        told.tell(rules::parameters_not_an_object::finding(told.at(schema.span), describe(schema)));
        return None;
    };
    let Some(reference) = members.iter().find(|member| member.key == "$ref") else {
        return Some((members, Vec::new()));
    };
    let pointer = reference.value.as_str().unwrap_or_default();
    rewriter.is_moved = true;
    match rewriter.references.find(pointer).map(|found| &found.kind) {
        Some(JsonKind::Object(found)) if !found.iter().any(|member| member.key == "$ref") => {
            let beside = members.iter().filter(|member| member.key != "$ref");
            Some((found, beside.collect()))
        }
        Some(_) | None => {
            let why = "refers to no schema of an object";
            told.tell(rules::import_reference::finding(told.at(reference.value.span), pointer, why));
            None
        }
    }
}

/// What the schema of the parameters says.
#[derive(Default)]
struct Root<'j> {
    properties: &'j [Member],
    required: Option<&'j Json>,
    ordering: Option<&'j Json>,
    /// Keywords that ask for what a spec cannot.
    demands: Vec<(String, Span)>,
    /// Told; whatever else it says follows from it.
    is_no_object: bool,
}

impl<'j> Root<'j> {
    fn read(
        &mut self,
        member: &'j Member,
        format: ImportFormat,
        envelope: &mut Envelope<'j>,
        told: &mut Told,
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
                    told.tell(rules::parameters_not_an_object::finding(told.at(value.span), &found));
                    self.is_no_object = true;
                }
            }
            "properties" => match &value.kind {
                JsonKind::Object(properties) => self.properties = properties,
                JsonKind::Null
                | JsonKind::Bool(_)
                | JsonKind::Number(_)
                | JsonKind::String(_)
                | JsonKind::Array(_) => {
                    told.tell(rules::not_a_schema::no_properties(told.at(value.span), describe(value)));
                }
            },
            "required" => self.required = Some(value),
            "propertyOrdering" => self.ordering = Some(value),
            "additionalProperties" => match &value.kind {
                JsonKind::Bool(false) | JsonKind::Null => {}
                JsonKind::Bool(true) => told.tell(rules::open_arguments::finding(told.at(member.key_span))),
                JsonKind::Object(members) if members.is_empty() => {
                    told.tell(rules::open_arguments::finding(told.at(member.key_span)));
                }
                JsonKind::Number(_) | JsonKind::String(_) | JsonKind::Array(_) | JsonKind::Object(_) => {
                    self.demands.push((member.key.clone(), member.key_span));
                }
            },
            // Written out where they are referred to.
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
            _ => self.demands.push((member.key.clone(), member.key_span)),
        }
    }
}

/// The names of what must be given.
fn read_required<'j>(required: &'j Json, properties: &[Member], told: &mut Told) -> HashSet<&'j str> {
    let Some((names, others)) = strings_of(required) else {
        told.tell(rules::unknown_required::no_names(told.at(required.span)));
        return HashSet::new();
    };
    if let Some(other) = others.first() {
        told.tell(rules::unknown_required::no_names(told.at(other.span)));
    }
    let known: HashSet<&str> = properties.iter().map(|property| property.key.as_str()).collect();
    let JsonKind::Array(items) = &required.kind else { return names };
    for item in items {
        if let Some(name) = item.as_str().filter(|name| !known.contains(name)) {
            told.tell(rules::unknown_required::finding(told.at(item.span), name));
        }
    }
    names
}

/// The keywords of one argument.
fn read_property<'j>(
    property: &'j Member,
    rewriter: &mut Rewriter<'j>,
    told: &mut Told,
) -> Option<Vec<Member>> {
    let mut members = match &property.value.kind {
        JsonKind::Object(members) => rewriter.rewrite_members(members, 0, told),
        // Anything goes.
        JsonKind::Bool(true) => Vec::new(),
        JsonKind::Null
        | JsonKind::Bool(false)
        | JsonKind::Number(_)
        | JsonKind::String(_)
        | JsonKind::Array(_) => {
            told.tell(rules::not_a_schema::finding(told.at(property.value.span), &property.key));
            return None;
        }
    };
    members.retain(|member| {
        let is_taken = matches!(member.key.as_str(), "name" | "optional");
        if is_taken {
            told.tell(rules::argument_key::finding(told.at(member.key_span), &member.key));
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

/// Whether targets would close an object that its properties alone do not describe.
fn is_open_object(members: &[Member]) -> bool {
    let find = |key: &str| members.iter().find(|member| member.key == key).map(|member| &member.value);
    let has_properties = find("properties")
        .is_some_and(|named| matches!(&named.kind, JsonKind::Object(named) if !named.is_empty()));
    find("type").and_then(Json::as_str) == Some("object")
        && find("additionalProperties").is_none()
        && (!has_properties || BESIDE_PROPERTIES.iter().any(|key| find(key).is_some()))
}

/// The arguments that `ordering` names come first, in its order.
fn order(arguments: &mut [Argument], ordering: &Json) {
    let JsonKind::Array(names) = &ordering.kind else { return };
    let places: std::collections::HashMap<&str, usize> =
        names.iter().enumerate().filter_map(|(place, name)| Some((name.as_str()?, place))).collect();
    arguments
        .sort_by_key(|argument| places.get(argument.name.value.as_str()).copied().unwrap_or(names.len()));
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
