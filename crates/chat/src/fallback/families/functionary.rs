//! Functionary. Version 3.1 writes `<function=name>{…}</function>`, as does Llama 3 for user-defined tools, sometimes
//! without the first `>` or with wrong marks. Version 3.2 writes `>>>name`, a line break and the arguments. Text after
//! `>>>all` is prose. A first call without its `>>>` is read by `named`.
//!
//! Source: MeetKai/functionary, `prompt_template`; the `failed_generation` that Groq's servers report for Llama 3.3.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token};

pub(super) static FUNCTIONARY_31: Form = Form {
    marked: true,
    start: StartPosition::Anywhere,
    closes: &["</function>"],
    steps: &[
        Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("<function="), 1)]),
        Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Name), 2)]),
        Step::new(
            Gap::Line,
            OnMismatch::Prose,
            &[(Token::Literal(">"), 3), (Token::Literal("="), 3), (Token::Object(Capture::Arguments), 4)],
        ),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Object(Capture::Arguments), 4)]),
        Step::new(
            Gap::Any,
            OnMismatch::Unclosed,
            &[
                (Token::Literal("</function>"), DONE),
                (Token::Literal("<function>"), DONE),
                (Token::Literal(">"), 5),
            ],
        ),
        Step::new(Gap::Any, OnMismatch::Unclosed, &[(Token::Literal("</function>"), DONE)]),
    ],
};

pub(super) static FUNCTIONARY_32: Form = Form {
    marked: true,
    start: StartPosition::Anywhere,
    closes: &[],
    steps: &[
        Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal(">>>"), 1)]),
        Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Name), 2)]),
        Step::new(Gap::Line, OnMismatch::Prose, &[(Token::Literal("\n"), 3)]),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Object(Capture::Arguments), 4)]),
        Step::new(Gap::None, OnMismatch::Complete, &[]),
    ],
};
