//! A name and its arguments, `name` and `{…}`, without marks: a call of Functionary 3.2 whose first `>>>` was in the
//! prompt, or a call of Mistral or Kimi from which the server removed the special tokens. The call must be
//! at the start of a message, and its lines must contain nothing else.
//!
//! Only the name distinguishes the call from a title above data, so a call of an unknown tool is text.
//! Source: MeetKai/functionary, `prompt_template`; vLLM's `skip_special_tokens`.

use crate::fallback::grammar::{Form, StartPosition, steps};

pub(super) static NAMED: Form = Form {
    marked: false,
    start: StartPosition::Message,
    closes: &[],
    steps: steps! {
        NAME      None Prose     [Word(Name) => ARGUMENTS]
        ARGUMENTS Any  Prose     [Object(Arguments) => LINE_END]
        LINE_END  Line LineEnd   ["\n" => DONE, ">>>" => NAME]
    },
};
