//! Splits the text of one reply into plain text and candidates while it streams.
//!
//! Each form that may begin at a character is matched until it fails. Meanwhile the text is held back. Text that is
//! released passes through the position, so the position has read exactly the text that was emitted.
//!
//! If the reply ends with text that begins like a call and that no form matches, it is reported as malformed
//! (`suspect`). Closing marks directly after a call belong to it.

use serde::{Deserialize, Serialize};

use super::broken::broken_calls;
use super::decode::{DecodedForm, decode};
use super::families::Family;
use super::forms::Forms;
use super::grammar::StartPosition;
use super::machine::{Machine, Verdict};
use super::model::{Candidate, MAX_HELD, Piece};
use super::position::{Leftover, Place, Position, is_plain, leftover};
use super::suspect::{MAX_MARK, begins_with_marker, is_of_name};

/// Maximum length of the excerpt of a malformed candidate, in characters.
const MAX_QUOTED: usize = 200;

/// Finds candidates in a stream of text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scanner {
    /// Whether to search for all unmarked forms.
    all_unmarked: bool,
    /// Whether to report calls in reasoning, too.
    everywhere: bool,
    position: Position,
    /// The forms that match the held text.
    open: Vec<Machine>,
    /// The text of the open forms.
    held: String,
    /// The open form is not a call, so its text is emitted at once.
    flowing: bool,
    /// The place where the open forms begin.
    place: Place,
    /// The start of an open form whose text was emitted, up to [`MAX_HELD`] bytes.
    quoted: String,
    /// The emitted text that may begin with a call in an unknown form.
    suspect: Option<Suspect>,
    /// The start of the text that may begin another form, if no form matches: where the last form ended.
    retry_from: usize,
    /// The held text after a call. `None` elsewhere.
    after_call: Option<String>,
}

/// Text that may begin with a call in an unknown form.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Suspect {
    /// The text, up to [`MAX_HELD`] bytes.
    text: String,
    /// The text begins with a marker that is named after calls.
    is_marker: bool,
}

impl Scanner {
    /// Returns a scanner at the start of a reply.
    pub fn new(forms: Forms) -> Self {
        Self {
            all_unmarked: forms.all_unmarked,
            everywhere: false,
            position: Position::new(),
            open: Vec::new(),
            held: String::new(),
            flowing: false,
            place: Place::default(),
            quoted: String::new(),
            suspect: None,
            retry_from: 0,
            after_call: None,
        }
    }

    /// Returns a scanner that also finds calls in reasoning and in other calls.
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
        let is_open = !self.held.is_empty() || !self.open.is_empty() || self.after_call.is_some();
        if is_open || !self.position.may_skip() {
            return 0;
        }
        let length = text.bytes().position(|byte| !is_plain(byte)).unwrap_or(text.len());
        if length > 0 {
            let run = text.get(..length).unwrap_or_default();
            self.position.skip(run);
            self.keep_suspect(run);
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
        } else if !self.open.is_empty() {
            self.push_open(ch, out);
        } else if let Some(first) = self.held.chars().next() {
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
        if let Some((machine, end)) = whole {
            self.complete(&machine, end, Some(ch), out);
        } else if let Some(machine) = broken.filter(|_| self.open.is_empty()) {
            self.show(ch, out);
            self.emit_broken("is malformed", &machine, false, out);
        } else if self.open.is_empty() {
            // The next mark may begin another form. It may be a part of the form that failed.
            let inner = self.held.char_indices().skip(1).find(|(_, ch)| matches!(ch, '<' | '['));
            let mark = inner.map_or(self.held.len(), |(at, _)| at);
            self.reject(if self.everywhere { self.retry_from } else { self.retry_from.min(mark) }, out);
            self.push(ch, out);
        } else if self.flowing || flows {
            self.show(ch, out);
            self.flowing = true;
        } else {
            self.held.push(ch);
            if self.held.len() > MAX_HELD {
                self.emit_held(out);
                self.flowing = true;
            }
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
        self.emit_held(out);
        if let Some(machine) = broken {
            self.emit_broken("is incomplete: the reply ended inside it", machine, true, out);
        } else {
            // A name at the end of a reply that is cut may go on.
            let is_whole = |text: &str| is_finished || !text.ends_with(is_of_name);
            let suspect = self.suspect.take().filter(|suspect| is_whole(&suspect.text));
            out.extend(suspect.map(|suspect| Piece::Suspect(suspect.text)));
        }
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
            '`' | '~' => self.position.begins_line() && !self.position.is_in_code(),
            '{' | 'A' | 'f' if self.position.begins_line() => true,
            'a' if self.position.may_begin_channel(ch) => true,
            'a' | 'c' | 't' if self.position.at_message_start() => true,
            // A name without marks.
            'a'..='z' | 'A'..='Z' | '_' => self.all_unmarked && self.position.at_message_start(),
            _ => false,
        };
        let holds = may_open && (self.everywhere || self.position.reads_forms(ch));
        if holds {
            self.held.push(ch);
        }
        holds
    }

