//! DeepSeek's marks around `<steptml:invoke name="…">` with a tag for each argument: Step 3. Step 3.5 writes
//! Qwen3-Coder's form.
//!
//! Source: the chat template of stepfun-ai/step3 and `SGLang`'s parser for it, November 2026.

use crate::fallback::grammar::{
    Capture, DONE, Element, Form, Gap, OnMismatch, StartPosition, Step, Token, steps,
};

pub(super) static STEP_3: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"],
    steps: steps![
        OPEN = Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[
                (Token::Literal("<｜tool▁calls▁begin｜>"), CALL_OPEN),
                (Token::Literal("<｜tool▁call▁begin｜>"), TYPE)
            ],
        ),
        CALL_OPEN =
            Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<｜tool▁call▁begin｜>"), TYPE)]),
        TYPE = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Word(Capture::Nothing), SEPARATOR)]),
        SEPARATOR = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<｜tool▁sep｜>"), INVOKE)]),
        INVOKE = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<steptml:invoke name=\""), NAME)]),
        NAME = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Name), NAME_END)]),
        NAME_END = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("\">"), PARAMETER)]),
        PARAMETER = Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[
                (Token::Literal("<steptml:parameter name=\""), KEY),
                (Token::Literal("</steptml:invoke>"), CALL_CLOSE)
            ],
        ),
        KEY = Step::new(Gap::None, OnMismatch::Malformed, &[(Token::Word(Capture::Key), KEY_END)]),
        KEY_END = Step::new(Gap::None, OnMismatch::Malformed, &[(Token::Literal("\">"), VALUE)]),
        VALUE = Step::new(
            Gap::None,
            OnMismatch::Malformed,
            &[(
                Token::Element(&Element {
                    what: Capture::Value,
                    open: "<steptml:parameter name=\"",
                    close: "</steptml:parameter>",
                    around: &["<steptml:invoke name=\""],
                    otherwise: &[("\n<steptml:parameter name=\"", KEY), ("</steptml:invoke>", CALL_CLOSE),],
                }),
                PARAMETER,
            )],
        ),
        CALL_CLOSE = Step::new(
            Gap::Any,
            OnMismatch::Unclosed,
            &[(Token::Literal("<｜tool▁call▁end｜>"), CLOSE), (Token::Literal("<｜tool▁calls▁end｜>"), DONE)],
        ),
        CLOSE = Step::new(Gap::Any, OnMismatch::Complete, &[(Token::Literal("<｜tool▁calls▁end｜>"), DONE)]),
    ],
};
