//! What a family's calls look like, as data.
//!
//! A [`Form`] is a table of [`Step`]s: what may stand next, where that leads, and what it means when something else
//! stands there or the reply ends. `machine` follows it.

use serde::{Deserialize, Serialize};

/// The step that is none: the form is whole.
pub(super) const DONE: u8 = u8::MAX;

/// One way to write calls.
#[derive(Debug)]
pub(super) struct Form {
    /// The model marks it as a call: it is always read. Other forms are read where the model was told to write so.
    pub(super) marked: bool,
    /// Where it may begin.
    pub(super) at: Place,
    /// What ends one that cannot be read; none: the place where that shows.
    pub(super) closes: &'static [&'static str],
    pub(super) steps: &'static [Step],
}

/// Where a form may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Anywhere,
    /// At the start of its line.
    Line,
    /// At the start of what the model says: of the reply, after its thinking, after a mark of harmony's.
    Message,
    /// There, or stuck to the text of a reply whose marks were taken away (`channels`).
    Channel,
}

/// A place in a form.
#[derive(Debug)]
pub(super) struct Step {
    /// Which blanks may stand before what comes next.
    pub(super) gap: Gap,
    /// What it means when none of `next` comes.
    pub(super) rest: Rest,
    /// What may come, and the step that it leads to.
    pub(super) next: &'static [(Token, u8)],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    None,
    /// Blanks of this line.
    Line,
    /// Blanks and line ends.
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// It was prose about the form.
    Prose,
    /// A call that cannot be read.
    Inside,
    /// The form was whole before this.
    Whole,
    /// Its closing mark is missing. The end of the reply stands for it, other text does not.
    Closing,
    /// The line must end here. The end of the reply stands for it; with other text it was prose.
    Line,
}

#[derive(Debug)]
pub(super) enum Token {
    /// These characters.
    Mark(&'static str),
    /// A name.
    Word(Capture),
    /// A JSON object.
    Object(Capture),
    /// `name(…)`.
    Call,
    /// Text up to this mark; with a character, only up to one that is followed by it, blanks aside.
    Raw(Capture, &'static str, Option<char>),
    /// The line that opens a code block, with one of these info strings.
    Fence(&'static [&'static str]),
    /// What closes that code block.
    FenceEnd,
}

/// What a captured text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Capture {
    /// Nothing that matters.
    Nothing,
    /// The name of a call that begins here.
    Name,
    /// The name of a call that begins here, perhaps with harmony's channel stuck to it.
    Recipient,
    /// The name of the call that began last, in place of the one it has.
    Rename,
    /// That call's arguments, a JSON object.
    Arguments,
    /// That call's arguments as Gemma writes them.
    Braces,
    /// That call's arguments, each a tag with its name.
    Tags,
    /// The name of an argument.
    Key,
    /// Whether its value is a string: `true` or `false`.
    IsString,
    /// Its value.
    Value,
    /// A whole call, as a JSON object.
    Object,
    /// A whole call, as a JSON object whose only key is its name.
    Keyed,
    /// A whole call, as Python.
    Python,
}

/// A captured text, as bytes from the start of the form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Captured {
    pub(super) what: Capture,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Form {
    /// Whether a form may begin with these two characters; cheap.
    pub(super) fn may_begin(&self, first: char, second: char) -> bool {
        self.steps.first().is_some_and(|step| {
            step.next.iter().any(|(token, _)| match token {
                Token::Mark(mark) => {
                    let mut chars = mark.chars();
                    chars.next().is_some_and(|ch| looks_like(ch, first))
                        && chars.next().is_none_or(|ch| looks_like(ch, second))
                }
                Token::Object(_) => first == '{',
                Token::Fence(_) => matches!(first, '`' | '~') && first == second,
                Token::Word(_) | Token::Call | Token::Raw(..) | Token::FenceEnd => true,
            })
        })
    }
}

/// Whether a mark's character may be written so: templates print DeepSeek's own characters in ASCII as well.
pub(super) fn looks_like(mark: char, ch: char) -> bool {
    mark == ch || (mark == '｜' && ch == '|') || (mark == '▁' && matches!(ch, '_' | ' '))
}

impl Step {
    pub(super) const fn new(gap: Gap, rest: Rest, next: &'static [(Token, u8)]) -> Self {
        Self { gap, rest, next }
    }
}
