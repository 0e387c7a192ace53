//! Tracks what encloses the current position: elements, environments, quotations of several paragraphs, another role's
//! message.
//!
//! An enclosure quotes a call when it is opened before and closed after the call. An enclosure that is never closed
//! quotes what follows only if its opening mark is alone on its line or directly before the call. Any other opening
//! mark is only mentioned (`I add a <div>`).
//!
//! Calls are numbered in order. A closing mark quotes all calls since its opening mark. Their numbers are reused.

use std::collections::HashSet;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::marks::{Enclosure, is_name};
use crate::fallback::families::Family;
use crate::fallback::grammar::Token;

/// Maximum number of open enclosures. Beyond it, everything that follows is quoted.
const MAX_OPEN: usize = 512;

/// Void HTML elements, and special tokens that a server may leave at the start or end of a text. They enclose nothing.
const VOID: [&str; 18] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr",
    "s", "bos", "eos", "pad", "unk",
];

/// HTML elements whose closing tag is optional. Without it, they quote nothing.
const OPTIONAL_END: [&str; 8] = ["p", "li", "dt", "dd", "tr", "td", "th", "option"];

/// Names of elements that contain code or results. Their opening mark quotes what follows, unless other text both
/// precedes and follows the mark on its line.
const SHOWN: [&str; 8] = [
    "pre",
    "example",
    "tool_response",
    "tool_result",
    "function_results",
    "tool_results",
    "system_prompt",
    "available_tools",
];

/// The open enclosures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Enclosures {
    open: Vec<Open>,
    /// The number of calls so far, without quoted calls.
    calls: u32,
    /// Everything that follows is quoted.
    rest: bool,
    /// Only blanks, list markers and marks since the start of the line.
    line_of_marks: bool,
    /// Some open enclosure is [`QuotedText::Adjacent`].
    adjacent: bool,
    /// The first call that a closed enclosure quotes, until [`Enclosures::take_enclosed`].
    enclosed: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Open {
    what: Enclosure,
    /// Its mark is written with character references.
    escaped: bool,
    holds: QuotedText,
    /// The number of calls before it.
    calls: u32,
    /// The number of equal opening marks that this entry stands for.
    times: u32,
    /// Opened inside the form that began last, which may be a call.
    in_form: bool,
}

/// The text that an enclosure quotes even if it is never closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum QuotedText {
    Nothing,
    /// What follows on this line without other text in between. `line`: if the line ends first, everything up to the
    /// end of the surrounding enclosure.
    Adjacent {
        line: bool,
    },
    /// Everything up to the end of the surrounding enclosure.
    Rest,
    /// Everything.
    Everything,
}

impl Enclosures {
    pub(super) fn new() -> Self {
        Self { open: Vec::new(), calls: 0, rest: false, line_of_marks: true, adjacent: false, enclosed: None }
    }

    /// Whether a call here is quoted, regardless of what follows.
    pub(super) fn holds_call(&self) -> bool {
        self.rest || self.open.iter().any(|open| open.holds != QuotedText::Nothing)
    }

    /// Whether the next character may change the state. If not, a run of plain text can be skipped.
    pub(super) fn is_watching(&self) -> bool {
        self.line_of_marks || self.adjacent
    }

    /// Whether only blanks, list markers and marks precede this position on its line.
    pub(super) fn is_line_of_marks(&self) -> bool {
        self.line_of_marks
    }

    /// Begins a form that may be a call.
    pub(super) fn begin_form(&mut self) {
        for open in &mut self.open {
            open.in_form = false;
        }
    }

    /// Counts a call.
    pub(super) fn call_made(&mut self) {
        self.calls += 1;
    }

    /// Counts the current form as a malformed call. Marks inside it do not enclose it.
    pub(super) fn call_broken(&mut self) {
        self.calls += 1;
        for open in self.open.iter_mut().filter(|open| open.in_form) {
            open.calls = self.calls;
        }
    }

    /// Opens `what`. `begins_line`: only blanks, list markers and marks precede its mark on the line. `escaped`: its
    /// mark is written with character references.
    pub(super) fn open(&mut self, what: Enclosure, begins_line: bool, escaped: bool) {
        let holds = match &what {
            _ if self.rest => return,
            Enclosure::Element(name) if VOID.contains(&name.as_str()) => return,
            Enclosure::Element(name) | Enclosure::Bracket(name) if SHOWN.contains(&name.as_str()) => {
                if begins_line {
                    QuotedText::Everything
                } else {
                    QuotedText::Adjacent { line: true }
                }
            }
            Enclosure::Element(name) if OPTIONAL_END.contains(&name.as_str()) => QuotedText::Nothing,
            Enclosure::Element(_) => QuotedText::Adjacent { line: begins_line },
            Enclosure::Comment | Enclosure::CData | Enclosure::Environment(_) => QuotedText::Everything,
            Enclosure::Bracket(_) | Enclosure::Quotation(_) | Enclosure::Triple(_) => QuotedText::Nothing,
        };
        self.adjacent |= matches!(holds, QuotedText::Adjacent { .. });
        self.add(Open { what, escaped, holds, calls: self.calls, times: 1, in_form: true });
    }

