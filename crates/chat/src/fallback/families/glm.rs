//! `<tool_call>name`, then `<arg_key>k</arg_key><arg_value>v</arg_value>` for each argument, then `</tool_call>`:
//! GLM-4.5 and later, Laguna, Spark 2.5 and Ling 3. `LongCat` and K2-Horizon write a prefix before the name of each tag,
//! Hunyuan 3 a suffix after it and `<tool_sep>` after the tool's name. Values other than strings are JSON; K2-Horizon
//! writes the type. Versions up to GLM-4.6 write line breaks between the tags.
//!
//! The models leave out, repeat and confuse tags. An argument is read if one of its tags or the next one still marks
//! each of its ends.
//!
//! Source: the chat templates of zai-org/GLM-4.5 and GLM-4.7 and tencent/Hy3; vLLM's parsers for the others, November
//! 2026.

use crate::fallback::grammar::{
    Capture, DONE, Element, Form, Gap, OnMismatch, StartPosition, Step, Token, steps,
};

/// The form with `$prefix` before the name of each tag and `$suffix` after it.
macro_rules! glm {
    ($prefix:literal, $suffix:literal) => {
        Form {
            marked: true,
            start: StartPosition::Line,
            closes: &[concat!("</", $prefix, "tool_call", $suffix, ">")],
            steps: steps![
                OPEN = Step::new(
                    Gap::None,
                    OnMismatch::Prose,
                    &[
                        (Token::Literal(concat!("<", $prefix, "tool_calls", $suffix, ">")), CALL_OPEN),
                        (Token::Literal(concat!("<", $prefix, "tool_call", $suffix, ">")), NAME),
                    ],
                ),
                CALL_OPEN = Step::new(
                    Gap::Any,
                    OnMismatch::Prose,
                    &[(Token::Literal(concat!("<", $prefix, "tool_call", $suffix, ">")), NAME)],
                ),
                NAME =
                    Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Word(Capture::Name), FIRST_KEY_OPEN)]),
                FIRST_KEY_OPEN = Step::new(
                    Gap::Any,
                    OnMismatch::Prose,
                    &[
                        (Token::Literal(concat!("<", $prefix, "arg_key", $suffix, ">")), KEY),
                        (Token::Literal(concat!("<", $prefix, "tool_call", $suffix, ">")), KEY),
                        (Token::Literal(concat!("</", $prefix, "tool_call", $suffix, ">")), DONE),
                        (Token::Literal(concat!("</", $prefix, "arg_value", $suffix, ">")), CLOSE),
                        (Token::Literal(concat!("<tool_sep", $suffix, ">")), FIRST_KEY_OPEN),
                        (Token::Word(Capture::Key), KEY_CLOSE),
                    ],
                ),
                // A key without its opening tag.
                KEY_CLOSE = Step::new(
                    Gap::Any,
                    OnMismatch::Prose,
                    &[(Token::Literal(concat!("</", $prefix, "arg_key", $suffix, ">")), VALUE_OPEN)],
                ),
                KEY = Step::new(
                    Gap::None,
                    OnMismatch::Malformed,
                    &[(
                        Token::Raw(Capture::Key, concat!("</", $prefix, "arg_key", $suffix, ">"), None),
                        VALUE_OPEN
                    )],
                ),
                VALUE_OPEN = Step::new(
                    Gap::Any,
                    OnMismatch::Malformed,
                    &[
                        (Token::Literal(concat!("<", $prefix, "arg_type", $suffix, ">")), TYPE),
                        (Token::Literal(concat!("<", $prefix, "arg_value", $suffix, ">")), VALUE),
                        // A value without its opening tag.
                        (
                            Token::Raw(
                                Capture::Value,
                                concat!("</", $prefix, "arg_value", $suffix, ">"),
                                Some('<')
                            ),
                            KEY_OPEN
                        ),
                    ],
                ),
                TYPE = Step::new(
                    Gap::Any,
                    OnMismatch::Malformed,
                    &[(
                        Token::Raw(Capture::IsString, concat!("</", $prefix, "arg_type", $suffix, ">"), None),
                        VALUE_OPEN
                    )],
                ),
                VALUE = Step::new(
                    Gap::None,
                    OnMismatch::Malformed,
                    &[(
                        Token::Element(&Element {
                            what: Capture::Value,
                            open: concat!("<", $prefix, "arg_value", $suffix, ">"),
                            close: concat!("</", $prefix, "arg_value", $suffix, ">"),
                            around: &[concat!("<", $prefix, "tool_call", $suffix, ">")],
                            otherwise: &[
                                (concat!("<", $prefix, "arg_key", $suffix, ">"), KEY),
                                (concat!("</", $prefix, "tool_call", $suffix, ">"), DONE),
                            ],
                        }),
                        KEY_OPEN
                    )],
                ),
                KEY_OPEN = Step::new(
                    Gap::Any,
                    OnMismatch::Malformed,
                    &[
                        (Token::Literal(concat!("<", $prefix, "arg_key", $suffix, ">")), KEY),
                        (Token::Literal(concat!("</", $prefix, "tool_call", $suffix, ">")), DONE),
                        (Token::Literal(concat!("<", $prefix, "tool_call", $suffix, ">")), NAME),
                    ],
                ),
                CLOSE = Step::new(
                    Gap::Any,
                    OnMismatch::Unclosed,
                    &[(Token::Literal(concat!("</", $prefix, "tool_call", $suffix, ">")), DONE)],
                ),
            ],
        }
    };
}

pub(super) static GLM: Form = glm!("", "");
pub(super) static LONGCAT: Form = glm!("longcat_", "");
pub(super) static HUNYUAN_3: Form = glm!("", ":opensource");
pub(super) static K2_HORIZON: Form = glm!("ifm|", "");
