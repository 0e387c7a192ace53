//! DeepSeek's marks around `<steptml:invoke name="…">` with a tag for each argument: Step 3. Step 3.5 writes
//! Qwen3-Coder's form.
//!
//! Source: the chat template of stepfun-ai/step3 and `SGLang`'s parser for it, November 2026.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token};

pub(super) static STEP_3: Form = Form {
    marked: true,
    start: StartPosition::Anywhere,
    closes: &["<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"],
    steps: &[
        Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[(Token::Literal("<｜tool▁calls▁begin｜>"), 1), (Token::Literal("<｜tool▁call▁begin｜>"), 2)],
        ),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<｜tool▁call▁begin｜>"), 2)]),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Word(Capture::Nothing), 3)]),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<｜tool▁sep｜>"), 4)]),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<steptml:invoke name=\""), 5)]),
        Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Name), 6)]),
        Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("\">"), 7)]),
        Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[(Token::Literal("<steptml:parameter name=\""), 8), (Token::Literal("</steptml:invoke>"), 11)],
        ),
        Step::new(Gap::None, OnMismatch::Malformed, &[(Token::Word(Capture::Key), 9)]),
        Step::new(Gap::None, OnMismatch::Malformed, &[(Token::Literal("\">"), 10)]),
        Step::new(
            Gap::None,
            OnMismatch::Malformed,
            &[(Token::Raw(Capture::Value, "</steptml:parameter>", Some('<')), 7)],
        ),
        Step::new(
            Gap::Any,
            OnMismatch::Unclosed,
            &[(Token::Literal("<｜tool▁call▁end｜>"), 12), (Token::Literal("<｜tool▁calls▁end｜>"), DONE)],
        ),
        Step::new(Gap::Any, OnMismatch::Complete, &[(Token::Literal("<｜tool▁calls▁end｜>"), DONE)]),
    ],
};
