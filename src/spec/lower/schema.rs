//! Argument plists → JSON Schema, keyword by keyword.

use std::collections::HashSet;

use super::Lowerer;
use super::plist::Entry;
use super::value::quoted;
use crate::spec::rules;
use crate::spec::{Json, JsonKind, Member, nearest};
use crate::syntax::{Datum, DatumKind};
use crate::text::Span;

/// Where a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It is an argument's plist.
    Argument,
    /// It is inside another schema.
    Nested,
}

pub(crate) const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];

/// Keywords of JSON Schema 2020-12 (and `definitions`, `nullable`, which APIs still take).
pub(super) const KEYWORDS: [&str; 52] = [
    "type",
    "description",
    "enum",
    "const",
    "items",
    "properties",
    "required",
    "additionalProperties",
    "default",
    "examples",
    "title",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "prefixItems",
    "contains",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedItems",
    "unevaluatedProperties",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "$ref",
    "$defs",
    "definitions",
    "$comment",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentEncoding",
    "contentMediaType",
    "nullable",
];

impl Lowerer {
    /// The schema that a plist is. `None`: it is none; told.
    pub(super) fn lower_schema(&mut self, datum: Datum, place: Place) -> Option<Json> {
        let span = datum.span;
        match datum.kind {
            DatumKind::List(items) => {
                let entries = self.read_plist(items, &KEYWORDS);
                Some(Json { span, kind: JsonKind::Object(self.lower_keywords(entries, span, place)) })
            }
            // `:additionalProperties :json-false`, `:items t`: a schema may be a boolean.
            DatumKind::Symbol(_) | DatumKind::Keyword(_) => self.json_value(Datum { span, kind: datum.kind }),
            DatumKind::Quoted(inner) => {
                self.tell_quoted(span, &inner);
                None
            }
            DatumKind::Invalid => None,
            kind => {
                let found = Datum { span, kind };
                let message =
                    format!("expected a schema plist such as `(:type string)`, found {}", found.describe());
                self.tell(&rules::WRONG_VALUE, span, message);
                None
            }
        }
    }

    /// The members of a schema.
    pub(super) fn lower_keywords(&mut self, entries: Vec<Entry>, span: Span, place: Place) -> Vec<Member> {
        let mut members = Vec::new();
        let mut written = Vec::new();
        for entry in entries {
            let (key, key_span) = (entry.key.clone(), entry.key_span);
            written.push(key.clone());
            if let Some(value) = self.lower_keyword(entry, place) {
                members.push(Member { key, key_span, value });
            }
        }
        self.check_shape(&members, &written, span);
        members
    }

