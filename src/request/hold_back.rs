//! Text on its way to the consumer: what may be a call waits until that is decided.
//!
//! A whole directive waits for the end of its reply, because only then it is certain that it is one: a structured
//! call beside it, a late `</think>` or the end of what encloses it makes it text again. What follows it waits behind it, to keep the order.
//! When more than [`MAX_HELD`] bytes wait, the directive is taken for one and what follows goes out; should it turn
//! out to be text after all, it goes out late rather than never.
//!
//! Each candidate may be looked for in the whole conversation. After [`MAX_CALLS`] calls nothing more is taken.

use serde::{Deserialize, Serialize};

use crate::chat::MAX_CALLS;
use crate::chat::fallback::{Candidate, Forms, MAX_HELD, Piece, Scanner, TextCall};

/// What a candidate is, once its names are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Judgement {
    /// Calls of known tools.
    Directive,
    /// Text.
    Plain,
    /// Text that stands in an earlier message.
    Quoted,
    /// It calls what is not there; why.
    Unknown(String),
}

/// Judges candidates, and whether the excerpt of a broken one stands in an earlier message.
pub(super) trait Judge {
    /// Whether it may be anything but [`Judgement::Plain`]; cheap.
    fn may_be_call(&mut self, candidate: &Candidate) -> bool;
    fn judge(&mut self, candidate: &Candidate) -> Judgement;
    fn is_quoted(&mut self, excerpt: &str) -> bool;
    fn is_exit(&self, name: &str) -> bool;
}

/// Why a candidate fails its reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Fault {
    /// It does not parse.
    Broken(String),
    /// It names no tool.
    Unknown(String),
}

/// One recognised directive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Directive {
    /// The candidate's number.
    nth: u32,
    pub(super) text: String,
    pub(super) calls: Vec<TextCall>,
}

/// The text of one reply on its way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct HoldBack {
    /// `None`: nothing is looked for.
    scanner: Option<Scanner>,
    /// What waits, in order; begins with a directive.
    queue: Vec<Waiting>,
    queued_bytes: usize,
    /// Directives that left because too much waited behind them.
    taken: Vec<Directive>,
    /// Candidates that fail the reply, each with its number.
    faults: Vec<(u32, Fault)>,
    /// How many candidates the scanner gave, those aside that turned out to be enclosed.
    candidates: u32,
    /// How many there were when the scanner began.
    before_scanner: u32,
    quoted: u32,
    /// The candidate number of each call that was found, made or not.
    found: Vec<u32>,
    /// More calls were found than a reply may make.
    is_over_limit: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Waiting {
    Text(String),
    Directive(Directive),
}

impl HoldBack {
    /// For one reply; `None` looks for nothing.
    pub(super) fn new(forms: Option<Forms>) -> Self {
        Self {
            scanner: forms.map(Scanner::new),
            queue: Vec::new(),
            queued_bytes: 0,
            taken: Vec::new(),
            faults: Vec::new(),
            candidates: 0,
            before_scanner: 0,
            quoted: 0,
            found: Vec::new(),
            is_over_limit: false,
        }
    }

