//! Tracks the quotation marks of one paragraph, in the styles of several languages.
//!
//! An open quotation in double marks quotes what follows up to the end of its paragraph. At the end of the paragraph it
//! becomes an enclosure (`enclosures`), which quotes a call only when it is closed. A quotation in single marks is an
//! enclosure from its start, because the mark may be an apostrophe.

use serde::{Deserialize, Serialize};

use super::enclosures::Enclosures;
use super::marks::Enclosure;

/// The open quotations at the current position.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools)] // independent facts of a position, not a state machine
pub(super) struct Quotations {
    straight: bool,
    curly: bool,
    /// A quotation that `„` opened.
    low: bool,
    guillemets: bool,
    corners: bool,
    /// The single mark just read. It closes a quotation, unless a letter or digit follows: then it is an apostrophe.
    apostrophe: Option<char>,
    /// The straight marks just read: the character and its count.
    run: Option<(char, u8)>,
}

impl Quotations {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Whether a quotation in double marks is open.
    pub(super) fn is_open(&self) -> bool {
        self.straight || self.curly || self.low || self.guillemets || self.corners
    }

    /// Whether no mark waits for the character after it.
    pub(super) fn is_idle(&self) -> bool {
        self.apostrophe.is_none() && self.run.is_none()
    }

    /// Resolves the marks just read, given the next character `ch`. `is_mark`: `ch` itself may be a quotation mark.
    pub(super) fn settle(&mut self, ch: char, is_mark: bool, enclosures: &mut Enclosures) {
        if let Some(mark) = self.apostrophe.take().filter(|_| !ch.is_alphanumeric()) {
            enclosures.close(&Enclosure::Quotation(mark));
        }
        let is_straight = is_mark && matches!(ch, '"' | '\'');
        match self.run {
            Some((mark, length)) if is_straight && mark == ch => {
                self.run = Some((mark, length.saturating_add(1)));
                return;
            }
            Some((mark, 3)) => {
                let triple = Enclosure::Triple(mark);
                if enclosures.is_open(&triple) {
                    enclosures.close(&triple);
                } else {
                    enclosures.open(triple, false);
                }
            }
            Some(_) | None => {}
        }
        self.run = is_straight.then_some((ch, 1));
    }

    /// Reads a character that may be a mark. Some marks open a quotation in one language and close it in another; then the
    /// previous character decides.
    pub(super) fn push(&mut self, ch: char, previous: Option<char>, enclosures: &mut Enclosures) {
        let is_open = |mark| enclosures.is_open(&Enclosure::Quotation(mark));
        let opens = match previous {
            Some(previous) => previous.is_whitespace() || "([{=:,;-—–\"“„«".contains(previous),
            None => !is_open(ch),
        };
        let (mut begun, mut ended) = (None, None);
        match ch {
            // An inch mark after a digit, unless a quotation is open.
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
