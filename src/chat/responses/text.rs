//! A text that comes in deltas and is then repeated whole.

/// What was said of one message or of one piece of reasoning.
#[derive(Debug, Default)]
pub(super) struct Text {
    said: String,
    /// The part that is being written, and where in `said` it begins.
    part: Option<u64>,
    part_start: usize,
}

impl Text {
    pub(super) fn said(&self) -> &str {
        &self.said
    }

    /// Goes to another part, if the event names one; whether something stands before it.
    pub(super) fn turn_to(&mut self, part: Option<u64>) -> bool {
        let Some(part) = part else { return false };
        let is_another = self.part.replace(part).is_some_and(|before| before != part);
        if is_another {
            self.part_start = self.said.len();
        }
        is_another && !self.said.is_empty()
    }

    pub(super) fn push(&mut self, piece: &str) {
        self.said.push_str(piece);
    }

    /// Goes to a part and gives what its whole adds to what was said of it. Nothing, if a later part is being written
    /// by now, or if another text was said: what was said stays.
    pub(super) fn rest_of_part<'t>(&mut self, part: Option<u64>, whole: &'t str) -> &'t str {
        if part.is_some() && part < self.part {
            return "";
        }
        self.turn_to(part);
        rest_after(self.said.get(self.part_start..).unwrap_or_default(), whole)
    }
}

/// What `whole` adds to what was `said`, if it begins with that.
pub(super) fn rest_after<'t>(said: &str, whole: &'t str) -> &'t str {
    whole.strip_prefix(said).unwrap_or_default()
}
