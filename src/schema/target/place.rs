//! A schema and where it stands in a tool's parameters, and the walk over all of them.
//!
//! In goes the parameters schema as `openai` gets it; claims ask their questions of a [`Place`].

use std::cell::OnceCell;
use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::schema::circles::Circles;
use crate::schema::pointer::{escape, resolve};
use crate::spec::keywords::{self, Takes};

/// Schemas that one question about null looks at; branches may lead into each other for ever.
const MAX_LOOKS: usize = 1000;

/// Branches that it enters one in the other.
const MAX_BRANCHES: usize = 64;

/// The parameters schema of a tool, and what is asked of it at many places.
pub(crate) struct Parameters<'v> {
    pub schema: &'v Value,
    circles: OnceCell<Circles>,
}

impl<'v> Parameters<'v> {
    pub(crate) fn new(schema: &'v Value) -> Self {
        Self { schema, circles: OnceCell::new() }
    }
}

/// A schema in a tool's parameters.
#[derive(Clone)]
pub(crate) struct Place<'a> {
    pub root: &'a Parameters<'a>,
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
    pub(crate) fn root(parameters: &'a Parameters<'a>) -> Self {
        Self {
            root: parameters,
            schema: parameters.schema,
            pointer: String::new(),
            objects: 0,
            is_optional: false,
        }
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
        match (keywords::takes(keyword), value) {
            (Takes::Named, Value::Object(named)) => {
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
            // In older drafts a list, too.
            (Takes::Schema, Value::Array(items)) if keyword == "items" => items_of(items, child),
            (Takes::Schemas, Value::Array(items)) => items_of(items, child),
            (Takes::Schema, schema) => vec![Child { name: None, place: child(schema, None, false) }],
            (
                Takes::Named
                | Takes::Schemas
                | Takes::Text
                | Takes::Flag
                | Takes::Count
                | Takes::Number
                | Takes::Positive
                | Takes::Vector
                | Takes::Own
                | Takes::Any,
                _,
            ) => Vec::new(),
        }
    }

    /// Whether `null` is valid here, as far as types and values say.
    pub(crate) fn accepts_null(&self) -> bool {
        accepts_null(self.root.schema, self.schema)
    }

    /// What the reference here leads to.
    pub(crate) fn target(&self) -> Option<&'a Value> {
        resolve(self.root.schema, self.get("$ref")?)
    }

    /// Whether the reference here leads to what leads back to itself, through references and branches alone.
    pub(crate) fn is_circle(&self) -> bool {
        let circles = self.root.circles.get_or_init(|| Circles::of(self.root.schema));
        self.target().is_some_and(|target| circles.contains(target))
    }
}

fn items_of<'a>(
    items: &'a [Value],
    child: impl Fn(&'a Value, Option<&str>, bool) -> Place<'a>,
) -> Vec<Child<'a>> {
    let items = items.iter().enumerate();
    items
        .map(|(index, schema)| Child { name: None, place: child(schema, Some(&index.to_string()), false) })
        .collect()
}

/// The names in a schema's `required`.
pub(crate) fn required_names(schema: &Value) -> HashSet<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether `null` is valid under `schema`, as far as types and values say.
pub(crate) fn accepts_null(root: &Value, schema: &Value) -> bool {
    takes_null(root, schema, MAX_BRANCHES, &mut { MAX_LOOKS })
}

fn takes_null(root: &Value, schema: &Value, branches_left: usize, looks: &mut usize) -> bool {
    // All of these must.
    let mut pending = vec![schema];
    while let Some(schema) = pending.pop() {
        let Value::Object(members) = schema else {
            if schema == &Value::Bool(true) {
                continue;
            }
            return false;
        };
        let Some(left) = looks.checked_sub(1) else { return false };
        *looks = left;
        let takes = members.iter().all(|(keyword, value)| match (keyword.as_str(), value) {
            ("$ref", reference) => {
                let target = resolve(root, reference);
                pending.extend(target);
                target.is_some()
            }
            ("type", Value::String(word)) => word == "null",
            ("type", Value::Array(words)) => words.iter().any(|word| word == "null"),
            ("enum", Value::Array(values)) => values.contains(&Value::Null),
            ("const", value) => value.is_null(),
            ("anyOf" | "oneOf", Value::Array(branches)) => branches_left
                .checked_sub(1)
                .is_some_and(|left| branches.iter().any(|branch| takes_null(root, branch, left, looks))),
            ("allOf", Value::Array(parts)) => {
                pending.extend(parts);
                true
            }
            _ => true,
        });
        if !takes {
            return false;
        }
    }
    true
}
