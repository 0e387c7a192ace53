//! `:confirm`: which calls a person is asked about.

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

/// The members that a test of `schema` may name, where it says which there are: those of its objects, or of the objects
/// that are its items.
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
