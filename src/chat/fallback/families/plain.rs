//! `{"tool": …, "arguments": {…}}` on lines of its own, the convention that the BIOS teaches, and a code block that
//! holds nothing but such calls. Llama's bare `{"name": …, "parameters": {…}}` is read the same way.
//!
//! An object is a call only by its keys (`json`), and only when nothing but blanks follows it on its last line. Any
//! other object is ordinary JSON, any other code block is code.

use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Place, Rest, Step, Token};

pub(super) static LINE: Form = Form {
    marked: false,
    at: Place::Line,
    closes: &[],
    steps: &[
        Step::new(Gap::None, Rest::Prose, &[(Token::Object(Capture::Object), 1)]),
        Step::new(Gap::Line, Rest::Line, &[(Token::Mark("\n"), DONE), (Token::Mark(";"), 2)]),
        Step::new(Gap::Line, Rest::Line, &[(Token::Mark("\n"), DONE), (Token::Object(Capture::Object), 1)]),
    ],
};

pub(super) static FENCE: Form = Form {
    marked: false,
    at: Place::Line,
    closes: &[],
    steps: &[
        Step::new(
            Gap::None,
            Rest::Prose,
            &[(Token::Fence(&["", "json", "tool", "tool_call", "tool_calls"]), 1)],
        ),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Object(Capture::Object), 2), (Token::Mark("["), 4)]),
        Step::new(Gap::Any, Rest::Line, &[(Token::Object(Capture::Object), 2), (Token::FenceEnd, 3)]),
        Step::new(Gap::Line, Rest::Line, &[(Token::Mark("\n"), DONE)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Object(Capture::Object), 5)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Mark(","), 4), (Token::Mark("]"), 6)]),
        Step::new(Gap::Any, Rest::Line, &[(Token::FenceEnd, 3)]),
    ],
};
