//! `<|python_tag|>`: Llama 3, for its built-in tools a call as Python writes it (`brave_search.call(query="…")`), else
//! JSON objects with `;` between them. Its bare JSON objects are unmarked (`plain`).
//!
//! Source: meta-llama/llama-models, the prompt formats of 3.1 to 3.3.

use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Place, Rest, Step, Token};

pub(super) static PYTHON_TAG: Form = Form {
    marked: true,
    at: Place::Anywhere,
    closes: &[],
    steps: &[
        Step::new(Gap::None, Rest::Prose, &[(Token::Mark("<|python_tag|>"), 1)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Object(Capture::Object), 2), (Token::Call, 2)]),
        Step::new(
            Gap::Any,
            Rest::Whole,
            &[(Token::Mark(";"), 3), (Token::Mark("<|eom_id|>"), DONE), (Token::Mark("<|eot_id|>"), DONE)],
        ),
        Step::new(Gap::Any, Rest::Whole, &[(Token::Object(Capture::Object), 2), (Token::Call, 2)]),
    ],
};
