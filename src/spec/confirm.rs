//! `:confirm`: which calls a person is asked about.

use std::cell::OnceCell;
use std::collections::HashMap;

use super::json::{Json, JsonKind, Member};

/// Which calls of a tool a person is asked about before they are made.
///
/// `:confirm t` is every call, `:confirm (:when CONDITION…)` those that meet one of the conditions. A condition is a plist
/// of the tool's arguments, and a call meets it where each of them is there and passes its test: a string is a pattern as
/// JSON Schema's, which is looked for anywhere in the text, `t`, `:json-false`, `:null` and numbers are equal to the
/// argument, a vector holds tests of which one will do, and a plist is a condition on the members of an object. An
/// argument that is an array passes where one of its items does.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Confirm {
    /// None.
    #[default]
    Never,
    /// Every call.
    Always,
    /// Those that meet one of these conditions, each an object.
    When(Vec<Json>),
}

impl Confirm {
    /// Whether there are calls that a person is asked about.
    pub fn is_set(&self) -> bool {
        match self {
            Self::Never => false,
            Self::Always | Self::When(_) => true,
        }
    }

    /// The conditions, if there are some.
    pub fn conditions(&self) -> &[Json] {
        match self {
            Self::Never | Self::Always => &[],
            Self::When(conditions) => conditions,
        }
    }
}

/// A schema that tests are held against, and what they may name in it: looked for once, however many conditions ask.
pub(crate) struct Testable<'s> {
    pub(crate) schema: &'s [Member],
    members: OnceCell<Option<Names<'s>>>,
}

/// Members by name, with the schemas of those that have one.
type Names<'s> = HashMap<&'s str, Option<Testable<'s>>>;

impl<'s> Testable<'s> {
    pub(crate) fn new(schema: &'s [Member]) -> Self {
        Self { schema, members: OnceCell::new() }
    }

    /// The members that a test may name, where the schema says which there are: those of its objects, or of the objects
    /// that are its items.
    pub(crate) fn members(&self) -> Option<&Names<'s>> {
        let named = |member: &'s Member| match &member.value.kind {
            JsonKind::Object(schema) => (member.key.as_str(), Some(Self::new(schema))),
            _ => (member.key.as_str(), None),
        };
        let members = || testable_members(self.schema).map(|members| members.iter().map(named).collect());
        self.members.get_or_init(members).as_ref()
    }
}

/// The members that a test of `schema` may name, in the order of the spec.
pub(crate) fn testable_members(schema: &[Member]) -> Option<&[Member]> {
    let get = |key: &str| schema.iter().find(|member| member.key == key).map(|member| &member.value.kind);
    if let Some(JsonKind::Object(items)) = get("items") {
        return testable_members(items);
    }
    let Some(JsonKind::Object(properties)) = get("properties") else { return None };
    let opens = ["additionalProperties", "patternProperties", "$ref", "anyOf", "oneOf", "allOf"];
    let is_open = |key: &&str| !matches!(get(key), None | Some(JsonKind::Bool(false)));
    (!opens.iter().any(is_open)).then_some(properties)
}
