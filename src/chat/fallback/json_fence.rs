//! A code block that holds nothing but calls: ```` ```json ````, the object of a JSON line, ```` ``` ````.
//!
//! Any other code block is code. A block whose first key is not a call's is code from there on.

use serde::{Deserialize, Serialize};

use super::json_line::{self, ObjectScan, ObjectStep};
use super::{Decoded, Verdict};

const INFO_STRINGS: [&str; 5] = ["", "json", "tool", "tool_call", "tool_calls"];

/// One code block being read. Starts after the first character of its fence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FenceMachine {
    fence: char,
    length: usize,
    state: State,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum State {
    /// Inside the opening fence.
    Opening,
    /// Inside the info string.
    Info(String),
    /// Before the object.
    Gap,
    Body(ObjectScan),
    /// After an object; whether only blanks stand on this line.
    After {
        line_start: bool,
    },
    /// Inside the closing fence.
    Closing {
        length: usize,
    },
    /// After the closing fence, on its line.
    Closed,
}

impl FenceMachine {
    pub(super) fn new(fence: char) -> Self {
        Self { fence, length: 1, state: State::Opening }
    }

    pub(super) fn push(&mut self, ch: char) -> Verdict {
        match &mut self.state {
            State::Opening if ch == self.fence => self.length += 1,
            State::Opening if self.length < 3 => return Verdict::Reject,
            State::Opening => {
                self.state = State::Info(String::new());
                return self.push(ch);
            }
            State::Info(info) => match ch {
                '\n' if INFO_STRINGS.contains(&info.as_str()) => self.state = State::Gap,
                ' ' | '\t' | '\r' => {}
                _ => {
                    info.push(ch.to_ascii_lowercase());
                    if !INFO_STRINGS.iter().any(|allowed| allowed.starts_with(info.as_str())) || ch == '\n' {
                        return Verdict::Reject;
                    }
                }
            },
            State::Gap => match ch {
                '{' => self.state = State::Body(ObjectScan::new()),
                _ if ch.is_ascii_whitespace() => {}
                _ => return Verdict::Reject,
            },
            State::Body(object) => match object.push(ch) {
                ObjectStep::More => {}
                ObjectStep::End => self.state = State::After { line_start: false },
                ObjectStep::Other => return Verdict::Reject,
                ObjectStep::Bad => return Verdict::Broken,
            },
            State::After { line_start } => match ch {
                '\n' => *line_start = true,
                ' ' | '\t' | '\r' => {}
                '{' if *line_start => self.state = State::Body(ObjectScan::new()),
                _ if ch == self.fence && *line_start => self.state = State::Closing { length: 1 },
                _ => return Verdict::Reject,
            },
            State::Closing { length } => match ch {
                _ if ch == self.fence => *length += 1,
                _ if *length < self.length => return Verdict::Reject,
                '\n' => return Verdict::Complete,
                ' ' | '\t' | '\r' => self.state = State::Closed,
                _ => return Verdict::Reject,
            },
            State::Closed => match ch {
                '\n' => return Verdict::Complete,
                ' ' | '\t' | '\r' => {}
                _ => return Verdict::Reject,
            },
        }
        Verdict::More
    }

    pub(super) fn end(&self) -> Verdict {
        match &self.state {
            State::Body(object) if object.may_be_call() => Verdict::Broken,
            State::Opening | State::Info(_) | State::Gap | State::Body(_) => Verdict::Reject,
            State::After { .. } | State::Closing { .. } | State::Closed => Verdict::Complete,
        }
    }
}

/// Reads the calls of a whole code block.
pub(super) fn decode(text: &str) -> Decoded {
    let start = text.find('{').unwrap_or(0);
    let end = text.rfind('}').map_or(text.len(), |end| end + 1);
    json_line::decode(text.get(start..end).unwrap_or_default())
}
