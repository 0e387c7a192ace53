//! Functionary: v3.1 writes `<function=name>{…}</function>` (as Llama 3 does for tools of its user, at times without the first
//! `>` or with marks mistaken), v3.2 `>>>name`, a line end and the arguments. What follows `>>>all` is text; a first call without its
//! `>>>` is `named`.
//!
//! Source: MeetKai/functionary, `prompt_template`; what Groq's servers report as `failed_generation` of Llama 3.3.

use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Place, Rest, Step, Token};

pub(super) static FUNCTIONARY_31: Form = Form {
    marked: true,
    at: Place::Anywhere,
    closes: &["</function>"],
    steps: &[
        Step::new(Gap::None, Rest::Prose, &[(Token::Mark("<function="), 1)]),
        Step::new(Gap::None, Rest::Prose, &[(Token::Word(Capture::Name), 2)]),
        Step::new(
            Gap::Line,
            Rest::Prose,
            &[(Token::Mark(">"), 3), (Token::Mark("="), 3), (Token::Object(Capture::Arguments), 4)],
        ),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Object(Capture::Arguments), 4)]),
        Step::new(
            Gap::Any,
            Rest::Closing,
            &[(Token::Mark("</function>"), DONE), (Token::Mark("<function>"), DONE), (Token::Mark(">"), 5)],
        ),
        Step::new(Gap::Any, Rest::Closing, &[(Token::Mark("</function>"), DONE)]),
    ],
};

pub(super) static FUNCTIONARY_32: Form = Form {
    marked: true,
    at: Place::Anywhere,
    closes: &[],
    steps: &[
        Step::new(Gap::None, Rest::Prose, &[(Token::Mark(">>>"), 1)]),
        Step::new(Gap::None, Rest::Prose, &[(Token::Word(Capture::Name), 2)]),
        Step::new(Gap::Line, Rest::Prose, &[(Token::Mark("\n"), 3)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Object(Capture::Arguments), 4)]),
        Step::new(Gap::None, Rest::Whole, &[]),
    ],
};
