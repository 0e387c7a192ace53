//! What encloses the next character: elements, environments, quotations over paragraphs, the message of another role.
//!
//! A call is quoted by an enclosure that is open where it stands and is closed after it. An enclosure that is never closed
//! quotes what follows only if it was opened for that: its mark stands alone on its line, or right before the call.
//! Elsewhere it is a mark that the text only speaks of (`I add a <div>`).
//!
//! Calls are numbered as they come. Those that an enclosure takes when it is closed are the last ones: their numbers
//! are given again.

use std::collections::HashSet;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::families::Family;
use super::grammar::Token;
use super::marks::{Enclosure, is_name};

/// The most enclosures that may be open at once. In a text with more of them nothing is called.
const MAX_OPEN: usize = 512;

/// Elements of HTML that have no end, and the tokens with which a server begins and ends a text.
const VOID: [&str; 18] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr",
    "s", "bos", "eos", "pad", "unk",
];

/// Names of parts that are never only spoken of: code and results.
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

/// The enclosures that are open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Enclosures {
    open: Vec<Open>,
    /// How many calls were made so far, those aside that were taken back.
    calls: u32,
    /// Everything that follows is quoted.
    rest: bool,
    /// Nothing but blanks and marks since the line began.
    line_of_marks: bool,
    /// Something is open right before the next character.
    adjacent: bool,
    /// What was closed since this was last asked holds the calls from this number on.
    enclosed: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Open {
    what: Enclosure,
    holds: Holds,
    /// How many calls were made before it.
    calls: u32,
    /// How often it was opened.
    times: u32,
    /// It was opened by what began last and may be a call.
    in_form: bool,
}

/// What an enclosure holds when it is never closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Holds {
    Nothing,
    /// What follows on this line without other text between; `line`: the line began with it.
    Adjacent {
        line: bool,
    },
    /// All that follows, up to the end of what it stands in.
    Rest,
    /// All that follows.
    Everything,
}

impl Enclosures {
    pub(super) fn new() -> Self {
        Self { open: Vec::new(), calls: 0, rest: false, line_of_marks: true, adjacent: false, enclosed: None }
    }

    /// Whether a call here is quoted for certain, whatever follows.
    pub(super) fn holds_call(&self) -> bool {
        self.rest || self.open.iter().any(|open| open.holds != Holds::Nothing)
    }

    /// Whether the next character of a line matters.
    pub(super) fn is_watching(&self) -> bool {
        self.line_of_marks || self.adjacent
    }

    /// Whether nothing but blanks and marks stands before this place on its line.
    pub(super) fn is_line_of_marks(&self) -> bool {
        self.line_of_marks
    }

    /// What begins here may be a call.
    pub(super) fn begin_form(&mut self) {
        for open in &mut self.open {
            open.in_form = false;
        }
    }

    /// A call was made.
    pub(super) fn call_made(&mut self) {
        self.calls += 1;
    }

    /// What last began and might have been a call is one that cannot be read: what it opened does not enclose it.
    pub(super) fn call_broken(&mut self) {
        self.calls += 1;
        for open in self.open.iter_mut().filter(|open| open.in_form) {
            open.calls = self.calls;
        }
    }

    /// A mark opens `what`; `begins_line`: only blanks and marks stand before it.
    pub(super) fn open(&mut self, what: Enclosure, begins_line: bool) {
        let holds = match &what {
            _ if self.rest => return,
            Enclosure::Element(name) if VOID.contains(&name.as_str()) => return,
            Enclosure::Element(name) | Enclosure::Bracket(name) if SHOWN.contains(&name.as_str()) => {
                Holds::Everything
            }
            Enclosure::Element(_) => Holds::Adjacent { line: begins_line },
            Enclosure::Comment | Enclosure::CData | Enclosure::Environment(_) => Holds::Everything,
            Enclosure::Bracket(_) | Enclosure::Quotation(_) | Enclosure::Triple(_) => Holds::Nothing,
        };
        self.adjacent |= matches!(holds, Holds::Adjacent { .. });
        let open = Open { what, holds, calls: self.calls, times: 1, in_form: true };
        if holds == Holds::Nothing {
            self.add_loose(open);
        } else {
            self.add(open);
        }
    }

    /// Whether something was closed, since this was last asked, that calls stand in: from which number on.
    pub(super) fn take_enclosed(&mut self) -> Option<u32> {
        self.enclosed.take()
    }

