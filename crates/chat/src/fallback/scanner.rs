//! Splits the text of one reply into plain text and candidates while it streams.
//!
//! Each form that may begin at a character is matched until it fails. Meanwhile the text is held back. Text that is
//! released passes through the context, so the context has read exactly the text that was emitted.
//!
//! If no form matches, text that begins like a call is reported as malformed (`suspect`). Closing marks directly after a
//! call belong to it (`leftover`).

use serde::{Deserialize, Serialize};

use super::broken::{broken_calls, unread_call};
use super::context::{Allowed, Context, is_plain};
use super::decode::{DecodedForm, decode};
use super::families::Family;
use super::grammar::{StartPosition, looks_like};
use super::leftover::{Leftover, leftover};
use super::machine::{Machine, Verdict};
use super::model::{Candidate, Forms, MAX_HELD, Piece};
use super::suspect::{Suspect, Suspicion};

/// Maximum length of the excerpt of a malformed candidate, in characters.
const MAX_QUOTED: usize = 200;

/// Finds candidates in a stream of text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scanner {
    forms: Forms,
    /// Whether to report quoted calls as candidates, too.
    everywhere: bool,
    context: Context,
    /// The forms that match the held text.
    open: Vec<Machine>,
    /// The text of the open forms.
    held: String,
    /// The open form is not a call, so its text is emitted at once.
    flowing: bool,
    /// Which of the open forms are calls. The others are only shown.
    allowed: Allowed,
    /// The start of an open form whose text was emitted, up to [`MAX_HELD`] bytes.
    quoted: String,
    /// Recognises a call that no form can read, until it is certain.
    suspect: Option<Suspect>,
    /// The text begins like a call.
    suspicion: Option<Suspicion>,
    /// The start of the text that may begin another form, if no form matches: where the last form ended, or a marker.
    retry_from: usize,
    marker: Option<usize>,
    /// The held text after a call. `None` elsewhere.
    after_call: Option<String>,
}

impl Scanner {
    /// Returns a scanner at the start of a reply.
    pub fn new(forms: Forms) -> Self {
        Self {
            forms,
            everywhere: false,
            context: Context::new(),
            open: Vec::new(),
            held: String::new(),
            flowing: false,
            allowed: Allowed::default(),
            quoted: String::new(),
            suspect: None,
            suspicion: None,
            retry_from: 0,
            marker: None,
            after_call: None,
        }
    }

    /// Returns a scanner that also finds quoted calls, shown calls and calls in reasoning.
    pub(super) fn everywhere(forms: Forms) -> Self {
        Self { everywhere: true, ..Self::new(forms) }
    }

