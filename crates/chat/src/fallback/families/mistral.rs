//! `[TOOL_CALLS]`, then an array of calls in JSON, or (since Mistral Small 3.2 and Devstral) a name, optionally
//! `[CALL_ID]` and an id, optionally `[ARGS]`, and the arguments. Each further call repeats the mark.
//!
//! Source: mistral-common, tokenizers v3 to v13.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token, steps};

pub(super) static MISTRAL: Form = Form {
    marked: true,
    start: StartPosition::Token,
    closes: &[],
    steps: steps![
        OPEN = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("[TOOL_CALLS]"), CALLS)]),
        CALLS = Step::new(
            Gap::Any,
            OnMismatch::Prose,
            &[
                (Token::Object(Capture::Object), CLOSE),
                (Token::Literal("["), ITEM),
                (Token::Word(Capture::Name), ID_OR_ARGUMENTS)
            ],
        ),
        ID_OR_ARGUMENTS = Step::new(
            Gap::Line,
            OnMismatch::Prose,
            &[
                (Token::Literal("[CALL_ID]"), ID),
                (Token::Literal("[ARGS]"), ARGUMENTS),
                (Token::Object(Capture::Arguments), CLOSE),
            ],
        ),
        ID = Step::new(
            Gap::None,
            OnMismatch::Malformed,
            &[(Token::Raw(Capture::Nothing, "[ARGS]", None), ARGUMENTS)]
        ),
        ARGUMENTS = Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Object(Capture::Arguments), CLOSE)]),
        CLOSE = Step::new(Gap::Any, OnMismatch::Complete, &[(Token::Literal("[/TOOL_CALLS]"), DONE)]),
        ITEM = Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[(Token::Object(Capture::Object), COMMA), (Token::Literal("]"), CLOSE)],
        ),
        COMMA = Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[(Token::Literal(","), ITEM), (Token::Literal("]"), CLOSE)]
        ),
    ],
};
