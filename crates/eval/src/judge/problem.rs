//! What is wrong with a reply, as data and as text.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// Maximum length of a value in a message, in characters.
const MAX_SHOWN: usize = 200;

/// A problem of a reply. `call` is the index of the call in the reply.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "problem", rename_all = "snake_case")]
pub enum Problem {
    /// The reply lacks an expected call.
    MissingCall {
        /// The expected tool.
        tool: String,
    },
    /// The reply has a call that is not expected.
    ExtraCall {
        /// The called tool.
        tool: String,
        /// The call.
        call: usize,
    },
    /// The reply has the expected calls, but in another order.
    WrongOrder {
        /// The tools in the expected order.
        expected: Vec<String>,
        /// The tools in the order of the reply.
        found: Vec<String>,
    },
    /// The engine would not run a call.
    InvalidCall {
        /// The called tool.
        tool: String,
        /// The call.
        call: usize,
        /// The reason.
        error: String,
    },
    /// An argument does not match.
    Argument {
        /// The called tool.
        tool: String,
        /// The call.
        call: usize,
        /// The difference.
        #[serde(flatten)]
        difference: Difference,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingCall { tool } => write!(f, "missing call of `{tool}`"),
            Self::ExtraCall { tool, .. } => write!(f, "extra call of `{tool}`"),
            Self::WrongOrder { expected, found } => write!(
                f,
                "calls in the wrong order: expected {}, found {}",
                quoted_list(expected),
                quoted_list(found)
            ),
            Self::InvalidCall { tool, error, .. } => write!(f, "invalid call of `{tool}`: {error}"),
            Self::Argument { difference, .. } => difference.fmt(f),
        }
    }
}

/// A difference between the arguments of a call and those that are expected.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Path into the arguments, as in `.items[2].name`; empty for all arguments.
    pub path: String,
    /// The expected value in words; `None` for an extra argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The value in the call; `None` for a missing argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match (&self.expected, &self.found) {
            (Some(expected), Some(found)) => {
                let found = code(&found.to_string());
                let place = if path.is_empty() { String::from("arguments") } else { format!("`{path}`") };
                write!(f, "{place}: expected {expected}, found {found}")
            }
            (Some(expected), None) => write!(f, "missing argument `{path}`: expected {expected}"),
            (None, Some(found)) => write!(f, "extra argument `{path}`: {}", code(&found.to_string())),
            (None, None) => write!(f, "extra argument `{path}`"),
        }
    }
}

/// Returns `text` in backticks, cut if it is long.
pub(super) fn code(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("`{}…`", text.get(..end).unwrap_or_default()),
        None => format!("`{text}`"),
    }
}

fn quoted_list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
