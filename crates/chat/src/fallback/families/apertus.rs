//! `<|tools_prefix|>[{"name": {…}}]<|tools_suffix|>`: Apertus. The only key of a call is the tool's name.
//!
//! Source: the chat template of swiss-ai/Apertus-8B-Instruct, November 2026.

use crate::fallback::grammar::{Form, StartPosition, steps};

pub(super) static APERTUS: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<|tools_suffix|>"],
    steps: steps! {
        OPEN  None Prose     ["<|tools_prefix|>" => LIST]
        LIST  Any  Prose     ["[" => ITEM]
        ITEM  Any  Malformed [Object(Keyed) => COMMA, "]" => CLOSE]
        COMMA Any  Malformed ["," => ITEM, "]" => CLOSE]
        CLOSE Any  Unclosed  ["<|tools_suffix|>" => DONE]
    },
};
