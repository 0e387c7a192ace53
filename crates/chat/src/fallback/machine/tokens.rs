//! Reads one token, other than a literal.

use super::{Machine, Reading, Scan, TokenResult, Verdict};
use crate::fallback::element::ElementStep;
use crate::fallback::grammar::{Token, advance};
use crate::fallback::json::{JsonScan, JsonStep};
use crate::fallback::python::CallStep;

/// Maximum length of a name or key, in bytes.
const MAX_WORD: usize = 256;

/// Minimum length of the fence of a code block.
const MIN_FENCE: usize = 3;

impl Machine {
    /// Reads one more character of token `index` of the current step.
    pub(super) fn token(&mut self, ch: char, index: usize) -> TokenResult {
        let after = self.at + ch.len_utf8();
        let Reading::Token { scan, .. } = &mut self.reading else {
            return TokenResult::Verdict(Verdict::Reject);
        };
        let verdict = match scan {
            Scan::Word => return self.word(ch, index),
            Scan::Object(_) => return self.object(ch, index),
            Scan::Raw { .. } => return self.raw(ch, index),
            Scan::Element(_) => return self.element_text(ch, index),
            Scan::Fence { .. } => return self.fence(ch, index),
            Scan::Braces(braces) => {
                if braces.push(ch) {
                    self.capture(index, after);
                    return self.go_after(index, after);
                }
                Verdict::More
            }
            Scan::Call(call) => match call.push(ch) {
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
            Scan::FenceEnd if ch == self.fence.0 => Verdict::More,
            Scan::FenceEnd if self.at - self.start < self.fence.1 => self.mismatch(ch),
            Scan::FenceEnd => return self.go_before(index),
        };
        TokenResult::Verdict(verdict)
    }

    fn word(&mut self, ch: char, index: usize) -> TokenResult {
        let length = self.at + ch.len_utf8() - self.start;
        if is_word(ch) {
            let verdict = if length <= MAX_WORD { Verdict::More } else { self.mismatch(ch) };
            return TokenResult::Verdict(verdict);
        }
        // A single letter counts as a word of prose in unmarked forms.
        if !self.family.form().marked && self.at - self.start < 2 {
            return TokenResult::Verdict(Verdict::Reject);
        }
        self.capture(index, self.at);
        self.go_before(index)
    }

    fn object(&mut self, ch: char, index: usize) -> TokenResult {
        let marked = self.family.form().marked;
        let is_whole_call = self.is_whole_call(index);
        let Reading::Token { scan: Scan::Object(object), .. } = &mut self.reading else {
            return TokenResult::Verdict(Verdict::Reject);
        };
        // The prompts of some models show a call with two braces.
        if ch == '{' && is_whole_call && self.at == self.start + 1 {
            *object = JsonScan::object(marked);
            self.start = self.at;
            self.doubled = true;
            return TokenResult::Verdict(Verdict::More);
        }
        let verdict = match object.push(ch, is_whole_call && !marked) {
            JsonStep::More if !is_whole_call && !marked && object.is_call() => Verdict::Reject,
            JsonStep::More => Verdict::More,
            JsonStep::Other => Verdict::Reject,
            JsonStep::End => {
                let is_call = is_whole_call && object.is_call();
                if is_whole_call && !marked && !is_call {
                    return TokenResult::Verdict(Verdict::Reject);
                }
                self.is_certain |= is_call;
                let after = self.at + ch.len_utf8();
                self.capture(index, after);
                return self.go_after(index, after);
            }
            // A mark follows, so only the last brace is missing.
            JsonStep::Bad if marked && object.lacks_brace() && matches!(ch, '<' | '[') => {
                self.capture(index, self.at);
                return self.go_before(index);
            }
            JsonStep::Bad => {
                self.is_certain |= is_whole_call && object.is_call();
                self.malformed(ch)
            }
        };
        TokenResult::Verdict(verdict)
    }

    fn raw(&mut self, ch: char, index: usize) -> TokenResult {
        let literal = match self.edge(index) {
            Some((Token::Raw(_, literal, follow), _)) => Some((literal, follow)),
            _ => None,
        };
        let (Some((literal, follow)), Reading::Token { scan: Scan::Raw { matched, from, closed }, .. }) =
            (literal, &mut self.reading)
        else {
            return TokenResult::Verdict(Verdict::Reject);
        };
        let end = *from;
        match (*closed, follow) {
            (true, Some(follow)) if ch == *follow => {
                self.capture(index, end);
                return self.go_before(index);
            }
            (true, Some(_)) if ch.is_ascii_whitespace() => return TokenResult::Verdict(Verdict::More),
            // The closing literal is part of the text.
            (true, _) => (*closed, *matched) = (false, 0),
            (false, _) => {}
        }
        *matched = advance(literal, *matched, ch);
        if *matched == 1 {
            *from = self.at;
        }
        if literal.chars().nth(*matched).is_some() {
            return TokenResult::Verdict(Verdict::More);
        }
        if follow.is_some() {
            *closed = true;
            return TokenResult::Verdict(Verdict::More);
        }
        let end = *from;
        self.capture(index, end);
        self.go_after(index, self.at + ch.len_utf8())
    }

    fn element_text(&mut self, ch: char, index: usize) -> TokenResult {
        let (Some(element), Reading::Token { scan: Scan::Element(scan), .. }) =
            (self.element(index), &mut self.reading)
        else {
            return TokenResult::Verdict(Verdict::Reject);
        };
        let verdict = match scan.push(element, ch, self.at) {
            ElementStep::More => Verdict::More,
            ElementStep::Ended(end) => match self.end_element(index, end) {
                Verdict::More => return TokenResult::Reread,
                verdict => verdict,
            },
            ElementStep::Ends(end) => self.end_element(index, end),
            // The tag leads to the same step again.
            ElementStep::Reopened => {
                let mut edges = self.family.form().steps.iter().flat_map(|step| step.next);
                let opens = |token: &Token| matches!(token, Token::Literal(mark) if *mark == element.open);
                match edges.find(|(token, _)| opens(token)) {
                    Some((_, step)) => self.go_to(*step, self.at + ch.len_utf8()),
                    None => self.malformed(ch),
                }
            }
        };
        TokenResult::Verdict(verdict)
    }

    fn fence(&mut self, ch: char, index: usize) -> TokenResult {
        let infos = match self.edge(index) {
            Some((Token::Fence(infos), _)) => Some(infos),
            _ => None,
        };
        let (Some(infos), Reading::Token { scan: Scan::Fence { info }, .. }) = (infos, &mut self.reading)
        else {
            return TokenResult::Verdict(Verdict::Reject);
        };
        let verdict = match (info, ch) {
            (None, _) if ch == self.fence.0 => {
                self.fence.1 += 1;
                Verdict::More
            }
            (None, _) if self.fence.1 < MIN_FENCE => Verdict::Reject,
            (info @ None, _) => {
                *info = Some(String::new());
                return TokenResult::Reread;
            }
            (Some(info), '\n') if infos.contains(&info.as_str()) => {
                return self.go_after(index, self.at + ch.len_utf8());
            }
            (Some(_), ' ' | '\t' | '\r') => Verdict::More,
            (Some(info), _) => {
                info.push(ch.to_ascii_lowercase());
                let fits = infos.iter().any(|allowed| allowed.starts_with(info.as_str()));
                if fits { Verdict::More } else { Verdict::Reject }
            }
        };
        TokenResult::Verdict(verdict)
    }
}

/// Whether `ch` may be in the name of a tool or an argument, with the prefixes and suffixes that servers add.
fn is_word(ch: char) -> bool {
    ch.is_alphanumeric() || matches!(ch, '_' | '.' | '-' | ':' | '/' | '$')
}
