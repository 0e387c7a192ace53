//! The data that describes a family's forms.
//!
//! A [`Form`] is a table of [`Step`]s, which the macro `steps` reads from one line each: the tokens that may come next,
//! the step that each leads to, and the meaning of a mismatch or of the end of the reply. `machine` runs it.

use serde::{Deserialize, Serialize};

/// The number of the step that completes a form.
pub(super) const DONE: u8 = u8::MAX;

/// One way to write calls.
#[derive(Debug)]
pub(super) struct Form {
    /// The model marks the form as a call, so it is always read. Unmarked forms are read only if the model
    /// was instructed to use them.
    pub(super) marked: bool,
    /// The position where the form may begin.
    pub(super) start: StartPosition,
    /// The closing marks that end a malformed form. If empty, it ends where the error is.
    pub(super) closes: &'static [&'static str],
    pub(super) steps: &'static [Step],
}

/// The position where a form may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartPosition {
    /// At the start of a line, or after prose: the form begins with a control token.
    Token,
    /// At the start of a line: people also type the first characters of the form.
    Line,
    /// At the start of a message: of the reply, after the reasoning, or after a message mark of the harmony format.
    Message,
    /// At the start of a message, or inside the text of a reply without its special tokens (`channels`).
    Channel,
}

/// A state of a form.
#[derive(Debug)]
pub(super) struct Step {
    /// The blanks that may precede the next token.
    pub(super) gap: Gap,
    /// The meaning if none of `next` matches.
    pub(super) on_mismatch: OnMismatch,
    /// The possible tokens, each with the number of the step that it leads to.
    pub(super) next: &'static [(Token, u8)],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    None,
    /// Blanks inside the line.
    Line,
    /// Blanks and line breaks.
    Any,
}

/// The meaning of text that matches no token of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnMismatch {
    /// The text is prose about the form, not a call.
    Prose,
    /// The form is a malformed call.
    Malformed,
    /// The form was complete before this step.
    Complete,
    /// The closing mark is missing. The end of the reply stands in for it; other text makes the call malformed.
    Unclosed,
    /// The line must end here. The end of the reply stands in for the line break; other text makes the form prose.
    LineEnd,
}

#[derive(Debug)]
pub(super) enum Token {
    /// These characters.
    Literal(&'static str),
    /// A name.
    Word(Capture),
    /// A JSON object.
    Object(Capture),
    /// `name(…)`.
    Call,
    /// Text in braces.
    Braces(Capture),
    /// Text up to this literal. If a character is given, it must follow the literal, after optional blanks.
    Raw(Capture, &'static str, Option<char>),
    /// The text of an element, after its opening tag.
    Element(&'static Element),
    /// The line that opens a code block, with one of these info strings.
    Fence(&'static [&'static str]),
    /// The fence that closes the code block.
    FenceEnd,
}

/// The value of an argument in a tag.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) what: Capture,
    /// The opening tag up to the name.
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    /// The opening tags of the enclosing elements, up to the name.
    pub(super) around: &'static [&'static str],
    /// The marks at which the value ends if its closing tag is missing, each with the number of the step after it.
    pub(super) otherwise: &'static [(&'static str, u8)],
}

/// The meaning of a captured text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Capture {
    /// Ignored.
    Nothing,
    /// The name of a call. Begins the call.
    Name,
    /// The name of a call, possibly followed by a channel of the harmony format. Begins the call.
    Recipient,
    /// A new name for the current call.
    Rename,
    /// The current call's arguments as a JSON object.
    Arguments,
    /// The current call's arguments in Gemma's notation, with the braces.
    Braces,
    /// The current call's arguments as JSON or as options, with the braces.
    Options,
    /// The current call's arguments, each in a tag with its name.
    Tags,
    /// The name of an argument.
    Key,
    /// Whether the argument's value is a string: `true` or `false`.
    IsString,
    /// The value of an argument.
    Value,
    /// A complete call as a JSON object.
    Object,
    /// A complete call as a JSON object whose only key is the tool's name.
    Keyed,
    /// A complete call in Python syntax.
    Python,
}

