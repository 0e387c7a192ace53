//! Finds the calls that a model writes into its text, while the text streams.
//!
//! In: the text of one reply, in pieces of any size. Out: [`Piece`]s in the order of the text: plain text as soon as it
//! is certain, and complete candidates. The module does not know which tools exist and executes nothing.
//!
//! Invariants: the texts of the pieces, joined, are the input; the result does not depend on where the input is cut; at
//! most [`MAX_HELD`] bytes are held back; the time is linear.
//!
//! Not a candidate: text in code, in a quotation or in the model's reasoning (`context`, `tags`), in an element that is
//! not part of a family's form, in an environment or in another role's message (`marks`, `enclosures`), in the middle
//! of a sentence, or introduced as an example (`sentence`). Text after a marked call does not make the call text,
//! unless it ends what began before the call.
//!
//! A family is one file in `families`: its forms are tables (`grammar`), which one machine matches (`machine`) and one
//! decoder decodes (`decode`). Marked forms are always read, unmarked ones only if the model was told to use them.
//!
//! `search` finds calls in texts other than replies, quoted or not.
//!
//! Not supported: character references in values, which no template uses; forms in which each call defines its own
//! tags.

mod broken;
mod channels;
mod context;
mod decode;
mod enclosures;
mod entities;
mod escapes;
mod families;
mod grammar;
mod json;
mod machine;
mod marks;
mod python;
mod quotations;
mod scanner;
mod search;
mod sentence;
mod tags;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::RawArguments;

pub(crate) use entities::decode_references;
pub(crate) use escapes::unicode_escape;
pub use scanner::Scanner;
pub use search::calls_in;

/// Maximum length of held-back text, in bytes. Longer text is not a call.
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
        /// The calls that can be read: complete ones, then the malformed one, with malformed arguments.
        /// Empty if the name of the malformed one cannot be read.
        calls: Vec<TextCall>,
    },
    /// Candidates that were already emitted, complete or malformed, are text: the element, environment or quotation
    /// that ends here encloses them.
    Enclosed {
        /// The number of the first enclosed candidate, counted from 0. All candidates from it on are enclosed. The next
        /// candidate gets the number `from`.
        from: u32,
    },
    /// All preceding text was the model's reasoning: a `</think>` came without its `<think>`.
    ReasoningEnded,
}

/// One or more calls in one delimited form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The text, including its delimiters.
    pub text: String,
    /// The calls, at least one.
    pub calls: Vec<TextCall>,
}

/// A call as the model wrote it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextCall {
    /// The tool's name.
    pub name: String,
    /// The arguments. Empty if the model wrote none.
    pub arguments: TextArguments,
    /// The form alone does not identify a call: with an unknown name, it is data.
    pub bare: bool,
    /// Start and end in the candidate's text, in bytes.
    pub span: (usize, usize),
}

/// Arguments as the model wrote them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextArguments {
    /// As JSON.
    Json(RawArguments),
    /// As text, one by one. The tool's schema determines their types.
    Members(Vec<TextMember>),
    /// As literals. Positional ones follow the order of the schema's properties.
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

/// Parses one literal in Python syntax: `True`, `'text'`, `[1, None]`.
///
/// # Errors
/// A description of the syntax error.
pub fn read_literal(text: &str) -> Result<Value, String> {
    python::read_literal(text)
}
