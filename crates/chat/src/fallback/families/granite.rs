//! `<|tool_call|>[{"name": …, "arguments": {…}}]`: Granite 3, without a closing mark, and Phi-4 mini, which
//! closes it with `<|/tool_call|>`. `GigaChat` 3.1 writes `<|function_call|>` and an object. Granite's other form,
//! `<tool_call>[…]</tool_call>`, is read as Hermes' form.
//!
//! Source: the chat templates of ibm-granite/granite-3.x and microsoft/Phi-4-mini-instruct, November 2026.

use super::common::json_calls;
use crate::fallback::grammar::{Form, StartPosition};

pub(super) static GRANITE: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &[],
    steps: json_calls! {
        "<|tool_call|>" | "<|function_call|>", Complete ["<|/tool_call|>" => DONE]
    },
};