    /// Opens the forms that may begin here with these two characters. The first character is held back.
    fn open_forms(&mut self, first: char, second: char) {
        let line_start = self.everywhere || self.position.begins_line();
        let message_start = self.position.at_message_start();
        let thinking = self.position.is_reasoning() && !self.everywhere;
        self.place = self.position.place();
        for family in Family::ALL {
            let form = family.form();
            let here = match form.start {
                StartPosition::Channel => message_start || self.position.may_begin_channel(first),
                StartPosition::Token | StartPosition::Line | StartPosition::Message if thinking => false,
                // In other positions, a marked form is only shown, and marks in its arguments have no meaning.
                StartPosition::Token => true,
                StartPosition::Line => form.marked || line_start,
                StartPosition::Message => message_start,
            };
            let is_searched = form.marked || self.all_unmarked || family.is_json();
            if here && is_searched && form.may_begin(first, second) {
                let mut machine = Machine::new(*family, !self.everywhere);
                if machine.push(first) == Verdict::More && machine.push(second) == Verdict::More {
                    self.open.push(machine);
                }
            }
        }
    }

    fn emit(&mut self, ch: char, out: &mut Vec<Piece>) {
        if self.suspect.is_none() && matches!(ch, '<' | '[') && !self.position.is_reasoning() {
            self.suspect = self.position.place().takes(StartPosition::Token).then(Suspect::default);
        }
        self.keep_suspect(ch.encode_utf8(&mut [0; 4]));
        self.position.track(ch);
        push_text(ch, out);
        if self.position.take_reasoning_ended() {
            out.push(Piece::ReasoningEnded);
            // The form was a part of the reasoning.
            self.place = Place::InLine;
            self.open.clear();
            self.suspect = None;
        }
    }

    /// Adds text after a character that may begin a call in an unknown form, as long as it may.
    fn keep_suspect(&mut self, text: &str) {
        let Some(suspect) = &mut self.suspect else { return };
        if suspect.text.len() < MAX_HELD {
            suspect.text.push_str(text);
        }
        if !suspect.is_marker && text.contains(['>', ']', '\n', '{']) {
            suspect.is_marker = begins_with_marker(&suspect.text);
            self.suspect.take_if(|suspect| !suspect.is_marker);
        } else if !suspect.is_marker && suspect.text.len() > MAX_MARK {
            self.suspect = None;
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
        self.suspect = None;
        if self.place.takes(machine.family.form().start) {
            let excerpt: String = text.chars().take(MAX_QUOTED).collect();
            let why = format!("a call written as text {what}: {excerpt}");
            let error = format!("the call {what}");
            let mut calls = broken_calls(&text, machine, &error, truncated);
            // The form identifies the call.
            for call in &mut calls {
                call.bare = false;
            }
            out.push(Piece::Broken { why, excerpt, calls, form: machine.family });
        }
        self.close_forms();
    }

    /// Handles a complete form of `end` bytes, which ends with or before `ch`.
    fn complete(&mut self, machine: &Machine, end: usize, ch: Option<char>, out: &mut Vec<Piece>) {
        self.open.clear();
        let form = machine.family;
        let marked = form.form().marked;
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
                let candidate = Candidate { text, calls, form, place: self.place };
                if candidate.is_in_place() {
                    self.position.call_made();
                    self.after_call = Some(String::new());
                    self.suspect = None;
                } else {
                    self.position.form_shown(candidate.text.ends_with('\n'));
                    self.keep_suspect(&candidate.text);
                }
                out.push(Piece::Candidate(candidate));
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

    fn close_forms(&mut self) {
        self.open.clear();
        self.flowing = false;
        self.quoted.clear();
        self.retry_from = 0;
    }
}

fn push_text(ch: char, out: &mut Vec<Piece>) {
    if let Some(Piece::Text(text)) = out.last_mut() {
        text.push(ch);
    } else {
        out.push(Piece::Text(ch.to_string()));
    }
}