    /// Takes text; what may be shown, and how many bytes were taken: all, but for what follows too many calls.
    pub(super) fn push(&mut self, text: &str, judge: &mut impl Judge) -> (String, usize) {
        let Some(mut scanner) = self.scanner.take() else { return (text.to_owned(), text.len()) };
        let mut taken = text.len();
        let mut shown = String::new();
        let mut pieces = Vec::new();
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            if self.queue.is_empty() {
                let plain = scanner.skip(rest);
                if plain > 0 {
                    self.settle(&mut pieces, judge, &mut shown);
                    shown.push_str(rest.get(..plain).unwrap_or_default());
                    at += plain;
                    continue;
                }
            }
            let Some(ch) = rest.chars().next() else { break };
            at += ch.len_utf8();
            scanner.push(ch, &mut pieces);
            // Plain text with nothing waiting may gather; everything else is settled character by character, so
            // that the limit falls on the same one however the text was cut.
            if !self.queue.is_empty() || !matches!(pieces.as_slice(), [] | [Piece::Text(_)]) {
                self.settle(&mut pieces, judge, &mut shown);
            }
            if !self.queue.is_empty() && self.queued_bytes + scanner.held_bytes() > MAX_HELD {
                self.overflow(&mut shown);
            }
            if self.is_over_limit() {
                taken = at;
                break;
            }
        }
        self.settle(&mut pieces, judge, &mut shown);
        self.scanner = Some(scanner);
        (shown, taken)
    }

    /// Whether more calls were found than a reply may make.
    pub(super) fn is_over_limit(&self) -> bool {
        self.is_over_limit || self.found.len() > MAX_CALLS
    }

    /// Ends the reply; what may be shown. Directives still wait for [`HoldBack::release`].
    pub(super) fn finish(&mut self, judge: &mut impl Judge) -> String {
        let mut shown = String::new();
        if let Some(mut scanner) = self.scanner.take() {
            let mut pieces = Vec::new();
            scanner.finish(&mut pieces);
            self.settle(&mut pieces, judge, &mut shown);
        }
        shown
    }

    /// Ends the text so far and begins another one, which nothing in the first encloses; what may be shown of the first. If
    /// nothing is looked for, nothing is looked for in the other one either.
    pub(super) fn begin_apart(&mut self, forms: Forms, judge: &mut impl Judge) -> String {
        let reads = self.scanner.is_some();
        let shown = self.finish(judge);
        self.scanner = reads.then(|| Scanner::new(forms));
        self.before_scanner = self.candidates;
        shown
    }

    /// Everything that waits, without the directives that `leaves` accepts.
    pub(super) fn release(&mut self, leaves: impl Fn(&Directive) -> bool) -> String {
        let mut shown = self.release_queue(leaves);
        if let Some(mut scanner) = self.scanner.take() {
            let mut pieces = Vec::new();
            scanner.flush(&mut pieces);
            for piece in pieces {
                if let Piece::Text(text) = piece {
                    shown.push_str(&text);
                }
            }
        }
        shown
    }

    /// The calls of all directives, in order.
    pub(super) fn calls(&self) -> impl Iterator<Item = &TextCall> {
        let queued = self.queue.iter().filter_map(|waiting| match waiting {
            Waiting::Text(_) => None,
            Waiting::Directive(directive) => Some(directive),
        });
        self.taken.iter().chain(queued).flat_map(|directive| &directive.calls)
    }

    /// Whether text other than blanks waits.
    pub(super) fn has_text(&self) -> bool {
        let is_text = |waiting: &Waiting| matches!(waiting, Waiting::Text(text) if !text.trim().is_empty());
        self.queue.iter().any(is_text)
    }

    /// The first candidate that fails the reply.
    pub(super) fn fault(&self) -> Option<&Fault> {
        self.faults.first().map(|(_, fault)| fault)
    }

    /// How many candidates stand in an earlier message, since this was last asked.
    pub(super) fn take_quoted(&mut self) -> u32 {
        std::mem::take(&mut self.quoted)
    }

    fn release_queue(&mut self, leaves: impl Fn(&Directive) -> bool) -> String {
        let mut shown = String::new();
        for directive in self.taken.drain(..).filter(|directive| !leaves(directive)) {
            shown.push_str(&directive.text);
        }
        for waiting in self.queue.drain(..) {
            match waiting {
                Waiting::Text(text) => shown.push_str(&text),
                Waiting::Directive(directive) if leaves(&directive) => {}
                Waiting::Directive(directive) => shown.push_str(&directive.text),
            }
        }
        self.queued_bytes = 0;
        shown
    }

    fn settle(&mut self, pieces: &mut Vec<Piece>, judge: &mut impl Judge, shown: &mut String) {
        for piece in pieces.drain(..) {
            match piece {
                Piece::Text(text) => self.text(&text, shown),
                Piece::Candidate(candidate) => {
                    let nth = self.number();
                    match self.judge(nth, &candidate, judge) {
                        Judgement::Directive => {
                            self.queued_bytes += candidate.text.len();
                            let Candidate { text, calls } = candidate;
                            self.queue.push(Waiting::Directive(Directive { nth, text, calls }));
                        }
                        Judgement::Plain => self.text(&candidate.text, shown),
                        Judgement::Quoted => {
                            self.quoted += 1;
                            self.text(&candidate.text, shown);
                        }
                        Judgement::Unknown(why) => {
                            self.faults.push((nth, Fault::Unknown(why)));
                            self.text(&candidate.text, shown);
                        }
                    }
                }
                Piece::Broken { why, excerpt, calls } => {
                    let nth = self.number();
                    if judge.is_quoted(&excerpt) {
                        self.quoted += 1;
                        self.found.push(nth);
                    } else {
                        self.broken(nth, why, Candidate { text: excerpt, calls }, judge);
                    }
                }
                Piece::Enclosed { from } => self.enclosed(self.before_scanner.saturating_add(from), shown),
                Piece::ReasoningEnded => {
                    self.faults.clear();
                    shown.push_str(&self.release_queue(|_| false));
                }
            }
        }
    }

    /// Takes a candidate that does not parse and whose text is shown. What is broken fails the reply unless it is an exit
    /// call; exit calls are kept in any case.
    fn broken(&mut self, nth: u32, why: String, mut candidate: Candidate, judge: &mut impl Judge) {
        if !candidate.calls.last().is_some_and(|broken| judge.is_exit(&broken.name)) {
            self.found.push(nth);
            self.faults.push((nth, Fault::Broken(why)));
            candidate.calls.retain(|call| judge.is_exit(&call.name));
        }
        if candidate.calls.is_empty() {
            return;
        }
        match self.judge(nth, &candidate, judge) {
            Judgement::Directive => {
                let (text, calls) = (String::new(), candidate.calls);
                self.queue.push(Waiting::Directive(Directive { nth, text, calls }));
            }
            Judgement::Plain => {}
            Judgement::Quoted => self.quoted += 1,
            Judgement::Unknown(why) => self.faults.push((nth, Fault::Unknown(why))),
        }
    }

    fn number(&mut self) -> u32 {
        self.candidates += 1;
        self.candidates - 1
    }

    /// The candidates from this number on are text.
    fn enclosed(&mut self, from: u32, shown: &mut String) {
        self.candidates = from;
        self.faults.retain(|(nth, _)| *nth < from);
        self.found.retain(|nth| *nth < from);
        for directive in self.taken.extract_if(.., |directive| directive.nth >= from) {
            shown.push_str(&directive.text);
        }
        for waiting in self.queue.iter_mut().rev() {
            match waiting {
                Waiting::Directive(directive) if directive.nth >= from => {
                    *waiting = Waiting::Text(std::mem::take(&mut directive.text));
                }
                Waiting::Directive(_) => break,
                Waiting::Text(_) => {}
            }
        }
        // What waits begins with a directive.
        let is_directive = |waiting: &Waiting| matches!(waiting, Waiting::Directive(_));
        let first = self.queue.iter().position(is_directive).unwrap_or(self.queue.len());
        for waiting in self.queue.drain(..first) {
            if let Waiting::Text(text) = waiting {
                self.queued_bytes -= text.len();
                shown.push_str(&text);
            }
        }
    }

    /// The candidate that is one too many is text.
    fn judge(&mut self, nth: u32, candidate: &Candidate, judge: &mut impl Judge) -> Judgement {
        if self.found.len() + candidate.calls.len() > MAX_CALLS && judge.may_be_call(candidate) {
            self.is_over_limit = true;
            return Judgement::Plain;
        }
        let judgement = judge.judge(candidate);
        if judgement != Judgement::Plain {
            self.found.extend(candidate.calls.iter().map(|_| nth));
        }
        judgement
    }

    fn text(&mut self, text: &str, shown: &mut String) {
        if self.queue.is_empty() {
            shown.push_str(text);
            return;
        }
        self.queued_bytes += text.len();
        if let Some(Waiting::Text(last)) = self.queue.last_mut() {
            last.push_str(text);
        } else {
            self.queue.push(Waiting::Text(text.to_owned()));
        }
    }

    fn overflow(&mut self, shown: &mut String) {
        for waiting in self.queue.drain(..) {
            match waiting {
                Waiting::Text(text) => shown.push_str(&text),
                Waiting::Directive(directive) => self.taken.push(directive),
            }
        }
        self.queued_bytes = 0;
    }
}