/// A captured text. Positions are bytes from the start of the form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Captured {
    pub(super) what: Capture,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Form {
    /// Whether the form may begin with these two characters. A cheap check.
    pub(super) fn may_begin(&self, first: char, second: char) -> bool {
        self.steps.first().is_some_and(|step| {
            step.next.iter().any(|(token, _)| match token {
                Token::Literal(literal) => {
                    let mut chars = literal.chars();
                    chars.next().is_some_and(|ch| looks_like(ch, first))
                        && chars.next().is_none_or(|ch| looks_like(ch, second))
                }
                Token::Object(_) | Token::Braces(_) => first == '{',
                Token::Fence(_) => matches!(first, '`' | '~') && first == second,
                Token::Word(_) | Token::Call | Token::Raw(..) | Token::Element(_) | Token::FenceEnd => true,
            })
        })
    }
}

/// Whether `ch` may stand for `expected` in a literal: some templates and models write DeepSeek's special characters
/// differently.
pub(super) fn looks_like(expected: char, ch: char) -> bool {
    expected == ch
        || (expected == '｜' && matches!(ch, '|' | '‖' | '│'))
        || (expected == '▁' && matches!(ch, '_' | ' '))
}

/// Returns the number of characters of `literal` that match up to `ch`. A literal contains its first character only
/// once.
pub(super) fn advance(literal: &str, matched: usize, ch: char) -> usize {
    let fits = |at: usize| literal.chars().nth(at).is_some_and(|next| looks_like(next, ch));
    if fits(matched) {
        matched + 1
    } else if repeats_bar(literal, matched, ch) {
        matched
    } else {
        usize::from(fits(0))
    }
}

/// Whether `ch` repeats the bar at which the first `matched` characters of a literal end: `<｜｜DSML｜｜invoke`.
pub(super) fn repeats_bar(literal: &str, matched: usize, ch: char) -> bool {
    let last = matched.checked_sub(1).and_then(|last| literal.chars().nth(last));
    last == Some('｜') && looks_like('｜', ch)
}

impl Step {
    pub(super) const fn new(gap: Gap, on_mismatch: OnMismatch, next: &'static [(Token, u8)]) -> Self {
        Self { gap, on_mismatch, next }
    }
}

/// The steps of a form, one a line: its name, the blanks that may precede the next token ([`Gap`]), the meaning of a
/// mismatch ([`OnMismatch`]), and the possible tokens with the names of the steps that they lead to. `token` documents
/// the tokens.
macro_rules! steps {
    ($(
        $name:ident $gap:ident $on_mismatch:ident
        [$($($token:tt $(($($of:tt)*))?)|+ => $to:ident),* $(,)?]
    )+) => {{
        #[allow(unused_imports)]
        use crate::fallback::grammar::{Capture, DONE, Element, Gap, OnMismatch, Step, Token, mark, token};
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Number {
            $($name,)+
        }
        // Often no token leads to the first step.
        $(#[allow(dead_code)] const $name: u8 = Number::$name as u8;)+
        const STEPS: &[Step] = &[$(Step::new(
            Gap::$gap,
            OnMismatch::$on_mismatch,
            &[$($((token!($token $(($($of)*))?), $to)),+),*],
        ),)+];
        STEPS
    }};
}

/// A [`Token`]: a [`mark`], a variant with what it captures, `Raw(CAPTURE until MARK before CHAR)`, `Fence(INFO …)`, or
/// `Element(MARK until MARK inside [MARK …] or MARK => STEP, …)` for the value of an argument.
macro_rules! token {
    (Word($what:ident)) => { Token::Word(Capture::$what) };
    (Object($what:ident)) => { Token::Object(Capture::$what) };
    (Braces($what:ident)) => { Token::Braces(Capture::$what) };
    (Call) => { Token::Call };
    (FenceEnd) => { Token::FenceEnd };
    (Fence($($info:literal)+)) => { Token::Fence(&[$($info),+]) };
    (Raw($what:ident until $mark:tt)) => { Token::Raw(Capture::$what, mark!($mark), None) };
    (Raw($what:ident until $mark:tt before $follow:literal)) => {
        Token::Raw(Capture::$what, mark!($mark), Some($follow))
    };
    (Element(
        $open:tt until $close:tt inside [$($around:tt)+] or $($($otherwise:tt)|+ => $to:ident),* $(,)?
    )) => {
        Token::Element(&Element {
            what: Capture::Value,
            open: mark!($open),
            close: mark!($close),
            around: &[$(mark!($around)),+],
            otherwise: &[$($((mark!($otherwise), $to)),+),*],
        })
    };
    ($mark:tt) => { Token::Literal(mark!($mark)) };
}

/// The characters of a token: `"…"`, or `["…" "…"]` in parts.
macro_rules! mark {
    ([$($part:literal)+]) => { concat!($($part),+) };
    ($mark:literal) => { $mark };
}

pub(super) use {mark, steps, token};
