//! Matches one form, character by character, and records the positions of its names and arguments ([`Captured`]).
//!
//! The machine never looks back. It takes linear time, and its state is small enough to be stored between any two
//! characters.

mod tokens;

use serde::{Deserialize, Serialize};

use crate::fallback::braces::BracesScan;
use crate::fallback::element::{ElementEnd, ElementScan};
use crate::fallback::families::Family;
use crate::fallback::grammar::{
    Capture, Captured, DONE, Element, Gap, OnMismatch, Step, Token, advance, looks_like, repeats_bar,
};
use crate::fallback::json::JsonScan;
use crate::fallback::model::MAX_HELD;
use crate::fallback::python::CallScan;

/// The result of one more character, or of the end of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The text may be a call: hold it back.
    More,
    /// The text is not a call, but the form goes on: emit it and continue.
    Flow,
    /// A complete form of this many bytes, with or without this character.
    Complete(usize),
    /// A malformed form, including this character.
    Broken,
    /// The text does not match the form. The character is not part of it.
    Reject,
}

/// The state of matching one form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Machine {
    pub(super) family: Family,
    step: u8,
    reading: Reading,
    /// Bytes read.
    at: usize,
    /// Start of the current token, in bytes.
    start: usize,
    pub(super) captures: Vec<Captured>,
    /// The fence of the code block that the form opened: its character and length.
    fence: (char, usize),
    /// The form is certainly a call, so an early end of the reply makes it malformed.
    is_certain: bool,
    /// The end of a complete form that may go on.
    whole: Option<usize>,
    /// The step and the position in it of the last token. Its mark may be written twice.
    last: Option<(u8, usize)>,
    /// The last object began with two braces.
    doubled: bool,
    /// Whether a value may contain enclosing elements.
    nests: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Reading {
    /// Before a token.
    Gap,
    /// In a literal. `matching`: a bit for each of the step's tokens that still matches, and for the repeated mark.
    /// `read`: characters read.
    Literals { matching: u32, read: usize },
    /// In another token. `index`: its position in the step.
    Token { index: usize, scan: Scan },
    /// In a malformed form, before its closing mark. `matched`: characters read of each closing mark.
    Malformed { matched: Vec<usize> },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Scan {
    Word,
    Object(JsonScan),
    Braces(BracesScan),
    Call(CallScan),
    /// `matched`: characters read of the closing literal. `from`: its start. `closed`: it is complete.
    Raw {
        matched: usize,
        from: usize,
        closed: bool,
    },
    /// `info`: the info string, after the fence itself.
    Element(ElementScan),
    Fence {
        info: Option<String>,
    },
    FenceEnd,
}

/// The result of one more character in a token.
enum TokenResult {
    Verdict(Verdict),
    /// The token ended before the character. Read the character again.
    Reread,
}

impl Machine {
    /// A machine at the start of `family`'s form. `nests`: whether a value may contain enclosing elements.
    pub(super) fn new(family: Family, nests: bool) -> Self {
        Self {
            family,
            step: 0,
            reading: Reading::Gap,
            at: 0,
            start: 0,
            captures: Vec::new(),
            fence: ('`', 0),
            is_certain: false,
            whole: None,
            last: None,
            doubled: false,
            nests,
        }
    }

    /// Whether the form is known to be malformed.
    pub(super) fn is_malformed(&self) -> bool {
        matches!(self.reading, Reading::Malformed { .. })
    }

    /// Returns the start of the mismatching text, which may begin another form.
    pub(super) fn retry_from(&self) -> usize {
        match self.reading {
            Reading::Literals { .. } if self.step > 0 => self.start,
            Reading::Token { scan: Scan::Word | Scan::FenceEnd, .. } if self.step > 0 => self.start,
            // The object may be a call by itself.
            Reading::Token { scan: Scan::Object(_), index } if !self.is_whole_call(index) => self.start,
            Reading::Gap | Reading::Literals { .. } | Reading::Token { .. } | Reading::Malformed { .. } => {
                self.at
            }
        }
    }

    /// Returns the incomplete token and its position. `text`: all text of the form.
    pub(super) fn unread(&self, text: &str) -> Option<Captured> {
        let first = text.get(self.start..)?.chars().next()?;
        let what = self.current_step()?.next.iter().find_map(|(token, _)| match token {
            Token::Object(what) => json_scan(*what, first, true).map(|_| *what),
            Token::Braces(what) => (first == '{').then_some(*what),
            Token::Call => is_word_start(first).then_some(Capture::Python),
            Token::Raw(what, _, _) => Some(*what),
            Token::Element(element) => Some(element.what),
            Token::Literal(_) | Token::Word(_) | Token::Fence(_) | Token::FenceEnd => None,
        })?;
        Some(Captured { what, start: self.start, end: text.len() })
    }

    /// Reads one more character.
    pub(super) fn push(&mut self, ch: char) -> Verdict {
        loop {
            let took = match &mut self.reading {
                Reading::Gap => TokenResult::Verdict(self.begin(ch)),
                Reading::Literals { matching, read } => {
                    let (matching, read) = (*matching, *read);
                    TokenResult::Verdict(self.literal(ch, matching, read))
                }
                Reading::Token { index, .. } => {
                    let index = *index;
                    self.token(ch, index)
                }
                Reading::Malformed { matched } => {
                    TokenResult::Verdict(find_close(self.family.form().closes, matched, ch))
                }
            };
            if let TokenResult::Verdict(verdict) = took {
                if !matches!(verdict, Verdict::Reject) {
                    self.at += ch.len_utf8();
                }
                return verdict;
            }
        }
    }

    /// Ends the reply. `is_finished`: the model finished it, so closing marks at its end may be missing.
    pub(super) fn end(&mut self, is_finished: bool) -> Verdict {
        if let Reading::Token { index, scan } = &self.reading {
            let index = *index;
            match scan {
                Scan::Raw { closed: true, from, .. } => {
                    let end = *from;
                    self.capture(index, end);
                    self.go(index, self.at);
                }
                Scan::FenceEnd if self.at - self.start >= self.fence.1 => {
                    self.go(index, self.at);
                }
                Scan::Raw { closed: false, .. } | Scan::Braces(_) => return Verdict::Broken,
                Scan::Element(scan) => {
                    let end = self.element(index).and_then(|element| scan.end(element));
                    let Some(end) = end else { return Verdict::Broken };
                    if let verdict @ Verdict::Complete(_) = self.end_element(index, end) {
                        return verdict;
                    }
                }
                // The end of a finished reply stands in for the last brace of a call.
                Scan::Object(object)
                    if is_finished
                        && object.lacks_brace()
                        && self.is_whole_call(index)
                        && object.is_call() =>
                {
                    self.capture(index, self.at);
                    self.go(index, self.at);
                }
                Scan::Object(_) if self.family.form().marked => return Verdict::Broken,
                Scan::Object(object) if self.is_whole_call(index) && object.is_call() => {
                    return Verdict::Broken;
                }
                Scan::Call(call) if call.is_open() && self.family.form().marked => return Verdict::Broken,
                Scan::Call(call) if call.has_keyword() => return Verdict::Broken,
                Scan::Word | Scan::Object(_) | Scan::Call(_) | Scan::Fence { .. } | Scan::FenceEnd => {}
            }
        }
        if self.is_malformed() {
            // In a code block without an end, the end of the reasoning is not read.
            let is_fenced = self.fence.1 > 0;
            return if is_fenced { Verdict::Reject } else { Verdict::Broken };
        }
        match (self.on_mismatch(), self.whole) {
            (_, Some(end)) => Verdict::Complete(end),
            (OnMismatch::Malformed, None) if is_finished && self.lacks_only_marks() => {
                Verdict::Complete(self.at)
            }
            (OnMismatch::Malformed, None) => Verdict::Broken,
            (OnMismatch::Unclosed | OnMismatch::LineEnd, None) => Verdict::Complete(self.at),
            (OnMismatch::Prose | OnMismatch::Complete, None) if self.is_certain => Verdict::Broken,
            (OnMismatch::Prose | OnMismatch::Complete, None) => Verdict::Reject,
        }
    }

    /// Whether the text ends after an argument or after all arguments of a call.
    fn lacks_only_marks(&self) -> bool {
        let is_argument = |token: &Token| match token {
            Token::Object(_) | Token::Braces(_) | Token::Call | Token::Element(_) => true,
            Token::Raw(what, _, _) => matches!(what, Capture::Tags | Capture::Value),
            Token::Literal(_) | Token::Word(_) | Token::Fence(_) | Token::FenceEnd => false,
        };
        self.reading == Reading::Gap && self.last_token().is_some_and(is_argument)
    }

    fn last_token(&self) -> Option<&'static Token> {
        let (step, index) = self.last?;
        self.family.form().steps.get(usize::from(step))?.next.get(index).map(|(token, _)| token)
    }

    fn current_step(&self) -> Option<&'static Step> {
        self.family.form().steps.get(usize::from(self.step))
    }

    fn on_mismatch(&self) -> OnMismatch {
        self.current_step().map_or(OnMismatch::Prose, |step| step.on_mismatch)
    }

    fn edge(&self, index: usize) -> Option<&'static (Token, u8)> {
        self.current_step().and_then(|step| step.next.get(index))
    }

    fn element(&self, index: usize) -> Option<&'static Element> {
        match self.edge(index) {
            Some((Token::Element(element), _)) => Some(element),
            _ => None,
        }
    }

    /// Returns the mark that token `index` of the current step must match, or, after the last token, the last mark, which
    /// the model may have written twice.
    fn mark(&self, index: usize) -> Option<&'static str> {
        let step = self.current_step()?;
        if let Some((token, _)) = step.next.get(index) {
            return match token {
                Token::Literal(literal) => Some(literal),
                _ => None,
            };
        }
        // In a value, the mark is text.
        let is_text = |(token, _): &(Token, u8)| matches!(token, Token::Raw(..) | Token::Element(_));
        if index > step.next.len() || step.next.iter().all(is_text) {
            return None;
        }
        let marked = self.family.form().marked;
        match self.last_token()? {
            Token::Object(_) | Token::Braces(_) => (marked || self.doubled).then_some("}"),
            _ if !marked => None,
            Token::Literal(mark) | Token::Raw(_, mark, _) => Some(mark),
            Token::Element(element) => Some(element.close),
            Token::Word(_) | Token::Call | Token::Fence(_) | Token::FenceEnd => None,
        }
    }

    /// Whether the token is an object that is a complete call, which its keys identify.
    fn is_whole_call(&self, index: usize) -> bool {
        matches!(self.edge(index), Some((Token::Object(Capture::Object), _)))
    }

    /// Reads a character before a token.
    fn begin(&mut self, ch: char) -> Verdict {
        let Some(step) = self.current_step() else { return Verdict::Reject };
        let skips = match step.gap {
            Gap::None => false,
            Gap::Line => matches!(ch, ' ' | '\t' | '\r'),
            Gap::Any => matches!(ch, ' ' | '\t' | '\r' | '\n'),
        };
        if skips {
            return Verdict::More;
        }
        self.start = self.at;
        let begins = |mark: &str| mark.chars().next().is_some_and(|first| looks_like(first, ch));
        let matching = matching((0..=step.next.len()).map(|index| self.mark(index).is_some_and(begins)));
        if matching != 0 {
            return self.literals(matching, 1, self.at + ch.len_utf8());
        }
        let marked = self.family.form().marked;
        // Dots stand for omitted text.
        let is_omitted = step.next.len() > 1 && matches!(ch, '.' | '…');
        let found = step.next.iter().enumerate().find_map(|(index, (token, _))| {
            let scan = match token {
                Token::Literal(_) => None,
                Token::Word(_) => is_word_start(ch).then_some(Scan::Word),
                Token::Object(what) => json_scan(*what, ch, marked).map(Scan::Object),
                Token::Braces(_) => (ch == '{').then(|| Scan::Braces(BracesScan::new())),
                Token::Call => is_word_start(ch).then(|| Scan::Call(CallScan::new())),
                Token::Raw(_, literal, _) => {
                    Some(Scan::Raw { matched: advance(literal, 0, ch), from: self.at, closed: false })
                }
                Token::Element(element) => {
                    let mut scan = ElementScan::new(element, self.nests);
                    scan.push(element, ch, self.at);
                    (!is_omitted).then_some(Scan::Element(scan))
                }
                Token::Fence(_) => matches!(ch, '`' | '~').then(|| Scan::Fence { info: None }),
                Token::FenceEnd => (ch == self.fence.0).then_some(Scan::FenceEnd),
            };
            scan.map(|scan| (index, scan))
        });
        let Some((index, scan)) = found else { return self.mismatch(ch) };
        if let Scan::Fence { .. } = scan {
            self.fence = (ch, 1);
        }
        self.reading = Reading::Token { index, scan };
        Verdict::More
    }

    fn literal(&mut self, ch: char, matching: u32, read: usize) -> Verdict {
        let Some(step) = self.current_step() else { return Verdict::Reject };
        let goes_on = |index: usize| {
            let mark = self.mark(index).filter(|_| matching >> index & 1 == 1);
            mark.and_then(|mark| mark.chars().nth(read)).is_some_and(|next| looks_like(next, ch))
        };
        let now = self::matching((0..=step.next.len()).map(goes_on));
        let after = self.at + ch.len_utf8();
        if now != 0 {
            return self.literals(now, read + 1, after);
        }
        let mut marks =
            (0..=step.next.len()).filter_map(|index| self.mark(index).filter(|_| matching >> index & 1 == 1));
        if marks.any(|mark| repeats_bar(mark, read, ch)) { Verdict::More } else { self.mismatch(ch) }
    }

    /// Enters a literal after `read` characters, which end at `after`.
    fn literals(&mut self, matching: u32, read: usize, after: usize) -> Verdict {
        let Some(step) = self.current_step() else { return Verdict::Reject };
        let is_whole = |index: &usize| {
            let mark = self.mark(*index).filter(|_| matching >> index & 1 == 1);
            mark.is_some_and(|mark| mark.chars().nth(read).is_none())
        };
        match (0..=step.next.len()).find(is_whole) {
            Some(index) if index == step.next.len() => {
                self.reading = Reading::Gap;
                self.whole = self.whole.map(|_| after);
                self.last = None;
                Verdict::More
            }
            Some(index) => self.go(index, after),
            None => {
                self.reading = Reading::Literals { matching, read };
                Verdict::More
            }
        }
    }

    fn capture(&mut self, index: usize, end: usize) {
        let what = match self.edge(index) {
            Some((
                Token::Word(what) | Token::Object(what) | Token::Braces(what) | Token::Raw(what, _, _),
                _,
            )) => *what,
            Some((Token::Element(element), _)) => element.what,
            Some((Token::Call, _)) => Capture::Python,
            Some((Token::Literal(_) | Token::Fence(_) | Token::FenceEnd, _)) | None => Capture::Nothing,
        };
        // A longer form is not decoded.
        if what != Capture::Nothing && end <= MAX_HELD {
            self.captures.push(Captured { what, start: self.start, end });
        }
    }

    /// Ends a token before this character.
    fn go_before(&mut self, index: usize) -> TokenResult {
        match self.go(index, self.at) {
            Verdict::More => TokenResult::Reread,
            verdict => TokenResult::Verdict(verdict),
        }
    }

    /// Ends a token with this character.
    fn go_after(&mut self, index: usize, after: usize) -> TokenResult {
        TokenResult::Verdict(self.go(index, after))
    }

    /// Ends the value of an element.
    fn end_element(&mut self, index: usize, end: ElementEnd) -> Verdict {
        self.capture(index, end.value);
        match end.otherwise {
            Some(step) => self.go_to(step, end.mark),
            None => self.go(index, end.mark),
        }
    }

    /// Goes to the next step by edge `index`, whose token ended at `end`.
    fn go(&mut self, index: usize, end: usize) -> Verdict {
        self.last = Some((self.step, index));
        let to = self.edge(index).map_or(DONE, |(_, to)| *to);
        self.go_to(to, end)
    }

    /// Goes to a step after a token that ended at `end`.
    fn go_to(&mut self, to: u8, end: usize) -> Verdict {
        if to == DONE {
            return Verdict::Complete(end);
        }
        self.step = to;
        self.reading = Reading::Gap;
        let rest = self.on_mismatch();
        self.is_certain |= rest == OnMismatch::Malformed;
        self.whole = (rest == OnMismatch::Complete).then_some(end);
        Verdict::More
    }

    /// Handles a character that matches no token.
    fn mismatch(&mut self, ch: char) -> Verdict {
        match (self.on_mismatch(), self.whole) {
            (_, Some(end)) => Verdict::Complete(end),
            (OnMismatch::Malformed | OnMismatch::Unclosed, None) => self.malformed(ch),
            (OnMismatch::Prose | OnMismatch::Complete | OnMismatch::LineEnd, None) => Verdict::Reject,
        }
    }

    /// Handles a syntax error inside a form.
    fn malformed(&mut self, ch: char) -> Verdict {
        let form = self.family.form();
        // Dots stand for omitted text: the form is being explained.
        if matches!(ch, '.' | '…') || (!form.marked && !self.is_certain) {
            return Verdict::Reject;
        }
        if form.closes.is_empty() {
            return Verdict::Broken;
        }
        // The start of a literal that did not match may begin the closing mark.
        let read = match &self.reading {
            Reading::Literals { matching, read } => {
                let mark =
                    (0..32).filter(|index| matching >> index & 1 == 1).find_map(|index| self.mark(index));
                mark.map(|mark| mark.chars().take(*read))
            }
            Reading::Gap | Reading::Token { .. } | Reading::Malformed { .. } => None,
        };
        let read: Vec<char> = read.into_iter().flatten().chain([ch]).collect();
        let begun = |close: &&str| read.iter().fold(0, |matched, ch| advance(close, matched, *ch));
        self.reading = Reading::Malformed { matched: form.closes.iter().map(begun).collect() };
        Verdict::Flow
    }
}

/// Returns the scan of an object that begins with `ch`. Arguments may be encoded twice, as a string.
fn json_scan(what: Capture, ch: char, marked: bool) -> Option<JsonScan> {
    match ch {
        '{' => Some(JsonScan::object(marked)),
        '"' if marked && what == Capture::Arguments => Some(JsonScan::string()),
        _ => None,
    }
}

fn find_close(closes: &[&str], matched: &mut [usize], ch: char) -> Verdict {
    for (close, matched) in closes.iter().zip(matched) {
        *matched = advance(close, *matched, ch);
        if close.chars().nth(*matched).is_none() {
            return Verdict::Broken;
        }
    }
    Verdict::Flow
}

fn matching(bits: impl Iterator<Item = bool>) -> u32 {
    bits.take(32).enumerate().fold(0, |matching, (index, bit)| matching | u32::from(bit) << index)
}

fn is_word_start(ch: char) -> bool {
    ch.is_alphabetic() || ch == '_'
}
