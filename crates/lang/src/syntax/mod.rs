//! Emacs Lisp syntax: text to [`Tree`] to constants.
//!
//! [`parse`] never fails and runs in linear time. A [`Folder`] turns the code that specs are written in (`list`,
//! `quote`, `concat`, backquote …) into a [`Datum`] without executing it. [`lexpr`] converts from and to `lexpr`
//! values, for Rust programs that keep their specs in that form.
//!
//! The reader of the `lexpr` crate is not suitable for specs: it has no offsets, drops comments, misreads `1+`, `1e3`,
//! `"\x41"` and `#'f`, and its span API is quadratic. The crate is used for the conversion only.

mod datum;
mod escape;
mod fold;
pub mod lexpr;
mod number;
pub mod print;
mod read;
pub mod rules;
mod tree;
mod write;

pub use datum::{Datum, DatumKind};
pub use fold::Folder;
pub(crate) use fold::ORG_REMOVES;
pub use number::Number;
pub use read::parse;
pub use tree::{Children, Kind, NodeId, SyntaxError, Tree};
pub use write::{quoted, write};
