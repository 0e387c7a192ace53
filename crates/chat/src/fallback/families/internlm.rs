//! `<|action_start|><|plugin|>{"name": …, "parameters": {…}}<|action_end|>`: `InternLM` 2 and later. `<|interpreter|>`
//! instead of `<|plugin|>` begins code, which is not a call.
//!
//! Source: `InternLM/InternLM`, `chat/chat_format.md`, November 2026.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token, steps};

pub(super) static INTERNLM_2: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<|action_end|>"],
    steps: steps![
        OPEN = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("<|action_start|>"), PLUGIN)]),
        PLUGIN = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<|plugin|>"), OBJECT)]),
        OBJECT = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Object(Capture::Object), CLOSE)]),
        CLOSE = Step::new(
            Gap::Any,
            OnMismatch::Unclosed,
            &[(Token::Object(Capture::Object), CLOSE), (Token::Literal("<|action_end|>"), DONE)],
        ),
    ],
};
