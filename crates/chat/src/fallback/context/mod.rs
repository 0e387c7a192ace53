//! Decides from the text before a call whether the call is made or only mentioned: in code, in a quotation, in an
//! element, in the model's reasoning, in another role's message, or as an example in a sentence.
//!
//! `position` reads every character and combines the results of the other files.

mod channels;
mod enclosures;
mod marks;
mod position;
mod quotations;
mod sentence;
mod tags;
#[cfg(test)]
mod tests;

pub(super) use position::{Context, is_plain};
