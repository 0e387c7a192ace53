//! `<tool_call>{"name": …, "arguments": {…}}</tool_call>`: the form of Hermes, Qwen and many others.
//!
//! Several objects may stand in one tag. The end of the reply closes a tag whose object is whole; a reply that
//! ends inside the object is a broken call. A tag that is not followed by an object is prose about the tag.

use serde::{Deserialize, Serialize};

use super::json::{JsonScan, JsonStep};
use super::{Decoded, TextCall, Verdict, decode_objects, member_arguments};

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";

/// One tag being read. Starts after its `<`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum TagMachine {
    /// Inside the opening tag; how much of it was read.
    Open(usize),
    /// After the opening tag.
    Gap,
    /// Inside an object.
    Body(JsonScan),
    /// After an object; how much of the closing tag was read.
    After(usize),
    /// The object is not JSON; how much of the closing tag was read.
    Lost(usize),
}

impl TagMachine {
    pub(super) fn new() -> Self {
        Self::Open(1)
    }

    pub(super) fn push(&mut self, ch: char) -> Verdict {
        match self {
            Self::Open(read) => match advance(OPEN, *read, ch) {
                Some(now) if now == OPEN.len() => *self = Self::Gap,
                Some(now) => *read = now,
                None => return Verdict::Reject,
            },
            Self::Gap => match ch {
                '{' => *self = Self::Body(JsonScan::new()),
                _ if ch.is_ascii_whitespace() => {}
                _ => return Verdict::Reject,
            },
            Self::Body(scan) => match scan.push(ch) {
                JsonStep::More => {}
                JsonStep::End => *self = Self::After(0),
                JsonStep::Bad => {
                    *self = Self::Lost(usize::from(ch == '<'));
                    return Verdict::Flow;
                }
            },
            Self::After(read) => match (advance(CLOSE, *read, ch), *read) {
                (Some(now), _) if now == CLOSE.len() => return Verdict::Complete,
                (Some(now), _) => *read = now,
                (None, 0) if ch == '{' => *self = Self::Body(JsonScan::new()),
                (None, 0) if ch.is_ascii_whitespace() => {}
                (None, _) => return Verdict::Reject,
            },
            Self::Lost(read) => {
                *read = advance(CLOSE, *read, ch).unwrap_or(usize::from(ch == '<'));
                if *read == CLOSE.len() {
                    return Verdict::Broken;
                }
                return Verdict::Flow;
            }
        }
        Verdict::More
    }

    pub(super) fn end(&self) -> Verdict {
        match self {
            Self::Open(_) | Self::Gap | Self::Lost(_) => Verdict::Reject,
            Self::Body(_) => Verdict::Broken,
            Self::After(_) => Verdict::Complete,
        }
    }
}

/// Reads the calls of a whole tag.
pub(super) fn decode(text: &str) -> Decoded {
    // What follows the last brace is the closing tag, or as much of it as came.
    let inner = text.strip_prefix(OPEN).unwrap_or(text);
    let inner = inner.rfind('}').and_then(|end| inner.get(..=end)).unwrap_or(inner);
    decode_objects(inner, |object| {
        let name = object.get("name").or_else(|| object.get("tool"))?.as_str()?.to_owned();
        let (_, arguments) = member_arguments(&object, &["arguments", "parameters"]);
        // The mark says that it is a call; see `bare`.
        Some(TextCall { name, arguments, bare: false })
    })
}

fn advance(tag: &str, read: usize, ch: char) -> Option<usize> {
    tag.get(read..).filter(|rest| rest.starts_with(ch)).map(|_| read + ch.len_utf8())
}
