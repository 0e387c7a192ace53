//! `<|tool_calls|><|tool_call:begin|>id<|tool_call:name|>name<|tool_call:args|>{…}<|tool_call:end|>`: Solar Open.
//!
//! Source: the chat template of upstage/Solar-Open-100B, November 2026.

use crate::fallback::grammar::{Form, StartPosition, steps};

pub(super) static SOLAR: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<|tool_call:end|>", "<|calls|>"],
    steps: steps! {
        OPEN           None Prose     ["<|tool_calls|>" => CALL_OPEN, "<|tool_call:begin|>" => ID]
        CALL_OPEN      Any  Prose     ["<|tool_call:begin|>" => ID]
        ID             None Prose     ["<|tool_call:name|>" => NAME, Word(Nothing) => NAME_OPEN]
        NAME_OPEN      Line Prose     ["<|tool_call:name|>" => NAME]
        NAME           Line Prose     [Word(Name) => ARGUMENTS_OPEN]
        ARGUMENTS_OPEN Line Malformed ["<|tool_call:args|>" => ARGUMENTS]
        ARGUMENTS      Any  Malformed [Object(Arguments) => CALL_CLOSE]
        CALL_CLOSE     Any  Unclosed  ["<|tool_call:end|>" => CLOSE, "<|calls|>" => DONE]
        CLOSE          Any  Complete  ["<|calls|>" => DONE, "<|tool_call:begin|>" => ID]
    },
};
