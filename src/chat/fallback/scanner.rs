//! The text of one reply, cut into plain text and candidates while it streams.
//!
//! Every family whose form may begin at a character is followed until it cannot be that form. While one may be,
//! the text is held; what is let go is replayed through the Markdown context, so that the context has seen exactly
//! the text that went out.

use serde::{Deserialize, Serialize};

use super::broken::broken_calls;
use super::context::{Context, is_plain};
use super::decode::{Decoded, decode};
use super::families::Family;
use super::grammar::Place;
use super::machine::{Machine, Verdict};
use super::{Candidate, Forms, MAX_HELD, Piece};

/// How much of a broken candidate is quoted, in characters.
const MAX_QUOTED: usize = 200;

/// How many blanks after a candidate are looked past.
const MAX_GAP: usize = 64;

/// Finds candidates in a stream of text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scanner {
    forms: Forms,
    /// Quoted calls are candidates, too.
    everywhere: bool,
    context: Context,
    /// The forms that the held text may be.
    open: Vec<Machine>,
    /// Text of the open forms.
    held: String,
    /// The open form's text goes out as it comes: it will be no call.
    flowing: bool,
    /// Something encloses the open form for certain.
    enclosed: bool,
    /// The start of an open form whose text went out, up to [`MAX_HELD`] bytes.
    quoted: String,
    /// Candidates that wait for the next word, neighbours that stand in one sentence: when it goes on after them,
    /// they are only shown.
    pending: Vec<Pending>,
    pending_bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Pending {
    candidate: Candidate,
    /// The blanks after it.
    gap: String,
}

impl Scanner {
    /// A scanner at the start of a reply.
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

    /// A scanner that finds calls wherever they stand: quoted, shown or thought.
    pub(super) fn everywhere() -> Self {
        Self { everywhere: true, ..Self::new(Forms { unmarked: true }) }
    }

    /// Bytes held back.
    pub fn held_bytes(&self) -> usize {
        self.held.len() + self.pending_bytes
    }

    /// Takes the start of `text` that is certain to be plain; how many bytes that are. The rest is for
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

