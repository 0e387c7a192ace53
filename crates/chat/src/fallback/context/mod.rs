//! Decides from the text before a call whether the call is made or only shown.
//!
//! | the form begins with | position |
//! |---|---|
//! | characters that people also type: `<tool_call>`, `<function=`, JSON, Python | the start of a line |
//! | a control token of a tokenizer: `<\|…\|>`, `<｜…｜>`, `[TOOL_CALLS]` | the start of a line, or after a part of a sentence that can end there |
//!
//! Before the start of a line are only blanks, list markers, calls, and marks that enclose nothing. A call is only
//! shown in an open block ([`blocks`]), in an open quotation or inline code ([`marks`]), in the model's reasoning
//! ([`tags`], [`channels`]), in the message of another role, and after a line that introduces an example ([`lines`]).
//! The text after a call does not matter.

mod blocks;
mod channels;
mod lines;
mod marks;
mod markup;
mod position;
mod tags;
#[cfg(test)]
mod tests;

pub(super) use markup::is_wrapper;
pub(super) use position::{Allowed, Context, is_plain, split_reasoning};
pub(super) use tags::{is_reasoning_mark, may_contain_reasoning};