    fn lower_keyword(&mut self, entry: Entry, place: Place) -> Option<Json> {
        match entry.key.as_str() {
            "type" => return self.lower_type(entry.value),
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                return self.lower_properties(&entry.key, entry.value);
            }
            "items"
            | "additionalProperties"
            | "contains"
            | "propertyNames"
            | "not"
            | "if"
            | "then"
            | "else"
            | "unevaluatedItems"
            | "unevaluatedProperties" => {
                if let DatumKind::Vector(items) = entry.value.kind {
                    return Some(self.lower_schemas(items, entry.value.span));
                }
                return self.lower_schema(entry.value, Place::Nested);
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                if let DatumKind::Vector(items) = entry.value.kind {
                    return Some(self.lower_schemas(items, entry.value.span));
                }
                self.tell_wrong(&entry.key, &entry.value, "a vector of schema plists");
                return None;
            }
            "enum" => return self.lower_enum(entry.value),
            "required" => return self.lower_required(entry.value, entry.key_span, place),
            "optional" if place == Place::Nested => {
                self.findings.push(
                    self.finding(
                        &rules::OPTIONAL_MISPLACED,
                        entry.key_span,
                        String::from("`:optional` has no effect inside a schema"),
                    )
                    .note("a property is optional unless `:required [\"…\"]` of its object names it"),
                );
            }
            known if KEYWORDS.contains(&known) => {}
            _ => self.tell_unknown_key(
                &rules::UNKNOWN_ARGUMENT_KEY,
                &entry,
                "an argument or of JSON Schema",
                &KEYWORDS,
            ),
        }
        self.json_value(entry.value)
    }

    fn lower_schemas(&mut self, items: Vec<Datum>, span: Span) -> Json {
        let schemas = items.into_iter().filter_map(|item| self.lower_schema(item, Place::Nested)).collect();
        Json { span, kind: JsonKind::Array(schemas) }
    }

    fn lower_type(&mut self, value: Datum) -> Option<Json> {
        let span = value.span;
        match value.kind {
            DatumKind::Symbol(word) => Some(self.type_word(word, span)),
            // nil is no type, but `null` may be meant.
            DatumKind::List(items) if items.is_empty() => {
                let message = String::from("`nil` is no type");
                let finding =
                    self.finding(&rules::UNKNOWN_TYPE, span, message).labelled("did you mean `null`?");
                self.findings.push(finding.maybe_fixed_by("write `null`", span, "null"));
                None
            }
            DatumKind::String(word) => {
                if TYPES.contains(&word.as_str()) {
                    let message = format!("`:type \"{word}\"` is written `:type {word}`");
                    let finding = self.finding(&rules::TYPE_AS_STRING, span, message);
                    self.findings.push(finding.fixed_by(format!("write `{word}`"), span, word.clone()));
                }
                Some(self.type_word(word, span))
            }
            DatumKind::Vector(items) => {
                let words = items.into_iter().filter_map(|item| self.lower_type(item)).collect();
                Some(Json { span, kind: JsonKind::Array(words) })
            }
            DatumKind::Quoted(inner) => {
                self.tell_quoted(span, &inner);
                None
            }
            DatumKind::Invalid => None,
            kind => {
                self.tell_wrong("type", &Datum { span, kind }, "a symbol such as `string`");
                None
            }
        }
    }

    fn type_word(&mut self, word: String, span: Span) -> Json {
        if !TYPES.contains(&word.as_str()) {
            let mut finding =
                self.finding(&rules::UNKNOWN_TYPE, span, format!("`{word}` is no JSON Schema type"));
            let alias = match word.as_str() {
                "bool" => Some("boolean"),
                "int" => Some("integer"),
                "float" | "double" => Some("number"),
                "list" | "vector" => Some("array"),
                "str" | "text" | "file" | "path" => Some("string"),
                "dict" | "map" | "hash-table" | "plist" | "alist" => Some("object"),
                _ => nearest(&word, TYPES),
            };
            finding = match alias {
                Some(known) => finding.labelled(format!("did you mean `{known}`?")).maybe_fixed_by(
                    format!("write `{known}`"),
                    span,
                    known,
                ),
                None => finding.note(format!("types: {}", TYPES.join(", "))),
            };
            self.findings.push(finding);
        }
        Json { span, kind: JsonKind::String(word) }
    }

    /// A plist of names to schemas.
    fn lower_properties(&mut self, key: &str, value: Datum) -> Option<Json> {
        let span = value.span;
        let items = match value.kind {
            DatumKind::List(items) => items,
            DatumKind::Quoted(inner) => {
                self.tell_quoted(span, &inner);
                return None;
            }
            DatumKind::Invalid => return None,
            kind => {
                let found = Datum { span, kind };
                let message = format!("`:{key}` takes a plist of schemas, found {}", found.describe());
                self.tell(&rules::PROPERTIES_NOT_A_PLIST, span, message);
                return None;
            }
        };
        if let Some(first) = items.first()
            && !matches!(first.kind, DatumKind::Keyword(_))
        {
            let what = match &first.kind {
                DatumKind::Dotted(..) => "an alist",
                DatumKind::List(_) => "a list of plists",
                _ => "a list",
            };
            self.findings.push(
                self.finding(
                    &rules::PROPERTIES_NOT_A_PLIST,
                    span,
                    format!("`:{key}` takes a plist of schemas, found {what}"),
                )
                .note("write `(:first (:type string) :second (:type number))`"),
            );
            return None;
        }
        // A property may have any name, `:type` and `:description:` among them: nothing is known here.
        let entries = self.read_plist(items, &[]);
        let mut members = Vec::new();
        for entry in entries {
            if let Some(value) = self.lower_schema(entry.value, Place::Nested) {
                members.push(Member { key: entry.key, key_span: entry.key_span, value });
            }
        }
        Some(Json { span, kind: JsonKind::Object(members) })
    }

    fn lower_enum(&mut self, value: Datum) -> Option<Json> {
        let span = value.span;
        match value.kind {
            DatumKind::Vector(items) => {
                let values = items.into_iter().filter_map(|item| self.lower_enum_value(item)).collect();
                Some(Json { span, kind: JsonKind::Array(values) })
            }
            DatumKind::Invalid => None,
            kind => {
                let found = Datum { span, kind };
                let mut finding = self.finding(
                    &rules::ENUM_NOT_A_VECTOR,
                    span,
                    format!("`:enum` takes a vector, found {}", found.describe()),
                );
                finding = finding.note("write `:enum [\"first\" \"second\"]`");
                self.findings.push(finding);
                None
            }
        }
    }

    fn lower_enum_value(&mut self, item: Datum) -> Option<Json> {
        match &item.kind {
            DatumKind::Symbol(word) if word != "t" => {
                let message = format!("`:enum` values are constants, and `{word}` is a symbol");
                let finding = self.finding(&rules::ENUM_NOT_A_VECTOR, item.span, message);
                self.findings.push(finding.fixed_by("write a string", item.span, quoted(word)));
                None
            }
            _ => self.json_value(item),
        }
    }

    fn lower_required(&mut self, value: Datum, key_span: Span, place: Place) -> Option<Json> {
        match &value.kind {
            DatumKind::Vector(_) => self.json_value(value),
            DatumKind::Symbol(word) if word == "t" => {
                self.tell_required_flag(key_span.to(value.span), place);
                self.json_value(value)
            }
            DatumKind::Keyword(_) => {
                self.tell_required_flag(key_span.to(value.span), place);
                self.json_value(value)
            }
            DatumKind::List(items) if items.is_empty() => {
                self.tell_required_flag(key_span.to(value.span), place);
                self.json_value(value)
            }
            _ => {
                self.tell_wrong("required", &value, "a vector of property names");
                None
            }
        }
    }

    fn tell_required_flag(&mut self, span: Span, place: Place) {
        let finding = match place {
            Place::Argument => self
                .finding(
                    &rules::REQUIRED_MISPLACED,
                    span,
                    String::from("`:required` on an argument says nothing; arguments are required unless `:optional t`"),
                )
                .fixed_by("remove it", span, ""),
            Place::Nested => self.finding(
                &rules::REQUIRED_MISPLACED,
                span,
                String::from("`:required` takes a vector of property names and stands on the object"),
            ),
        };
        self.findings.push(finding.note("it is sent as it is, and some APIs refuse it"));
    }

    /// What the keywords of one schema say of each other. `written` are all its keys, those too whose values could
    /// not be read: what was meant is not missing.
    fn check_shape(&mut self, members: &[Member], written: &[String], span: Span) {
        let is_written = |key: &str| written.iter().any(|known| known == key);
        let find = |key: &str| members.iter().find(|member| member.key == key);
        let type_name = find("type").and_then(|member| member.value.as_str());
        let key_span = find("type").map_or(span, |member| member.key_span.to(member.value.span));
        match type_name {
            Some("array") if !is_written("items") && !is_written("prefixItems") => {
                let message = String::from("an array without `:items` does not say what it holds");
                let finding = self.finding(&rules::ARRAY_WITHOUT_ITEMS, key_span, message);
                self.findings.push(
                    finding.note("OpenAI and Gemini refuse it; add `:items (:type string)` or the like"),
                );
            }
            Some("object")
                if ![
                    "properties",
                    "additionalProperties",
                    "anyOf",
                    "oneOf",
                    "allOf",
                    "$ref",
                    "patternProperties",
                ]
                .into_iter()
                .any(is_written) =>
            {
                let message = String::from("an object without `:properties` does not say what it holds");
                self.tell(&rules::OBJECT_WITHOUT_PROPERTIES, key_span, message);
            }
            _ => {}
        }
        self.check_required(find("required"), find("properties"));
        self.check_enum(type_name, find("enum"));
    }

    fn check_required(&mut self, required: Option<&Member>, properties: Option<&Member>) {
        let (Some(required), Some(properties)) = (required, properties) else { return };
        let (JsonKind::Array(names), JsonKind::Object(known)) =
            (&required.value.kind, &properties.value.kind)
        else {
            return;
        };
        let keys: HashSet<&str> = known.iter().map(|property| property.key.as_str()).collect();
        for name in names {
            match name.as_str() {
                Some(word) if keys.contains(word) => {}
                Some(word) => {
                    let message = format!("`:required` names `{word}`, which `:properties` does not have");
                    let mut finding = self.finding(&rules::REQUIRED_UNKNOWN, name.span, message);
                    if let Some(near) = nearest(word, known.iter().map(|property| property.key.as_str())) {
                        finding = finding.labelled(format!("did you mean \"{near}\"?")).maybe_fixed_by(
                            format!("write \"{near}\""),
                            name.span,
                            quoted(near),
                        );
                    }
                    self.findings.push(finding);
                }
                None => {
                    let message = String::from("`:required` holds the names of properties, as strings");
                    self.tell(&rules::REQUIRED_UNKNOWN, name.span, message);
                }
            }
        }
    }

    fn check_enum(&mut self, type_name: Option<&str>, member: Option<&Member>) {
        let Some(Member { value: Json { kind: JsonKind::Array(values), span }, .. }) = member else { return };
        if values.is_empty() {
            self.tell(&rules::ENUM_MISFIT, *span, String::from("an empty `:enum` allows nothing"));
        }
        for value in values {
            let fits = match (type_name, &value.kind) {
                (Some("string"), kind) => matches!(kind, JsonKind::String(_)),
                (Some("integer"), JsonKind::Number(number)) => {
                    // JSON Schema counts 1.0 among the integers.
                    number.as_f64().is_none_or(|value| value.fract() == 0.0)
                }
                (Some("number"), kind) => matches!(kind, JsonKind::Number(_)),
                (Some("boolean"), kind) => matches!(kind, JsonKind::Bool(_)),
                (Some("integer"), _) => false,
                _ => true,
            };
            if !fits {
                let message = format!("this `:enum` value is no {}", type_name.unwrap_or_default());
                self.tell(&rules::ENUM_MISFIT, value.span, message);
            }
        }
    }
}
