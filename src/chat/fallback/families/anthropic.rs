//! Tags as Anthropic's models were taught them: a block of function calls, in it an invocation with the tool's name,
//! in that each argument. Values are text; the tool's schema says what they are.

use super::tag_calls;
use crate::chat::fallback::grammar::Form;

pub(super) static ANTHROPIC: Form = Form {
    marked: true,
    line_start: false,
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
