//! `<|action_start|><|plugin|>{"name": …, "parameters": {…}}<|action_end|>`: `InternLM` 2 and later. `<|interpreter|>`
//! instead of `<|plugin|>` begins code, which is not a call.
//!
//! Source: `InternLM/InternLM`, `chat/chat_format.md`, November 2026.

use crate::fallback::grammar::{Form, StartPosition, steps};

pub(super) static INTERNLM_2: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<|action_end|>"],
    steps: steps! {
        OPEN   None Prose     ["<|action_start|>" => PLUGIN]
        PLUGIN Any  Prose     ["<|plugin|>" => OBJECT]
        OBJECT Any  Prose     [Object(Object) => CLOSE]
        CLOSE  Any  Unclosed  [Object(Object) => CLOSE, "<|action_end|>" => DONE]
    },
};
