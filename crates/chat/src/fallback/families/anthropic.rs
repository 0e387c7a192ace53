//! The tag formats of Anthropic's models. A block of function calls contains invocations, each with the tool's name and
//! a tag for each argument; each tag may have the prefix `antml:`. The older format has a tag for everything. Values
//! are text. The tool's schema determines their types.
//!
//! Source: Anthropic's guide to function calling with Claude 2.1 and 3 (the older format).

use super::common::tag_calls;
use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token, steps};

pub(super) static ANTHROPIC: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</function_calls>"],
    steps: tag_calls!(
        ["<function_calls>"],
        ["</function_calls>"],
        "<invoke name=\"",
        "</invoke>",
        "<parameter name=\"",
        "</parameter>"
    ),
};

pub(super) static NAMESPACE: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</antml:function_calls>"],
    steps: tag_calls!(
        ["<antml:function_calls>"],
        ["</antml:function_calls>"],
        "<antml:invoke name=\"",
        "</antml:invoke>",
        "<antml:parameter name=\"",
        "</antml:parameter>"
    ),
};

pub(super) static TAGS: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</function_calls>"],
    steps: steps![
        OPEN = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("<function_calls>"), INVOKE)]),
        INVOKE = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<invoke>"), NAME_OPEN)]),
        NAME_OPEN = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("<tool_name>"), NAME)]),
        NAME = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Word(Capture::Name), NAME_CLOSE)]),
        NAME_CLOSE = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal("</tool_name>"), PARAMETERS)]),
        PARAMETERS = Step::new(
            Gap::Any,
            OnMismatch::Malformed,
            &[(Token::Literal("<parameters>"), ARGUMENTS), (Token::Literal("</invoke>"), CLOSE)],
        ),
        ARGUMENTS = Step::new(
            Gap::None,
            OnMismatch::Malformed,
            &[(Token::Raw(Capture::Tags, "</parameters>", Some('<')), INVOKE_CLOSE)],
        ),
        INVOKE_CLOSE = Step::new(Gap::Any, OnMismatch::Malformed, &[(Token::Literal("</invoke>"), CLOSE)]),
        CLOSE = Step::new(
            Gap::Any,
            OnMismatch::Unclosed,
            &[(Token::Literal("<invoke>"), NAME_OPEN), (Token::Literal("</function_calls>"), DONE)],
        ),
    ],
};
