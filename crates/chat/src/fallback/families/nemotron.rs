//! `<TOOLCALL>[{"name": …, "arguments": {…}}]</TOOLCALL>`: Nemotron.

use super::common::json_calls;
use crate::fallback::grammar::{Form, StartPosition};

pub(super) static NEMOTRON: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</TOOLCALL>"],
    steps: json_calls! {
        "<TOOLCALL>", Unclosed [Object(Object) => CLOSE, "</TOOLCALL>" => DONE]
    },
};
