//! `{"tool": …, "arguments": {…}}` on lines of its own: the convention that the BIOS teaches.
//!
//! An object that begins a line and whose first key is `tool` (or `arguments`) may be a call; it is one when
//! nothing but blanks follows it on its last line. Any other object is ordinary JSON.

use serde::{Deserialize, Serialize};

use super::json::{JsonScan, JsonStep};
use super::{Decoded, TextCall, Verdict, decode_objects, member_arguments};

const FIRST_KEYS: [&str; 2] = ["tool", "arguments"];

/// One object being read. Starts after its `{`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum LineMachine {
    /// Inside the object.
    Body(ObjectScan),
    /// After it, on its last line.
    After,
}

impl LineMachine {
    pub(super) fn new() -> Self {
        Self::Body(ObjectScan::new())
    }

    pub(super) fn push(&mut self, ch: char) -> Verdict {
        match self {
            Self::Body(object) => match object.push(ch) {
                ObjectStep::More => {}
                ObjectStep::End => *self = Self::After,
                ObjectStep::Other => return Verdict::Reject,
                ObjectStep::Bad => return Verdict::Broken,
            },
            Self::After => match ch {
                '\n' => return Verdict::Complete,
                ' ' | '\t' | '\r' => {}
                _ => return Verdict::Reject,
            },
        }
        Verdict::More
    }

    pub(super) fn end(&self) -> Verdict {
        match self {
            Self::Body(object) if object.may_be_call() => Verdict::Broken,
            Self::Body(_) => Verdict::Reject,
            Self::After => Verdict::Complete,
        }
    }
}

/// An object whose first key decides whether it may be a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ObjectScan {
    scan: JsonScan,
}

/// What one more character made of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectStep {
    /// Not over.
    More,
    /// The object is whole.
    End,
    /// Ordinary JSON, or no JSON: nothing that may be a call.
    Other,
    /// It began like a call and then stopped being JSON.
    Bad,
}

impl ObjectScan {
    pub(super) fn new() -> Self {
        Self { scan: JsonScan::new() }
    }

    /// Whether the first key and its colon were read and are a call's.
    pub(super) fn may_be_call(&self) -> bool {
        let (key, read) = self.scan.first_key();
        read && FIRST_KEYS.contains(&key)
    }

    pub(super) fn push(&mut self, ch: char) -> ObjectStep {
        let decided = self.may_be_call();
        let step = self.scan.push(ch);
        let (key, read) = self.scan.first_key();
        match step {
            JsonStep::Bad if decided => ObjectStep::Bad,
            JsonStep::End if decided => ObjectStep::End,
            JsonStep::Bad | JsonStep::End => ObjectStep::Other,
            JsonStep::More if read && !FIRST_KEYS.contains(&key) => ObjectStep::Other,
            JsonStep::More if !FIRST_KEYS.iter().any(|first| first.starts_with(key)) => ObjectStep::Other,
            JsonStep::More => ObjectStep::More,
        }
    }
}

/// Reads the call of a whole object, or of several in one fence.
pub(super) fn decode(text: &str) -> Decoded {
    decode_objects(text, |object| {
        let name = object.get("tool")?.as_str()?.to_owned();
        let (key, arguments) = member_arguments(&object, &["arguments"]);
        // `{"tool": "hammer", "price": 5}` is somebody's data.
        (key.is_some() || object.len() == 1).then_some(TextCall { name, arguments, bare: key.is_none() })
    })
    .or_ordinary()
}
