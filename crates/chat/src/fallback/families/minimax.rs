//! MiniMax: M2 writes tags with attributes, M1 writes lines of JSON between `<tool_calls>` and `</tool_calls>`. Jamba,
//! Hunyuan and Apriel write an array between the same tags. M3 writes a tag for each argument, and its namespace token
//! before each tag; a server may remove the token. M2 and M3 also write `[TOOL_CALL]{tool => "name", args => {…}}`,
//! with the arguments as JSON or as `--key "value"`.
//!
//! Source: the tool calling guides in MiniMaxAI/MiniMax-M1 and MiniMaxAI/MiniMax-M2.5, the chat template of
//! MiniMax-M3 in ggml-org/llama.cpp, November 2026.

use super::common::{json_calls, tag_calls};
use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token, steps};

pub(super) static MINIMAX_M1: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</tool_calls>"],
    steps: json_calls!(
        ["<tool_calls>"],
        OnMismatch::Unclosed,
        [(Token::Object(Capture::Object), CLOSE), (Token::Literal("</tool_calls>"), DONE)]
    ),
};

pub(super) static MINIMAX_M2: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</minimax:tool_call>"],
    steps: tag_calls!(
        ["<minimax:tool_call>", "<tool_call>"],
        ["</minimax:tool_call>", "</tool_call>"],
        "<invoke name=\"",
        "</invoke>",
        "<parameter name=\"",
        "</parameter>"
    ),
};

/// The form with `$token` before each tag.
macro_rules! m3 {
    ($start:expr, $token:literal) => {
        Form {
            marked: true,
            start: $start,
            closes: &[concat!($token, "</tool_call>")],
            steps: steps![
                OPEN = Step::new(
                    Gap::None,
                    OnMismatch::Prose,
                    &[(Token::Literal(concat!($token, "<tool_call>")), INVOKE)],
                ),
                INVOKE = Step::new(
                    Gap::Any,
                    OnMismatch::Prose,
                    &[(Token::Literal(concat!($token, "<invoke name=\"")), NAME)],
                ),
                NAME = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Name), NAME_END)]),
                NAME_END = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("\">"), ARGUMENTS)]),
                ARGUMENTS = Step::new(
                    Gap::None,
                    OnMismatch::Malformed,
                    &[(Token::Raw(Capture::Tags, concat!($token, "</invoke>"), None), CLOSE)],
                ),
                CLOSE = Step::new(
                    Gap::Any,
                    OnMismatch::Complete,
                    &[
                        (Token::Literal(concat!($token, "<invoke name=\"")), NAME),
                        (Token::Literal(concat!($token, "</tool_call>")), DONE),
                    ],
                ),
            ],
        }
    };
}

pub(super) static MINIMAX_M3: Form = m3!(StartPosition::Token, "]<]minimax[>[");
pub(super) static MINIMAX_M3_PLAIN: Form = m3!(StartPosition::Line, "");

pub(super) static ARROWS: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["[/TOOL_CALL]", "</tool_call>"],
    steps: steps![
        OPEN = Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[(Token::Literal("[TOOL_CALL]"), TOOL), (Token::Literal("<tool_call>"), TOOL)],
        ),
        TOOL = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("{"), KEY)]),
        KEY = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("tool"), ARROW)]),
        ARROW = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("=>"), QUOTE)]),
        QUOTE = Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Literal("\""), NAME)]),
        NAME = Step::new(Gap::None, OnMismatch::Malformed, &[(Token::Word(Capture::Name), NAME_END)]),
        NAME_END = Step::new(Gap::None, OnMismatch::Malformed, &[(Token::Literal("\""), COMMA)]),
        COMMA = Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[(Token::Literal(","), ARGUMENTS_KEY), (Token::Literal("}"), CLOSE)],
        ),
        ARGUMENTS_KEY =
            Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Literal("args"), ARGUMENTS_ARROW)]),
        ARGUMENTS_ARROW = Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Literal("=>"), ARGUMENTS)]),
        ARGUMENTS = Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Braces(Capture::Options), END)]),
        END = Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Literal("}"), CLOSE)]),
        CLOSE = Step::new(
            Gap::Any,
            OnMismatch::Unclosed,
            &[(Token::Literal("[/TOOL_CALL]"), DONE), (Token::Literal("</tool_call>"), DONE)],
        ),
    ],
};
