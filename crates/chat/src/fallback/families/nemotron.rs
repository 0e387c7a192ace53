//! `<TOOLCALL>[{"name": …, "arguments": {…}}]</TOOLCALL>`: Nemotron.

use super::json_calls;
use crate::fallback::grammar::{DONE, Form, StartPosition};

pub(super) static NEMOTRON: Form = Form {
    marked: true,
    start: StartPosition::Anywhere,
    closes: &["</TOOLCALL>"],
    steps: json_calls!(
        ["<TOOLCALL>"],
        OnMismatch::Unclosed,
        [(Token::Object(Capture::Object), 2), (Token::Literal("</TOOLCALL>"), DONE)]
    ),
};
