//! Splits the text of one reply into plain text and candidates while it streams.
//!
//! Each form that may begin at a character is matched until it fails. Meanwhile the text is held back. Text that is
//! released passes through the context, so the context has read exactly the text that was emitted.

use serde::{Deserialize, Serialize};

use super::broken::broken_calls;
use super::context::{Allowed, Context, is_plain};
use super::decode::{DecodedForm, decode};
use super::families::Family;
use super::grammar::StartPosition;
use super::machine::{Machine, Verdict};
use super::model::{Candidate, Forms, MAX_HELD, Piece};

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
        }
    }

    /// Returns a scanner that also finds quoted calls, shown calls and calls in reasoning.
    pub(super) fn everywhere() -> Self {
        Self { everywhere: true, ..Self::new(Forms { unmarked: true }) }
    }

    /// Returns the length of the held-back text, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.held.len()
    }

    /// Reads the start of `text` that is certainly plain. Returns its length in bytes. Pass the rest to
    /// [`Scanner::push`].
    pub fn skip(&mut self, text: &str) -> usize {
        if !self.held.is_empty() || !self.open.is_empty() || !self.context.may_skip() {
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
            } else if !self.hold(ch) {
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
        self.emit_held(out);
        if let Some(machine) = broken {
            self.emit_broken("is incomplete: the reply ended inside it", machine, true, out);
        }
        self.close_forms();
    }

    /// Emits all held text as plain text.
    pub fn flush(&mut self, out: &mut Vec<Piece>) {
        self.emit_held(out);
        self.close_forms();
    }

    /// Holds a character that may begin a form. The next character selects the forms. Returns `false` for other
    /// characters.
    fn hold(&mut self, ch: char) -> bool {
        // Some characters begin a form only at the start of a line.
        let may_open = match ch {
            '<' | '[' | '>' => true,
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
                let takes_line = text.ends_with('\n');
                if self.is_allowed(machine) {
                    self.context.call_made(takes_line);
                    out.push(Piece::Candidate(Candidate { text, calls }));
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
    }
}

fn push_text(ch: char, out: &mut Vec<Piece>) {
    if let Some(Piece::Text(text)) = out.last_mut() {
        text.push(ch);
    } else {
        out.push(Piece::Text(ch.to_string()));
    }
}
