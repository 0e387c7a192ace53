//! The tree of schemas in a tool's parameters.
//!
//! The input is the parameters schema in its `openai` form. Support entries evaluate their conditions on a
//! [`SchemaNode`].

use std::cell::OnceCell;
use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::schema::cycles::ReferenceCycles;
use crate::schema::pointer::{escape, resolve};
use crate::spec::keywords::{self, ValueKind};

/// Maximum number of schemas that one check of a type visits; branches may refer to each other without end.
const MAX_VISITS: usize = 1000;

/// Maximum `anyOf` nesting.
const MAX_BRANCHES: usize = 64;

/// The parameters schema of a tool, with data that all its nodes share.
pub(crate) struct Parameters<'v> {
    pub schema: &'v Value,
    cycles: OnceCell<ReferenceCycles>,
}

impl<'v> Parameters<'v> {
    pub(crate) fn new(schema: &'v Value) -> Self {
        Self { schema, cycles: OnceCell::new() }
    }
}

/// A schema in a tool's parameters.
#[derive(Clone)]
pub(crate) struct SchemaNode<'a> {
    pub root: &'a Parameters<'a>,
    /// The schema: an object, a boolean, or an invalid value.
    pub schema: &'a Value,
    /// JSON pointer into the root.
    pub pointer: String,
    /// Number of enclosing objects, including the parameters.
    pub objects: usize,
    /// Whether it is an optional property.
    pub is_optional: bool,
}

/// A schema under a keyword.
pub(crate) struct Child<'a> {
    /// The name, if the keyword maps names to schemas.
    pub name: Option<&'a str>,
    pub node: SchemaNode<'a>,
}

impl<'a> SchemaNode<'a> {
    /// Returns the node of the parameters schema.
    pub(crate) fn root(parameters: &'a Parameters<'a>) -> Self {
        Self {
            root: parameters,
            schema: parameters.schema,
            pointer: String::new(),
            objects: 0,
            is_optional: false,
        }
    }

    /// Returns the members if the schema is an object.
    pub(crate) fn members(&self) -> Option<&'a Map<String, Value>> {
        self.schema.as_object()
    }

    pub(crate) fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.schema.get(keyword)
    }

    pub(crate) fn has(&self, keyword: &str) -> bool {
        self.get(keyword).is_some()
    }

    /// Returns whether `type` is `word` or a list that contains it.
    pub(crate) fn has_type(&self, word: &str) -> bool {
        match self.get("type") {
            Some(Value::String(only)) => only == word,
            Some(Value::Array(words)) => words.iter().any(|known| known == word),
            Some(_) | None => false,
        }
    }

    /// Returns whether the node is an argument of the tool.
    pub(crate) fn is_argument(&self) -> bool {
        self.pointer.matches('/').count() == 2
    }

    /// Returns the JSON pointer to a keyword of this schema.
    pub(crate) fn pointer_to(&self, keyword: &str) -> String {
        format!("{}/{}", self.pointer, escape(keyword))
    }

    /// Returns the schemas under a keyword, in order.
    pub(crate) fn children(&self, keyword: &str) -> Vec<Child<'a>> {
        let Some(value) = self.get(keyword) else { return Vec::new() };
        let child = |schema: &'a Value, step: Option<&str>, is_optional: bool| SchemaNode {
            root: self.root,
            schema,
            pointer: match step {
                Some(step) => format!("{}/{}", self.pointer_to(keyword), escape(step)),
                None => self.pointer_to(keyword),
            },
            objects: self.objects + usize::from(keyword == "properties"),
            is_optional,
        };
        match (keywords::value_kind(keyword), value) {
            (ValueKind::Named, Value::Object(named)) => {
                let required = required_names(self.schema);
                let is_optional = |name: &str| keyword == "properties" && !required.contains(name);
                let children = named.iter();
                children
                    .map(|(name, schema)| Child {
                        name: Some(name),
                        node: child(schema, Some(name), is_optional(name)),
                    })
                    .collect()
            }
            // Older drafts also allow a list.
            (ValueKind::Schema, Value::Array(items)) if keyword == "items" => items_of(items, child),
            (ValueKind::Schemas, Value::Array(items)) => items_of(items, child),
            (ValueKind::Schema, schema) => vec![Child { name: None, node: child(schema, None, false) }],
            _ => Vec::new(),
        }
    }

    /// Returns whether `null` is valid here, based on types and values only.
    pub(crate) fn accepts_null(&self) -> bool {
        accepts_null(self.root.schema, self.schema)
    }

    /// Returns the target of the `$ref` of this schema.
    pub(crate) fn target(&self) -> Option<&'a Value> {
        resolve(self.root.schema, self.get("$ref")?)
    }

    /// Returns whether the `$ref` of this schema leads into a cycle of references and branches.
    pub(crate) fn is_cyclic(&self) -> bool {
        let cycles = self.root.cycles.get_or_init(|| ReferenceCycles::of(self.root.schema));
        self.target().is_some_and(|target| cycles.contains(target))
    }
}

fn items_of<'a>(
    items: &'a [Value],
    child: impl Fn(&'a Value, Option<&str>, bool) -> SchemaNode<'a>,
) -> Vec<Child<'a>> {
    let items = items.iter().enumerate();
    items
        .map(|(index, schema)| Child { name: None, node: child(schema, Some(&index.to_string()), false) })
        .collect()
}

/// Returns the names in a schema's `required`.
pub(crate) fn required_names(schema: &Value) -> HashSet<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns whether `null` is valid under `schema`, based on types and values only.
pub(crate) fn accepts_null(root: &Value, schema: &Value) -> bool {
    accepts_type(root, schema, "null")
}

/// Returns whether a value of the type `word` is valid under `schema`, a part of the schema `root`, based on types and
/// values only.
pub fn accepts_type(root: &Value, schema: &Value, word: &str) -> bool {
    allows_type(root, schema, word, MAX_BRANCHES, &mut { MAX_VISITS })
}

fn allows_type(
    root: &Value,
    schema: &Value,
    word: &str,
    branches_left: usize,
    visits_left: &mut usize,
) -> bool {
    let is_word = |known: &Value| known == word || (word == "integer" && known == "number");
    // All of these must allow the type.
    let mut pending = vec![schema];
    while let Some(schema) = pending.pop() {
        let Value::Object(members) = schema else {
            if schema == &Value::Bool(true) {
                continue;
            }
            return false;
        };
        let Some(left) = visits_left.checked_sub(1) else { return false };
        *visits_left = left;
        let allows = members.iter().all(|(keyword, value)| match (keyword.as_str(), value) {
            ("$ref", reference) => {
                let target = resolve(root, reference);
                pending.extend(target);
                target.is_some()
            }
            ("type", Value::String(_)) => is_word(value),
            ("type", Value::Array(words)) => words.iter().any(is_word),
            ("enum", Value::Array(values)) => values.iter().any(|value| is_of_type(value, word)),
            ("const", value) => is_of_type(value, word),
            ("anyOf" | "oneOf", Value::Array(branches)) => branches_left.checked_sub(1).is_some_and(|left| {
                branches.iter().any(|branch| allows_type(root, branch, word, left, visits_left))
            }),
            ("allOf", Value::Array(parts)) => {
                pending.extend(parts);
                true
            }
            _ => true,
        });
        if !allows {
            return false;
        }
    }
    true
}

/// Returns whether `value` has the type `word` of JSON Schema. An unknown word allows every value.
pub(crate) fn is_of_type(value: &Value, word: &str) -> bool {
    match word {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    }
}
