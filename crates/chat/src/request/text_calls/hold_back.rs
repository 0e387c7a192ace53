//! Holds back text that may be a call until the decision is certain.
//!
//! A complete directive waits for the end of its reply: a structured call in the reply or a late `</think>` can turn it
//! into text again. The text after it waits too, to keep the order. When more than
//! [`MAX_HELD`] bytes wait, the directive is removed from the text and the text after it is emitted. If the directive
//! turns out to be text after all, it is emitted late.
//!
//! Each candidate may require a search of the whole conversation, so no text is read after [`MAX_CALLS`] calls.

use serde::{Deserialize, Serialize};

use super::classify::{CandidateKind, TextClassifier};
use super::receive_times::ReceiveTimes;
use crate::MAX_CALLS;
use crate::fallback::{Candidate, Forms, MAX_HELD, Piece, Scanner, TextCall};

/// A malformed candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fault {
    /// The error message.
    pub(crate) why: String,
    /// The name of the malformed call, if it can be read.
    pub(crate) name: Option<String>,
    /// The first characters of the candidate.
    pub(crate) excerpt: String,
    /// Number of calls in the directives before it.
    pub(crate) calls_before: usize,
}

/// A recognised directive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Directive {
    /// The time when it was received completely.
    at_ms: u64,
    pub(crate) text: String,
    pub(crate) calls: Vec<TextCall>,
}

/// Reads the text of one reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HoldBack {
    /// `None` if text is not searched for calls.
    scanner: Option<Scanner>,
    held: Held,
}

/// The held text of one reply, and the calls in it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Held {
    /// The waiting parts, in order. The first is a directive.
    queue: Vec<Waiting>,
    queued_bytes: usize,
    /// Directives that left the queue because too much text waited after them.
    taken: Vec<Directive>,
    /// The malformed candidates.
    faults: Vec<Fault>,
    quoted: u32,
    /// Number of calls found so far, made or not.
    found: usize,
    /// Whether the last candidate exceeded [`MAX_CALLS`].
    is_over_limit: bool,
    times: ReceiveTimes,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Waiting {
    Text(String),
    Directive(Directive),
}

impl HoldBack {
    /// Creates the state for one reply. With `None`, text is not searched for calls.
    pub(crate) fn new(forms: Option<Forms>) -> Self {
        Self { scanner: forms.map(Scanner::new), held: Held::default() }
    }

    /// Adds text that was received at `at_ms`. Returns the text to show and the number of bytes read: all, unless there
    /// are too many calls.
    pub(crate) fn push(
        &mut self,
        text: &str,
        at_ms: u64,
        classifier: &mut TextClassifier<'_>,
    ) -> (String, usize) {
        let Self { scanner: Some(scanner), held } = self else { return (text.to_owned(), text.len()) };
        held.times.receive(text.len(), at_ms);
        let mut taken = text.len();
        let mut shown = String::new();
        let mut pieces = Vec::new();
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            if held.queue.is_empty() {
                let plain = scanner.skip(rest);
                if plain > 0 {
                    held.process(&mut pieces, classifier, &mut shown);
                    shown.push_str(rest.get(..plain).unwrap_or_default());
                    held.times.process(plain);
                    at += plain;
                    continue;
                }
            }
            let Some(ch) = rest.chars().next() else { break };
            at += ch.len_utf8();
            scanner.push(ch, &mut pieces);
            // Plain text accumulates while the queue is empty. Everything else is processed by character, so that the
            // limit does not depend on how the text was split.
            if !held.queue.is_empty() || !matches!(pieces.as_slice(), [] | [Piece::Text(_)]) {
                held.process(&mut pieces, classifier, &mut shown);
            }
            if !held.queue.is_empty() && held.queued_bytes + scanner.held_bytes() > MAX_HELD {
                held.overflow(&mut shown);
            }
            if held.is_over_limit() {
                taken = at;
                break;
            }
        }
        held.process(&mut pieces, classifier, &mut shown);
        (shown, taken)
    }

    /// Returns whether the reply has more than [`MAX_CALLS`] calls.
    pub(crate) fn is_over_limit(&self) -> bool {
        self.held.is_over_limit()
    }

    /// Ends the reply and returns the text to show. Directives still wait for [`HoldBack::release`]. `is_finished`: the
    /// model finished the reply.
    pub(crate) fn finish(&mut self, is_finished: bool, classifier: &mut TextClassifier<'_>) -> String {
        let mut shown = String::new();
        if let Some(mut scanner) = self.scanner.take() {
            let mut pieces = Vec::new();
            scanner.finish(is_finished, &mut pieces);
            self.held.process(&mut pieces, classifier, &mut shown);
        }
        shown
    }

    /// Ends the current text and starts a separate one. Returns the text to show. Does not enable the search for calls
    /// if it is disabled.
    pub(crate) fn begin_apart(&mut self, forms: Forms, classifier: &mut TextClassifier<'_>) -> String {
        let reads = self.scanner.is_some();
        let shown = self.finish(false, classifier);
        self.scanner = reads.then(|| Scanner::new(forms));
        shown
    }

    /// Releases everything that waits and returns it, without the directives that `leaves` accepts.
    pub(crate) fn release(&mut self, leaves: impl Fn(&Directive) -> bool) -> String {
        let mut shown = self.held.release_queue(leaves);
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

    /// Returns the calls of all directives, in order, each with the time when it was received completely.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (u64, &TextCall)> {
        let directives = self.held.directives();
        directives.flat_map(|directive| directive.calls.iter().map(|call| (directive.at_ms, call)))
    }

    /// Returns whether non-blank text waits.
    pub(crate) fn has_text(&self) -> bool {
        let is_text = |waiting: &Waiting| matches!(waiting, Waiting::Text(text) if !text.trim().is_empty());
        self.held.queue.iter().any(is_text)
    }

    /// Returns the malformed candidates.
    pub(crate) fn faults(&self) -> &[Fault] {
        &self.held.faults
    }

    /// Returns and resets the number of candidates that quote an earlier message.
    pub(crate) fn take_quoted(&mut self) -> u32 {
        std::mem::take(&mut self.held.quoted)
    }
}