    /// Returns the first call that is quoted by the enclosures closed since the previous use of this function, if any.
    pub(super) fn take_enclosed(&mut self) -> Option<u32> {
        self.enclosed.take()
    }

    /// Closes `what`. The calls inside it are quoted. `escaped`: its mark is written with character references, so it
    /// does not close what a plain mark opened.
    pub(super) fn close(&mut self, what: &Enclosure, escaped: bool) {
        // Each paragraph of a quotation may repeat the opening mark; one mark closes all.
        let is_quotation = matches!(what, Enclosure::Quotation(_));
        let is_it = |open: &Open| open.what == *what && (open.escaped || !escaped);
        let is_same = |open: &Open| open.what == *what && open.escaped == escaped;
        let at = if is_quotation {
            self.open.iter().position(is_it)
        } else {
            let same = self.open.iter().rposition(is_same);
            same.or_else(|| self.open.iter().rposition(is_it))
        };
        let Some((at, open)) = at.and_then(|at| Some((at, self.open.get_mut(at)?))) else { return };
        let from = open.calls;
        if is_quotation {
            self.open.retain(|open| open.what != *what);
        } else if open.times > 1 {
            open.times -= 1;
        } else {
            self.open.remove(at);
        }
        // Unclosed enclosures inside it no longer quote what follows, except `QuotedText::Everything`.
        for inner in self.open.iter_mut().skip(at) {
            if inner.holds != QuotedText::Everything {
                inner.holds = QuotedText::Nothing;
            }
        }
        if from < self.calls {
            self.calls = from;
            self.enclosed = Some(self.enclosed.map_or(from, |before| before.min(from)));
            for open in &mut self.open {
                open.calls = open.calls.min(from);
            }
        }
    }

    /// Whether `what` is open.
    pub(super) fn is_open(&self, what: &Enclosure) -> bool {
        self.open.iter().any(|open| open.what == *what)
    }

    /// Another role's message begins. Everything that follows is quoted.
    pub(super) fn quote_rest(&mut self) {
        self.rest = true;
    }

    /// Reads a character outside marks.
    pub(super) fn text(&mut self, ch: char) {
        if ch.is_whitespace() {
            return;
        }
        // List markers and similar characters count as the start of the line.
        let begins_line = ch.is_ascii_digit() || matches!(ch, '-' | '*' | '+' | '.' | ')' | '#' | '>');
        if !(self.line_of_marks && begins_line) {
            self.line_of_marks = false;
        }
        self.end_adjacent(|_| QuotedText::Nothing);
    }

    /// Begins a line.
    pub(super) fn begin_line(&mut self) {
        self.line_of_marks = true;
        self.end_adjacent(|line| if line { QuotedText::Rest } else { QuotedText::Nothing });
    }

    /// Ends a paragraph. Drops quotations in straight single marks: they were probably apostrophes.
    pub(super) fn end_paragraph(&mut self) {
        self.open.retain(|open| open.what != Enclosure::Quotation('\''));
    }

    /// Everything so far was the model's reasoning. The enclosures opened there quote a later call only if they are
    /// closed after it.
    pub(super) fn end_reasoning(&mut self) {
        self.rest = false;
        self.adjacent = false;
        for open in &mut self.open {
            open.holds = QuotedText::Nothing;
        }
    }

    /// Ends the adjacency of all enclosures. `holds` returns what each of them quotes from here on, given its `line`.
    fn end_adjacent(&mut self, holds: impl Fn(bool) -> QuotedText) {
        if !std::mem::take(&mut self.adjacent) {
            return;
        }
        let end = |open: &mut Open| {
            let QuotedText::Adjacent { line } = open.holds else { return false };
            open.holds = holds(line);
            open.holds == QuotedText::Nothing
        };
        let mentioned: Vec<Open> = self.open.extract_if(.., end).collect();
        for open in mentioned {
            self.add(open);
        }
    }

    /// Adds an enclosure. Equal enclosures that quote nothing share one entry.
    fn add(&mut self, new: Open) {
        let equal = self.open.iter_mut().rfind(|open| {
            new.holds == QuotedText::Nothing
                && open.holds == new.holds
                && open.calls == new.calls
                && open.what == new.what
                && open.escaped == new.escaped
        });
        if let Some(open) = equal {
            open.times = open.times.saturating_add(1);
        } else if self.open.len() < MAX_OPEN {
            self.open.push(new);
        } else {
            self.rest = true;
        }
    }
}

