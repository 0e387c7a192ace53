//! `[TOOL_REQUEST]{"name": …, "arguments": {…}}[END_TOOL_REQUEST]`: the format that LM Studio prompts for when a
//! model's chat template has no tool support. Models that were trained on Mistral's markers also write
//! `[TOOL_CALL] {…} [/TOOL_CALL]`.
//!
//! Source: LM Studio documentation, tool use, "default tool use support" (November 2026).

use super::common::json_calls;
use crate::fallback::grammar::{Form, StartPosition};

pub(super) static LM_STUDIO: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["[END_TOOL_REQUEST]", "[/TOOL_REQUEST]", "[/TOOL_CALL]"],
    steps: json_calls! {
        "[TOOL_REQUEST]" | "[TOOL_CALL]", Unclosed [
            Object(Object) => CLOSE, "[END_TOOL_REQUEST]" | "[/TOOL_REQUEST]" | "[/TOOL_CALL]" => DONE,
            "[TOOL_REQUEST]" | "[TOOL_CALL]" => NEXT_CALLS
        ]
    },
};
