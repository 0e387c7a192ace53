//! `[TOOL_CALLS]`, then an array of calls in JSON, or (since Mistral Small 3.2 and Devstral) a name, perhaps
//! `[CALL_ID]` and an id, perhaps `[ARGS]`, and the arguments; each further call with the mark again.
//!
//! Source: mistral-common, tokenizers v3 to v13.

use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Place, Rest, Step, Token};

pub(super) static MISTRAL: Form = Form {
    marked: true,
    at: Place::Anywhere,
    closes: &[],
    steps: &[
        Step::new(Gap::None, Rest::Prose, &[(Token::Mark("[TOOL_CALLS]"), 1)]),
        Step::new(
            Gap::Any,
            Rest::Prose,
            &[(Token::Object(Capture::Object), 5), (Token::Mark("["), 6), (Token::Word(Capture::Name), 2)],
        ),
        Step::new(
            Gap::Line,
            Rest::Prose,
            &[
                (Token::Mark("[CALL_ID]"), 3),
                (Token::Mark("[ARGS]"), 4),
                (Token::Object(Capture::Arguments), 5),
            ],
        ),
        Step::new(Gap::None, Rest::Inside, &[(Token::Raw(Capture::Nothing, "[ARGS]", None), 4)]),
        Step::new(Gap::Any, Rest::Inside, &[(Token::Object(Capture::Arguments), 5)]),
        Step::new(Gap::Any, Rest::Whole, &[(Token::Mark("[/TOOL_CALLS]"), DONE)]),
        Step::new(Gap::Any, Rest::Inside, &[(Token::Object(Capture::Object), 7), (Token::Mark("]"), 5)]),
        Step::new(Gap::Any, Rest::Inside, &[(Token::Mark(","), 6), (Token::Mark("]"), 5)]),
    ],
};
