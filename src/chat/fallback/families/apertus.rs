//! `<|tools_prefix|>[{"name": {…}}]<|tools_suffix|>`: Apertus, where a call's only key is its name.
//!
//! Source: the chat template of swiss-ai/Apertus-8B-Instruct, November 2026.

use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Place, Rest, Step, Token};

pub(super) static APERTUS: Form = Form {
    marked: true,
    at: Place::Anywhere,
    closes: &["<|tools_suffix|>"],
    steps: &[
        Step::new(Gap::None, Rest::Prose, &[(Token::Mark("<|tools_prefix|>"), 1)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Mark("["), 2)]),
        Step::new(Gap::Any, Rest::Inside, &[(Token::Object(Capture::Keyed), 3), (Token::Mark("]"), 4)]),
        Step::new(Gap::Any, Rest::Inside, &[(Token::Mark(","), 2), (Token::Mark("]"), 4)]),
        Step::new(Gap::Any, Rest::Closing, &[(Token::Mark("<|tools_suffix|>"), DONE)]),
    ],
};
