//! MiniMax: M2 writes tags with attributes, M1 writes lines of JSON between `<tool_calls>` and `</tool_calls>`. Jamba,
//! Hunyuan and Apriel write an array between the same tags. M3 writes a tag for each argument, and its namespace token
//! before each tag; a server may remove the token. M2 and M3 also write `[TOOL_CALL]{tool => "name", args => {…}}`,
//! with the arguments as JSON or as `--key "value"`.
//!
//! Source: the tool calling guides in MiniMaxAI/MiniMax-M1 and MiniMaxAI/MiniMax-M2.5, the chat template of
//! MiniMax-M3 in ggml-org/llama.cpp, November 2026.

use super::common::{json_calls, tag_calls};
use crate::fallback::grammar::{Form, StartPosition, steps};

pub(super) static MINIMAX_M1: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</tool_calls>"],
    steps: json_calls! {
        "<tool_calls>", Unclosed [Object(Object) => CLOSE, "</tool_calls>" => DONE]
    },
};

pub(super) static MINIMAX_M2: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</minimax:tool_call>"],
    steps: tag_calls! {
        ["<minimax:tool_call>" "<tool_call>"] until ["</minimax:tool_call>" "</tool_call>"],
        "<invoke name=\"" until "</invoke>",
        "<parameter name=\"" until "</parameter>"
    },
};

/// The form with `$token` before each tag.
macro_rules! m3 {
    ($start:expr, $token:literal) => {
        Form {
            marked: true,
            start: $start,
            closes: &[concat!($token, "</tool_call>")],
            steps: steps! {
                OPEN      None Prose     [[$token "<tool_call>"] => INVOKE]
                INVOKE    Any  Prose     [[$token "<invoke name=\""] => NAME]
                NAME      None Prose     [Word(Name) => NAME_END]
                NAME_END  None Prose     ["\">" => ARGUMENTS]
                ARGUMENTS None Malformed [Raw(Tags until [$token "</invoke>"]) => CLOSE]
                CLOSE     Any  Complete  [[$token "<invoke name=\""] => NAME, [$token "</tool_call>"] => DONE]
            },
        }
    };
}

pub(super) static MINIMAX_M3: Form = m3!(StartPosition::Token, "]<]minimax[>[");
pub(super) static MINIMAX_M3_PLAIN: Form = m3!(StartPosition::Line, "");

pub(super) static ARROWS: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["[/TOOL_CALL]", "</tool_call>"],
    steps: steps! {
        OPEN            None Prose     ["[TOOL_CALL]" | "<tool_call>" => TOOL]
        TOOL            Any  Prose     ["{" => KEY]
        KEY             Any  Prose     ["tool" => ARROW]
        ARROW           Any  Prose     ["=>" => QUOTE]
        QUOTE           Any  Malformed ["\"" => NAME]
        NAME            None Malformed [Word(Name) => NAME_END]
        NAME_END        None Malformed ["\"" => COMMA]
        COMMA           Any  Malformed ["," => ARGUMENTS_KEY, "}" => CLOSE]
        ARGUMENTS_KEY   Any  Malformed ["args" => ARGUMENTS_ARROW]
        ARGUMENTS_ARROW Any  Malformed ["=>" => ARGUMENTS]
        ARGUMENTS       Any  Malformed [Braces(Options) => END]
        END             Any  Malformed ["}" => CLOSE]
        CLOSE           Any  Unclosed  ["[/TOOL_CALL]" | "</tool_call>" => DONE]
    },
};
