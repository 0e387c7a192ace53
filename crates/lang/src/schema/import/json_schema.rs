//! A plain JSON Schema of an object: one tool with the properties as arguments.

use super::model::Envelope;
use super::schema::References;
use crate::spec::form::string;
use crate::spec::{Effect, Json};
use crate::syntax::Datum;
use crate::text::{Span, Spanned};

/// Maximum name length that every API supports.
const MAX_NAME: usize = 64;

/// Reads a definition. The name is the `title`, the last part of `$id` or `$ref`, or the file name.
pub(super) fn read<'j>(schema: &'j Json, file_name: Option<&str>) -> Envelope<'j> {
    let reference = text_of(schema, "$ref");
    let body = reference.and_then(|(pointer, _)| References::new(schema).find(pointer));
    let of_either = |key: &str| text_of(schema, key).or_else(|| text_of(body?, key));
    let name = of_either("title")
        .or_else(|| of_either("$id"))
        .or(reference)
        .and_then(|(text, span)| name_of(text, span))
        .or_else(|| name_of(file_name?, Span { start: schema.span.start, end: schema.span.start + 1 }));
    let described = |schema: &'j Json| schema.get("description").map(|member| &member.value);
    Envelope {
        name,
        named_by: "`title` or `$id`, and no file name",
        description: described(schema).or_else(|| described(body?)),
        parameters: Some(schema),
        effect: Effect::default(),
        returns: None,
        left_out: Vec::new(),
    }
}

fn text_of<'j>(schema: &'j Json, key: &str) -> Option<(&'j str, Span)> {
    let member = schema.get(key)?;
    member.value.as_str().map(|text| (text, member.value.span))
}

/// Converts the last part of a path or title to a name with characters that every API supports. A new name is safe
/// because nothing refers to the tool yet.
fn name_of(text: &str, span: Span) -> Option<Datum> {
    let last = text.trim_end_matches(['/', '#']).rsplit('/').next().unwrap_or_default();
    let stem = last.strip_suffix(".json").unwrap_or(last);
    let stem = stem.strip_suffix(".schema").unwrap_or(stem);
    let words = stem.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
    let mut name = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("_");
    name.truncate(MAX_NAME);
    (!name.is_empty()).then(|| string(&Spanned::new(name, span)))
}
