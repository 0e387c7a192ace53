//! `[{"name": …, "arguments": {…}}]` on its own lines: xLAM. Unmarked, because most lists of objects are data.

use crate::fallback::grammar::{Form, StartPosition, steps};

pub(super) static XLAM: Form = Form {
    marked: false,
    start: StartPosition::Line,
    closes: &[],
    steps: steps! {
        OPEN     None Prose     ["[" => ITEM]
        ITEM     Any  Prose     [Object(Object) => COMMA]
        COMMA    Any  Prose     ["," => ITEM, "]" => LINE_END]
        LINE_END Line LineEnd   ["\n" => DONE]
    },
};
