//! Functionary: v3.1 writes `<function=name>{…}</function>` (as Llama 3 does for tools of its user), v3.2
//! `>>>name`, a line end and the arguments. What follows `>>>all` is text.
//!
//! Source: MeetKai/functionary, `prompt_template`.

use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Rest, Step, Token};

pub(super) static FUNCTIONARY_31: Form = Form {
    marked: true,
    line_start: false,
    closes: &["</function>"],
    steps: &[
        Step::new(Gap::None, Rest::Prose, &[(Token::Mark("<function="), 1)]),
        Step::new(Gap::None, Rest::Prose, &[(Token::Word(Capture::Name), 2)]),
        Step::new(Gap::Line, Rest::Prose, &[(Token::Mark(">"), 3)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Object(Capture::Arguments), 4)]),
        Step::new(Gap::Any, Rest::Closing, &[(Token::Mark("</function>"), DONE)]),
    ],
};

pub(super) static FUNCTIONARY_32: Form = Form {
    marked: true,
    line_start: false,
    closes: &[],
    steps: &[
        Step::new(Gap::None, Rest::Prose, &[(Token::Mark(">>>"), 1)]),
        Step::new(Gap::None, Rest::Prose, &[(Token::Word(Capture::Name), 2)]),
        Step::new(Gap::Line, Rest::Prose, &[(Token::Mark("\n"), 3)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Object(Capture::Arguments), 4)]),
        Step::new(Gap::None, Rest::Whole, &[]),
    ],
};
