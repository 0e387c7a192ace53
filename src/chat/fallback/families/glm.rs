//! `<tool_call>name`, then for each argument `<arg_key>k</arg_key><arg_value>v</arg_value>`, then `</tool_call>`:
//! GLM-4.5 and later; `LongCat` with `longcat_` before each tag's name, Hunyuan 3 with `<tool_sep>` after the tool's. Values that are no
//! strings are JSON. Line ends between the tags are written up to GLM-4.6.
//!
//! Source: the chat templates of zai-org/GLM-4.5 and GLM-4.7; `SGLang`'s detectors for the others, November 2026.

use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Place, Rest, Step, Token};

/// The form with this before the name of each tag.
macro_rules! glm {
    ($prefix:literal) => {
        Form {
            marked: true,
            at: Place::Anywhere,
            closes: &[concat!("</", $prefix, "tool_call>")],
            steps: &[
                Step::new(Gap::None, Rest::Prose, &[(Token::Mark(concat!("<", $prefix, "tool_call>")), 1)]),
                Step::new(Gap::Any, Rest::Prose, &[(Token::Word(Capture::Name), 2)]),
                Step::new(
                    Gap::Any,
                    Rest::Prose,
                    &[
                        (Token::Mark(concat!("<", $prefix, "arg_key>")), 3),
                        (Token::Mark(concat!("</", $prefix, "tool_call>")), DONE),
                        (Token::Mark("<tool_sep>"), 2),
                    ],
                ),
                Step::new(
                    Gap::None,
                    Rest::Inside,
                    &[(Token::Raw(Capture::Key, concat!("</", $prefix, "arg_key>"), None), 4)],
                ),
                Step::new(Gap::Any, Rest::Inside, &[(Token::Mark(concat!("<", $prefix, "arg_value>")), 5)]),
                Step::new(
                    Gap::None,
                    Rest::Inside,
                    &[(Token::Raw(Capture::Value, concat!("</", $prefix, "arg_value>"), Some('<')), 6)],
                ),
                Step::new(
                    Gap::Any,
                    Rest::Inside,
                    &[
                        (Token::Mark(concat!("<", $prefix, "arg_key>")), 3),
                        (Token::Mark(concat!("</", $prefix, "tool_call>")), DONE),
                    ],
                ),
            ],
        }
    };
}

pub(super) static GLM: Form = glm!("");
pub(super) static LONGCAT: Form = glm!("longcat_");
