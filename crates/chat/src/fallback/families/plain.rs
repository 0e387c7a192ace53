//! `{"tool": …, "arguments": {…}}` on its own lines, the form that the BIOS describes, and a code block with
//! only such calls. Llama's bare `{"name": …, "parameters": {…}}` is read the same way.
//!
//! An object is a call only if its keys identify a call (`json`) and only blanks follow it on its last line. Any
//! other object is ordinary JSON, and any other code block is code.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token, steps};

pub(super) static LINE: Form = Form {
    marked: false,
    start: StartPosition::Line,
    closes: &[],
    steps: steps![
        OBJECT = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Object(Capture::Object), LINE_END)]),
        LINE_END = Step::new(
            Gap::Line,
            OnMismatch::LineEnd,
            &[(Token::Literal("\n"), DONE), (Token::Literal(";"), NEXT_OBJECT)]
        ),
        NEXT_OBJECT = Step::new(
            Gap::Line,
            OnMismatch::LineEnd,
            &[(Token::Literal("\n"), DONE), (Token::Object(Capture::Object), LINE_END)],
        ),
    ],
};

pub(super) static FENCE: Form = Form {
    marked: false,
    start: StartPosition::Line,
    closes: &[],
    steps: steps![
        OPEN = Step::new(
            Gap::None,
            OnMismatch::Prose,
            &[(Token::Fence(&["", "json", "tool", "tool_call", "tool_calls"]), CALLS)],
        ),
        CALLS = Step::new(
            Gap::Any,
            OnMismatch::Prose,
            &[(Token::Object(Capture::Object), CALL_OR_FENCE_END), (Token::Literal("["), ITEM)],
        ),
        CALL_OR_FENCE_END = Step::new(
            Gap::Any,
            OnMismatch::LineEnd,
            &[(Token::Object(Capture::Object), CALL_OR_FENCE_END), (Token::FenceEnd, LINE_END)],
        ),
        LINE_END = Step::new(Gap::Line, OnMismatch::LineEnd, &[(Token::Literal("\n"), DONE)]),
        ITEM = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Object(Capture::Object), COMMA)]),
        COMMA = Step::new(
            Gap::Any,
            OnMismatch::Prose,
            &[(Token::Literal(","), ITEM), (Token::Literal("]"), FENCE_END)]
        ),
        FENCE_END = Step::new(Gap::Any, OnMismatch::LineEnd, &[(Token::FenceEnd, LINE_END)]),
    ],
};
