//! Emacs Lisp syntax: text to [`Tree`] to constants.
//!
//! [`parse`] never fails and runs in linear time. A [`Folder`] turns the code that specs are written in (`list`,
//! `quote`, `concat`, backquote …) into a [`Datum`] without executing it. [`lexpr`] converts from and to `lexpr`
//! values, for Rust programs that keep their specs in that form.
//!
//! The reader of the `lexpr` crate is not suitable for specs: it has no offsets, drops comments, misreads `1+`, `1e3`,
//! `"\x41"` and `#'f`, and its span API is quadratic. The crate is used for the conversion only.

mod atom;
mod closers;
mod escape;
mod fold;
mod fold_calls;
mod fold_format;
mod hash;
pub mod lexpr;
mod merge;
mod number;
mod paste;
pub mod print;
mod reader;
mod recover;
pub mod rules;
mod tree;
mod write;

pub use fold::{Datum, DatumKind, Folder};
pub use number::Number;
pub use reader::parse;
pub use tree::{Children, Kind, NodeId, SyntaxError, Tree};
pub use write::{quoted, write};
