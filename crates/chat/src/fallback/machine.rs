//! Matches one form, character by character, and records the positions of its names and arguments ([`Captured`]).
//!
//! The machine never looks back. It takes linear time, and its state is small enough to be stored between any two
//! characters.

use serde::{Deserialize, Serialize};

use super::families::Family;
use super::grammar::{Capture, Captured, DONE, Gap, OnMismatch, Step, Token, looks_like};
use super::json::{JsonScan, JsonStep};
use super::model::MAX_HELD;
use super::python::{CallScan, CallStep};

/// Maximum length of a name or key, in bytes.
const MAX_WORD: usize = 256;

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
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Reading {
    /// Before a token.
    Gap,
    /// In a literal. `matching`: a bit for each of the step's tokens that still matches. `read`: characters read.
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
    Call(CallScan),
    /// `matched`: characters read of the closing literal. `from`: its start. `closed`: it is complete.
    Raw {
        matched: usize,
        from: usize,
        closed: bool,
    },
    /// `info`: the info string, after the fence itself.
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
    /// A machine at the start of `family`'s form.
    pub(super) fn new(family: Family) -> Self {
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
        }
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
            Token::Call => is_word_start(first).then_some(Capture::Python),
            Token::Raw(what, _, _) => Some(*what),
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
                Scan::Object(object) if self.is_whole_call(index) && object.is_call() => {
                    return Verdict::Broken;
                }
                Scan::Call(call) if call.is_open() && self.family.form().marked => return Verdict::Broken,
                Scan::Call(call) if call.has_keyword() => return Verdict::Broken,
                Scan::Word | Scan::Object(_) | Scan::Call(_) | Scan::Fence { .. } | Scan::FenceEnd => {}
            }
        }
        if let Reading::Malformed { .. } = self.reading {
            return Verdict::Reject;
        }
        match (self.on_mismatch(), self.whole) {
            (_, Some(end)) => Verdict::Complete(end),
            (OnMismatch::Malformed, None) => Verdict::Broken,
            (OnMismatch::Unclosed | OnMismatch::LineEnd, None) => Verdict::Complete(self.at),
            (OnMismatch::Prose | OnMismatch::Complete, None) if self.is_certain => Verdict::Broken,
            (OnMismatch::Prose | OnMismatch::Complete, None) => Verdict::Reject,
        }
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
        let begins = |token: &Token| match token {
            Token::Literal(literal) => literal.chars().next().is_some_and(|first| looks_like(first, ch)),
            _ => false,
        };
        let matching = matching(step.next.iter().map(|(token, _)| begins(token)));
        if matching != 0 {
            return self.literals(matching, 1, self.at + ch.len_utf8());
        }
        let marked = self.family.form().marked;
        let found = step.next.iter().enumerate().find_map(|(index, (token, _))| {
            let scan = match token {
                Token::Literal(_) => None,
                Token::Word(_) => is_word_start(ch).then_some(Scan::Word),
                Token::Object(what) => json_scan(*what, ch, marked).map(Scan::Object),
                Token::Call => is_word_start(ch).then(|| Scan::Call(CallScan::new())),
                Token::Raw(_, literal, _) => {
                    Some(Scan::Raw { matched: advance(literal, 0, ch), from: self.at, closed: false })
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
        let goes_on = |(index, (token, _)): (usize, &(Token, u8))| match token {
            Token::Literal(literal) => {
                matching >> index & 1 == 1
                    && literal.chars().nth(read).is_some_and(|next| looks_like(next, ch))
            }
            _ => false,
        };
        let matching = self::matching(step.next.iter().enumerate().map(goes_on));
        let after = self.at + ch.len_utf8();
        if matching == 0 { self.mismatch(ch) } else { self.literals(matching, read + 1, after) }
    }

    /// Enters a literal after `read` characters, which end at `after`.
    fn literals(&mut self, matching: u32, read: usize, after: usize) -> Verdict {
        let whole = self.current_step().and_then(|step| {
            step.next.iter().enumerate().find(|(index, (token, _))| match token {
                Token::Literal(literal) => matching >> index & 1 == 1 && literal.chars().nth(read).is_none(),
                _ => false,
            })
        });
        match whole {
            Some((index, _)) => self.go(index, after),
            None => {
                self.reading = Reading::Literals { matching, read };
                Verdict::More
            }
        }
    }

    fn token(&mut self, ch: char, index: usize) -> TokenResult {
        let form = self.family.form();
        let after = self.at + ch.len_utf8();
        let Some((token, _)) = self.edge(index) else { return TokenResult::Verdict(Verdict::Reject) };
        let is_whole_call = self.is_whole_call(index);
        let Reading::Token { scan, .. } = &mut self.reading else {
            return TokenResult::Verdict(Verdict::Reject);
        };
        let verdict = match (scan, token) {
            (Scan::Word, _) if is_word(ch) && after - self.start <= MAX_WORD => Verdict::More,
            (Scan::Word, _) if is_word(ch) => self.mismatch(ch),
            // A single letter counts as a word of prose in unmarked forms.
            (Scan::Word, _) if !form.marked && self.at - self.start < 2 => Verdict::Reject,
            (Scan::Word, _) => {
                self.capture(index, self.at);
                return self.go_before(index);
            }
            (Scan::Object(object), _) => match object.push(ch, is_whole_call && !form.marked) {
                JsonStep::More if !is_whole_call && !form.marked && object.is_call() => Verdict::Reject,
                JsonStep::More => Verdict::More,
                JsonStep::Other => Verdict::Reject,
                JsonStep::End => {
                    let is_call = is_whole_call && object.is_call();
                    if is_whole_call && !form.marked && !is_call {
                        return TokenResult::Verdict(Verdict::Reject);
                    }
                    self.is_certain |= is_call;
                    self.capture(index, after);
                    return self.go_after(index, after);
                }
                JsonStep::Bad => {
                    self.is_certain |= is_whole_call && object.is_call();
                    self.malformed(ch)
                }
            },
            (Scan::Call(call), _) => match call.push(ch) {
                CallStep::More => Verdict::More,
                CallStep::End => {
                    self.is_certain |= call.has_keyword();
                    self.capture(index, after);
                    return self.go_after(index, after);
                }
                CallStep::Bad if call.is_open() => {
                    self.is_certain |= call.has_keyword();
                    self.malformed(ch)
                }
                CallStep::Bad => self.mismatch(ch),
            },
            (Scan::Raw { matched, from, closed }, Token::Raw(_, literal, follow)) => {
                let end = *from;
                match (*closed, follow) {
                    (true, Some(follow)) if ch == *follow => {
                        self.capture(index, end);
                        return self.go_before(index);
                    }
                    (true, Some(_)) if ch.is_ascii_whitespace() => {
                        return TokenResult::Verdict(Verdict::More);
                    }
                    // The closing literal is part of the text.
                    (true, _) => (*closed, *matched) = (false, 0),
                    (false, _) => {}
                }
                let now = advance(literal, *matched, ch);
                if now == 1 {
                    *from = self.at;
                }
                *matched = now;
                if literal.chars().nth(now).is_some() {
                    return TokenResult::Verdict(Verdict::More);
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
            (Scan::Fence { info }, Token::Fence(infos)) => match (info, ch) {
                (None, _) if ch == self.fence.0 => {
                    self.fence.1 += 1;
                    Verdict::More
                }
                (None, _) if self.fence.1 < 3 => Verdict::Reject,
                (info @ None, _) => {
                    *info = Some(String::new());
                    return TokenResult::Reread;
                }
                (Some(info), '\n') if infos.contains(&info.as_str()) => return self.go_after(index, after),
                (Some(_), ' ' | '\t' | '\r') => Verdict::More,
                (Some(info), _) => {
                    info.push(ch.to_ascii_lowercase());
                    let fits = infos.iter().any(|allowed| allowed.starts_with(info.as_str()));
                    if fits { Verdict::More } else { Verdict::Reject }
                }
            },
            (Scan::Raw { .. } | Scan::Fence { .. }, _) => Verdict::Reject,
            (Scan::FenceEnd, _) if ch == self.fence.0 => Verdict::More,
            (Scan::FenceEnd, _) if self.at - self.start < self.fence.1 => self.mismatch(ch),
            (Scan::FenceEnd, _) => return self.go_before(index),
        };
        TokenResult::Verdict(verdict)
    }

    fn capture(&mut self, index: usize, end: usize) {
        let what = match self.edge(index) {
            Some((Token::Word(what) | Token::Object(what) | Token::Raw(what, _, _), _)) => *what,
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

    /// Goes to the next step by edge `index`, whose token ended at `end`.
    fn go(&mut self, index: usize, end: usize) -> Verdict {
        let to = self.edge(index).map_or(DONE, |(_, to)| *to);
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
            Reading::Literals { matching, read } => self.current_step().and_then(|step| {
                let marks = step.next.iter().enumerate().filter(|(index, _)| matching >> index & 1 == 1);
                marks.map(|(_, (token, _))| token).find_map(|token| match token {
                    Token::Literal(literal) => Some(literal.chars().take(*read)),
                    _ => None,
                })
            }),
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

/// Returns the number of characters of `literal` that match up to `ch`. A literal contains its first character only
/// once.
fn advance(literal: &str, matched: usize, ch: char) -> usize {
    let fits = |at: usize| literal.chars().nth(at).is_some_and(|next| looks_like(next, ch));
    if fits(matched) { matched + 1 } else { usize::from(fits(0)) }
}

fn matching(bits: impl Iterator<Item = bool>) -> u32 {
    bits.take(32).enumerate().fold(0, |matching, (index, bit)| matching | u32::from(bit) << index)
}

fn is_word_start(ch: char) -> bool {
    ch.is_alphabetic() || ch == '_'
}

/// Whether `ch` may be in the name of a tool or an argument, with the prefixes and suffixes that servers add.
fn is_word(ch: char) -> bool {
    ch.is_alphanumeric() || matches!(ch, '_' | '.' | '-' | ':' | '/' | '$')
}
