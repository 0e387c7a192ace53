//! `<TOOLCALL>[{"name": …, "arguments": {…}}]</TOOLCALL>`: Nemotron.

use super::json_calls;
use crate::chat::fallback::grammar::{DONE, Form};

pub(super) static NEMOTRON: Form = Form {
    marked: true,
    line_start: false,
    closes: &["</TOOLCALL>"],
    steps: json_calls!(
        ["<TOOLCALL>"],
        Rest::Closing,
        [(Token::Object(Capture::Object), 2), (Token::Mark("</TOOLCALL>"), DONE)]
    ),
};
