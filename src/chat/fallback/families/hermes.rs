//! `<tool_call>{"name": …, "arguments": {…}}</tool_call>`: Hermes, Qwen and many others; `LongCat` with a name of its own.
//!
//! `<function_call>` is read as well: models that were shown both write either, and Granite 20B closes none. Several objects, or an
//! array of them (Granite 3), may stand in one tag. The next opening tag or the end of the reply closes a tag whose
//! objects are whole; a reply that ends inside one is a broken call. A tag that is not followed by an object is prose
//! about the tag.
//!
//! Qwen2.5-Coder and small models take the prompt's `<tools>` and their like for it: such tags are no marks of a call, and so read where
//! the model was told to write calls.

use super::json_calls;
use crate::chat::fallback::grammar::{DONE, Form, Place};

pub(super) static HERMES: Form = Form {
    marked: true,
    at: Place::Anywhere,
    closes: &["</tool_call>", "</function_call>", "</longcat_tool_call>"],
    steps: json_calls!(
        ["<tool_call>", "<function_call>", "<longcat_tool_call>"],
        Rest::Closing,
        [
            (Token::Object(Capture::Object), 2),
            (Token::Mark("</tool_call>"), DONE),
            (Token::Mark("</function_call>"), DONE),
            (Token::Mark("</longcat_tool_call>"), DONE),
            (Token::Mark("<tool_call>"), 5),
            (Token::Mark("<function_call>"), 5)
        ]
    ),
};

pub(super) static OTHER: Form = Form {
    marked: false,
    at: Place::Line,
    closes: &[],
    steps: json_calls!(
        ["<tools>", "<tool>", "<json>"],
        Rest::Line,
        [
            (Token::Object(Capture::Object), 2),
            (Token::Mark("</tools>"), DONE),
            (Token::Mark("</tool>"), DONE),
            (Token::Mark("</json>"), DONE)
        ]
    ),
};
