//! Parts of a source at another place.

use super::span::{Span, Spanned};

/// A value with spans in one source.
pub trait MoveSpans {
    /// Moves all spans by a number of bytes, because the text before the value has another length.
    fn move_spans(&mut self, by: i32);
}

impl MoveSpans for Span {
    fn move_spans(&mut self, by: i32) {
        // The default span stands for a part that is not written.
        if *self != Self::default() {
            *self = self.moved(by);
        }
    }
}

impl<T> MoveSpans for Spanned<T> {
    fn move_spans(&mut self, by: i32) {
        self.span.move_spans(by);
    }
}

impl<T: MoveSpans> MoveSpans for Option<T> {
    fn move_spans(&mut self, by: i32) {
        if let Some(value) = self {
            value.move_spans(by);
        }
    }
}

impl<T: MoveSpans> MoveSpans for Vec<T> {
    fn move_spans(&mut self, by: i32) {
        for value in self {
            value.move_spans(by);
        }
    }
}