impl Held {
    /// Returns the directives so far, in order.
    fn directives(&self) -> impl Iterator<Item = &Directive> {
        let queued = self.queue.iter().filter_map(|waiting| match waiting {
            Waiting::Text(_) => None,
            Waiting::Directive(directive) => Some(directive),
        });
        self.taken.iter().chain(queued)
    }

    fn is_over_limit(&self) -> bool {
        self.is_over_limit || self.found > MAX_CALLS
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

    /// Handles the pieces that the scanner emitted.
    fn process(&mut self, pieces: &mut Vec<Piece>, classifier: &mut TextClassifier<'_>, shown: &mut String) {
        for piece in pieces.drain(..) {
            match piece {
                Piece::Text(text) => {
                    self.times.process(text.len());
                    self.text(&text, shown);
                }
                Piece::Candidate(candidate) => {
                    self.times.process(candidate.text.len());
                    self.candidate(candidate, classifier, shown);
                }
                Piece::Leftover(text) => {
                    self.times.process(text.len());
                    self.leftover(text, shown);
                }
                Piece::Broken { calls, excerpt, .. }
                    if calls.iter().any(|call| call.bare && !classifier.is_named(call, &excerpt)) => {}
                Piece::Broken { why, excerpt, calls } => {
                    if classifier.is_quoted(&excerpt) {
                        self.quoted += 1;
                        self.found += 1;
                    } else {
                        self.broken(why, Candidate { text: excerpt, calls, form: None }, classifier);
                    }
                }
                Piece::ReasoningEnded => {
                    self.faults.clear();
                    shown.push_str(&self.release_queue(|_| false));
                }
            }
        }
    }

    fn candidate(&mut self, candidate: Candidate, classifier: &mut TextClassifier<'_>, shown: &mut String) {
        match self.classify(&candidate, classifier) {
            CandidateKind::Directive => {
                let at_ms = self.times.last_processed_ms();
                self.queued_bytes += candidate.text.len();
                let Candidate { text, calls, form: _ } = candidate;
                return self.queue.push(Waiting::Directive(Directive { at_ms, text, calls }));
            }
            CandidateKind::Plain => {}
            CandidateKind::Quoted => self.quoted += 1,
        }
        self.text(&candidate.text, shown);
    }

    /// Processes a malformed candidate, whose text is already shown. It fails the reply unless its last call is an exit
    /// call. Exit calls are always recorded.
    fn broken(&mut self, why: String, mut candidate: Candidate, classifier: &mut TextClassifier<'_>) {
        if !candidate.calls.last().is_some_and(|broken| classifier.is_exit(&broken.name)) {
            self.found += 1;
            let name = candidate.calls.last().map(|call| call.name.clone());
            let calls_before = self.directives().map(|directive| directive.calls.len()).sum();
            self.faults.push(Fault { why, name, excerpt: candidate.text.clone(), calls_before });
            candidate.calls.retain(|call| classifier.is_exit(&call.name));
        }
        if candidate.calls.is_empty() {
            return;
        }
        match self.classify(&candidate, classifier) {
            CandidateKind::Directive => {
                let at_ms = self.times.last_processed_ms();
                let (text, calls) = (String::new(), candidate.calls);
                self.queue.push(Waiting::Directive(Directive { at_ms, text, calls }));
            }
            CandidateKind::Plain => {}
            CandidateKind::Quoted => self.quoted += 1,
        }
    }

    /// Classifies a candidate. A candidate that exceeds the limit is text.
    fn classify(&mut self, candidate: &Candidate, classifier: &mut TextClassifier<'_>) -> CandidateKind {
        if self.found + candidate.calls.len() > MAX_CALLS && classifier.may_be_call(candidate) {
            self.is_over_limit = true;
            return CandidateKind::Plain;
        }
        let kind = classifier.classify(candidate);
        if kind != CandidateKind::Plain {
            self.found += candidate.calls.len();
        }
        kind
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

    /// Processes marks after a candidate. They belong to its directive.
    fn leftover(&mut self, marks: String, shown: &mut String) {
        match self.queue.last_mut() {
            Some(Waiting::Directive(directive)) => {
                self.queued_bytes += marks.len();
                directive.text.push_str(&marks);
            }
            Some(Waiting::Text(_)) | None => self.text(&marks, shown),
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
