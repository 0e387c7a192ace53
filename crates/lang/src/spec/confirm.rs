//! `:confirm`: the calls that need the user's confirmation.

use std::cell::OnceCell;
use std::collections::HashMap;

use super::json::{Json, JsonKind, Member};

/// The calls of a tool that need the user's confirmation.
///
/// `:confirm t` means every call, `:confirm (:when CONDITION…)` the calls that match at least one condition. A
/// condition is a plist with a test for each argument that it names. A call matches if all these arguments are present
/// and pass their tests:
///
/// - A string is a JSON Schema pattern, searched anywhere in the text.
/// - `t`, `:json-false`, `:null` and numbers must be equal to the argument.
/// - A vector contains alternative tests.
/// - A plist is a condition on the members of an object.
///
/// An array argument passes if one of its items does.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Confirm {
    /// No calls.
    #[default]
    Never,
    /// Every call.
    Always,
    /// Calls that match at least one of these conditions, each an object.
    When(Vec<Json>),
}

impl Confirm {
    /// Whether any calls need confirmation.
    pub fn is_set(&self) -> bool {
        match self {
            Self::Never => false,
            Self::Always | Self::When(_) => true,
        }
    }

    /// Returns the conditions; empty if there are none.
    pub fn conditions(&self) -> &[Json] {
        match self {
            Self::Never | Self::Always => &[],
            Self::When(conditions) => conditions,
        }
    }
}

/// A schema with the members that a test may name, which are computed once for all conditions.
pub(crate) struct Testable<'s> {
    pub(crate) schema: &'s [Member],
    members: OnceCell<Option<Names<'s>>>,
}

/// Members by name, with their schemas if they have one.
type Names<'s> = HashMap<&'s str, Option<Testable<'s>>>;

impl<'s> Testable<'s> {
    pub(crate) fn new(schema: &'s [Member]) -> Self {
        Self { schema, members: OnceCell::new() }
    }

    /// Returns the members that a test may name: those of the object, or of the objects that are its items. `None` if
    /// the schema does not define all members.
    pub(crate) fn members(&self) -> Option<&Names<'s>> {
        let named = |member: &'s Member| match &member.value.kind {
            JsonKind::Object(schema) => (member.key.as_str(), Some(Self::new(schema))),
            _ => (member.key.as_str(), None),
        };
        let members = || testable_members(self.schema).map(|members| members.iter().map(named).collect());
        self.members.get_or_init(members).as_ref()
    }
}

/// Returns the members that a test of `schema` may name, in the order of the spec.
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
