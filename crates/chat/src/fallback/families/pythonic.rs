//! Lists of calls in Python syntax: `[name(a="x"), other(b=1)]`. LFM2 writes marks around its list, and Llama 4
//! sometimes does. Without marks, the list must be alone on its lines.
//!
//! Source: the chat templates of LiquidAI/LFM2-1.2B and meta-llama/Llama-4-Scout, and vLLM's tool parsers for them.

use crate::fallback::grammar::{Form, StartPosition, steps};

pub(super) static LFM2: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<|tool_call_end|>", "<|python_end|>"],
    steps: steps! {
        OPEN  None Prose     ["<|tool_call_start|>" | "<|python_start|>" => CALLS]
        CALLS Any  Prose     ["[" => ITEM, Object(Object) => CLOSE]
        ITEM  Any  Malformed ["]" => CLOSE, Object(Object) | Call => COMMA]
        COMMA Any  Malformed ["," => ITEM, "]" => CLOSE]
        CLOSE Any  Unclosed  ["<|tool_call_end|>" | "<|python_end|>" => DONE]
    },
};

pub(super) static LIST: Form = Form {
    marked: false,
    start: StartPosition::Line,
    closes: &[],
    steps: steps! {
        OPEN     None Prose     ["[" => ITEM]
        ITEM     Any  Prose     [Call => COMMA]
        COMMA    Any  Prose     ["," => ITEM, "]" => LINE_END]
        LINE_END Line LineEnd   ["\n" => DONE]
    },
};
