//! `<tool_call>{"name": …, "arguments": {…}}</tool_call>`: Hermes, Qwen and many others; `LongCat` with its own tag
//! name.
//!
//! `<function_call>` is read as well: models that were trained on both tags write either of them, and Granite 20B omits
//! both closing tags. A tag may contain several objects or an array of them (Granite 3). A tag with complete objects is
//! closed by the next opening tag or the end of the reply. A reply that ends inside an object has a malformed call. A
//! tag without an object is prose about the tag.
//!
//! Qwen2.5-Coder and small models write the prompt's `<tools>` and similar tags instead. Such tags do not mark a call,
//! so they are read only if the model was instructed to write calls.

use super::common::json_calls;
use crate::fallback::grammar::{Form, StartPosition};

pub(super) static HERMES: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</tool_call>", "</function_call>", "</longcat_tool_call>"],
    steps: json_calls! {
        "<tool_call>" | "<function_call>" | "<longcat_tool_call>", Unclosed [
            Object(Object) => CLOSE, "</tool_call>" | "</function_call>" | "</longcat_tool_call>" => DONE,
            "<tool_call>" | "<function_call>" => NEXT_CALLS
        ]
    },
};

pub(super) static OTHER: Form = Form {
    marked: false,
    start: StartPosition::Line,
    closes: &[],
    steps: json_calls! {
        "<tools>" | "<tool>" | "<json>", LineEnd [
            Object(Object) => CLOSE, "</tools>" | "</tool>" | "</json>" => DONE
        ]
    },
};
