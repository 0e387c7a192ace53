//! Calls that a model writes into its text, found while the text streams.
//!
//! In: the text of one reply, in any pieces. Out: [`Piece`]s in the order of the text: plain text as soon as it
//! is certain, and candidates, whole. Nothing here knows which tools exist or executes anything.
//!
//! Invariants: the pieces' texts put together are the text that went in; where it was cut does not matter; at
//! most [`MAX_HELD`] bytes are held back; the time is linear.
//!
//! Never a candidate: what stands in code, a quotation or the model's thinking (`context`).
//!
//! One file per family: `tool_call_tag` (marked by the model, always read), `json_line` and `json_fence` (read
//! only where the model was told the convention). Absent so far: `[TOOL_CALLS]`, `<|python_tag|>`, XML functions,
//! bare JSON and pythonic lists.

mod context;
mod json;
mod json_fence;
mod json_line;
mod scanner;
mod tool_call_tag;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::RawArguments;

pub use scanner::Scanner;

/// The most that is held back while it may be a call, in bytes. What is longer is no call.
pub const MAX_HELD: usize = 64 * 1024;

/// Which forms are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forms {
    /// Forms without a mark of their own: JSON lines and code blocks.
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
        /// How it begins.
        excerpt: String,
    },
    /// All text before this was the model's thinking: a `</think>` came without its `<think>`.
    ReasoningEnded,
}

/// One or more calls in one delimited form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The text, delimiters included.
    pub text: String,
    /// The JSON inside, as it was written.
    pub payload: String,
    /// The calls, at least one.
    pub calls: Vec<TextCall>,
}

/// A call as it was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextCall {
    /// The tool's name.
    pub name: String,
    /// The arguments; empty where none were written.
    pub arguments: RawArguments,
    /// Neither a mark nor arguments were written: with a name that no tool has, this is somebody's data.
    pub bare: bool,
}

/// What a form's machine says after one more character, or at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// May be a call: hold back.
    More,
    /// Will be no call, but the form is not over: let the text go and go on.
    Flow,
    /// A whole form, this character included.
    Complete,
    /// A form that cannot be parsed, this character included.
    Broken,
    /// No form; this character is not part of it.
    Reject,
}

/// What a whole form holds.
#[derive(Debug)]
enum Decoded {
    /// These calls.
    Calls(Vec<TextCall>),
    /// JSON that is no call.
    NoCall(String),
    /// Text that is not JSON after all.
    NotJson(String),
    /// Ordinary JSON.
    Ordinary,
}

impl Decoded {
    /// In a form that ordinary JSON has too, JSON that is no call is just that.
    fn or_ordinary(self) -> Self {
        match self {
            Self::NoCall(_) => Self::Ordinary,
            Self::Calls(_) | Self::NotJson(_) | Self::Ordinary => self,
        }
    }
}

fn decode_objects(text: &str, read: impl Fn(Map<String, Value>) -> Option<TextCall>) -> Decoded {
    let mut calls = Vec::new();
    for object in serde_json::Deserializer::from_str(text).into_iter::<Map<String, Value>>() {
        match object.map(&read) {
            Ok(Some(call)) => calls.push(call),
            Ok(None) => return Decoded::NoCall(String::from("it names no tool")),
            Err(error) => return Decoded::NotJson(error.to_string()),
        }
    }
    Decoded::Calls(calls)
}

/// The first of `keys` that is there and not null, and its value as arguments.
fn member_arguments<'a>(object: &Map<String, Value>, keys: &[&'a str]) -> (Option<&'a str>, RawArguments) {
    let found = keys.iter().find_map(|key| object.get(*key).map(|value| (*key, value)));
    let arguments = match found.map(|(_, value)| value) {
        None | Some(Value::Null) => RawArguments::Object { value: Map::new() },
        Some(Value::Object(value)) => RawArguments::Object { value: value.clone() },
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(Value::Object(value)) => RawArguments::Object { value },
            Ok(_) => malformed(text.clone()),
            Err(error) => RawArguments::Malformed { text: text.clone(), error: error.to_string() },
        },
        Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_))) => malformed(other.to_string()),
    };
    (found.map(|(key, _)| key), arguments)
}

fn malformed(text: String) -> RawArguments {
    RawArguments::Malformed { text, error: String::from("not a JSON object") }
}
