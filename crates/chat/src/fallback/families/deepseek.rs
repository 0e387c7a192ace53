//! DeepSeek. R1 and V3 write the call's type, its name and a code block with its arguments; V3.1 writes name and
//! arguments; V3.2 writes tags in its own markup language (DSML), where `string` states whether a value is text or JSON.
//! V4 names its block `tool_calls`. V4.1 names it `calls`, with a blank before the name of each tag.
//!
//! The marks contain `｜` (U+FF5C) and `▁` (U+2581). Templates and models also write `|`, `_` and blanks instead, so
//! these are read as well, and so are doubled bars. Source: the chat templates of deepseek-ai/DeepSeek-R1, V3.1 and V3.2, the variants in
//! ggml-org/llama.cpp, and `SGLang`'s table of detectors for V4, November 2026.

use crate::fallback::grammar::{
    Capture, DONE, Element, Form, Gap, OnMismatch, StartPosition, Step, Token, steps,
};

pub(super) static DEEPSEEK: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"],
    steps: steps![
        OPEN = Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[
                (Token::Literal("<｜tool▁calls▁begin｜>"), CALL_OPEN),
                (Token::Literal("<｜tool▁calls｜>"), CALL_OPEN),
                (Token::Literal("<｜tool▁call▁begin｜>"), TYPE_OR_NAME),
            ],
        ),
        CALL_OPEN = Step::new(
            Gap::Any,
            OnMismatch::Prose,
            &[(Token::Literal("<｜tool▁call▁begin｜>"), TYPE_OR_NAME)]
        ),
        TYPE_OR_NAME = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Word(Capture::Name), SEPARATOR)]),
        SEPARATOR =
            Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<｜tool▁sep｜>"), ARGUMENTS_OR_NAME)]),
        ARGUMENTS_OR_NAME = Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[(Token::Object(Capture::Arguments), CALL_CLOSE), (Token::Word(Capture::Rename), FENCE)],
        ),
        FENCE = Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[
                (Token::Fence(&["json", ""]), FENCED_ARGUMENTS),
                (Token::Object(Capture::Arguments), CALL_CLOSE)
            ],
        ),
        FENCED_ARGUMENTS =
            Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Object(Capture::Arguments), FENCE_END)]),
        FENCE_END = Step::new(Gap::Any, OnMismatch::Unclosed, &[(Token::FenceEnd, CALL_CLOSE)]),
        CALL_CLOSE = Step::new(
            Gap::Any,
            OnMismatch::Unclosed,
            &[(Token::Literal("<｜tool▁call▁end｜>"), CLOSE), (Token::Literal("<｜tool▁calls▁end｜>"), DONE)],
        ),
        CLOSE = Step::new(Gap::Any, OnMismatch::Complete, &[(Token::Literal("<｜tool▁calls▁end｜>"), DONE)]),
    ],
};

/// The form with `$blank` before the name of each tag. The tags around the calls may be missing.
macro_rules! dsml {
    ($blank:literal) => {
        Form {
            marked: true,
            start: StartPosition::Token,
            closes: &[
                concat!("</｜DSML｜", $blank, "function▁calls>"),
                concat!("</｜DSML｜", $blank, "tool▁calls>"),
                concat!("</｜DSML｜", $blank, "calls>"),
            ],
            steps: steps![
                OPEN = Step::new(
                    Gap::None,
                    OnMismatch::Prose,
                    &[
                        (Token::Literal(concat!("<｜DSML｜", $blank, "function▁calls>")), INVOKE),
                        (Token::Literal(concat!("<｜DSML｜", $blank, "tool▁calls>")), INVOKE),
                        (Token::Literal(concat!("<｜DSML｜", $blank, "calls>")), INVOKE),
                        (Token::Literal(concat!("<｜DSML｜", $blank, "invoke name=\"")), NAME),
                    ],
                ),
                INVOKE = Step::new(
                    Gap::Any,
                    OnMismatch::Prose,
                    &[(Token::Literal(concat!("<｜DSML｜", $blank, "invoke name=\"")), NAME)],
                ),
                NAME = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Name), NAME_END)]),
                NAME_END = Step::new(
                    Gap::None,
                    OnMismatch::Prose,
                    &[(Token::Literal("\">"), FIRST_PARAMETER), (Token::Literal("\"/>"), CLOSE)],
                ),
                FIRST_PARAMETER = Step::new(
                    Gap::Any,
                    OnMismatch::Malformed,
                    &[
                        (Token::Literal(concat!("<｜DSML｜", $blank, "parameter name=\"")), KEY),
                        (Token::Literal(concat!("</｜DSML｜", $blank, "invoke>")), CLOSE),
                        (Token::Object(Capture::Arguments), PARAMETER),
                    ],
                ),
                PARAMETER = Step::new(
                    Gap::Any,
                    OnMismatch::Malformed,
                    &[
                        (Token::Literal(concat!("<｜DSML｜", $blank, "parameter name=\"")), KEY),
                        (Token::Literal(concat!("</｜DSML｜", $blank, "invoke>")), CLOSE),
                        (Token::Literal(concat!("</｜DSML｜", $blank, "function▁calls>")), DONE),
                        (Token::Literal(concat!("</｜DSML｜", $blank, "tool▁calls>")), DONE),
                        (Token::Literal(concat!("</｜DSML｜", $blank, "calls>")), DONE),
                    ],
                ),
                KEY = Step::new(Gap::None, OnMismatch::Malformed, &[(Token::Word(Capture::Key), KEY_END)]),
                KEY_END = Step::new(
                    Gap::None,
                    OnMismatch::Malformed,
                    &[(Token::Literal("\" string=\""), IS_STRING), (Token::Literal("\">"), VALUE)],
                ),
                IS_STRING = Step::new(
                    Gap::None,
                    OnMismatch::Malformed,
                    &[(Token::Word(Capture::IsString), IS_STRING_END)]
                ),
                IS_STRING_END =
                    Step::new(Gap::None, OnMismatch::Malformed, &[(Token::Literal("\">"), VALUE)]),
                VALUE = Step::new(
                    Gap::None,
                    OnMismatch::Malformed,
                    &[(
                        Token::Element(&Element {
                            what: Capture::Value,
                            open: concat!("<｜DSML｜", $blank, "parameter name=\""),
                            close: concat!("</｜DSML｜", $blank, "parameter>"),
                            around: &[concat!("<｜DSML｜", $blank, "invoke name=\"")],
                            otherwise: &[
                                (concat!("\n<｜DSML｜", $blank, "parameter name=\""), KEY),
                                (concat!("</｜DSML｜", $blank, "invoke>"), CLOSE),
                                (concat!("</｜DSML｜", $blank, "function▁calls>"), DONE),
                                (concat!("</｜DSML｜", $blank, "tool▁calls>"), DONE),
                                (concat!("</｜DSML｜", $blank, "calls>"), DONE),
                            ],
                        }),
                        PARAMETER,
                    )],
                ),
                CLOSE = Step::new(
                    Gap::Any,
                    OnMismatch::Complete,
                    &[
                        (Token::Literal(concat!("<｜DSML｜", $blank, "invoke name=\"")), NAME),
                        (Token::Literal(concat!("</｜DSML｜", $blank, "function▁calls>")), DONE),
                        (Token::Literal(concat!("</｜DSML｜", $blank, "tool▁calls>")), DONE),
                        (Token::Literal(concat!("</｜DSML｜", $blank, "calls>")), DONE),
                    ],
                ),
            ],
        }
    };
}

pub(super) static DSML: Form = dsml!("");
pub(super) static DSML_41: Form = dsml!("▁");
