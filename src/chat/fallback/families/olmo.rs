//! `<function_calls>`, calls as Python writes them, each on a line of its own, `</function_calls>`: Olmo 3.
//!
//! Source: the chat template of allenai/Olmo-3-7B-Instruct and vLLM's parser for it, November 2026.

use crate::chat::fallback::grammar::{DONE, Form, Gap, Place, Rest, Step, Token};

pub(super) static OLMO_3: Form = Form {
    marked: true,
    at: Place::Anywhere,
    closes: &["</function_calls>"],
    steps: &[
        Step::new(Gap::None, Rest::Prose, &[(Token::Mark("<function_calls>"), 1)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Call, 2)]),
        Step::new(
            Gap::Any,
            Rest::Closing,
            &[(Token::Mark("</function_calls>"), DONE), (Token::Mark(","), 1), (Token::Call, 2)],
        ),
    ],
};
