//! Splits the text of one reply into plain text and candidates while it streams.
//!
//! Each form that may begin at a character is matched until it fails. Meanwhile the text is held back. Text that is
//! released passes through the Markdown context, so the context has read exactly the text that was emitted.

use serde::{Deserialize, Serialize};

use super::broken::broken_calls;
use super::context::{Context, is_plain};
use super::decode::{DecodedForm, decode};
use super::families::Family;
use super::grammar::StartPosition;
use super::machine::{Machine, Verdict};
use super::model::{Candidate, Forms, MAX_HELD, Piece};

/// Maximum length of the excerpt of a malformed candidate, in characters.
const MAX_QUOTED: usize = 200;

/// Maximum length of the blanks after a candidate that are skipped, in bytes.
const MAX_GAP: usize = 64;

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
    /// The open form is enclosed.
    enclosed: bool,
    /// The start of an open form whose text was emitted, up to [`MAX_HELD`] bytes.
    quoted: String,
    /// Adjacent candidates in one sentence, until the next word is read: if the sentence goes on, they are only shown.
    pending: Vec<Pending>,
    pending_bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Pending {
    candidate: Candidate,
    /// The blanks after the candidate.
    gap: String,
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
            enclosed: false,
            quoted: String::new(),
            pending: Vec::new(),
            pending_bytes: 0,
        }
    }

    /// Returns a scanner that also finds quoted calls, shown calls and calls in reasoning.
    pub(super) fn everywhere() -> Self {
        Self { everywhere: true, ..Self::new(Forms { unmarked: true }) }
    }

    /// Returns the length of the held-back text, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.held.len() + self.pending_bytes
    }

    /// Reads the start of `text` that is certainly plain. Returns its length in bytes. Pass the rest to
    /// [`Scanner::push`].
    pub fn skip(&mut self, text: &str) -> usize {
        if !self.held.is_empty()
            || !self.open.is_empty()
            || !self.pending.is_empty()
            || !self.context.may_skip()
        {
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
        if self.open.is_empty() {
            if let Some(first) = self.held.chars().next() {
                self.open_forms(first, ch);
                if self.open.is_empty() {
                    self.reject(self.held.len(), out);
                    self.push(ch, out);
                } else {
                    self.held.push(ch);
                }
            } else if !self.extend_pending(ch, out) && !self.hold(ch) {
                self.emit(ch, out);
            }
            return;
        }
        let mut retry_from = 0;
        let mut broken = None;
        let mut flows = true;
        let mut whole = None;
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
                Verdict::Flow | Verdict::Reject => retry_from = retry_from.max(machine.retry_from()),
            }
            false
        });
        if let Some((machine, end)) = whole {
            self.complete(&machine, end, Some(ch), out);
        } else if let Some(machine) = broken.filter(|_| self.open.is_empty()) {
            self.emit_held(out);
            self.keep(ch);
            self.emit(ch, out);
            self.emit_broken("is malformed", &machine, false, out);
        } else if self.open.is_empty() {
            self.reject(retry_from, out);
            self.push(ch, out);
        } else if flows && !self.flowing {
            self.emit_held(out);
            self.keep(ch);
            self.emit(ch, out);
            self.flowing = true;
        } else if self.flowing {
            self.keep(ch);
            self.emit(ch, out);
        } else {
            self.held.push(ch);
            if self.held.len() > MAX_HELD {
                self.emit_held(out);
                self.flowing = true;
            } else if self.held_bytes() > MAX_HELD {
                self.resolve_pending(None, out);
            }
        }
    }

    /// Ends the reply. No text is held afterwards.
    pub fn finish(&mut self, out: &mut Vec<Piece>) {
        let mut machines = std::mem::take(&mut self.open);
        let mut broken = None;
        for machine in &mut machines {
            match machine.end() {
                Verdict::Complete(end) => {
                    self.complete(machine, end, None, out);
                    // The text after it may have begun another form.
                    return self.finish(out);
                }
                Verdict::Broken => broken = broken.or(Some(&*machine)),
                Verdict::More | Verdict::Flow | Verdict::Reject => {}
            }
        }
        self.resolve_pending(None, out);
        self.emit_held(out);
        if let Some(machine) = broken {
            self.emit_broken("is incomplete: the reply ended inside it", machine, true, out);
        }
        self.close_forms();
        self.context.finish();
        self.take_enclosed(out);
    }

    /// Emits all held text as plain text.
    pub fn flush(&mut self, out: &mut Vec<Piece>) {
        for Pending { candidate, gap } in std::mem::take(&mut self.pending) {
            candidate.text.chars().chain(gap.chars()).for_each(|ch| self.emit(ch, out));
        }
        self.pending_bytes = 0;
        self.emit_held(out);
        self.close_forms();
    }

    /// Reads a character after a pending candidate. Returns `true` if it is a blank or may begin another candidate in
    /// the same sentence. Otherwise resolves the candidate.
    fn extend_pending(&mut self, ch: char, out: &mut Vec<Piece>) -> bool {
        let in_sentence = self.context.sentence().is_open();
        let Some(Pending { gap, .. }) = self.pending.last_mut() else { return false };
        if gap.len() < MAX_GAP && (matches!(ch, ' ' | '\t' | '\r') || (in_sentence && ch == '\n')) {
            gap.push(ch);
            self.pending_bytes += ch.len_utf8();
            return true;
        }
        if in_sentence && self.held_bytes() < MAX_HELD && self.hold(ch) {
            return true;
        }
        self.resolve_pending(Some(ch), out);
        false
    }

    /// Holds a character that may begin a form. The next character selects the forms. Returns `false` for other
    /// characters.
    fn hold(&mut self, ch: char) -> bool {
        // Some characters begin a form only at the start of a line.
        let may_open = match ch {
            '<' | '[' | '>' => true,
            '{' => self.forms.unmarked && self.context.at_line_start(),
            '`' | '~' | 'A' | 'f' if self.context.at_line_start() => true,
            'a' if self.context.may_begin_channel(ch) => true,
            'a' | 'c' | 't' if self.context.at_message_start() => true,
            // A name without marks.
            'a'..='z' | 'A'..='Z' | '_' => self.forms.unmarked && self.context.at_message_start(),
            _ => false,
        };
        let holds = may_open && (self.everywhere || self.context.allows_call(ch));
        if holds {
            self.held.push(ch);
        }
        holds
    }

    /// Opens the forms that may begin here with these two characters. The first character is held back.
    fn open_forms(&mut self, first: char, second: char) {
        let line_start = self.everywhere || self.context.at_line_start();
        let message_start = self.context.at_message_start();
        let thinking = self.context.is_reasoning() && !self.everywhere;
        self.enclosed = self.context.is_enclosed();
        self.context.begin_form();
        let unmarked = self.forms.unmarked && !self.context.sentence().is_inside_json();
        for family in Family::ALL {
            let form = family.form();
            let here = match form.start {
                StartPosition::Channel => message_start || self.context.may_begin_channel(first),
                StartPosition::Anywhere | StartPosition::Line | StartPosition::Message if thinking => false,
                StartPosition::Anywhere => true,
                StartPosition::Line => line_start,
                StartPosition::Message => message_start,
            };
            if here && (form.marked || unmarked) && form.may_begin(first, second) {
                let mut machine = Machine::new(*family);
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
        }
        self.take_enclosed(out);
    }

    fn take_enclosed(&mut self, out: &mut Vec<Piece>) {
        if let Some(from) = self.context.take_enclosed() {
            out.push(Piece::Enclosed { from });
        }
    }

    fn emit_held(&mut self, out: &mut Vec<Piece>) {
        let Some(first) = self.held.chars().next() else { return };
        self.resolve_pending(Some(first), out);
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
        if !self.enclosed {
            self.context.call_broken();
            let excerpt: String = text.chars().take(MAX_QUOTED).collect();
            let why = format!("a call written as text {what}: {excerpt}");
            let error = format!("the call {what}");
            out.push(Piece::Broken { why, excerpt, calls: broken_calls(&text, machine, &error, truncated) });
        }
        self.close_forms();
    }

    /// Handles a complete form of `end` bytes, which ends with or before `ch`.
    fn complete(&mut self, machine: &Machine, end: usize, ch: Option<char>, out: &mut Vec<Piece>) {
        self.open.clear();
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
                // A form that includes its line break is not part of a sentence.
                let takes_line = text.ends_with('\n');
                self.pending_bytes += text.len();
                self.pending.push(Pending { candidate: Candidate { text, calls }, gap: String::new() });
                if takes_line {
                    self.resolve_pending(None, out);
                }
                self.close_forms();
            }
            DecodedForm::Ordinary => {
                self.resolve_pending(text.chars().next(), out);
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

    /// Decides whether the pending candidates are calls, given the next character.
    fn resolve_pending(&mut self, next: Option<char>, out: &mut Vec<Piece>) {
        let Some(Pending { gap, .. }) = self.pending.last() else { return };
        // A different line is a different sentence.
        let next = next.filter(|_| !gap.contains('\n'));
        let is_mention = !self.everywhere && self.context.sentence().is_mention(!gap.is_empty(), next);
        let is_enclosed = !self.everywhere && self.context.is_enclosed();
        self.pending_bytes = 0;
        for Pending { candidate, gap } in std::mem::take(&mut self.pending) {
            if is_mention {
                candidate.text.chars().for_each(|ch| self.emit(ch, out));
                self.context.mention();
            } else {
                if candidate.text.ends_with('\n') {
                    self.context.line_removed();
                } else {
                    self.context.inline_removed();
                }
                if is_enclosed {
                    // Marks in its arguments close nothing.
                    candidate.text.chars().for_each(|ch| push_text(ch, out));
                } else {
                    self.context.call_made();
                    out.push(Piece::Candidate(candidate));
                }
            }
            gap.chars().for_each(|ch| self.emit(ch, out));
        }
    }

    fn close_forms(&mut self) {
        self.open.clear();
        self.flowing = false;
        self.quoted.clear();
    }
}

fn push_text(ch: char, out: &mut Vec<Piece>) {
    if let Some(Piece::Text(text)) = out.last_mut() {
        text.push(ch);
    } else {
        out.push(Piece::Text(ch.to_string()));
    }
}
