//! Finds the end of an argument's value in a tag, character by character.
//!
//! A value ends at its closing tag, if another tag follows. If the model left the closing tag out, the value ends at the
//! mark that can only follow it: the closing tag of an enclosing element, or the next argument. A value that contains
//! the opening tag of an enclosing element is a text about calls, and ends only at its own closing tag.

use serde::{Deserialize, Serialize};

use super::grammar::{Element, advance};

/// The positions of the value's own tags in [`Element::marks`].
const OPEN: usize = 0;
const CLOSE: usize = 1;

/// A streaming scan of a value, after its opening tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ElementScan {
    /// For each mark, the number of characters read and its start.
    marks: Vec<(usize, usize)>,
    /// The mark that ends the value if a tag or the end of the reply follows, and its end.
    pending: Option<(usize, usize)>,
    /// The start of the text.
    first: Option<usize>,
    /// Whether the value may contain enclosing elements.
    nests: bool,
    /// The value contains the opening tag of an enclosing element.
    nested: bool,
    /// The number of open arguments of such elements.
    inner: u32,
    /// The closing tag was read. It is part of the value, or misplaced.
    closed: bool,
}

/// The result of one more character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementStep {
    /// The value goes on.
    More,
    /// The value ended before the character.
    Ended(ElementEnd),
    /// The character completes the mark that ends the value.
    Ends(ElementEnd),
    /// The character completes a second opening tag.
    Reopened,
}

/// The end of a value. Positions are bytes in the text of the form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ElementEnd {
    /// The end of the value.
    pub(super) value: usize,
    /// The end of the mark after it.
    pub(super) mark: usize,
    /// The step after a mark that stands in for the closing tag.
    pub(super) otherwise: Option<u8>,
}

impl Element {
    /// Returns the value's own tags, the opening tags of enclosing elements, and the marks that stand in for the closing
    /// tag.
    fn marks(&self) -> impl Iterator<Item = &'static str> {
        let own = [self.open, self.close].into_iter();
        own.chain(self.around.iter().copied()).chain(self.otherwise.iter().map(|(mark, _)| *mark))
    }

    /// Returns the step after a mark. `None` if the mark does not stand in for the closing tag.
    fn otherwise(&self, mark: usize) -> Option<u8> {
        let at = mark.checked_sub(CLOSE + 1 + self.around.len())?;
        self.otherwise.get(at).map(|(_, step)| *step)
    }
}

impl ElementScan {
    /// `nests`: whether the value may contain enclosing elements.
    pub(super) fn new(element: &Element, nests: bool) -> Self {
        let marks = element.marks().map(|_| (0, 0)).collect();
        Self { marks, pending: None, first: None, nests, nested: false, inner: 0, closed: false }
    }

    /// Reads the character at byte `at`.
    pub(super) fn push(&mut self, element: &Element, ch: char, at: usize) -> ElementStep {
        if let Some(end) = self.end(element).filter(|_| ch == '<') {
            return ElementStep::Ended(end);
        }
        if !ch.is_whitespace() {
            self.pending = None;
            self.first.get_or_insert(at);
        }
        let mut step = ElementStep::More;
        for (mark, text) in element.marks().enumerate() {
            let Some((matched, from)) = self.marks.get_mut(mark) else { continue };
            *matched = advance(text, *matched, ch);
            if *matched == 1 {
                *from = at;
            }
            if text.chars().nth(*matched).is_none() {
                let from = *from;
                step = self.found(element, mark, from, at + ch.len_utf8()).unwrap_or(step);
            }
        }
        step
    }

    /// Handles a complete mark.
    fn found(&mut self, element: &Element, mark: usize, from: usize, end: usize) -> Option<ElementStep> {
        let is_closing = element.marks().nth(mark).is_some_and(|text| text.starts_with("</"));
        match (mark, element.otherwise(mark)) {
            (OPEN, _) if self.first == Some(from) => return Some(ElementStep::Reopened),
            (OPEN, _) => self.inner += u32::from(self.nested),
            (CLOSE, _) if self.inner > 0 => self.inner -= 1,
            (CLOSE, _) => {
                self.pending = Some((mark, end));
                self.closed = true;
            }
            (_, None) => self.nested = self.nests,
            (_, Some(_)) if self.nested || self.closed => {}
            (_, Some(_)) if is_closing => self.pending = Some((mark, end)),
            (_, otherwise @ Some(_)) => {
                return Some(ElementStep::Ends(ElementEnd { value: from, mark: end, otherwise }));
            }
        }
        None
    }

    /// Returns the end of the value, if a tag or the end of the reply follows.
    pub(super) fn end(&self, element: &Element) -> Option<ElementEnd> {
        let (mark, end) = self.pending?;
        let (_, from) = self.marks.get(mark)?;
        Some(ElementEnd { value: *from, mark: end, otherwise: element.otherwise(mark) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fallback::grammar::Capture;

    const ELEMENT: Element = Element {
        what: Capture::Value,
        open: "<parameter=",
        close: "</parameter>",
        around: &["<function="],
        otherwise: &[("\n<parameter=", 1), ("</function>", 2)],
    };

    /// Returns the value at the start of `text` and the step after a mark that stands in for the closing tag.
    fn value(text: &str) -> Option<(&str, Option<u8>)> {
        let mut scan = ElementScan::new(&ELEMENT, true);
        let mut steps = text.char_indices().map(|(at, ch)| scan.push(&ELEMENT, ch, at));
        let end = match steps.find(|step| *step != ElementStep::More) {
            Some(ElementStep::Ended(end) | ElementStep::Ends(end)) => Some(end),
            Some(ElementStep::Reopened) => return Some(("reopened", None)),
            Some(ElementStep::More) | None => scan.end(&ELEMENT),
        };
        end.map(|end| (&text[..end.value], end.otherwise))
    }

    #[test]
    fn a_value_ends_at_its_closing_tag_or_at_what_can_only_follow_it() {
        for (text, expected) in [
            ("x</parameter>", Some(("x", None))),
            ("x</parameter>\n</function>", Some(("x", None))),
            ("a</parameter> b</parameter>\n<", Some(("a</parameter> b", None))),
            ("x\n</function>\n</tool_call>", Some(("x\n", Some(2)))),
            ("x\n</function>", Some(("x\n", Some(2)))),
            ("x</parameter> and so</function>", None),
            ("x</function>, y</parameter><", Some(("x</function>, y", None))),
            ("x\n<parameter=b>", Some(("x", Some(1)))),
            ("write <parameter=b> here</parameter><", Some(("write <parameter=b> here", None))),
            (" \n<parameter=b>", Some((" ", Some(1)))),
            (" <parameter=b>", Some(("reopened", None))),
            ("x", None),
            (
                "<function=f>\n<parameter=k>\nv</parameter>\n</function>\n</parameter>\n</function>",
                Some(("<function=f>\n<parameter=k>\nv</parameter>\n</function>\n", None)),
            ),
        ] {
            assert_eq!(value(text), expected, "{text:?}");
        }
    }
}
