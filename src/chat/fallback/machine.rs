//! Follows one form, character by character, and remembers where its names and arguments stand ([`Captured`]).
//!
//! It never looks back: its time is linear and its state is small, so that it can be stored between any two
//! characters.

use serde::{Deserialize, Serialize};

use super::MAX_HELD;
use super::families::Family;
use super::grammar::{Capture, Captured, DONE, Gap, Rest, Step, Token, looks_like};
use super::json::{JsonScan, JsonStep};
use super::python::{CallScan, CallStep};

/// The longest name or key, in bytes.
const MAX_WORD: usize = 256;

/// What a machine says after one more character, or at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// May be a call: hold back.
    More,
    /// Will be no call, but the form is not over: let the text go and go on.
    Flow,
    /// A whole form that ends after this many bytes, this character included or not.
    Complete(usize),
    /// A form that cannot be parsed, this character included.
    Broken,
    /// No form; this character is not part of it.
    Reject,
}

/// Follows one form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Machine {
    pub(super) family: Family,
    step: u8,
    reading: Reading,
    /// Bytes read.
    at: usize,
    /// Where the token that is read began.
    start: usize,
    pub(super) captures: Vec<Captured>,
    /// The code block that the form opened.
    fence: (char, usize),
    /// Beyond doubt a call: what ends it early breaks it.
    sure: bool,
    /// Where a whole form ended that may yet go on.
    whole: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Reading {
    /// Nothing: before a token.
    Gap,
    /// Marks: which of the step's, and how many characters.
    Marks { alive: u32, read: usize },
    /// A token that is none of the marks, which of the step's.
    Token { index: usize, scan: Scan },
    /// A form that cannot be read, on the way to what closes it.
    Lost { matched: Vec<usize> },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Scan {
    Word,
    Object(JsonScan),
    Call(CallScan),
    /// How many characters of the mark were read, where they began, and whether the mark is whole.
    Raw {
        matched: usize,
        from: usize,
        closed: bool,
    },
    /// The info string, once the fence itself is read.
    Fence {
        info: Option<String>,
    },
    FenceEnd,
}

/// What a token said to a character.
enum Took {
    Verdict(Verdict),
    /// The token ended before the character, which is yet to be read.
    Again,
}

impl Machine {
    /// A machine for `family`, at the start.
    pub(super) fn new(family: Family) -> Self {
        Self {
            family,
            step: 0,
            reading: Reading::Gap,
            at: 0,
            start: 0,
            captures: Vec::new(),
            fence: ('`', 0),
            sure: false,
            whole: None,
        }
    }

    /// Where what did not fit began, if it may begin another form.
    pub(super) fn retry_from(&self) -> usize {
        match self.reading {
            Reading::Marks { .. } if self.step > 0 => self.start,
            Reading::Token { scan: Scan::Word | Scan::FenceEnd, .. } if self.step > 0 => self.start,
            // A call of its own.
            Reading::Token { scan: Scan::Object(_), index } if !self.tells(index) => self.start,
            Reading::Gap | Reading::Marks { .. } | Reading::Token { .. } | Reading::Lost { .. } => self.at,
        }
    }

    /// What is not read to its end and where it begins, `text` being all that was read.
    pub(super) fn unread(&self, text: &str) -> Option<Captured> {
        let first = text.get(self.start..)?.chars().next()?;
        let what = self.here()?.next.iter().find_map(|(token, _)| match token {
            Token::Object(what) => (first == '{').then_some(*what),
            Token::Call => is_word_start(first).then_some(Capture::Python),
            Token::Raw(what, _, _) => Some(*what),
            Token::Mark(_) | Token::Word(_) | Token::Fence(_) | Token::FenceEnd => None,
        })?;
        Some(Captured { what, start: self.start, end: text.len() })
    }

    /// Reads one more character.
    pub(super) fn push(&mut self, ch: char) -> Verdict {
        loop {
            let took = match &mut self.reading {
                Reading::Gap => Took::Verdict(self.begin(ch)),
                Reading::Marks { alive, read } => {
                    let (alive, read) = (*alive, *read);
                    Took::Verdict(self.mark(ch, alive, read))
                }
                Reading::Token { index, .. } => {
                    let index = *index;
                    self.token(ch, index)
                }
                Reading::Lost { matched } => Took::Verdict(lost(self.family.form().closes, matched, ch)),
            };
            if let Took::Verdict(verdict) = took {
                if !matches!(verdict, Verdict::Reject) {
                    self.at += ch.len_utf8();
                }
                return verdict;
            }
        }
    }

    /// Ends the reply.
    pub(super) fn end(&mut self) -> Verdict {
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
                Scan::Raw { closed: false, .. } => return Verdict::Broken,
                Scan::Object(_) if self.family.form().marked => return Verdict::Broken,
                Scan::Object(object) if self.tells(index) && object.is_call() => return Verdict::Broken,
                Scan::Call(call) if call.is_open() && self.family.form().marked => return Verdict::Broken,
                Scan::Call(call) if call.has_keyword() => return Verdict::Broken,
                Scan::Word | Scan::Object(_) | Scan::Call(_) | Scan::Fence { .. } | Scan::FenceEnd => {}
            }
        }
        if let Reading::Lost { .. } = self.reading {
            return Verdict::Reject;
        }
        match (self.rest(), self.whole) {
            (_, Some(end)) => Verdict::Complete(end),
            (Rest::Inside, None) => Verdict::Broken,
            (Rest::Closing | Rest::Line, None) => Verdict::Complete(self.at),
            (Rest::Prose | Rest::Whole, None) if self.sure => Verdict::Broken,
            (Rest::Prose | Rest::Whole, None) => Verdict::Reject,
        }
    }

    fn here(&self) -> Option<&'static Step> {
        self.family.form().steps.get(usize::from(self.step))
    }

    fn rest(&self) -> Rest {
        self.here().map_or(Rest::Prose, |step| step.rest)
    }

    fn edge(&self, index: usize) -> Option<&'static (Token, u8)> {
        self.here().and_then(|step| step.next.get(index))
    }

    /// Whether this token is an object that is all of a call: its keys say whether it is one.
    fn tells(&self, index: usize) -> bool {
        matches!(self.edge(index), Some((Token::Object(Capture::Object), _)))
    }

    /// Before a token.
    fn begin(&mut self, ch: char) -> Verdict {
        let Some(step) = self.here() else { return Verdict::Reject };
        let skips = match step.gap {
            Gap::None => false,
            Gap::Line => matches!(ch, ' ' | '\t' | '\r'),
            Gap::Any => matches!(ch, ' ' | '\t' | '\r' | '\n'),
        };
        if skips {
            return Verdict::More;
        }
        self.start = self.at;
        let begins = |token: &Token| match token {
            Token::Mark(mark) => mark.chars().next().is_some_and(|first| looks_like(first, ch)),
            _ => false,
        };
        let alive = alive(step.next.iter().map(|(token, _)| begins(token)));
        if alive != 0 {
            return self.marks(alive, 1, self.at + ch.len_utf8());
        }
        let found = step.next.iter().enumerate().find_map(|(index, (token, _))| {
            let scan = match token {
                Token::Mark(_) => None,
                Token::Word(_) => is_word_start(ch).then_some(Scan::Word),
                Token::Object(_) => (ch == '{').then(|| Scan::Object(JsonScan::new())),
                Token::Call => is_word_start(ch).then(|| Scan::Call(CallScan::new())),
                Token::Raw(_, mark, _) => {
                    Some(Scan::Raw { matched: advance(mark, 0, ch), from: self.at, closed: false })
                }
                Token::Fence(_) => matches!(ch, '`' | '~').then(|| Scan::Fence { info: None }),
                Token::FenceEnd => (ch == self.fence.0).then_some(Scan::FenceEnd),
            };
            scan.map(|scan| (index, scan))
        });
        let Some((index, scan)) = found else { return self.misfit(ch) };
        if let Scan::Fence { .. } = scan {
            self.fence = (ch, 1);
        }
        self.reading = Reading::Token { index, scan };
        Verdict::More
    }

    fn mark(&mut self, ch: char, alive: u32, read: usize) -> Verdict {
        let Some(step) = self.here() else { return Verdict::Reject };
        let goes_on = |(index, (token, _)): (usize, &(Token, u8))| match token {
            Token::Mark(mark) => {
                alive >> index & 1 == 1 && mark.chars().nth(read).is_some_and(|next| looks_like(next, ch))
            }
            _ => false,
        };
        let alive = self::alive(step.next.iter().enumerate().map(goes_on));
        let after = self.at + ch.len_utf8();
        if alive == 0 { self.misfit(ch) } else { self.marks(alive, read + 1, after) }
    }

    /// So many characters of these marks are read, up to `after`.
    fn marks(&mut self, alive: u32, read: usize, after: usize) -> Verdict {
        let whole = self.here().and_then(|step| {
            step.next.iter().enumerate().find(|(index, (token, _))| match token {
                Token::Mark(mark) => alive >> index & 1 == 1 && mark.chars().nth(read).is_none(),
                _ => false,
            })
        });
        match whole {
            Some((index, _)) => self.go(index, after),
            None => {
                self.reading = Reading::Marks { alive, read };
                Verdict::More
            }
        }
    }

    fn token(&mut self, ch: char, index: usize) -> Took {
        let form = self.family.form();
        let after = self.at + ch.len_utf8();
        let Some((token, _)) = self.edge(index) else { return Took::Verdict(Verdict::Reject) };
        let tells = self.tells(index);
        let Reading::Token { scan, .. } = &mut self.reading else { return Took::Verdict(Verdict::Reject) };
        let verdict = match (scan, token) {
            (Scan::Word, _) if is_word(ch) && after - self.start <= MAX_WORD => Verdict::More,
            (Scan::Word, _) if is_word(ch) => self.misfit(ch),
            // A letter alone is a word, if no mark stands before it.
            (Scan::Word, _) if !form.marked && self.at - self.start < 2 => Verdict::Reject,
            (Scan::Word, _) => {
                self.capture(index, self.at);
                return self.go_before(index);
            }
            (Scan::Object(object), _) => match object.push(ch, tells && !form.marked) {
                JsonStep::More if !tells && !form.marked && object.is_call() => Verdict::Reject,
                JsonStep::More => Verdict::More,
                JsonStep::Other => Verdict::Reject,
                JsonStep::End => {
                    let is_call = tells && object.is_call();
                    if tells && !form.marked && !is_call {
                        return Took::Verdict(Verdict::Reject);
                    }
                    self.sure |= is_call;
                    self.capture(index, after);
                    return self.go_after(index, after);
                }
                JsonStep::Bad => {
                    self.sure |= tells && object.is_call();
                    self.bad(ch)
                }
            },
            (Scan::Call(call), _) => match call.push(ch) {
                CallStep::More => Verdict::More,
                CallStep::End => {
                    self.sure |= call.has_keyword();
                    self.capture(index, after);
                    return self.go_after(index, after);
                }
                CallStep::Bad if call.is_open() => {
                    self.sure |= call.has_keyword();
                    self.bad(ch)
                }
                CallStep::Bad => self.misfit(ch),
            },
            (Scan::Raw { matched, from, closed }, Token::Raw(_, mark, follow)) => {
                let end = *from;
                match (*closed, follow) {
                    (true, Some(follow)) if ch == *follow => {
                        self.capture(index, end);
                        return self.go_before(index);
                    }
                    (true, Some(_)) if ch.is_ascii_whitespace() => return Took::Verdict(Verdict::More),
                    // What looked like the closing mark stands in the text.
                    (true, _) => (*closed, *matched) = (false, 0),
                    (false, _) => {}
                }
                let now = advance(mark, *matched, ch);
                if now == 1 {
                    *from = self.at;
                }
                *matched = now;
                if mark.chars().nth(now).is_some() {
                    return Took::Verdict(Verdict::More);
                }
                let end = *from;
                if follow.is_some() {
                    *closed = true;
                    Verdict::More
                } else {
                    self.capture(index, end);
                    return self.go_after(index, after);
                }
            }
            (Scan::Raw { .. }, _) => Verdict::Reject,
            (Scan::Fence { info }, Token::Fence(infos)) => match (info, ch) {
                (None, _) if ch == self.fence.0 => {
                    self.fence.1 += 1;
                    Verdict::More
                }
                (None, _) if self.fence.1 < 3 => Verdict::Reject,
                (info @ None, _) => {
                    *info = Some(String::new());
                    return Took::Again;
                }
                (Some(info), '\n') if infos.contains(&info.as_str()) => return self.go_after(index, after),
                (Some(_), ' ' | '\t' | '\r') => Verdict::More,
                (Some(info), _) => {
                    info.push(ch.to_ascii_lowercase());
                    let fits = infos.iter().any(|allowed| allowed.starts_with(info.as_str()));
                    if fits { Verdict::More } else { Verdict::Reject }
                }
            },
            (Scan::Fence { .. }, _) => Verdict::Reject,
            (Scan::FenceEnd, _) if ch == self.fence.0 => Verdict::More,
            (Scan::FenceEnd, _) if self.at - self.start < self.fence.1 => self.misfit(ch),
            (Scan::FenceEnd, _) => return self.go_before(index),
        };
        Took::Verdict(verdict)
    }

    fn capture(&mut self, index: usize, end: usize) {
        let what = match self.edge(index) {
            Some((Token::Word(what) | Token::Object(what) | Token::Raw(what, _, _), _)) => *what,
            Some((Token::Call, _)) => Capture::Python,
            Some((Token::Mark(_) | Token::Fence(_) | Token::FenceEnd, _)) | None => Capture::Nothing,
        };
        // Of a form that is longer nothing is read.
        if what != Capture::Nothing && end <= MAX_HELD {
            self.captures.push(Captured { what, start: self.start, end });
        }
    }

    /// A token ended before this character.
    fn go_before(&mut self, index: usize) -> Took {
        match self.go(index, self.at) {
            Verdict::More => Took::Again,
            verdict => Took::Verdict(verdict),
        }
    }

    /// A token ended with this character.
    fn go_after(&mut self, index: usize, after: usize) -> Took {
        Took::Verdict(self.go(index, after))
    }

    /// Goes where edge `index` leads; its token ended at `end`.
    fn go(&mut self, index: usize, end: usize) -> Verdict {
        let to = self.edge(index).map_or(DONE, |(_, to)| *to);
        if to == DONE {
            return Verdict::Complete(end);
        }
        self.step = to;
        self.reading = Reading::Gap;
        let rest = self.rest();
        self.sure |= rest == Rest::Inside;
        self.whole = (rest == Rest::Whole).then_some(end);
        Verdict::More
    }

    /// Something stands where it does not fit.
    fn misfit(&mut self, ch: char) -> Verdict {
        match (self.rest(), self.whole) {
            (_, Some(end)) => Verdict::Complete(end),
            (Rest::Inside | Rest::Closing, None) => self.bad(ch),
            (Rest::Prose | Rest::Whole | Rest::Line, None) => Verdict::Reject,
        }
    }

    /// A call that cannot be read.
    fn bad(&mut self, ch: char) -> Verdict {
        let form = self.family.form();
        // Dots stand for what is left out: somebody explains the form.
        if matches!(ch, '.' | '…') || (!form.marked && !self.sure) {
            return Verdict::Reject;
        }
        if form.closes.is_empty() {
            return Verdict::Broken;
        }
        // What was read of a mark that did not come may begin the closing one.
        let read = match &self.reading {
            Reading::Marks { alive, read } => self.here().and_then(|step| {
                let marks = step.next.iter().enumerate().filter(|(index, _)| alive >> index & 1 == 1);
                marks.map(|(_, (token, _))| token).find_map(|token| match token {
                    Token::Mark(mark) => Some(mark.chars().take(*read)),
                    _ => None,
                })
            }),
            Reading::Gap | Reading::Token { .. } | Reading::Lost { .. } => None,
        };
        let read: Vec<char> = read.into_iter().flatten().chain([ch]).collect();
        let begun = |close: &&str| read.iter().fold(0, |matched, ch| advance(close, matched, *ch));
        self.reading = Reading::Lost { matched: form.closes.iter().map(begun).collect() };
        Verdict::Flow
    }
}

fn lost(closes: &[&str], matched: &mut [usize], ch: char) -> Verdict {
    for (close, matched) in closes.iter().zip(matched) {
        *matched = advance(close, *matched, ch);
        if close.chars().nth(*matched).is_none() {
            return Verdict::Broken;
        }
    }
    Verdict::Flow
}

/// How many characters of `mark` are read after `ch`. A mark's first character stands in it only once.
fn advance(mark: &str, matched: usize, ch: char) -> usize {
    let fits = |at: usize| mark.chars().nth(at).is_some_and(|next| looks_like(next, ch));
    if fits(matched) { matched + 1 } else { usize::from(fits(0)) }
}

fn alive(bits: impl Iterator<Item = bool>) -> u32 {
    bits.take(32).enumerate().fold(0, |alive, (index, bit)| alive | u32::from(bit) << index)
}

fn is_word_start(ch: char) -> bool {
    ch.is_alphabetic() || ch == '_'
}

/// A character of a tool's or an argument's name, with what servers put before and after it.
fn is_word(ch: char) -> bool {
    ch.is_alphanumeric() || matches!(ch, '_' | '.' | '-' | ':' | '/' | '$')
}
