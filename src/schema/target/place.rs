//! A schema and where it stands in a tool's parameters, and the walk over all of them.
//!
//! In goes the parameters schema as `openai` gets it; claims ask their questions of a [`Place`].

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::schema::locate::escape;

/// Keywords that hold schemas by name.
const MAPS: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
/// Keywords that hold lists of schemas.
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keywords that hold one schema; `items` may be a list in older drafts.
const SINGLE: [&str; 10] = [
    "items",
    "additionalProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords that say something about a value and allow or forbid none.
pub(crate) const ANNOTATIONS: [&str; 11] = [
    "title",
    "description",
    "default",
    "examples",
    "$comment",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentEncoding",
    "contentMediaType",
    "nullable",
];

/// Keywords that hold values.
const VALUES: [&str; 21] = [
    "type",
    "enum",
    "const",
    "required",
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
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
    "dependentRequired",
];

/// Whether `key` is a keyword of JSON Schema.
pub(crate) fn is_keyword(key: &str) -> bool {
    [&MAPS[..], &LISTS, &SINGLE, &VALUES, &ANNOTATIONS].iter().any(|words| words.contains(&key))
        || key == "$ref"
}

/// Schemas that one question about null looks at; branches may lead into each other for ever.
const MAX_LOOKS: usize = 1000;

/// A schema in a tool's parameters.
#[derive(Clone)]
pub(crate) struct Place<'a> {
    /// The parameters schema.
    pub root: &'a Value,
    /// The schema here: an object, a boolean, or what is neither.
    pub schema: &'a Value,
    /// Where, as a JSON pointer into the root.
    pub pointer: String,
    /// How many objects are around it, the parameters among them.
    pub objects: usize,
    /// Whether it is a property that may be left out.
    pub is_optional: bool,
}

/// A schema under a keyword.
pub(crate) struct Child<'a> {
    /// The name, under a keyword that holds schemas by name.
    pub name: Option<&'a str>,
    pub place: Place<'a>,
}

impl<'a> Place<'a> {
    /// The parameters themselves.
    pub(crate) fn root(parameters: &'a Value) -> Self {
        Self { root: parameters, schema: parameters, pointer: String::new(), objects: 0, is_optional: false }
    }

    /// The members, of a schema that is an object.
    pub(crate) fn members(&self) -> Option<&'a Map<String, Value>> {
        self.schema.as_object()
    }

    pub(crate) fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.schema.get(keyword)
    }

    pub(crate) fn has(&self, keyword: &str) -> bool {
        self.get(keyword).is_some()
    }

    /// Whether `type` is `word` or a list that holds it.
    pub(crate) fn has_type(&self, word: &str) -> bool {
        match self.get("type") {
            Some(Value::String(only)) => only == word,
            Some(Value::Array(words)) => words.iter().any(|known| known == word),
            Some(_) | None => false,
        }
    }

    /// Whether it is an argument of the tool.
    pub(crate) fn is_argument(&self) -> bool {
        self.pointer.matches('/').count() == 2
    }

    /// The pointer of a keyword here.
    pub(crate) fn pointer_to(&self, keyword: &str) -> String {
        format!("{}/{}", self.pointer, escape(keyword))
    }

    /// The schemas under a keyword, in order.
    pub(crate) fn children(&self, keyword: &str) -> Vec<Child<'a>> {
        let Some(value) = self.get(keyword) else { return Vec::new() };
        let child = |schema: &'a Value, step: Option<&str>, is_optional: bool| Place {
            root: self.root,
            schema,
            pointer: match step {
                Some(step) => format!("{}/{}", self.pointer_to(keyword), escape(step)),
                None => self.pointer_to(keyword),
            },
            objects: self.objects + usize::from(keyword == "properties"),
            is_optional,
        };
        match value {
            Value::Object(named) if MAPS.contains(&keyword) => {
                let required = required_names(self.schema);
                let is_optional = |name: &str| keyword == "properties" && !required.contains(name);
                let children = named.iter();
                children
                    .map(|(name, schema)| Child {
                        name: Some(name),
                        place: child(schema, Some(name), is_optional(name)),
                    })
                    .collect()
            }
            Value::Array(items) if LISTS.contains(&keyword) || keyword == "items" => items
                .iter()
                .enumerate()
                .map(|(index, schema)| Child {
                    name: None,
                    place: child(schema, Some(&index.to_string()), false),
                })
                .collect(),
            schema if SINGLE.contains(&keyword) => {
                vec![Child { name: None, place: child(schema, None, false) }]
            }
            _ => Vec::new(),
        }
    }

    /// Whether `null` is valid here, as far as types and values say.
    pub(crate) fn accepts_null(&self) -> bool {
        accepts_null(self.root, self.schema)
    }

    /// Whether the reference here leads back to itself, through references and branches alone.
    pub(crate) fn is_circle(&self) -> bool {
        let own = self.get("$ref");
        let mut seen: HashSet<&str> = HashSet::new();
        let mut pending: Vec<&Value> = own.and_then(|own| resolve(self.root, own)).into_iter().collect();
        while let Some(schema) = pending.pop() {
            if let Some(reference) = schema.get("$ref") {
                if Some(reference) == own {
                    return true;
                }
                if seen.insert(reference.as_str().unwrap_or_default()) {
                    pending.extend(resolve(self.root, reference));
                }
            }
            let branches =
                ["anyOf", "oneOf"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_array());
            pending.extend(branches.flatten());
        }
        false
    }
}

/// What a `$ref` inside a schema leads to.
pub(crate) fn resolve<'a>(root: &'a Value, reference: &Value) -> Option<&'a Value> {
    root.pointer(reference.as_str()?.strip_prefix('#')?)
}

/// The names in a schema's `required`.
pub(crate) fn required_names(schema: &Value) -> HashSet<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether `null` is valid under `schema`, as far as types and values say.
pub(crate) fn accepts_null(root: &Value, schema: &Value) -> bool {
    takes_null(root, schema, &mut { MAX_LOOKS })
}

fn takes_null(root: &Value, schema: &Value, looks: &mut usize) -> bool {
    let Value::Object(members) = schema else { return schema == &Value::Bool(true) };
    let Some(left) = looks.checked_sub(1) else { return false };
    *looks = left;
    members.iter().all(|(keyword, value)| match (keyword.as_str(), value) {
        ("$ref", reference) => resolve(root, reference).is_some_and(|target| takes_null(root, target, looks)),
        ("type", Value::String(word)) => word == "null",
        ("type", Value::Array(words)) => words.iter().any(|word| word == "null"),
        ("enum", Value::Array(values)) => values.contains(&Value::Null),
        ("const", value) => value.is_null(),
        ("anyOf" | "oneOf", Value::Array(branches)) => {
            branches.iter().any(|branch| takes_null(root, branch, looks))
        }
        ("allOf", Value::Array(parts)) => parts.iter().all(|part| takes_null(root, part, looks)),
        _ => true,
    })
}
