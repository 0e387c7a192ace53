//! `[TOOL_CALLS]`, then an array of calls in JSON, or (since Mistral Small 3.2 and Devstral) a name, optionally
//! `[CALL_ID]` and an id, optionally `[ARGS]`, and the arguments. Each further call repeats the mark.
//!
//! Source: mistral-common, tokenizers v3 to v13.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token};

pub(super) static MISTRAL: Form = Form {
    marked: true,
    start: StartPosition::Anywhere,
    closes: &[],
    steps: &[
        Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("[TOOL_CALLS]"), 1)]),
        Step::new(
            Gap::Any,
            OnMismatch::Prose,
            &[(Token::Object(Capture::Object), 5), (Token::Literal("["), 6), (Token::Word(Capture::Name), 2)],
        ),
        Step::new(
            Gap::Line,
            OnMismatch::Prose,
            &[
                (Token::Literal("[CALL_ID]"), 3),
                (Token::Literal("[ARGS]"), 4),
                (Token::Object(Capture::Arguments), 5),
            ],
        ),
        Step::new(Gap::None, OnMismatch::Malformed, &[(Token::Raw(Capture::Nothing, "[ARGS]", None), 4)]),
        Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Object(Capture::Arguments), 5)]),
        Step::new(Gap::Any, OnMismatch::Complete, &[(Token::Literal("[/TOOL_CALLS]"), DONE)]),
        Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[(Token::Object(Capture::Object), 7), (Token::Literal("]"), 5)],
        ),
        Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Literal(","), 6), (Token::Literal("]"), 5)]),
    ],
};
