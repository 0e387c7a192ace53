//! DeepSeek. R1 and V3 write the call's kind, its name and its arguments in a code block; V3.1 name and arguments;
//! V3.2 tags in its own markup language (DSML), where `string` says whether a value is text or JSON; V4 calls its block
//! `tool_calls`, V4.1 `calls`, with a blank before the name of each tag.
//!
//! The marks hold `｜` (U+FF5C) and `▁` (U+2581); `|`, `_` and blanks in their places are read as well, for templates
//! and models write those, too. Source: the chat templates of deepseek-ai/DeepSeek-R1, V3.1 and V3.2, the
//! variants that ggml-org/llama.cpp knows, and `SGLang`'s table of detectors for V4, November 2026.

use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Place, Rest, Step, Token};

pub(super) static DEEPSEEK: Form = Form {
    marked: true,
    at: Place::Anywhere,
    closes: &["<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"],
    steps: &[
        Step::new(
            Gap::None,
            Rest::Prose,
            &[
                (Token::Mark("<｜tool▁calls▁begin｜>"), 1),
                (Token::Mark("<｜tool▁calls｜>"), 1),
                (Token::Mark("<｜tool▁call▁begin｜>"), 2),
            ],
        ),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Mark("<｜tool▁call▁begin｜>"), 2)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Word(Capture::Name), 3)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Mark("<｜tool▁sep｜>"), 4)]),
        Step::new(
            Gap::Any,
            Rest::Inside,
            &[(Token::Object(Capture::Arguments), 8), (Token::Word(Capture::Rename), 5)],
        ),
        Step::new(
            Gap::Any,
            Rest::Inside,
            &[(Token::Fence(&["json", ""]), 6), (Token::Object(Capture::Arguments), 8)],
        ),
        Step::new(Gap::Any, Rest::Inside, &[(Token::Object(Capture::Arguments), 7)]),
        Step::new(Gap::Any, Rest::Closing, &[(Token::FenceEnd, 8)]),
        Step::new(
            Gap::Any,
            Rest::Closing,
            &[(Token::Mark("<｜tool▁call▁end｜>"), 9), (Token::Mark("<｜tool▁calls▁end｜>"), DONE)],
        ),
        Step::new(Gap::Any, Rest::Whole, &[(Token::Mark("<｜tool▁calls▁end｜>"), DONE)]),
    ],
};

/// The form with this before the name of each tag.
macro_rules! dsml {
    ($blank:literal) => {
        Form {
            marked: true,
            at: Place::Anywhere,
            closes: &[
                concat!("</｜DSML｜", $blank, "function▁calls>"),
                concat!("</｜DSML｜", $blank, "tool▁calls>"),
                concat!("</｜DSML｜", $blank, "calls>"),
            ],
            steps: &[
                Step::new(
                    Gap::None,
                    Rest::Prose,
                    &[
                        (Token::Mark(concat!("<｜DSML｜", $blank, "function▁calls>")), 1),
                        (Token::Mark(concat!("<｜DSML｜", $blank, "tool▁calls>")), 1),
                        (Token::Mark(concat!("<｜DSML｜", $blank, "calls>")), 1),
                    ],
                ),
                Step::new(
                    Gap::Any,
                    Rest::Prose,
                    &[(Token::Mark(concat!("<｜DSML｜", $blank, "invoke name=\"")), 2)],
                ),
                Step::new(Gap::None, Rest::Prose, &[(Token::Word(Capture::Name), 3)]),
                Step::new(Gap::None, Rest::Prose, &[(Token::Mark("\">"), 4)]),
                Step::new(
                    Gap::Any,
                    Rest::Inside,
                    &[
                        (Token::Mark(concat!("<｜DSML｜", $blank, "parameter name=\"")), 5),
                        (Token::Mark(concat!("</｜DSML｜", $blank, "invoke>")), 10),
                        (Token::Object(Capture::Arguments), 9),
                    ],
                ),
                Step::new(Gap::None, Rest::Inside, &[(Token::Word(Capture::Key), 6)]),
                Step::new(
                    Gap::None,
                    Rest::Inside,
                    &[(Token::Mark("\" string=\""), 7), (Token::Mark("\">"), 11)],
                ),
                Step::new(Gap::None, Rest::Inside, &[(Token::Word(Capture::IsString), 8)]),
                Step::new(Gap::None, Rest::Inside, &[(Token::Mark("\">"), 11)]),
                Step::new(
                    Gap::Any,
                    Rest::Inside,
                    &[(Token::Mark(concat!("</｜DSML｜", $blank, "invoke>")), 10)],
                ),
                Step::new(
                    Gap::Any,
                    Rest::Closing,
                    &[
                        (Token::Mark(concat!("<｜DSML｜", $blank, "invoke name=\"")), 2),
                        (Token::Mark(concat!("</｜DSML｜", $blank, "function▁calls>")), DONE),
                        (Token::Mark(concat!("</｜DSML｜", $blank, "tool▁calls>")), DONE),
                        (Token::Mark(concat!("</｜DSML｜", $blank, "calls>")), DONE),
                    ],
                ),
                Step::new(
                    Gap::None,
                    Rest::Inside,
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
