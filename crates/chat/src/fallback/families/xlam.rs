//! `[{"name": …, "arguments": {…}}]` on its own lines: xLAM. Unmarked, because most lists of objects are data.

use crate::fallback::grammar::{Capture, DONE, Form, Gap, OnMismatch, StartPosition, Step, Token, steps};

pub(super) static XLAM: Form = Form {
    marked: false,
    start: StartPosition::Line,
    closes: &[],
    steps: steps![
        OPEN = Step::new(Gap::None, OnMismatch::Prose, &[(Token::Literal("["), ITEM)]),
        ITEM = Step::new(Gap::Any, OnMismatch::Prose, &[(Token::Object(Capture::Object), COMMA)]),
        COMMA = Step::new(
            Gap::Any,
            OnMismatch::Prose,
            &[(Token::Literal(","), ITEM), (Token::Literal("]"), LINE_END)]
        ),
        LINE_END = Step::new(Gap::Line, OnMismatch::LineEnd, &[(Token::Literal("\n"), DONE)]),
    ],
};
