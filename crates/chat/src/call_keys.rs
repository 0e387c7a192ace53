//! The members of a call in JSON, in the shapes of all APIs and model families.
//!
//! A call has no arguments only if nothing else could be its arguments: each member is empty or belongs to the call
//! itself. Otherwise the arguments are unread, and the call is malformed instead of a call without arguments.

use serde::{Serialize, Serializer};
use serde_json::Value;

/// The keys of a call's name, by precedence.
pub(crate) const NAME_KEYS: [&str; 4] = ["name", "tool", "tool_name", "function"];

/// The keys of a call's arguments, by precedence.
pub const ARGUMENT_KEYS: [&str; 5] = ["arguments", "parameters", "input", "args", "params"];

/// The keys of the arguments in a call without marks. The other keys also occur in ordinary JSON.
pub(crate) const UNMARKED_ARGUMENT_KEYS: [&str; 2] = ["arguments", "parameters"];

/// The other keys in a call without marks. An object with a different key is ordinary JSON.
pub(crate) const UNMARKED_OWN_KEYS: [&str; 3] = ["id", "tool_call_id", "type"];

/// The keys of members that describe the call itself. They never contain arguments.
const OWN_KEYS: [&str; 12] = [
    "id",
    "type",
    "index",
    "call_id",
    "tool_call_id",
    "status",
    // The Responses API.
    "namespace",
    "created_by",
    // The Messages API.
    "caller",
    // Gemini, and gateways to it.
    "extra_content",
    "provider_specific_fields",
    "thought_signature",
];

/// Maximum number of characters of a key in a message.
const MAX_SHOWN_KEY: usize = 64;

/// The content of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// `null` or blank text, like a missing member.
    Absent,
    /// `{}`.
    Empty,
    /// Anything else.
    Filled,
}

impl Content {
    /// Returns the content of a JSON text.
    pub(crate) fn of_text(text: &str) -> Self {
        match text.trim() {
            "" | "null" | "\"\"" => Self::Absent,
            "{}" => Self::Empty,
            _ => Self::Filled,
        }
    }
}

/// The value of a member.
pub(crate) trait MemberValue: Serialize {
    fn content(&self) -> Content;

    /// Returns the text of a string.
    fn text(&self) -> Option<&str>;
}

impl MemberValue for Value {
    fn content(&self) -> Content {
        match self {
            Self::Null => Content::Absent,
            Self::String(text) => Content::of_text(text),
            Self::Object(members) if members.is_empty() => Content::Empty,
            Self::Object(_) | Self::Bool(_) | Self::Number(_) | Self::Array(_) => Content::Filled,
        }
    }

    fn text(&self) -> Option<&str> {
        self.as_str()
    }
}

/// The arguments among the members of a call.
#[derive(Debug)]
pub(crate) enum FoundArguments<'m, V> {
    /// The value of a member: `{}` or filled.
    Value(&'m V),
    /// The call has no arguments.
    None,
    /// The call has no arguments, but members that may be.
    Unread(Unread),
}

/// Members that are neither arguments nor belong to the call itself.
#[derive(Debug)]
pub(crate) struct Unread {
    /// The members as a JSON object.
    pub(crate) text: String,
    pub(crate) error: String,
}

/// Finds the arguments of the call `name` among its `members`, which may have one of `keys`. A filled member has
/// precedence over `{}`, which gateways send as a placeholder.
pub(crate) fn find_arguments<'m, V: MemberValue>(
    members: impl Iterator<Item = (&'m str, &'m V)> + Clone,
    name: &str,
    keys: &[&str],
) -> FoundArguments<'m, V> {
    let with = |content| {
        let mut found = keys.iter().filter_map(|key| {
            members.clone().find(|(other, value)| other == key && value.content() == content)
        });
        found.next().map(|(_, value)| value)
    };
    if let Some(value) = with(Content::Filled).or_else(|| with(Content::Empty)) {
        return FoundArguments::Value(value);
    }
    let is_own = |key: &str, value: &V| {
        OWN_KEYS.contains(&key) || (NAME_KEYS.contains(&key) && value.text() == Some(name))
    };
    let unread = members.filter(|(key, value)| value.content() == Content::Filled && !is_own(key, value));
    match unread.clone().next() {
        None => FoundArguments::None,
        Some((key, _)) => {
            let key: String = key.chars().take(MAX_SHOWN_KEY).collect();
            let error = format!("expected the member `arguments`, found `{key}`");
            FoundArguments::Unread(Unread { text: to_json(unread), error })
        }
    }
}

fn to_json<'m, V: MemberValue + 'm>(members: impl Iterator<Item = (&'m str, &'m V)>) -> String {
    let mut json = Vec::new();
    // Strings as keys, and a buffer in memory, cannot fail.
    let _ = serde_json::Serializer::new(&mut json).collect_map(members);
    String::from_utf8(json).unwrap_or_default()
}
