//! Tags as Anthropic's models were taught them: a block of function calls, in it an invocation with the tool's name,
//! in that each argument, with `antml:` before each tag or without; and the older kind, where everything has a tag of its own.
//! Values are text; the tool's schema says what they are.
//!
//! Source: Anthropic's guide to function calling with Claude 2.1 and 3 (the older kind).

use super::tag_calls;
use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Place, Rest, Step, Token};

pub(super) static ANTHROPIC: Form = Form {
    marked: true,
    at: Place::Anywhere,
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
    at: Place::Anywhere,
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
    at: Place::Anywhere,
    closes: &["</function_calls>"],
    steps: &[
        Step::new(Gap::None, Rest::Prose, &[(Token::Mark("<function_calls>"), 1)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Mark("<invoke>"), 2)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Mark("<tool_name>"), 3)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Word(Capture::Name), 4)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Mark("</tool_name>"), 5)]),
        Step::new(Gap::Any, Rest::Inside, &[(Token::Mark("<parameters>"), 6), (Token::Mark("</invoke>"), 8)]),
        Step::new(Gap::None, Rest::Inside, &[(Token::Raw(Capture::Tags, "</parameters>", Some('<')), 7)]),
        Step::new(Gap::Any, Rest::Inside, &[(Token::Mark("</invoke>"), 8)]),
        Step::new(
            Gap::Any,
            Rest::Closing,
            &[(Token::Mark("<invoke>"), 2), (Token::Mark("</function_calls>"), DONE)],
        ),
    ],
};
