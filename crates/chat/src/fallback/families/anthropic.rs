//! Tags in the formats of Anthropic's models: a block of function calls, in it an invocation with the tool's name, in
//! it each argument, with `antml:` before each tag or without; and the older format, with a tag for everything. Values
//! are text. The tool's schema determines their types.
//!
//! Source: Anthropic's guide to function calling with Claude 2.1 and 3 (the older format).

use super::tag_calls;
use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token};

pub(super) static ANTHROPIC: Form = Form {
    marked: true,
    start: StartPosition::Anywhere,
    closes: &["</function_calls>"],
    steps: tag_calls!(
        "<function_calls>",
        "</function_calls>",
        "<invoke name=\"",
        "</invoke>",
        "<parameter name=\"",
        "</parameter>"
    ),
};

pub(super) static NAMESPACE: Form = Form {
    marked: true,
    start: StartPosition::Anywhere,
    closes: &["</antml:function_calls>"],
    steps: tag_calls!(
        "<antml:function_calls>",
        "</antml:function_calls>",
        "<antml:invoke name=\"",
        "</antml:invoke>",
        "<antml:parameter name=\"",
        "</antml:parameter>"
    ),
};

pub(super) static TAGS: Form = Form {
    marked: true,
    start: StartPosition::Anywhere,
    closes: &["</function_calls>"],
    steps: &[
        Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("<function_calls>"), 1)]),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<invoke>"), 2)]),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<tool_name>"), 3)]),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Word(Capture::Name), 4)]),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("</tool_name>"), 5)]),
        Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[(Token::Literal("<parameters>"), 6), (Token::Literal("</invoke>"), 8)],
        ),
        Step::new(
            Gap::None,
            OnMismatch::Malformed,
            &[(Token::Raw(Capture::Tags, "</parameters>", Some('<')), 7)],
        ),
        Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Literal("</invoke>"), 8)]),
        Step::new(
            Gap::Any,
            OnMismatch::Unclosed,
            &[(Token::Literal("<invoke>"), 2), (Token::Literal("</function_calls>"), DONE)],
        ),
    ],
};
