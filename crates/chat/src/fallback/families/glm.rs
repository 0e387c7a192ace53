//! `<tool_call>name`, then `<arg_key>k</arg_key><arg_value>v</arg_value>` for each argument, then `</tool_call>`:
//! GLM-4.5 and later. `LongCat` writes `longcat_` before the name of each tag, Hunyuan 3 writes `<tool_sep>` after the
//! tool's name. Values other than strings are JSON. Versions up to GLM-4.6 write line breaks between the tags.
//!
//! Source: the chat templates of zai-org/GLM-4.5 and GLM-4.7; `SGLang`'s detectors for the others, November 2026.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token, steps};

/// The form with `$prefix` before the name of each tag.
macro_rules! glm {
    ($prefix:literal) => {
        Form {
            marked: true,
            start: StartPosition::Line,
            closes: &[concat!("</", $prefix, "tool_call>")],
            steps: steps![
                OPEN = Step::new(
                    Gap::None,
                    OnMismatch::Prose,
                    &[(Token::Literal(concat!("<", $prefix, "tool_call>")), NAME)],
                ),
                NAME =
                    Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Word(Capture::Name), FIRST_KEY_OPEN)]),
                FIRST_KEY_OPEN = Step::new(
                    Gap::Any,
                    OnMismatch::Prose,
                    &[
                        (Token::Literal(concat!("<", $prefix, "arg_key>")), KEY),
                        (Token::Literal(concat!("</", $prefix, "tool_call>")), DONE),
                        (Token::Literal("<tool_sep>"), FIRST_KEY_OPEN),
                    ],
                ),
                KEY = Step::new(
                    Gap::None,
                    OnMismatch::Malformed,
                    &[(Token::Raw(Capture::Key, concat!("</", $prefix, "arg_key>"), None), VALUE_OPEN)],
                ),
                VALUE_OPEN = Step::new(
                    Gap::Any,
                    OnMismatch::Malformed,
                    &[(Token::Literal(concat!("<", $prefix, "arg_value>")), VALUE)],
                ),
                VALUE = Step::new(
                    Gap::None,
                    OnMismatch::Malformed,
                    &[(
                        Token::Raw(Capture::Value, concat!("</", $prefix, "arg_value>"), Some('<')),
                        KEY_OPEN
                    )],
                ),
                KEY_OPEN = Step::new(
                    Gap::Any,
                    OnMismatch::Malformed,
                    &[
                        (Token::Literal(concat!("<", $prefix, "arg_key>")), KEY),
                        (Token::Literal(concat!("</", $prefix, "tool_call>")), DONE),
                    ],
                ),
            ],
        }
    };
}

pub(super) static GLM: Form = glm!("");
pub(super) static LONGCAT: Form = glm!("longcat_");
