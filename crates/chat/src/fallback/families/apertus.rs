//! `<|tools_prefix|>[{"name": {…}}]<|tools_suffix|>`: Apertus. The only key of a call is the tool's name.
//!
//! Source: the chat template of swiss-ai/Apertus-8B-Instruct, November 2026.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token, steps};

pub(super) static APERTUS: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &["<|tools_suffix|>"],
    steps: steps![
        OPEN = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("<|tools_prefix|>"), LIST)]),
        LIST = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("["), ITEM)]),
        ITEM = Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[(Token::Object(Capture::Keyed), COMMA), (Token::Literal("]"), CLOSE)],
        ),
        COMMA = Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[(Token::Literal(","), ITEM), (Token::Literal("]"), CLOSE)]
        ),
        CLOSE = Step::new(Gap::Any, OnMismatch::Unclosed, &[(Token::Literal("<|tools_suffix|>"), DONE)]),
    ],
};
