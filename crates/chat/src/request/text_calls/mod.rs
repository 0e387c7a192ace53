//! Calls that a model writes into its text: holds their text back until it is decided whether they are calls, converts
//! their arguments, and recognises calls that are copied from earlier messages.

mod canonical;
mod classify;
mod coerce;
mod comparable;
mod hold_back;
mod message_index;
mod reader;
mod receive_times;

pub(super) use classify::TextClassifier;
pub use coerce::coerce_arguments;
pub(super) use coerce::coerce_call;
pub(super) use hold_back::{Directive, Fault, HoldBack};
pub(super) use message_index::MessageIndex;
pub use reader::TextReader;