/// Whether the tag is part of a family's marked form. Such tags do not enclose another family's calls.
pub(super) fn is_wrapper(what: &Enclosure) -> bool {
    static NAMES: LazyLock<HashSet<(char, String)>> = LazyLock::new(wrappers);
    match what {
        Enclosure::Element(name) => NAMES.contains(&('<', name.clone())),
        Enclosure::Bracket(name) => NAMES.contains(&('[', name.clone())),
        _ => false,
    }
}

/// Returns the tag names in all marked forms, each with its opening character.
fn wrappers() -> HashSet<(char, String)> {
    let forms = Family::ALL.iter().map(|family| family.form()).filter(|form| form.marked);
    let tokens = forms.flat_map(|form| form.steps).flat_map(|step| step.next);
    let names = tokens.filter_map(|(token, _)| {
        let Token::Literal(mark) = token else { return None };
        let mut chars = mark.chars();
        let first = chars.next().filter(|first| matches!(first, '<' | '['))?;
        let name: String = chars.take_while(|ch| is_name(*ch)).collect();
        (!name.is_empty()).then(|| (first, name.to_ascii_lowercase()))
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(name: &str) -> Enclosure {
        Enclosure::Element(name.to_owned())
    }

    #[test]
    fn an_enclosure_closed_after_a_call_quotes_it() {
        let mut enclosures = Enclosures::new();
        enclosures.call_made();
        enclosures.open(element("a"), false, false);
        enclosures.text('x');
        assert!(!enclosures.holds_call());
        enclosures.call_made();
        enclosures.open(element("b"), false, false);
        enclosures.text('x');
        enclosures.call_made();
        for (name, from) in [("b", Some(2)), ("a", Some(1)), ("a", None)] {
            enclosures.close(&element(name), false);
            assert_eq!(enclosures.take_enclosed(), from, "{name}");
        }
    }

    #[test]
    fn an_unclosed_enclosure_quotes_by_its_position() {
        let mut enclosures = Enclosures::new();
        enclosures.open(element("a"), false, false);
        assert!(enclosures.holds_call(), "directly before the call");
        enclosures.begin_line();
        assert!(!enclosures.holds_call());
        enclosures.open(element("a"), true, false);
        enclosures.begin_line();
        assert!(enclosures.holds_call(), "alone on its line");
        enclosures.open(element("b"), true, false);
        enclosures.begin_line();
        enclosures.close(&element("a"), false);
        assert!(!enclosures.holds_call(), "closed with the surrounding element");
    }

    #[test]
    fn an_escaped_mark_closes_only_an_escaped_one() {
        for (opened, closed, is_quoted) in
            [(false, false, true), (false, true, false), (true, false, true), (true, true, true)]
        {
            let mut enclosures = Enclosures::new();
            enclosures.open(element("a"), false, opened);
            enclosures.text('x');
            enclosures.call_made();
            enclosures.close(&element("a"), closed);
            assert_eq!(enclosures.take_enclosed().is_some(), is_quoted, "{opened} {closed}");
        }
    }

    #[test]
    fn code_elements_quote_unless_they_are_mentioned() {
        for (begins_line, rest, holds) in
            [(true, "x", true), (false, "x", false), (false, "\n", true), (false, "", true)]
        {
            let mut enclosures = Enclosures::new();
            enclosures.open(element("pre"), begins_line, false);
            match rest {
                "\n" => enclosures.begin_line(),
                _ => rest.chars().for_each(|ch| enclosures.text(ch)),
            }
            assert_eq!(enclosures.holds_call(), holds, "{begins_line} {rest:?}");
        }
        let mut enclosures = Enclosures::new();
        enclosures.open(element("li"), true, false);
        assert!(!enclosures.holds_call());
    }

    #[test]
    fn tags_of_families_are_wrappers() {
        for name in ["tool_call", "function_calls", "toolcall", "minimax:tool_call", "function"] {
            assert!(is_wrapper(&element(name)), "{name}");
        }
        for name in ["tool_call_example", "example", "json", "call"] {
            assert!(!is_wrapper(&element(name)), "{name}");
        }
        assert!(is_wrapper(&Enclosure::Bracket(String::from("tool_request"))));
    }

    #[test]
    fn equal_enclosures_share_one_entry() {
        let mut enclosures = Enclosures::new();
        for _ in 0..100_000 {
            enclosures.open(element("string"), false, false);
            enclosures.text('x');
        }
        assert!(!enclosures.holds_call());
        assert_eq!(enclosures.open.len(), 1);
        for n in 0..1_000 {
            enclosures.open(element(&format!("t{n}")), false, false);
            enclosures.text('x');
        }
        assert!(enclosures.holds_call());
    }
}
