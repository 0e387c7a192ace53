//! Finds the calls that a model writes into its text, while the text streams.
//!
//! In: the text of one reply, in pieces of any size. Out: [`Piece`]s in the order of the text: plain text as soon as it
//! is certain, and complete candidates. The module has no list of the tools and executes nothing.
//!
//! Invariants: the joined texts of the pieces are the input; the result does not depend on how the input is split; at
//! most [`MAX_HELD`] bytes are held back; the time is linear.
//!
//! A candidate is a call only by its position (`position`), and if the model writes its form (`forms`). Forms in the
//! model's reasoning are no candidates.
//!
//! A family is one file in `families`: its forms are tables (`grammar`), which one machine matches (`machine`) and one
//! decoder decodes (`decode`). The machine tolerates missing and repeated marks (`element`). Text at the end of a reply
//! that begins like a call and that no form can read is reported (`suspect`).
//!
//! `search` finds calls in texts other than replies, quoted or not.
//!
//! Not supported: character references in values, which no template uses; forms in which each call defines its own
//! tags.

mod braces;
mod broken;
mod decode;
mod element;
mod escapes;
mod families;
mod forms;
mod grammar;
mod json;
mod machine;
mod model;
mod position;
mod python;
mod scanner;
mod search;
mod suspect;

pub(crate) use broken::unreadable_call;
pub(crate) use escapes::{decode_references, unicode_escape};
pub use families::Family;
pub use forms::{FormSet, Forms};
pub(crate) use forms::{NotRead, Reads};
pub use model::{Candidate, MAX_HELD, Piece, TextArguments, TextCall, TextMember};
pub(crate) use position::ends_reply;
pub(crate) use python::read_literal;
pub use scanner::Scanner;
pub use search::written_form;
pub(crate) use search::{calls_in, calls_only_in_reasoning};
pub(crate) use suspect::{ends_like_call, suspected_call};
