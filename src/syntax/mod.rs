//! Emacs-Lisp syntax: text → [`Tree`] → constants.
//!
//! [`parse`] is total and linear; a [`Folder`] turns the code that specs are written in (`list`, `quote`, `concat`,
//! backquote …) into a [`Datum`] without executing anything. [`lexpr`] converts to and from `lexpr` values, for
//! Rust programs that hold their specs as such.
//!
//! `lexpr`'s own reader does not carry the language (it has no offsets, loses comments, misreads `1+`, `1e3`,
//! `"\x41"` and `#'f`, and its span API is quadratic); here it stands at the edge only.

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
pub use tree::{Children, Fault, Kind, NodeId, Tree};
pub use write::{quoted, write};
