//! A name and its arguments, `name` and `{…}`, with no mark at all: what is left of a call of Functionary 3.2 whose first `>>>` stood
//! in the prompt, of Mistral's or Kimi's where the server took their special tokens away. It must begin what the model says, and
//! its lines hold nothing else.
//!
//! Only the name tells it from a title above some data: one that no tool has is text.
//! Source: MeetKai/functionary, `prompt_template`; vLLM's `skip_special_tokens`.

use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Place, Rest, Step, Token};

pub(super) static NAMED: Form = Form {
    marked: false,
    at: Place::Message,
    closes: &[],
    steps: &[
        Step::new(Gap::None, Rest::Prose, &[(Token::Word(Capture::Name), 1)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Object(Capture::Arguments), 2)]),
        Step::new(Gap::Line, Rest::Line, &[(Token::Mark("\n"), DONE), (Token::Mark(">>>"), 0)]),
    ],
};
