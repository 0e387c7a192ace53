//! The nesting of JSON text that is received in pieces: whether it is complete, without parsing it twice.

#[derive(Debug, Default)]
pub(super) struct Nesting {
    depth: usize,
    in_string: bool,
    after_backslash: bool,
    opened: bool,
}

impl Nesting {
    /// Takes the next piece.
    pub(super) fn scan(&mut self, piece: &str) {
        for byte in piece.bytes() {
            if self.in_string {
                match byte {
                    _ if self.after_backslash => self.after_backslash = false,
                    b'\\' => self.after_backslash = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => (self.in_string, self.opened) = (true, true),
                b'{' | b'[' => (self.depth, self.opened) = (self.depth + 1, true),
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Whether everything that was opened is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.opened && self.depth == 0 && !self.in_string
    }
}
