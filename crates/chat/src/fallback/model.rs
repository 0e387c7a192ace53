//! The input and output of the scanner: the forms to look for, the pieces of a text and the calls in it.

use deftool_lang::schema::Repair;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::families::Family;
use super::forms::NotRead;
use super::position::Place;
use crate::RawArguments;

/// Maximum length of held-back text, in bytes. A longer form is malformed if it is marked, and text otherwise.
pub const MAX_HELD: usize = 64 * 1024;

/// A part of the text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Piece {
    /// Plain text.
    Text(String),
    /// A candidate that parses, at any place.
    Candidate(Candidate),
    /// The preceding text, already emitted as [`Piece::Text`], ends with a malformed candidate. Without a closing mark, its
    /// text may go on.
    Broken {
        /// The error message.
        why: String,
        /// The first characters of the candidate.
        excerpt: String,
        /// The calls that can be read: first the complete calls, then the malformed call, with malformed arguments.
        /// Empty if the name of the malformed call cannot be read.
        calls: Vec<TextCall>,
        /// The form.
        form: Family,
    },
    /// The reply ends with this text, already emitted as [`Piece::Text`], which begins with a marker that is named after
    /// calls. No form can read it.
    Suspect(String),
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
    pub(crate) form: Family,
    pub(crate) place: Place,
}

impl Candidate {
    /// Whether the form may begin at its place.
    pub(super) fn is_in_place(&self) -> bool {
        self.place.takes(self.form.form().start)
    }

    /// Returns why the candidate is not read at its place.
    pub(crate) fn misplaced(&self) -> Option<NotRead> {
        let reason = match self.place {
            Place::Code => NotRead::InCode,
            Place::OtherRole => NotRead::OtherRole,
            Place::Start | Place::Line | Place::Sentence | Place::InLine => NotRead::InLine,
        };
        (!self.is_in_place()).then_some(reason)
    }
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
