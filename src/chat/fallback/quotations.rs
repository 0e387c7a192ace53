//! Quotation marks of one paragraph, in the ways of several languages.
//!
//! A quotation that is open when its paragraph ends, and those in single marks, which may be apostrophes, quote only once
//! they are closed: they are `enclosures` from there on.

use serde::{Deserialize, Serialize};

use super::enclosures::Enclosures;
use super::marks::Enclosure;

/// What quotation marks say of the place where the next character stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools)] // independent facts of a position, not a state machine
pub(super) struct Quotations {
    straight: bool,
    curly: bool,
    /// „ is open.
    low: bool,
    guillemets: bool,
    corners: bool,
    /// A single mark just read that closes a quotation, unless a letter follows: then it is an apostrophe.
    apostrophe: Option<char>,
    /// Straight marks just read: which, and how many.
    run: (char, u8),
}

impl Quotations {
    pub(super) fn new() -> Self {
        Self {
            straight: false,
            curly: false,
            low: false,
            guillemets: false,
            corners: false,
            apostrophe: None,
            run: ('"', 0),
        }
    }

    /// Whether a quotation is open.
    pub(super) fn is_open(&self) -> bool {
        self.straight || self.curly || self.low || self.guillemets || self.corners
    }

    /// Whether the next character decides nothing.
    pub(super) fn is_idle(&self) -> bool {
        self.apostrophe.is_none() && self.run.1 == 0
    }

    /// Decides on marks just read, now that `ch` follows them; `is_mark`: it may be a mark itself.
    pub(super) fn settle(&mut self, ch: char, is_mark: bool, enclosures: &mut Enclosures) {
        if let Some(mark) = self.apostrophe.take().filter(|_| !ch.is_alphanumeric()) {
            enclosures.close(&Enclosure::Quotation(mark));
        }
        let is_straight = is_mark && matches!(ch, '"' | '\'');
        let (mark, length) = self.run;
        if is_straight && mark == ch {
            self.run.1 = length.saturating_add(1);
            return;
        }
        if length == 3 {
            let triple = Enclosure::Triple(mark);
            if enclosures.is_open(&triple) {
                enclosures.close(&triple);
            } else {
                enclosures.open(triple, false);
            }
        }
        self.run = if is_straight { (ch, 1) } else { ('"', 0) };
    }

    /// Takes a character that may be a mark. Where one language ends a quotation with the mark that begins one in another, the
    /// character before it tells.
    pub(super) fn push(&mut self, ch: char, previous: Option<char>, enclosures: &mut Enclosures) {
        let is_open = |mark| enclosures.is_open(&Enclosure::Quotation(mark));
        let opens = match previous {
            Some(previous) => previous.is_whitespace() || "([{=:,;-—–\"“„«".contains(previous),
            None => !is_open(ch),
        };
        let (mut begun, mut ended) = (None, None);
        match ch {
            // After a digit it is an inch mark, unless it closes a quotation.
            '"' if self.straight => self.straight = false,
            '"' if previous.is_some_and(char::is_numeric) => {}
            '"' if !opens && is_open('"') => ended = Some('"'),
            '"' => self.straight = true,
            '“' if self.low => self.low = false,
            '“' | '«' if is_open(ch) => ended = Some(ch),
            '“' => self.curly = true,
            '„' => self.low = true,
            '«' => self.guillemets = true,
            '”' if self.curly => self.curly = false,
            '”' if self.low => self.low = false,
            '»' if self.guillemets => self.guillemets = false,
            '”' | '»' if is_open(ch) => ended = Some(ch),
            '”' if opens => begun = Some('”'),
            '»' if opens => begun = Some('«'),
            '「' | '『' => self.corners = true,
            '」' | '』' if self.corners => self.corners = false,
            '」' | '』' => ended = Some('」'),
            '‹' => begun = Some('›'),
            '›' => ended = Some('›'),
            '‘' => begun = Some('’'),
            '\'' if opens => begun = Some('\''),
            '’' | '\'' => self.apostrophe = Some(ch),
            _ => {}
        }
        if let Some(mark) = begun {
            enclosures.open(Enclosure::Quotation(mark), false);
        }
        if let Some(mark) = ended {
            enclosures.close(&Enclosure::Quotation(mark));
        }
    }

    /// Ends the paragraph.
    pub(super) fn end_paragraph(&mut self, enclosures: &mut Enclosures) {
        enclosures.end_paragraph();
        for (is_open, close) in [
            (std::mem::take(&mut self.straight), '"'),
            (std::mem::take(&mut self.curly), '”'),
            (std::mem::take(&mut self.low), '“'),
            (std::mem::take(&mut self.guillemets), '»'),
            (std::mem::take(&mut self.corners), '」'),
        ] {
            if is_open {
                enclosures.open(Enclosure::Quotation(close), false);
            }
        }
    }
}
