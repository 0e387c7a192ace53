//! Text that is received in deltas and then repeated as a whole.

/// The received text of one message or one piece of reasoning.
#[derive(Debug, Default)]
pub(super) struct ItemText {
    received: String,
    /// The current part and its start in `received`.
    part: Option<u64>,
    part_start: usize,
}

impl ItemText {
    pub(super) fn received(&self) -> &str {
        &self.received
    }

    /// Starts a new part if `part` differs from the current one. Returns whether text precedes it.
    pub(super) fn start_part(&mut self, part: Option<u64>) -> bool {
        let Some(part) = part else { return false };
        let is_new = self.part.replace(part).is_some_and(|before| before != part);
        if is_new {
            self.part_start = self.received.len();
        }
        is_new && !self.received.is_empty()
    }

    pub(super) fn push(&mut self, piece: &str) {
        self.received.push_str(piece);
    }

    /// Starts a part and returns the rest of `whole` that was not received. Returns nothing if a later part has started
    /// or the received text differs: received text is never changed.
    pub(super) fn rest_of_part<'t>(&mut self, part: Option<u64>, whole: &'t str) -> &'t str {
        if part.is_some() && part < self.part {
            return "";
        }
        self.start_part(part);
        rest_after(self.received.get(self.part_start..).unwrap_or_default(), whole)
    }
}

/// Returns the rest of `whole` if it begins with `received`.
pub(super) fn rest_after<'t>(received: &str, whole: &'t str) -> &'t str {
    whole.strip_prefix(received).unwrap_or_default()
}