    /// Takes one character and appends what it decided to `out`.
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
            } else if !self.wait(ch, out) && !self.hold_first(ch) {
                self.let_out(ch, out);
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
                // If calls are looked for everywhere, another form may follow.
                Verdict::Flow | Verdict::Reject => retry_from = retry_from.max(machine.retry_from()),
            }
            false
        });
        if let Some((machine, end)) = whole {
            self.whole(&machine, end, Some(ch), out);
        } else if let Some(machine) = broken.filter(|_| self.open.is_empty()) {
            self.let_go(out);
            self.quote(ch);
            self.let_out(ch, out);
            self.break_off("cannot be read", &machine, false, out);
        } else if self.open.is_empty() {
            self.reject(retry_from, out);
            self.push(ch, out);
        } else if flows && !self.flowing {
            self.let_go(out);
            self.quote(ch);
            self.let_out(ch, out);
            self.flowing = true;
        } else if self.flowing {
            self.quote(ch);
            self.let_out(ch, out);
        } else {
            self.held.push(ch);
            if self.held.len() > MAX_HELD {
                self.let_go(out);
                self.flowing = true;
            } else if self.held_bytes() > MAX_HELD {
                self.settle_pending(None, out);
            }
        }
    }

    /// Ends the reply: nothing is held afterwards.
    pub fn finish(&mut self, out: &mut Vec<Piece>) {
        let mut machines = std::mem::take(&mut self.open);
        let mut broken = None;
        for machine in &mut machines {
            match machine.end() {
                Verdict::Complete(end) => {
                    self.whole(machine, end, None, out);
                    // What stood after it began another form, at most.
                    return self.finish(out);
                }
                Verdict::Broken => broken = broken.or(Some(&*machine)),
                Verdict::More | Verdict::Flow | Verdict::Reject => {}
            }
        }
        self.settle_pending(None, out);
        self.let_go(out);
        if let Some(machine) = broken {
            self.break_off("is not whole: the reply ended inside it", machine, true, out);
        }
        self.close();
        self.context.finish();
        self.take_enclosed(out);
    }

    /// Gives up what is open: what is held goes out as text.
    pub fn flush(&mut self, out: &mut Vec<Piece>) {
        for Pending { candidate, gap } in std::mem::take(&mut self.pending) {
            candidate.text.chars().chain(gap.chars()).for_each(|ch| self.let_out(ch, out));
        }
        self.pending_bytes = 0;
        self.let_go(out);
        self.close();
    }

    /// Takes a character that comes after a candidate: whether it is a blank, or what begins another candidate in the
    /// same sentence. Otherwise the candidate is decided.
    fn wait(&mut self, ch: char, out: &mut Vec<Piece>) -> bool {
        let in_sentence = self.context.sentence().is_open();
        let Some(Pending { gap, .. }) = self.pending.last_mut() else { return false };
        if gap.len() < MAX_GAP && (matches!(ch, ' ' | '\t' | '\r') || (in_sentence && ch == '\n')) {
            gap.push(ch);
            self.pending_bytes += ch.len_utf8();
            return true;
        }
        if in_sentence && self.held_bytes() < MAX_HELD && self.hold_first(ch) {
            return true;
        }
        self.settle_pending(Some(ch), out);
        false
    }

    /// Holds a character that may begin a form. Which ones, the next character says: most often, none.
    fn hold_first(&mut self, ch: char) -> bool {
        // What begins a form, and what does so at the start of a line only.
        let may_open = match ch {
            '<' | '[' | '>' => true,
            '{' => self.forms.unmarked && self.context.at_line_start(),
            '`' | '~' | 'A' | 'f' if self.context.at_line_start() => true,
            'a' if self.context.may_begin_channel(ch) => true,
            'a' | 'c' | 't' if self.context.at_message_start() => true,
            // A name without a mark.
            'a'..='z' | 'A'..='Z' | '_' => self.forms.unmarked && self.context.at_message_start(),
            _ => false,
        };
        let holds = may_open && (self.everywhere || self.context.is_free(ch));
        if holds {
            self.held.push(ch);
        }
        holds
    }

    /// Opens every form that may begin with these two characters here, of which the first is held.
    fn open_forms(&mut self, first: char, second: char) {
        let line_start = self.everywhere || self.context.at_line_start();
        let message_start = self.context.at_message_start();
        let thinking = self.context.is_thinking() && !self.everywhere;
        self.enclosed = self.context.is_enclosed();
        self.context.begin_form();
        let unmarked = self.forms.unmarked && !self.context.sentence().is_inside_json();
        for family in Family::ALL {
            let form = family.form();
            let here = match form.at {
                Place::Channel => message_start || self.context.may_begin_channel(first),
                Place::Anywhere | Place::Line | Place::Message if thinking => false,
                Place::Anywhere => true,
                Place::Line => line_start,
                Place::Message => message_start,
            };
            if here && (form.marked || unmarked) && form.may_begin(first, second) {
                let mut machine = Machine::new(*family);
                if machine.push(first) == Verdict::More && machine.push(second) == Verdict::More {
                    self.open.push(machine);
                }
            }
        }
    }

    fn let_out(&mut self, ch: char, out: &mut Vec<Piece>) {
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

    fn let_go(&mut self, out: &mut Vec<Piece>) {
        let Some(first) = self.held.chars().next() else { return };
        self.settle_pending(Some(first), out);
        self.quoted = std::mem::take(&mut self.held);
        for ch in self.quoted.clone().chars() {
            self.let_out(ch, out);
        }
    }

    /// No form: what is held is text, but for what may begin another one.
    fn reject(&mut self, retry_from: usize, out: &mut Vec<Piece>) {
        let from = if self.held.is_char_boundary(retry_from) { retry_from } else { self.held.len() };
        let rest = self.held.split_off(from.min(self.held.len()));
        self.let_go(out);
        self.close();
        rest.chars().for_each(|ch| self.push(ch, out));
    }

    /// What follows the break belongs to the form, too: its start alone may stand in any earlier message.
    fn quote(&mut self, ch: char) {
        if self.quoted.len() < MAX_HELD {
            self.quoted.push(ch);
        }
    }

    /// Reports the form that `machine` followed as one that does not parse. `truncated`: the reply ended inside it.
    fn break_off(&mut self, what: &str, machine: &Machine, truncated: bool, out: &mut Vec<Piece>) {
        let text = std::mem::take(&mut self.quoted);
        if !self.enclosed {
            self.context.call_broken();
            let excerpt: String = text.chars().take(MAX_QUOTED).collect();
            let why = format!("a call written as text {what}: {excerpt}");
            let error = format!("the call {what}");
            out.push(Piece::Broken { why, excerpt, calls: broken_calls(&text, machine, &error, truncated) });
        }
        self.close();
    }

    /// A form is whole that ends after `end` bytes, with `ch` or before it.
    fn whole(&mut self, machine: &Machine, end: usize, ch: Option<char>, out: &mut Vec<Piece>) {
        self.open.clear();
        let marked = machine.family.form().marked;
        if self.flowing {
            // Longer than may be held. One that the model marked is a call that cannot be read; one without a mark
            // may as well be data.
            if marked {
                if let Some(ch) = ch {
                    self.let_out(ch, out);
                }
                self.break_off("is longer than 64 KiB", machine, false, out);
            } else {
                self.close();
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
            Decoded::Calls(calls) => {
                // A form that takes its whole line is part of no sentence.
                let takes_line = text.ends_with('\n');
                self.pending_bytes += text.len();
                self.pending.push(Pending { candidate: Candidate { text, calls }, gap: String::new() });
                if takes_line {
                    self.settle_pending(None, out);
                }
                self.close();
            }
            Decoded::Ordinary => {
                self.settle_pending(text.chars().next(), out);
                text.chars().for_each(|ch| self.let_out(ch, out));
                self.close();
            }
            Decoded::Unreadable { why, .. } => {
                self.held = text;
                self.let_go(out);
                self.break_off(&format!("cannot be read ({why})"), machine, false, out);
            }
        }
        after.chars().for_each(|ch| self.push(ch, out));
    }

    /// Decides on the candidates that wait, now that `next` comes after them.
    fn settle_pending(&mut self, next: Option<char>, out: &mut Vec<Piece>) {
        let Some(Pending { gap, .. }) = self.pending.last() else { return };
        // On another line it is another sentence.
        let next = next.filter(|_| !gap.contains('\n'));
        let is_mention = !self.everywhere && self.context.sentence().is_mention(!gap.is_empty(), next);
        let is_enclosed = !self.everywhere && self.context.is_enclosed();
        self.pending_bytes = 0;
        for Pending { candidate, gap } in std::mem::take(&mut self.pending) {
            if is_mention {
                candidate.text.chars().for_each(|ch| self.let_out(ch, out));
                self.context.mention();
            } else {
                if candidate.text.ends_with('\n') {
                    self.context.line_taken();
                } else {
                    self.context.inline_taken();
                }
                if is_enclosed {
                    // What stands in its arguments closes nothing.
                    candidate.text.chars().for_each(|ch| push_text(ch, out));
                } else {
                    self.context.call_made();
                    out.push(Piece::Candidate(candidate));
                }
            }
            gap.chars().for_each(|ch| self.let_out(ch, out));
        }
    }

    fn close(&mut self) {
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
