//! Functionary. Version 3.1 writes `<function=name>{…}</function>`, as does Llama 3 for user-defined tools, sometimes
//! without the first `>` or with wrong marks. Version 3.2 writes `>>>name`, a line break and the arguments. Text after
//! `>>>all` is prose. A first call without its `>>>` is read by `named`.
//!
//! Source: MeetKai/functionary, `prompt_template`; the `failed_generation` that Groq's servers report for Llama 3.3.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token, steps};

pub(super) static FUNCTIONARY_31: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</function>"],
    steps: steps![
        OPEN = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("<function="), NAME)]),
        NAME = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Name), NAME_END)]),
        NAME_END = Step::new(
            Gap::Line,
            OnMismatch::Prose,
            &[
                (Token::Literal(">"), ARGUMENTS),
                (Token::Literal("="), ARGUMENTS),
                (Token::Object(Capture::Arguments), CLOSE)
            ],
        ),
        ARGUMENTS = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Object(Capture::Arguments), CLOSE)]),
        CLOSE = Step::new(
            Gap::Any,
            OnMismatch::Unclosed,
            &[
                (Token::Literal("</function>"), DONE),
                (Token::Literal("<function>"), DONE),
                (Token::Literal(">"), CLOSE_TAG),
            ],
        ),
        CLOSE_TAG = Step::new(Gap::Any, OnMismatch::Unclosed, &[(Token::Literal("</function>"), DONE)]),
    ],
};

pub(super) static FUNCTIONARY_32: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &[],
    steps: steps![
        OPEN = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal(">>>"), NAME)]),
        NAME = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Name), LINE_END)]),
        LINE_END = Step::new(Gap::Line, OnMismatch::Prose, &[(Token::Literal("\n"), ARGUMENTS)]),
        ARGUMENTS = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Object(Capture::Arguments), END)]),
        END = Step::new(Gap::None, OnMismatch::Complete, &[]),
    ],
};
