//! `[TOOL_REQUEST]{"name": …, "arguments": {…}}[END_TOOL_REQUEST]`: the format that LM Studio prompts for when a model's
//! chat template has no tool support. Models that were trained on Mistral's markers also write
//! `[TOOL_CALL] {…} [/TOOL_CALL]`.
//!
//! Source: LM Studio documentation, tool use, "default tool use support" (November 2026).

use super::json_calls;
use crate::chat::fallback::grammar::{DONE, Form, Place};

pub(super) static LM_STUDIO: Form = Form {
    marked: true,
    at: Place::Anywhere,
    closes: &["[END_TOOL_REQUEST]", "[/TOOL_REQUEST]", "[/TOOL_CALL]"],
    steps: json_calls!(
        ["[TOOL_REQUEST]", "[TOOL_CALL]"],
        Rest::Closing,
        [
            (Token::Object(Capture::Object), 2),
            (Token::Mark("[END_TOOL_REQUEST]"), DONE),
            (Token::Mark("[/TOOL_REQUEST]"), DONE),
            (Token::Mark("[/TOOL_CALL]"), DONE),
            (Token::Mark("[TOOL_REQUEST]"), 5),
            (Token::Mark("[TOOL_CALL]"), 5)
        ]
    ),
};
