//! Calls that a model writes into its text, found while the text streams.
//!
//! In: the text of one reply, in any pieces. Out: [`Piece`]s in the order of the text: plain text as soon as it
//! is certain, and candidates, whole. Nothing here knows which tools exist or executes anything.
//!
//! Invariants: the pieces' texts put together are the text that went in; where it was cut does not matter; at
//! most [`MAX_HELD`] bytes are held back; the time is linear.
//!
//! Never a candidate: what stands in code, a quotation or the model's thinking (`context`, `tags`), in an element that is
//! no family's own, an environment or another role's message (`marks`, `enclosures`), what a sentence goes through, what is
//! introduced as an example (`sentence`). Text that follows a marked call never makes it text, unless it ends what began
//! before the call.
//!
//! A family is one file in `families`: its forms as tables (`grammar`), which one machine follows (`machine`) and one
//! decoder reads (`decode`). Forms that the model marks as calls are always read, the others only where it was told to write so.
//!
//! `search` finds calls in other texts than replies, quoted or not.
//!
//! Absent: XML entities, which no template has in values; forms whose tags are named anew by each call.

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

/// The most that is held back while it may be a call, in bytes. What is longer is no call.
pub const MAX_HELD: usize = 64 * 1024;

/// Which forms are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forms {
    /// Forms without a mark of their own: JSON lines and code blocks, lists.
    pub unmarked: bool,
}

/// A part of the text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Piece {
    /// Text and nothing else.
    Text(String),
    /// A delimited candidate that parses.
    Candidate(Candidate),
    /// The text before this, already given as [`Piece::Text`], ended with a candidate that does not parse.
    Broken {
        /// What is wrong with it.
        why: String,
        /// Its first characters.
        excerpt: String,
        /// Its calls as far as they can be read: whole ones, then the one that does not parse, with malformed arguments.
        /// Empty if the name of the latter cannot be read.
        calls: Vec<TextCall>,
    },
    /// What was read before this encloses candidates that were already given, whole or broken: they are text. It is given
    /// when the end of an element, an environment or a quotation shows that they stand in it.
    Enclosed {
        /// The number of the first of them, counted from 0; the last one is the last that was given. Those that follow
        /// this piece are counted from `from` again.
        from: u32,
    },
    /// All text before this was the model's thinking: a `</think>` came without its `<think>`.
    ReasoningEnded,
}

/// One or more calls in one delimited form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The text, delimiters included.
    pub text: String,
    /// The calls, at least one.
    pub calls: Vec<TextCall>,
}

/// A call as it was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextCall {
    /// The tool's name.
    pub name: String,
    /// The arguments; empty where none were written.
    pub arguments: TextArguments,
    /// Too little was written to say that it is a call: with a name that no tool has, it is somebody's data.
    pub bare: bool,
    /// Where it stands in the candidate's text: from this byte to that.
    pub span: (usize, usize),
}

/// Arguments as they were written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextArguments {
    /// As JSON.
    Json(RawArguments),
    /// As text, one by one; the tool's schema says what they are.
    Members(Vec<TextMember>),
    /// As literals. Those without a name go by the order of the schema's properties.
    Literals {
        /// Without a name.
        positional: Vec<Value>,
        /// With a name.
        named: Map<String, Value>,
    },
}

/// An argument whose value is text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextMember {
    /// Its name.
    pub key: String,
    /// Its value.
    pub text: String,
    /// Whether the value is a string, if the model said so.
    pub is_string: Option<bool>,
}

/// Reads one literal as Python writes it: `True`, `'text'`, `[1, None]`.
///
/// # Errors
/// What is wrong with it, as a clause.
pub fn read_literal(text: &str) -> Result<Value, String> {
    python::read_literal(text)
}
