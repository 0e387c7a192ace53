//! `<TOOLCALL>[{"name": …, "arguments": {…}}]</TOOLCALL>`: Nemotron.

use super::json_calls;
use crate::chat::fallback::grammar::{DONE, Form, Place};

pub(super) static NEMOTRON: Form = Form {
    marked: true,
    at: Place::Anywhere,
    closes: &["</TOOLCALL>"],
    steps: json_calls!(
        ["<TOOLCALL>"],
        Rest::Closing,
        [(Token::Object(Capture::Object), 2), (Token::Mark("</TOOLCALL>"), DONE)]
    ),
};
