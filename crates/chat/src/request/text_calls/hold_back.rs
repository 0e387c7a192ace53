//! Holds back text that may be a call until the decision is certain.
//!
//! A complete directive waits for the end of its reply: text after it, a structured call in the reply or a late
//! `</think>` turns it into text again. The text after it waits too, to keep the order. When more than [`MAX_HELD`] bytes
//! wait, the reply does not end with the directive, and everything is text.
//!
//! Each candidate may require a search of the whole conversation, so no text is read after [`MAX_CALLS`] calls.

use serde::{Deserialize, Serialize};

use super::classify::{CandidateKind, TextClassifier};
use super::receive_times::ReceiveTimes;
use crate::MAX_CALLS;
use crate::fallback::{
    Candidate, Family, Forms, MAX_HELD, NotRead, Piece, Reads, Scanner, TextCall, ends_like_call, ends_reply,
    suspected_call, unreadable_call,
};

/// Maximum length of the excerpt of a call that cannot be read, in characters.
const MAX_EXCERPT: usize = 200;

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
    /// Whether no mark closes its form, so that the text after it may belong to it.
    is_open: bool,
}

impl Fault {
    /// A call that the server could not parse. `why` is its message.
    pub(crate) fn of_server(why: String) -> Self {
        Self { why, name: None, excerpt: String::new(), calls_before: 0, is_open: false }
    }
}

/// A recognised directive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Directive {
    /// The time when it was received completely.
    at_ms: u64,
    pub(crate) text: String,
    pub(crate) calls: Vec<TextCall>,
    /// The form; `None`: malformed.
    form: Option<Family>,
}

/// A whole call of a known tool that is text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct UnreadCall {
    /// The tool's name.
    name: String,
    form: Family,
    reason: NotRead,
    /// Whether unmarked forms are read.
    reads_unmarked: bool,
}

impl UnreadCall {
    /// Returns the warning for the user.
    pub(crate) fn warning(&self) -> String {
        let Self { name, form, reason, reads_unmarked } = self;
        let (form, setting) = (form.name(), if *reads_unmarked { "on" } else { "auto" });
        let reason = match reason {
            NotRead::Native => "this host returns calls itself",
            NotRead::OtherModel => "models with this name or chat template write other forms",
            NotRead::Unmarked => "the form has no marks; `:fallback on` reads it",
            NotRead::NotLast => "text follows it, and a call ends its reply",
            NotRead::InLine => "it does not begin a line",
            NotRead::InCode => "it is in a code block",
            NotRead::OtherRole => "it is in the message of another role",
            NotRead::Copy => "it quotes an earlier message",
        };
        format!(
            "a call of `{name}` written as text, in the form {form}, was not made under `:fallback {setting}`: {reason}"
        )
    }
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
    /// The forms that are read; `None`: none.
    forms: Option<Forms>,
    /// The waiting parts, in order. The first is not text.
    queue: Vec<Waiting>,
    queued_bytes: usize,
    /// The first call that is text.
    unread: Option<UnreadCall>,
    /// Whether non-blank text was shown.
    has_text: bool,
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
    /// A malformed candidate. Its text was shown, or waits before it.
    Fault(Fault),
}

impl HoldBack {
    /// Creates the state for one reply. With `None`, text is not searched for calls.
    pub(crate) fn new(forms: Option<Forms>) -> Self {
        Self { scanner: forms.map(Scanner::new), held: Held { forms, ..Held::default() } }
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
                    held.text(rest.get(..plain).unwrap_or_default(), &mut shown);
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
                held.end_calls(&mut shown);
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
            if !(self.held.is_over_limit() || self.held.ends_reply()) {
                self.held.end_calls(&mut shown);
            }
        }
        shown
    }

    /// Ends the current text and starts a separate one. Returns the text to show. Does not enable the search for calls
    /// if it is disabled.
    pub(crate) fn begin_apart(&mut self, forms: Forms, classifier: &mut TextClassifier<'_>) -> String {
        let reads = self.scanner.is_some();
        let shown = self.finish(false, classifier);
        self.scanner = reads.then(|| Scanner::new(forms));
        self.held.forms = Some(forms);
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
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let fault = |waiting: &Waiting| match waiting {
            Waiting::Fault(fault) => Some(fault.clone()),
            Waiting::Text(_) | Waiting::Directive(_) => None,
        };
        self.held.queue.iter().filter_map(fault).collect()
    }

    /// Returns and removes the first call that is text.
    pub(crate) fn take_unread(&mut self) -> Option<UnreadCall> {
        self.held.unread.take()
    }
}

impl Held {
    /// Returns the directives so far, in order.
    fn directives(&self) -> impl Iterator<Item = &Directive> {
        self.queue.iter().filter_map(|waiting| match waiting {
            Waiting::Directive(directive) => Some(directive),
            Waiting::Text(_) | Waiting::Fault(_) => None,
        })
    }

    fn is_over_limit(&self) -> bool {
        self.is_over_limit || self.found > MAX_CALLS
    }

    fn release_queue(&mut self, leaves: impl Fn(&Directive) -> bool) -> String {
        let mut shown = String::new();
        for waiting in self.queue.drain(..) {
            match waiting {
                Waiting::Text(text) => shown.push_str(&text),
                Waiting::Directive(directive) if leaves(&directive) => {}
                Waiting::Directive(directive) => shown.push_str(&directive.text),
                Waiting::Fault(_) => {}
            }
        }
        self.queued_bytes = 0;
        shown
    }

