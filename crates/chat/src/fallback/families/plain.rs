//! `{"tool": …, "arguments": {…}}` on its own lines, the form that the BIOS teaches, and a code block with
//! such calls only. Llama's bare `{"name": …, "parameters": {…}}` is read the same way.
//!
//! An object is a call only if its keys say so (`json`) and only blanks follow it on its last line. Any
//! other object is ordinary JSON, any other code block is code.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token};

pub(super) static LINE: Form = Form {
    marked: false,
    start: StartPosition::Line,
    closes: &[],
    steps: &[
        Step::new(Gap::None, OnMismatch::Prose, &[(Token::Object(Capture::Object), 1)]),
        Step::new(Gap::Line, OnMismatch::LineEnd, &[(Token::Literal("\n"), DONE), (Token::Literal(";"), 2)]),
        Step::new(
            Gap::Line,
            OnMismatch::LineEnd,
            &[(Token::Literal("\n"), DONE), (Token::Object(Capture::Object), 1)],
        ),
    ],
};

pub(super) static FENCE: Form = Form {
    marked: false,
    start: StartPosition::Line,
    closes: &[],
    steps: &[
        Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[(Token::Fence(&["", "json", "tool", "tool_call", "tool_calls"]), 1)],
        ),
        Step::new(
            Gap::Any,
            OnMismatch::Prose,
            &[(Token::Object(Capture::Object), 2), (Token::Literal("["), 4)],
        ),
        Step::new(
            Gap::Any,
            OnMismatch::LineEnd,
            &[(Token::Object(Capture::Object), 2), (Token::FenceEnd, 3)],
        ),
        Step::new(Gap::Line, OnMismatch::LineEnd, &[(Token::Literal("\n"), DONE)]),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Object(Capture::Object), 5)]),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal(","), 4), (Token::Literal("]"), 6)]),
        Step::new(Gap::Any, OnMismatch::LineEnd, &[(Token::FenceEnd, 3)]),
    ],
};