    /// A mark closes `what`. If calls stand in it, they are quoted.
    pub(super) fn close(&mut self, what: &Enclosure) {
        // Each paragraph of a quotation may open it again; it is closed once.
        let is_quotation = matches!(what, Enclosure::Quotation(_));
        let mut all = self.open.iter();
        let is_it = |open: &Open| open.what == *what;
        let at = if is_quotation { all.position(is_it) } else { all.rposition(is_it) };
        let Some((at, open)) = at.and_then(|at| Some((at, self.open.get_mut(at)?))) else { return };
        let from = open.calls;
        if is_quotation {
            self.open.retain(|open| open.what != *what);
        } else if open.times > 1 {
            open.times -= 1;
        } else {
            self.open.remove(at);
        }
        // What was opened in it and not closed ends with it, unless the marks are crossed.
        for inner in self.open.iter_mut().skip(at) {
            if inner.holds != Holds::Everything {
                inner.holds = Holds::Nothing;
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

    /// The message of another role begins: nothing that follows is the model's own.
    pub(super) fn quote_rest(&mut self) {
        self.rest = true;
    }

    /// Takes a character that belongs to no mark.
    pub(super) fn text(&mut self, ch: char) {
        if ch.is_whitespace() {
            return;
        }
        // Bullets and numbers begin a line as well as blanks do.
        let begins_line = ch.is_ascii_digit() || matches!(ch, '-' | '*' | '+' | '.' | ')' | '#' | '>');
        if !(self.line_of_marks && begins_line) {
            self.line_of_marks = false;
        }
        self.end_adjacent(|_| Holds::Nothing);
    }

    /// A line begins.
    pub(super) fn begin_line(&mut self) {
        self.line_of_marks = true;
        self.end_adjacent(|line| if line { Holds::Rest } else { Holds::Nothing });
    }

    /// A paragraph ends: an apostrophe that looked like the start of a quotation was none.
    pub(super) fn end_paragraph(&mut self) {
        self.open.retain(|open| !matches!(open.what, Enclosure::Quotation('\'' | '’' | '›')));
    }

    /// All before was the model's thinking: what was opened there is not closed by what it says.
    pub(super) fn end_reasoning(&mut self) {
        self.rest = false;
        self.adjacent = false;
        for open in &mut self.open {
            open.holds = Holds::Nothing;
        }
    }

    fn end_adjacent(&mut self, holds: impl Fn(bool) -> Holds) {
        if !std::mem::take(&mut self.adjacent) {
            return;
        }
        let mut at = self.open.len();
        while let Some(before) = at.checked_sub(1) {
            at = before;
            let Some(open) = self.open.get_mut(at) else { break };
            let Holds::Adjacent { line } = open.holds else { continue };
            open.holds = holds(line);
            if open.holds == Holds::Nothing {
                let open = self.open.remove(at);
                self.add_loose(open);
            }
        }
    }

    /// Of marks that are only spoken of, those that are alike are counted.
    fn add_loose(&mut self, new: Open) {
        let alike = self
            .open
            .iter_mut()
            .rfind(|open| open.what == new.what && open.holds == new.holds && open.calls == new.calls);
        match alike {
            Some(open) => open.times = open.times.saturating_add(1),
            None => self.add(new),
        }
    }

    fn add(&mut self, new: Open) {
        if self.open.len() < MAX_OPEN {
            self.open.push(new);
        } else {
            self.rest = true;
        }
    }
}

/// Whether a mark belongs to a form that models mark as calls: it encloses no call of another family.
pub(super) fn is_wrapper(what: &Enclosure) -> bool {
    static NAMES: LazyLock<HashSet<(char, String)>> = LazyLock::new(wrappers);
    match what {
        Enclosure::Element(name) => NAMES.contains(&('<', name.clone())),
        Enclosure::Bracket(name) => NAMES.contains(&('[', name.clone())),
        _ => false,
    }
}

/// The names of the tags in all such forms, each with the character that begins it.
fn wrappers() -> HashSet<(char, String)> {
    let forms = Family::ALL.iter().map(|family| family.form()).filter(|form| form.marked);
    let tokens = forms.flat_map(|form| form.steps).flat_map(|step| step.next);
    let names = tokens.filter_map(|(token, _)| {
        let Token::Mark(mark) = token else { return None };
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
    fn what_is_closed_after_a_call_takes_it_back() {
        let mut enclosures = Enclosures::new();
        enclosures.call_made();
        enclosures.open(element("a"), false);
        enclosures.text('x');
        assert!(!enclosures.holds_call());
        enclosures.call_made();
        enclosures.open(element("b"), false);
        enclosures.text('x');
        enclosures.call_made();
        for (name, from) in [("b", Some(2)), ("a", Some(1)), ("a", None)] {
            enclosures.close(&element(name));
            assert_eq!(enclosures.take_enclosed(), from, "{name}");
        }
    }

    #[test]
    fn what_is_not_closed_holds_what_it_was_opened_for() {
        let mut enclosures = Enclosures::new();
        enclosures.open(element("a"), false);
        assert!(enclosures.holds_call(), "right before the call");
        enclosures.begin_line();
        assert!(!enclosures.holds_call());
        enclosures.open(element("a"), true);
        enclosures.begin_line();
        assert!(enclosures.holds_call(), "alone on its line");
        enclosures.open(element("p"), true);
        enclosures.begin_line();
        enclosures.close(&element("a"));
        assert!(!enclosures.holds_call(), "ended with the element around it");
    }

    #[test]
    fn the_marks_of_families_enclose_nothing() {
        for name in ["tool_call", "function_calls", "toolcall", "minimax:tool_call", "function"] {
            assert!(is_wrapper(&element(name)), "{name}");
        }
        for name in ["tool_call_example", "example", "json", "call"] {
            assert!(!is_wrapper(&element(name)), "{name}");
        }
        assert!(is_wrapper(&Enclosure::Bracket(String::from("tool_request"))));
    }

    #[test]
    fn many_of_a_kind_take_no_room() {
        let mut enclosures = Enclosures::new();
        for _ in 0..100_000 {
            enclosures.open(element("string"), false);
            enclosures.text('x');
        }
        assert!(!enclosures.holds_call());
        assert_eq!(enclosures.open.len(), 1);
        for n in 0..1_000 {
            enclosures.open(element(&format!("t{n}")), false);
            enclosures.text('x');
        }
        assert!(enclosures.holds_call());
    }
}
