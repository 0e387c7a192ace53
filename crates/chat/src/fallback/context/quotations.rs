//! Tracks the quotation marks of one paragraph, in the styles of several languages.
//!
//! An open quotation in double marks quotes what follows up to the end of its paragraph. At the end of the paragraph it
//! becomes an enclosure (`enclosures`), which quotes a call only when it is closed. A quotation in marks that may mean
//! something else, such as an apostrophe, is an enclosure from its start.

use serde::{Deserialize, Serialize};

use super::enclosures::Enclosures;
use super::marks::Enclosure;

/// Styles of quotation: opening mark, closing mark, and whether an open quotation quotes what follows in its paragraph.
const STYLES: [(char, char, bool); 16] = [
    ('"', '"', true),
    ('“', '”', true),
    ('„', '“', true),
    ('„', '”', true),
    ('«', '»', true),
    ('「', '」', true),
    ('『', '』', true),
    ('»', '«', false),
    ('»', '»', false),
    ('”', '”', false),
    ('‘', '’', false),
    ('‚', '‘', false),
    ('‚', '’', false),
    ('‹', '›', false),
    ('›', '‹', false),
    ('\'', '\'', false),
];

/// The open quotations at the current position.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Quotations {
    /// The quotations of this paragraph that quote what follows, the innermost last. At most one of each kind.
    open: Vec<Enclosure>,
    /// The single mark just read. It closes a quotation, unless a letter or digit follows: then it is an apostrophe.
    apostrophe: Option<char>,
    /// The straight marks just read.
    run: Option<Run>,
}

/// Equal straight marks in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Run {
    mark: char,
    length: u8,
    /// A quotation in single marks of this kind was open before the run.
    was_open: bool,
}

impl Quotations {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Whether an open quotation quotes what follows.
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether all marks read so far are resolved.
    pub(super) fn is_idle(&self) -> bool {
        self.apostrophe.is_none() && self.run.is_none()
    }

    /// Resolves the marks just read, given the next character.
    pub(super) fn resolve(&mut self, next: char, enclosures: &mut Enclosures) {
        if let Some(mark) = self.apostrophe.take().filter(|_| !next.is_alphanumeric()) {
            close(mark, enclosures);
        }
        match &mut self.run {
            Some(run) if run.mark == next => {
                run.length = run.length.saturating_add(1);
                return;
            }
            Some(Run { mark, length: 3, was_open }) => {
                let (mark, was_open) = (*mark, *was_open);
                self.set_open(Enclosure::Quotation(mark), was_open);
                let triple = Enclosure::Triple(mark);
                if enclosures.is_open(&triple) {
                    enclosures.close(&triple, false);
                } else {
                    let is_open = self.open.contains(&triple);
                    self.set_open(triple, !is_open);
                }
            }
            Some(_) | None => {}
        }
        self.run = matches!(next, '"' | '\'').then(|| Run {
            mark: next,
            length: 1,
            was_open: self.open.contains(&Enclosure::Quotation(next)),
        });
    }

    /// Reads a character that may be a mark. Some marks open a quotation in one language and close it in another; then
    /// the previous character decides.
    pub(super) fn push(&mut self, ch: char, previous: Option<char>, enclosures: &mut Enclosures) {
        let is_mark = |(opener, closer, _): &(char, char, bool)| *opener == ch || *closer == ch;
        if !STYLES.iter().any(is_mark) {
            return;
        }
        let closes_here = |open: &Enclosure| openers(ch).any(|opener| *open == Enclosure::Quotation(opener));
        if let Some(at) = self.open.iter().rposition(closes_here) {
            self.open.remove(at);
            return;
        }
        let opens = match previous {
            Some(previous) => previous.is_whitespace() || "([{=:,;-—–\"“„«".contains(previous),
            None => !enclosures.is_open(&Enclosure::Quotation(ch)),
        };
        let closes = openers(ch).any(|opener| enclosures.is_open(&Enclosure::Quotation(opener)));
        match ch {
            // An inch mark.
            '"' if previous.is_some_and(char::is_numeric) => {}
            '"' if opens => self.open(ch, enclosures),
            '\'' if opens => self.open(ch, enclosures),
            '\'' | '’' => self.apostrophe = Some(ch),
            _ if closes => close(ch, enclosures),
            // Closing marks that open a quotation in some languages.
            '”' | '»' | '›' if !opens => {}
            _ => self.open(ch, enclosures),
        }
    }

    /// Opens the quotation that `mark` opens, if any.
    fn open(&mut self, mark: char, enclosures: &mut Enclosures) {
        match STYLES.iter().find(|(opener, ..)| *opener == mark) {
            Some((_, _, true)) => self.set_open(Enclosure::Quotation(mark), true),
            Some((_, _, false)) => enclosures.open(Enclosure::Quotation(mark), false, false),
            None => {}
        }
    }

    fn set_open(&mut self, what: Enclosure, is_open: bool) {
        self.open.retain(|open| *open != what);
        if is_open {
            self.open.push(what);
        }
    }

    /// Ends the paragraph.
    pub(super) fn end_paragraph(&mut self, enclosures: &mut Enclosures) {
        enclosures.end_paragraph();
        for open in self.open.drain(..) {
            enclosures.open(open, false, false);
        }
    }
}

/// Returns the opening marks of the quotations that `mark` closes.
fn openers(mark: char) -> impl Iterator<Item = char> {
    STYLES.iter().filter(move |(_, closer, _)| *closer == mark).map(|(opener, ..)| *opener)
}

fn close(mark: char, enclosures: &mut Enclosures) {
    for opener in openers(mark) {
        enclosures.close(&Enclosure::Quotation(opener), false);
    }
}
