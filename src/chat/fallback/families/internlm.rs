//! `<|action_start|><|plugin|>{"name": …, "parameters": {…}}<|action_end|>`: `InternLM` 2 and later. `<|interpreter|>` in the place
//! of `<|plugin|>` begins code, which is none.
//!
//! Source: `InternLM/InternLM`, `chat/chat_format.md`, November 2026.

use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Place, Rest, Step, Token};

pub(super) static INTERNLM_2: Form = Form {
    marked: true,
    at: Place::Anywhere,
    closes: &["<|action_end|>"],
    steps: &[
        Step::new(Gap::None, Rest::Prose, &[(Token::Mark("<|action_start|>"), 1)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Mark("<|plugin|>"), 2)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Object(Capture::Object), 3)]),
        Step::new(
            Gap::Any,
            Rest::Closing,
            &[(Token::Object(Capture::Object), 3), (Token::Mark("<|action_end|>"), DONE)],
        ),
    ],
};
