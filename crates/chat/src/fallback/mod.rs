//! Finds the calls that a model writes into its text, while the text streams.
//!
//! In: the text of one reply, in pieces of any size. Out: [`Piece`]s in the order of the text: plain text as soon as it
//! is certain, and complete candidates. The module has no list of the tools and executes nothing.
//!
//! Invariants: the joined texts of the pieces are the input; the result does not depend on how the input is split; at
//! most [`MAX_HELD`] bytes are held back; the time is linear.
//!
//! Not a candidate (`context`): a form that does not begin where a model begins its calls, and a form in code, in a
//! quotation, in an element or another block, in the model's reasoning, in another role's message, or introduced as an
//! example. The text after a call does not matter.
//!
//! A family is one file in `families`: its forms are tables (`grammar`), which one machine matches (`machine`) and one
//! decoder decodes (`decode`). Marked forms are always read. Unmarked forms are read only if the model was instructed
//! to use them. The machine tolerates missing and repeated marks (`element`, `leftover`). Text that begins like a call
//! and that no form can read is reported (`suspect`).
//!
//! `search` finds calls in texts other than replies, quoted or not.
//!
//! Not supported: character references in values, which no template uses; forms in which each call defines its own
//! tags.

mod braces;
mod broken;
mod context;
mod decode;
mod element;
mod escapes;
mod families;
mod grammar;
mod json;
mod leftover;
mod machine;
mod model;
mod python;
mod scanner;
mod search;
mod suspect;

pub(crate) use escapes::{decode_references, unicode_escape};
pub use model::{Candidate, Forms, MAX_HELD, Piece, TextArguments, TextCall, TextMember};
pub(crate) use python::read_literal;
pub use scanner::Scanner;
pub use search::written_form;
pub(crate) use search::{calls_in, calls_only_in_reasoning};