    /// Returns the length of the held-back text, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.held.len() + self.after_call.as_ref().map_or(0, String::len)
    }

    /// Reads the start of `text` that is certainly plain. Returns its length in bytes. Pass the rest to
    /// [`Scanner::push`].
    pub fn skip(&mut self, text: &str) -> usize {
        let is_open = !self.held.is_empty() || self.is_open() || self.after_call.is_some();
        if is_open || !self.context.may_skip() {
            return 0;
        }
        let length = text.bytes().position(|byte| !is_plain(byte)).unwrap_or(text.len());
        if length > 0 {
            self.context.skip(text.get(..length).unwrap_or_default());
        }
        length
    }

    /// Reads one character. Appends the pieces that become certain to `out`.
    pub fn push(&mut self, ch: char, out: &mut Vec<Piece>) {
        if let Some(mut text) = self.after_call.take() {
            text.push(ch);
            match leftover(&text) {
                Leftover::Open => self.after_call = Some(text),
                Leftover::Mark => {
                    out.push(Piece::Leftover(text));
                    self.after_call = Some(String::new());
                }
                Leftover::None => text.chars().for_each(|ch| self.push(ch, out)),
            }
        } else if self.is_open() {
            self.push_open(ch, out);
        } else if let Some(first) = self.held.chars().next() {
            self.open_forms(first, ch);
            if self.is_open() {
                self.held.push(ch);
            } else {
                self.reject(self.held.len(), out);
                self.push(ch, out);
            }
        } else if !self.hold(ch) {
            self.emit(ch, out);
        }
    }

    /// Whether a form or a suspect is open.
    fn is_open(&self) -> bool {
        !self.open.is_empty() || self.suspect.is_some() || self.suspicion.is_some()
    }

    /// Reads one character of the open forms.
    fn push_open(&mut self, ch: char, out: &mut Vec<Piece>) {
        let mut broken = None;
        let mut flows = true;
        let mut whole = None;
        let mut retry_from = None;
        self.open.retain_mut(|machine| {
            if whole.is_some() {
                return false;
            }
            match machine.push(ch) {
                Verdict::More => {
                    flows = false;
                    return true;
                }
                Verdict::Flow if !self.everywhere => return true,
                Verdict::Complete(end) => whole = Some((machine.clone(), end)),
                Verdict::Broken => broken = Some(machine.clone()),
                // A scanner for all calls searches for other forms in the rest of a malformed one.
                Verdict::Flow | Verdict::Reject => retry_from = retry_from.max(Some(machine.retry_from())),
            }
            false
        });
        self.retry_from = retry_from.unwrap_or(self.retry_from);
        self.suspect(ch);
        if let Some((machine, end)) = whole {
            self.complete(&machine, end, Some(ch), out);
        } else if let Some(machine) = broken.filter(|_| self.open.is_empty()) {
            self.show(ch, out);
            self.emit_broken("is malformed", &machine, false, out);
        } else if self.open.is_empty() && self.suspect.is_none() && self.suspicion.is_none() {
            self.reject(self.marker.unwrap_or(self.retry_from), out);
            self.push(ch, out);
        } else if self.flowing || (flows && self.suspect.is_none()) {
            self.show(ch, out);
            self.flowing = self.is_open();
            if self.open.is_empty() && self.quoted.chars().count() >= MAX_QUOTED {
                self.emit_suspicion(false, out);
            }
        } else {
            self.held.push(ch);
            if self.held.len() > MAX_HELD {
                self.emit_held(out);
                self.flowing = true;
            }
        }
    }

    /// Passes a character to the open suspect.
    fn suspect(&mut self, ch: char) {
        // Dots stand for omitted text: the form is being explained.
        let last = self.held.chars().next_back().or_else(|| self.quoted.chars().next_back());
        if matches!(ch, '.' | '…') && last.is_some_and(|last| "{[(>".contains(last)) {
            self.suspicion = None;
        }
        let Some(suspect) = &mut self.suspect else { return };
        let suspicion = suspect.push(ch);
        let is_allowed = if suspect.is_token { self.allowed.token } else { self.allowed.line };
        match suspicion {
            Suspicion::Open => {}
            Suspicion::Marker(at) => {
                self.marker = Some(at);
                self.suspect = None;
            }
            Suspicion::Call(_) | Suspicion::Name(_) if is_allowed => {
                self.suspicion = Some(suspicion);
                self.suspect = None;
            }
            Suspicion::Call(_) | Suspicion::Name(_) | Suspicion::None => self.suspect = None,
        }
    }

    /// Emits the held text and a character of an open form.
    fn show(&mut self, ch: char, out: &mut Vec<Piece>) {
        self.emit_held(out);
        self.keep(ch);
        self.emit(ch, out);
    }

    /// Ends the reply. No text is held afterwards. `is_finished`: the model finished the reply. If not, a call without
    /// its closing marks may lack arguments.
    pub fn finish(&mut self, is_finished: bool, out: &mut Vec<Piece>) {
        self.emit_after_call(out);
        let mut machines = std::mem::take(&mut self.open);
        let mut broken = None;
        let mut is_cut = false;
        for machine in &mut machines {
            match machine.end(is_finished) {
                Verdict::Complete(end) => {
                    self.complete(machine, end, None, out);
                    // The text after it may have begun another form.
                    return self.finish(is_finished, out);
                }
                // One that is malformed only at its end was matched longer.
                Verdict::Broken if broken.is_none_or(Machine::is_malformed) => broken = Some(&*machine),
                Verdict::Broken => {}
                Verdict::More | Verdict::Flow | Verdict::Reject => is_cut |= !machine.is_malformed(),
            }
        }
        // The text may still be the start of another form.
        let broken = broken.filter(|machine| !(is_cut && machine.is_malformed()));
        if let Some(suspect) = self.suspect.take() {
            let is_allowed = if suspect.is_token { self.allowed.token } else { self.allowed.line };
            self.suspicion = Some(suspect.end()).filter(|found| is_allowed && *found != Suspicion::None);
        }
        if let Some(marker) = self.marker.take().filter(|_| broken.is_none() && !self.flowing) {
            self.reject(marker, out);
            return self.finish(is_finished, out);
        }
        self.emit_held(out);
        if let Some(machine) = broken {
            self.emit_broken("is incomplete: the reply ended inside it", machine, true, out);
        }
        self.emit_suspicion(true, out);
        self.close_forms();
    }

    /// Emits all held text as plain text.
    pub fn flush(&mut self, out: &mut Vec<Piece>) {
        self.emit_after_call(out);
        self.emit_held(out);
        self.close_forms();
    }

    /// Holds a character that may begin a form. The next character selects the forms. Returns `false` for other
    /// characters.
    fn hold(&mut self, ch: char) -> bool {
        // Some characters begin a form only at the start of a line.
        let may_open = match ch {
            '<' | '[' | ']' | '>' => true,
            '{' => self.forms.unmarked && self.context.begins_line(),
            '`' | '~' | 'A' | 'f' if self.context.begins_line() => true,
            'a' if self.context.may_begin_channel(ch) => true,
            'a' | 'c' | 't' if self.context.at_message_start() => true,
            // A name without marks.
            'a'..='z' | 'A'..='Z' | '_' => self.forms.unmarked && self.context.at_message_start(),
            _ => false,
        };
        let holds = may_open && (self.everywhere || self.context.reads_forms(ch));
        if holds {
            self.held.push(ch);
        }
        holds
    }

    /// Opens the forms that may begin here with these two characters. The first character is held back.
    fn open_forms(&mut self, first: char, second: char) {
        let line_start = self.everywhere || self.context.begins_line();
        let message_start = self.context.at_message_start();
        let thinking = self.context.is_reasoning() && !self.everywhere;
        self.allowed =
            if self.everywhere { Allowed { line: true, token: true } } else { self.context.allowed() };
        let unmarked = self.forms.unmarked && !self.context.is_inside_json();
        if !self.everywhere && !thinking {
            let is_token = first == '[' || looks_like('｜', second);
            let may_call = self.allowed.line || (self.allowed.token && is_token);
            self.suspect = Suspect::new(first).filter(|_| may_call);
            self.suspect(second);
            self.retry_from = first.len_utf8();
        }
        for family in Family::ALL {
            let form = family.form();
            let here = match form.start {
                StartPosition::Channel => message_start || self.context.may_begin_channel(first),
                StartPosition::Token | StartPosition::Line | StartPosition::Message if thinking => false,
                // In other positions, a marked form is only shown, and marks in its arguments have no meaning.
                StartPosition::Token => true,
                StartPosition::Line => form.marked || line_start,
                StartPosition::Message => message_start,
            };
            if here && (form.marked || unmarked) && form.may_begin(first, second) {
                let mut machine = Machine::new(*family, !self.everywhere);
                if machine.push(first) == Verdict::More && machine.push(second) == Verdict::More {
                    self.open.push(machine);
                }
            }
        }
    }

    fn emit(&mut self, ch: char, out: &mut Vec<Piece>) {
        self.context.track(ch);
        push_text(ch, out);
        if self.context.take_reasoning_ended() {
            out.push(Piece::ReasoningEnded);
            // The form was a part of the reasoning.
            self.allowed = Allowed::default();
            self.open.clear();
            self.suspicion = None;
        }
    }

    /// Emits the held text after a call.
    fn emit_after_call(&mut self, out: &mut Vec<Piece>) {
        for ch in self.after_call.take().unwrap_or_default().chars() {
            self.emit(ch, out);
        }
    }

    fn emit_held(&mut self, out: &mut Vec<Piece>) {
        if self.held.is_empty() {
            return;
        }
        self.quoted = std::mem::take(&mut self.held);
        for ch in self.quoted.clone().chars() {
            self.emit(ch, out);
        }
    }

    /// Emits the held text that is not part of a form. The rest, from `retry_from`, may begin another form.
    fn reject(&mut self, retry_from: usize, out: &mut Vec<Piece>) {
        let from = if self.held.is_char_boundary(retry_from) { retry_from } else { self.held.len() };
        let rest = self.held.split_off(from.min(self.held.len()));
        self.emit_held(out);
        self.close_forms();
        rest.chars().for_each(|ch| self.push(ch, out));
    }

    /// Stores a character of a form whose text is emitted. Finding a copy requires more than the start of the form.
    fn keep(&mut self, ch: char) {
        if self.quoted.len() < MAX_HELD {
            self.quoted.push(ch);
        }
    }

    /// Reports the form that `machine` matched as malformed. `truncated`: the reply ended inside it.
    fn emit_broken(&mut self, what: &str, machine: &Machine, truncated: bool, out: &mut Vec<Piece>) {
        let text = std::mem::take(&mut self.quoted);
        if self.is_allowed(machine) {
            let excerpt: String = text.chars().take(MAX_QUOTED).collect();
            let why = format!("a call written as text {what}: {excerpt}");
            let error = format!("the call {what}");
            let mut calls = broken_calls(&text, machine, &error, truncated);
            // The form identifies the call.
            for call in &mut calls {
                call.bare = false;
            }
            out.push(Piece::Broken { why, excerpt, calls });
        }
        self.close_forms();
    }

    /// Reports text that begins like a call as malformed.
    fn emit_suspicion(&mut self, truncated: bool, out: &mut Vec<Piece>) {
        let Some(suspicion) = self.suspicion.take() else { return };
        let text = std::mem::take(&mut self.quoted);
        let excerpt: String = text.chars().take(MAX_QUOTED).collect();
        let calls = unread_call(&text, &suspicion, truncated).into_iter().collect();
        let why = format!("a call written as text cannot be read: {excerpt}");
        out.push(Piece::Broken { why, excerpt, calls });
        self.close_forms();
    }

    /// Handles a complete form of `end` bytes, which ends with or before `ch`.
    fn complete(&mut self, machine: &Machine, end: usize, ch: Option<char>, out: &mut Vec<Piece>) {
        self.open.clear();
        self.suspect = None;
        self.suspicion = None;
        self.marker = None;
        let marked = machine.family.form().marked;
        if self.flowing {
            // The form is too long to be held back. A marked form is a malformed call; an unmarked form may be data.
            if marked {
                if let Some(ch) = ch {
                    self.emit(ch, out);
                }
                self.emit_broken("is longer than 64 KiB", machine, false, out);
            } else {
                self.close_forms();
                if let Some(ch) = ch {
                    self.push(ch, out);
                }
            }
            return;
        }
        let mut text = std::mem::take(&mut self.held);
        text.extend(ch);
        let after = text.split_off(if text.is_char_boundary(end) { end } else { text.len() });
        match decode(&text, &machine.captures, marked) {
            DecodedForm::Calls(calls) => {
                let takes_line = text.ends_with('\n');
                if self.is_allowed(machine) {
                    self.context.call_made(takes_line);
                    out.push(Piece::Candidate(Candidate { text, calls, form: Some(machine.family.name()) }));
                    self.after_call = Some(String::new());
                } else {
                    self.context.call_shown(takes_line);
                    text.chars().for_each(|ch| push_text(ch, out));
                }
                self.close_forms();
            }
            DecodedForm::Ordinary => {
                text.chars().for_each(|ch| self.emit(ch, out));
                self.close_forms();
            }
            DecodedForm::Unreadable { why, .. } => {
                self.held = text;
                self.emit_held(out);
                self.emit_broken(&format!("is malformed ({why})"), machine, false, out);
            }
        }
        after.chars().for_each(|ch| self.push(ch, out));
    }

    /// Whether the form that `machine` matches is a call in its position.
    fn is_allowed(&self, machine: &Machine) -> bool {
        match machine.family.form().start {
            StartPosition::Token => self.allowed.token,
            StartPosition::Line | StartPosition::Message => self.allowed.line,
            // The end of the reasoning that precedes it.
            StartPosition::Channel => true,
        }
    }

    fn close_forms(&mut self) {
        self.open.clear();
        self.flowing = false;
        self.quoted.clear();
        self.suspect = None;
        self.suspicion = None;
        self.retry_from = 0;
        self.marker = None;
    }
}

fn push_text(ch: char, out: &mut Vec<Piece>) {
    if let Some(Piece::Text(text)) = out.last_mut() {
        text.push(ch);
    } else {
        out.push(Piece::Text(ch.to_string()));
    }
}
