//! `<TOOLCALL>[{"name": …, "arguments": {…}}]</TOOLCALL>`: Nemotron.

use super::common::json_calls;
use crate::fallback::grammar::{DONE, Form, StartPosition};

pub(super) static NEMOTRON: Form = Form {
    marked: true,
    start: StartPosition::Line,
    closes: &["</TOOLCALL>"],
    steps: json_calls!(
        ["<TOOLCALL>"],
        OnMismatch::Unclosed,
        [(Token::Object(Capture::Object), CLOSE), (Token::Literal("</TOOLCALL>"), DONE)]
    ),
};
