//! `<tool_call>{"name": …, "arguments": {…}}</tool_call>`: Hermes, Qwen and many others.
//!
//! `<function_call>` is read as well: models that were shown both write either. Several objects, or an array of them (Granite), may stand in one tag. The end of the reply closes a tag whose
//! objects are whole; a reply that ends inside one is a broken call. A tag that is not followed by an object is prose
//! about the tag.

use super::json_calls;
use crate::chat::fallback::grammar::{DONE, Form};

pub(super) static HERMES: Form = Form {
    marked: true,
    line_start: false,
    closes: &["</tool_call>", "</function_call>"],
    steps: json_calls!(
        ["<tool_call>", "<function_call>"],
        Rest::Closing,
        [
            (Token::Object(Capture::Object), 2),
            (Token::Mark("</tool_call>"), DONE),
            (Token::Mark("</function_call>"), DONE)
        ]
    ),
};
