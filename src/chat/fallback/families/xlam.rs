//! `[{"name": …, "arguments": {…}}]` on lines of its own: xLAM. Unmarked, for a list of objects is mostly data.

use crate::chat::fallback::grammar::{Capture, DONE, Form, Gap, Place, Rest, Step, Token};

pub(super) static XLAM: Form = Form {
    marked: false,
    at: Place::Line,
    closes: &[],
    steps: &[
        Step::new(Gap::None, Rest::Prose, &[(Token::Mark("["), 1)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Object(Capture::Object), 2)]),
        Step::new(Gap::Any, Rest::Prose, &[(Token::Mark(","), 1), (Token::Mark("]"), 3)]),
        Step::new(Gap::Line, Rest::Line, &[(Token::Mark("\n"), DONE)]),
    ],
};
