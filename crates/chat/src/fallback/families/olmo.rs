//! `<function_calls>`, calls in Python syntax, each on its own line, `</function_calls>`: Olmo 3.
//!
//! Source: the chat template of allenai/Olmo-3-7B-Instruct and vLLM's parser for it, November 2026.

use crate::fallback::grammar::{DONE, Form, Gap, OnMismatch, StartPosition, Step, Token, steps};

pub(super) static OLMO_3: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</function_calls>"],
    steps: steps![
        OPEN = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("<function_calls>"), CALL)]),
        CALL = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Call, CLOSE)]),
        CLOSE = Step::new(
            Gap::Any,
            OnMismatch::Unclosed,
            &[(Token::Literal("</function_calls>"), DONE), (Token::Literal(","), CALL), (Token::Call, CLOSE)],
        ),
    ],
};
