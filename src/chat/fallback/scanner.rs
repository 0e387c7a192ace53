//! The text of one reply, cut into plain text and candidates while it streams.
//!
//! At most one form is open at a time. While it is, its text is held; what the form lets go is replayed through
//! the Markdown context, so that the context has seen exactly the text that went out.

use serde::{Deserialize, Serialize};

use super::context::Context;
use super::json_fence::{self, FenceMachine};
use super::json_line::{self, LineMachine};
use super::tool_call_tag::{self, TagMachine};
use super::{Candidate, Decoded, Forms, MAX_HELD, Piece, Verdict};

/// How much of a broken candidate is quoted, in characters.
const MAX_QUOTED: usize = 200;

/// Finds candidates in a stream of text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scanner {
    forms: Forms,
    context: Context,
    open: Option<Machine>,
    /// Text of the open form.
    held: String,
    /// The open form's text goes out as it comes: it will be no call.
    flowing: bool,
    /// The start of an open form whose text went out.
    quoted: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Machine {
    Tag(TagMachine),
    Line(LineMachine),
    Fence(FenceMachine),
}

impl Scanner {
    /// A scanner at the start of a reply.
    pub fn new(forms: Forms) -> Self {
        Self {
            forms,
            context: Context::new(),
            open: None,
            held: String::new(),
            flowing: false,
            quoted: String::new(),
        }
    }

    /// Bytes held back.
    pub fn held_bytes(&self) -> usize {
        self.held.len()
    }

    /// Takes one character and appends what it decided to `out`.
    pub fn push(&mut self, ch: char, out: &mut Vec<Piece>) {
        let Some(machine) = &mut self.open else {
            self.push_plain(ch, out);
            return;
        };
        match machine.push(ch) {
            Verdict::More if self.flowing => self.let_out(ch, out),
            Verdict::More => {
                self.held.push(ch);
                if self.held.len() > MAX_HELD {
                    self.let_go(out);
                    self.flowing = true;
                }
            }
            Verdict::Flow => {
                self.let_go(out);
                self.let_out(ch, out);
                self.flowing = true;
            }
            Verdict::Complete if self.flowing => {
                self.let_out(ch, out);
                self.close_oversized(out);
            }
            Verdict::Complete => {
                self.held.push(ch);
                self.complete(out);
            }
            Verdict::Broken => {
                self.let_go(out);
                self.let_out(ch, out);
                self.break_off("is not JSON", out);
            }
            Verdict::Reject => {
                self.reject(out);
                self.push(ch, out);
            }
        }
    }

    /// Ends the reply: nothing is held afterwards.
    pub fn finish(&mut self, out: &mut Vec<Piece>) {
        let Some(machine) = &self.open else { return };
        match machine.end() {
            Verdict::Complete if self.flowing => self.close_oversized(out),
            Verdict::Complete => self.complete(out),
            Verdict::Broken => {
                self.let_go(out);
                self.break_off("is not whole: the reply ended inside it", out);
            }
            Verdict::More | Verdict::Flow | Verdict::Reject => self.reject(out),
        }
    }

    /// Gives up the open form, if there is one: what is held goes out as text.
    pub fn flush(&mut self, out: &mut Vec<Piece>) {
        self.reject(out);
    }

    fn push_plain(&mut self, ch: char, out: &mut Vec<Piece>) {
        let opened = match ch {
            '<' => Some(Machine::Tag(TagMachine::new())),
            '{' if self.forms.unmarked && self.context.at_line_start() => {
                Some(Machine::Line(LineMachine::new()))
            }
            '`' | '~' if self.forms.unmarked && self.context.at_line_start() => {
                Some(Machine::Fence(FenceMachine::new(ch)))
            }
            _ => None,
        };
        match opened.filter(|_| self.context.is_free(ch)) {
            Some(machine) => {
                self.open = Some(machine);
                self.held.push(ch);
            }
            None => self.let_out(ch, out),
        }
    }

    fn let_out(&mut self, ch: char, out: &mut Vec<Piece>) {
        self.context.track(ch);
        push_text(ch, out);
        if self.context.take_reasoning_ended() {
            out.push(Piece::ReasoningEnded);
        }
    }

    fn let_go(&mut self, out: &mut Vec<Piece>) {
        if self.held.is_empty() {
            return;
        }
        self.quoted = self.held.chars().take(MAX_QUOTED).collect();
        for ch in std::mem::take(&mut self.held).chars() {
            self.let_out(ch, out);
        }
    }

    fn reject(&mut self, out: &mut Vec<Piece>) {
        self.let_go(out);
        self.close();
    }

    fn break_off(&mut self, what: &str, out: &mut Vec<Piece>) {
        let excerpt = std::mem::take(&mut self.quoted);
        out.push(Piece::Broken { why: format!("a call written as text {what}: {excerpt}"), excerpt });
        self.close();
    }

    /// A form that was longer than may be held. One that the model marked is a call that cannot be read; one
    /// without a mark may as well be data.
    fn close_oversized(&mut self, out: &mut Vec<Piece>) {
        match self.open {
            Some(Machine::Tag(_)) => self.break_off("is longer than 64 KiB", out),
            Some(Machine::Line(_) | Machine::Fence(_)) | None => self.close(),
        }
    }

    fn complete(&mut self, out: &mut Vec<Piece>) {
        let decoded = match &self.open {
            Some(Machine::Tag(_)) => tool_call_tag::decode(&self.held),
            Some(Machine::Line(_)) => json_line::decode(&self.held),
            Some(Machine::Fence(_)) => json_fence::decode(&self.held),
            None => Decoded::Ordinary,
        };
        match decoded {
            Decoded::Calls(calls) if !calls.is_empty() => {
                match &self.open {
                    Some(Machine::Tag(_)) | None => self.context.inline_taken(),
                    Some(Machine::Line(_) | Machine::Fence(_)) => self.context.line_taken(),
                }
                let text = std::mem::take(&mut self.held);
                let payload = payload(&text).to_owned();
                out.push(Piece::Candidate(Candidate { text, payload, calls }));
                self.close();
            }
            Decoded::Calls(_) | Decoded::Ordinary => self.reject(out),
            Decoded::NoCall(why) | Decoded::NotJson(why) => {
                self.let_go(out);
                self.break_off(&format!("cannot be read ({why})"), out);
            }
        }
    }

    fn close(&mut self) {
        self.open = None;
        self.flowing = false;
        self.quoted.clear();
    }
}

impl Machine {
    fn push(&mut self, ch: char) -> Verdict {
        match self {
            Self::Tag(machine) => machine.push(ch),
            Self::Line(machine) => machine.push(ch),
            Self::Fence(machine) => machine.push(ch),
        }
    }

    fn end(&self) -> Verdict {
        match self {
            Self::Tag(machine) => machine.end(),
            Self::Line(machine) => machine.end(),
            Self::Fence(machine) => machine.end(),
        }
    }
}

/// From the first brace to the last.
fn payload(text: &str) -> &str {
    let start = text.find('{').unwrap_or(0);
    let end = text.rfind('}').map_or(text.len(), |end| end + 1);
    text.get(start..end).unwrap_or(text)
}

fn push_text(ch: char, out: &mut Vec<Piece>) {
    if let Some(Piece::Text(text)) = out.last_mut() {
        text.push(ch);
    } else {
        out.push(Piece::Text(ch.to_string()));
    }
}
