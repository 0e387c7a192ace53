//! `[{"name": …, "arguments": {…}}]` on its own lines: xLAM. Unmarked, because most lists of objects are data.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token};

pub(super) static XLAM: Form = Form {
    marked: false,
    start: StartPosition::Line,
    closes: &[],
    steps: &[
        Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("["), 1)]),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Object(Capture::Object), 2)]),
        Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Literal(","), 1), (Token::Literal("]"), 3)]),
        Step::new(Gap::Line, OnMismatch::LineEnd, &[(Token::Literal("\n"), DONE)]),
    ],
};
