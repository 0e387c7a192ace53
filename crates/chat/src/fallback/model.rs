//! The input and output of the scanner: the forms to look for, the pieces of a text and the calls in it.

use deftool_lang::schema::Repair;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::RawArguments;

/// Maximum length of held-back text, in bytes. A longer form is malformed if it is marked, and text otherwise.
pub const MAX_HELD: usize = 64 * 1024;

/// The forms to look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forms {
    /// Include the forms without marks: JSON lines, code blocks and lists.
    pub unmarked: bool,
}

/// A part of the text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Piece {
    /// Plain text.
    Text(String),
    /// A candidate that parses.
    Candidate(Candidate),
    /// The preceding text, already emitted as [`Piece::Text`], ends with a malformed candidate.
    Broken {
        /// The error message.
        why: String,
        /// The first characters of the candidate.
        excerpt: String,
        /// The calls that can be read: first the complete calls, then the malformed call, with malformed arguments.
        /// Empty if the name of the malformed call cannot be read. If a call is bare, the text is malformed only if
        /// its name is known.
        calls: Vec<TextCall>,
    },
    /// Marks that are left over directly after a candidate.
    Leftover(String),
    /// All preceding text was the model's reasoning: a `</think>` was read without its `<think>`.
    ReasoningEnded,
}

/// One or more calls in one delimited form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The text, including its delimiters.
    pub text: String,
    /// The calls, at least one.
    pub calls: Vec<TextCall>,
    /// The name of the form, for reports; `None` if it is malformed.
    #[serde(skip)]
    pub form: Option<&'static str>,
}

/// A call as the model wrote it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextCall {
    /// The tool's name.
    pub name: String,
    /// The arguments. Empty if the model wrote none.
    pub arguments: TextArguments,
    /// The form alone does not identify a call: an unknown name makes it data.
    pub bare: bool,
    /// Start and end in the candidate's text, in bytes.
    pub span: (usize, usize),
    /// The repairs of the text of the arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<Repair>,
}

/// Arguments as the model wrote them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextArguments {
    /// As JSON.
    Json(RawArguments),
    /// As text, one by one. The tool's schema determines their types.
    Members(Vec<TextMember>),
    /// As literals. Positional literals follow the order of the schema's properties.
    Literals {
        /// Positional arguments.
        positional: Vec<Value>,
        /// Named arguments.
        named: Map<String, Value>,
    },
}

/// An argument written as text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextMember {
    /// The argument's name.
    pub key: String,
    /// The argument's value.
    pub text: String,
    /// Whether the value is a string, if the form records it.
    pub is_string: Option<bool>,
}
