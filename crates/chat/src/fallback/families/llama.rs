//! `<|python_tag|>`: Llama 3. Calls of built-in tools use Python syntax (`brave_search.call(query="…")`); other calls
//! are JSON objects separated by `;`. Bare JSON objects are unmarked (`plain`).
//!
//! Source: meta-llama/llama-models, the prompt formats of 3.1 to 3.3.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token, steps};

pub(super) static PYTHON_TAG: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &[],
    steps: steps![
        OPEN = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("<|python_tag|>"), CALL)]),
        CALL = Step::new(
            Gap::Any,
            OnMismatch::Prose,
            &[(Token::Object(Capture::Object), SEPARATOR), (Token::Call, SEPARATOR)]
        ),
        SEPARATOR = Step::new(
            Gap::Any,
            OnMismatch::Complete,
            &[
                (Token::Literal(";"), NEXT_CALL),
                (Token::Literal("<|eom_id|>"), DONE),
                (Token::Literal("<|eot_id|>"), DONE),
            ],
        ),
        NEXT_CALL = Step::new(
            Gap::Any,
            OnMismatch::Complete,
            &[(Token::Object(Capture::Object), SEPARATOR), (Token::Call, SEPARATOR)]
        ),
    ],
};