    /// Whether the reply ends with the calls so far.
    fn ends_reply(&self) -> bool {
        match self.queue.as_slice() {
            [.., Waiting::Fault(Fault { is_open: true, .. }), Waiting::Text(text)] => {
                ends_like_call(text) || ends_reply(text) || text.trim().lines().count() <= 1
            }
            [.., Waiting::Text(text)] => ends_reply(text),
            _ => true,
        }
    }

    /// Turns the calls so far into text, because the reply does not end with them.
    fn end_calls(&mut self, shown: &mut String) {
        let first =
            self.directives().next().and_then(|directive| Some((directive.form?, directive.calls.first()?)));
        if let Some((form, call)) = first {
            let name = call.name.clone();
            self.note_unread(name, form, NotRead::NotLast);
        }
        let text = self.release_queue(|_| false);
        self.text(&text, shown);
    }

    fn note_unread(&mut self, name: String, form: Family, reason: NotRead) {
        let reads_unmarked = self.forms.is_some_and(|forms| forms.reads_unmarked());
        self.unread.get_or_insert(UnreadCall { name, form, reason, reads_unmarked });
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
                Piece::Broken { why, excerpt, calls, form } => {
                    let is_read = match self.forms.map(|forms| forms.read(form)) {
                        Some(Reads::Always) => true,
                        Some(Reads::Alone) => calls.iter().all(|call| classifier.is_tool(&call.name)),
                        Some(Reads::Never(_)) | None => false,
                    };
                    if is_read {
                        self.broken(why, excerpt, calls, Some(form), classifier);
                    }
                }
                Piece::Suspect(text) => {
                    let found = suspected_call(&text, |name| classifier.is_tool(name));
                    if let Some((name, written)) =
                        found.filter(|_| self.forms.is_some_and(|it| it.reads_any()))
                    {
                        let excerpt: String = text.chars().take(MAX_EXCERPT).collect();
                        let why = format!("a call written as text cannot be read: {excerpt}");
                        let named = Some(name).filter(|name| !name.is_empty());
                        let calls = named.map(|name| unreadable_call(name, written)).into_iter().collect();
                        self.broken(why, excerpt, calls, None, classifier);
                    }
                }
                Piece::ReasoningEnded => {
                    shown.push_str(&self.release_queue(|_| false));
                    self.has_text = false;
                    self.unread = None;
                }
            }
        }
    }

    fn candidate(&mut self, candidate: Candidate, classifier: &mut TextClassifier<'_>, shown: &mut String) {
        match self.classify(&candidate, classifier) {
            CandidateKind::Directive => {
                self.queued_bytes += candidate.text.len();
                let Candidate { text, calls, form, place: _ } = candidate;
                return self.add_directive(text, calls, Some(form));
            }
            CandidateKind::Plain => {}
            CandidateKind::NotRead(reason) => {
                let name = candidate.calls.first().map(|call| call.name.clone()).unwrap_or_default();
                self.note_unread(name, candidate.form, reason);
            }
        }
        self.text(&candidate.text, shown);
    }

    fn add_directive(&mut self, text: String, calls: Vec<TextCall>, form: Option<Family>) {
        let at_ms = self.times.last_processed_ms();
        self.queue.push(Waiting::Directive(Directive { at_ms, text, calls, form }));
    }

    /// Processes a malformed candidate, whose text is already shown. It fails the reply that it ends, unless its last call
    /// is an exit call. Exit calls are always recorded.
    fn broken(
        &mut self,
        why: String,
        excerpt: String,
        mut calls: Vec<TextCall>,
        form: Option<Family>,
        classifier: &mut TextClassifier<'_>,
    ) {
        if classifier.is_quoted(&excerpt) {
            self.found += 1;
            let name = calls.last().map(|call| call.name.clone());
            if let (Some(name), Some(form)) = (name, form) {
                self.note_unread(name, form, NotRead::Copy);
            }
            return;
        }
        if !calls.last().is_some_and(|broken| classifier.tools.is_exit(&broken.name)) {
            self.found += 1;
            let name = calls.last().map(|call| call.name.clone());
            let calls_before = self.directives().map(|directive| directive.calls.len()).sum();
            let is_open = form.is_some_and(|form| !form.is_closed());
            self.queue.push(Waiting::Fault(Fault { why, name, excerpt, calls_before, is_open }));
            calls.retain(|call| classifier.tools.is_exit(&call.name));
        }
        self.found += calls.len();
        if !calls.is_empty() && self.found <= MAX_CALLS {
            self.add_directive(String::new(), calls, None);
        }
    }

    /// Classifies a candidate. A candidate that exceeds the limit is text.
    fn classify(&mut self, candidate: &Candidate, classifier: &mut TextClassifier<'_>) -> CandidateKind {
        if self.found + candidate.calls.len() > MAX_CALLS && classifier.may_be_call(candidate) {
            self.is_over_limit = true;
            return CandidateKind::Plain;
        }
        let Some(forms) = self.forms else { return CandidateKind::Plain };
        let kind = classifier.classify(candidate, forms, !self.has_text);
        if kind != CandidateKind::Plain {
            self.found += candidate.calls.len();
        }
        kind
    }

    fn text(&mut self, text: &str, shown: &mut String) {
        if self.queue.is_empty() {
            self.has_text |= !text.trim().is_empty();
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
            Some(Waiting::Text(_) | Waiting::Fault(_)) | None => self.text(&marks, shown),
        }
    }
}
