//! DeepSeek. R1 and V3 write the call's type, its name and a code block with its arguments; V3.1 writes name and
//! arguments; V3.2 writes tags in its own markup language (DSML), where `string` says whether a value is text or JSON.
//! V4 names its block `tool_calls`. V4.1 names it `calls`, with a blank before the name of each tag.
//!
//! The marks contain `｜` (U+FF5C) and `▁` (U+2581). Templates and models also write `|`, `_` and blanks instead, so
//! these are read as well. Source: the chat templates of deepseek-ai/DeepSeek-R1, V3.1 and V3.2, the variants in
//! ggml-org/llama.cpp, and `SGLang`'s table of detectors for V4, November 2026.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token};

pub(super) static DEEPSEEK: Form = Form {
    marked: true,
    start: StartPosition::Anywhere,
    closes: &["<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"],
    steps: &[
        Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[
                (Token::Literal("<｜tool▁calls▁begin｜>"), 1),
                (Token::Literal("<｜tool▁calls｜>"), 1),
                (Token::Literal("<｜tool▁call▁begin｜>"), 2),
            ],
        ),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<｜tool▁call▁begin｜>"), 2)]),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Word(Capture::Name), 3)]),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<｜tool▁sep｜>"), 4)]),
        Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[(Token::Object(Capture::Arguments), 8), (Token::Word(Capture::Rename), 5)],
        ),
        Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[(Token::Fence(&["json", ""]), 6), (Token::Object(Capture::Arguments), 8)],
        ),
        Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Object(Capture::Arguments), 7)]),
        Step::new(Gap::Any, OnMismatch::Unclosed, &[(Token::FenceEnd, 8)]),
        Step::new(
            Gap::Any,
            OnMismatch::Unclosed,
            &[(Token::Literal("<｜tool▁call▁end｜>"), 9), (Token::Literal("<｜tool▁calls▁end｜>"), DONE)],
        ),
        Step::new(Gap::Any, OnMismatch::Complete, &[(Token::Literal("<｜tool▁calls▁end｜>"), DONE)]),
    ],
};

/// The form with `$blank` before the name of each tag.
macro_rules! dsml {
    ($blank:literal) => {
        Form {
            marked: true,
            start: StartPosition::Anywhere,
            closes: &[
                concat!("</｜DSML｜", $blank, "function▁calls>"),
                concat!("</｜DSML｜", $blank, "tool▁calls>"),
                concat!("</｜DSML｜", $blank, "calls>"),
            ],
            steps: &[
                Step::new(
                    Gap::None,
                    OnMismatch::Prose,
                    &[
                        (Token::Literal(concat!("<｜DSML｜", $blank, "function▁calls>")), 1),
                        (Token::Literal(concat!("<｜DSML｜", $blank, "tool▁calls>")), 1),
                        (Token::Literal(concat!("<｜DSML｜", $blank, "calls>")), 1),
                    ],
                ),
                Step::new(
                    Gap::Any,
                    OnMismatch::Prose,
                    &[(Token::Literal(concat!("<｜DSML｜", $blank, "invoke name=\"")), 2)],
                ),
                Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Name), 3)]),
                Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("\">"), 4)]),
                Step::new(
                    Gap::Any,
                    OnMismatch::Malformed,
                    &[
                        (Token::Literal(concat!("<｜DSML｜", $blank, "parameter name=\"")), 5),
                        (Token::Literal(concat!("</｜DSML｜", $blank, "invoke>")), 10),
                        (Token::Object(Capture::Arguments), 9),
                    ],
                ),
                Step::new(Gap::None, OnMismatch::Malformed, &[(Token::Word(Capture::Key), 6)]),
                Step::new(
                    Gap::None,
                    OnMismatch::Malformed,
                    &[(Token::Literal("\" string=\""), 7), (Token::Literal("\">"), 11)],
                ),
                Step::new(Gap::None, OnMismatch::Malformed, &[(Token::Word(Capture::IsString), 8)]),
                Step::new(Gap::None, OnMismatch::Malformed, &[(Token::Literal("\">"), 11)]),
                Step::new(
                    Gap::Any,
                    OnMismatch::Malformed,
                    &[(Token::Literal(concat!("</｜DSML｜", $blank, "invoke>")), 10)],
                ),
                Step::new(
                    Gap::Any,
                    OnMismatch::Unclosed,
                    &[
                        (Token::Literal(concat!("<｜DSML｜", $blank, "invoke name=\"")), 2),
                        (Token::Literal(concat!("</｜DSML｜", $blank, "function▁calls>")), DONE),
                        (Token::Literal(concat!("</｜DSML｜", $blank, "tool▁calls>")), DONE),
                        (Token::Literal(concat!("</｜DSML｜", $blank, "calls>")), DONE),
                    ],
                ),
                Step::new(
                    Gap::None,
                    OnMismatch::Malformed,
                    &[(
                        Token::Raw(Capture::Value, concat!("</｜DSML｜", $blank, "parameter>"), Some('<')),
                        4,
                    )],
                ),
            ],
        }
    };
}

pub(super) static DSML: Form = dsml!("");
pub(super) static DSML_41: Form = dsml!("▁");
