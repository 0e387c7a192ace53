//! `[TOOL_REQUEST]{"name": …, "arguments": {…}}[END_TOOL_REQUEST]`: the format that LM Studio prompts for when a
//! model's chat template has no tool support. Models that were trained on Mistral's markers also write
//! `[TOOL_CALL] {…} [/TOOL_CALL]`.
//!
//! Source: LM Studio documentation, tool use, "default tool use support" (November 2026).

use super::common::json_calls;
use crate::fallback::grammar::{DONE, Form, StartPosition};

pub(super) static LM_STUDIO: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["[END_TOOL_REQUEST]", "[/TOOL_REQUEST]", "[/TOOL_CALL]"],
    steps: json_calls!(
        ["[TOOL_REQUEST]", "[TOOL_CALL]"],
        OnMismatch::Unclosed,
        [
            (Token::Object(Capture::Object), CLOSE),
            (Token::Literal("[END_TOOL_REQUEST]"), DONE),
            (Token::Literal("[/TOOL_REQUEST]"), DONE),
            (Token::Literal("[/TOOL_CALL]"), DONE),
            (Token::Literal("[TOOL_REQUEST]"), NEXT_CALLS),
            (Token::Literal("[TOOL_CALL]"), NEXT_CALLS)
        ]
    ),
};
