//! DeepSeek. R1 and V3 write the call's kind, its name and its arguments in a code block; V3.1 name and arguments;
//! V3.2 tags in its own markup language (DSML), where `string` says whether a value is text or JSON.
//!
//! The marks hold `｜` (U+FF5C) and `▁` (U+2581); `|`, `_` and blanks in their places are read as well, for templates
//! and models write those, too. Source: the chat templates of deepseek-ai/DeepSeek-R1, V3.1 and V3.2, and the
//! variants that ggml-org/llama.cpp knows.

use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Rest, Step, Token};

pub(super) static DEEPSEEK: Form = Form {
    marked: true,
    line_start: false,
    closes: &["<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"],
    steps: &[
        Step::new(
            Gap::None,
            Rest::Prose,
            &[(Token::Mark("<｜tool▁calls▁begin｜>"), 1), (Token::Mark("<｜tool▁call▁begin｜>"), 2)],
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

pub(super) static DSML: Form = Form {
    marked: true,
    line_start: false,
    closes: &["</｜DSML｜function_calls>"],
    steps: &[
        Step::new(Gap::None, Rest::Prose, &[(Token::Mark("<｜DSML｜function_calls>"), 1)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Mark("<｜DSML｜invoke name=\""), 2)]),
        Step::new(Gap::None, Rest::Prose, &[(Token::Word(Capture::Name), 3)]),
        Step::new(Gap::None, Rest::Prose, &[(Token::Mark("\">"), 4)]),
        Step::new(
            Gap::Any,
            Rest::Inside,
            &[
                (Token::Mark("<｜DSML｜parameter name=\""), 5),
                (Token::Mark("</｜DSML｜invoke>"), 10),
                (Token::Object(Capture::Arguments), 9),
            ],
        ),
        Step::new(Gap::None, Rest::Inside, &[(Token::Word(Capture::Key), 6)]),
        Step::new(Gap::None, Rest::Inside, &[(Token::Mark("\" string=\""), 7), (Token::Mark("\">"), 11)]),
        Step::new(Gap::None, Rest::Inside, &[(Token::Word(Capture::IsString), 8)]),
        Step::new(Gap::None, Rest::Inside, &[(Token::Mark("\">"), 11)]),
        Step::new(Gap::Any, Rest::Inside, &[(Token::Mark("</｜DSML｜invoke>"), 10)]),
        Step::new(
            Gap::Any,
            Rest::Closing,
            &[(Token::Mark("<｜DSML｜invoke name=\""), 2), (Token::Mark("</｜DSML｜function_calls>"), DONE)],
        ),
        Step::new(
            Gap::None,
            Rest::Inside,
            &[(Token::Raw(Capture::Value, "</｜DSML｜parameter>", Some('<')), 4)],
        ),
    ],
};
