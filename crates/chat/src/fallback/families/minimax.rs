//! MiniMax: M2 writes tags with attributes, M1 writes lines of JSON between `<tool_calls>` and `</tool_calls>`. Jamba
//! and Hunyuan write an array between the same tags.
//!
//! Source: the tool calling guides in MiniMaxAI/MiniMax-M1 and MiniMaxAI/MiniMax-M2.5.

use super::common::{json_calls, tag_calls};
use crate::fallback::grammar::{DONE, Form, StartPosition};

pub(super) static MINIMAX_M1: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</tool_calls>"],
    steps: json_calls!(
        ["<tool_calls>"],
        OnMismatch::Unclosed,
        [(Token::Object(Capture::Object), CLOSE), (Token::Literal("</tool_calls>"), DONE)]
    ),
};

pub(super) static MINIMAX_M2: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</minimax:tool_call>"],
    steps: tag_calls!(
        "<minimax:tool_call>",
        "</minimax:tool_call>",
        "<invoke name=\"",
        "</invoke>",
        "<parameter name=\"",
        "</parameter>"
    ),
};
