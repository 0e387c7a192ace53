//! A name and its arguments, `name` and `{…}`, without marks: a call of Functionary 3.2 whose first `>>>` was in the
//! prompt, or a call of Mistral or Kimi from which the server removed the special tokens. The call must be
//! at the start of a message, and its lines must contain nothing else.
//!
//! Only the name distinguishes the call from a title above data, so a call of an unknown tool is text.
//! Source: MeetKai/functionary, `prompt_template`; vLLM's `skip_special_tokens`.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token, steps};

pub(super) static NAMED: Form = Form {
    marked: false,
    start: StartPosition::Message,
    closes: &[],
    steps: steps![
        NAME = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Word(Capture::Name), ARGUMENTS)]),
        ARGUMENTS = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Object(Capture::Arguments), LINE_END)]),
        LINE_END = Step::new(
            Gap::Line,
            OnMismatch::LineEnd,
            &[(Token::Literal("\n"), DONE), (Token::Literal(">>>"), NAME)],
        ),
    ],
};
