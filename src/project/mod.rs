//! Files on disk → one consistent load of specs and scripts.
//!
//! A project is a folder that holds `specs/` (and `scripts/` beside it). [`find_root`] walks up to it, [`load`]
//! reads it whole, [`Generation`] is what a request runs on.

mod discover;
mod load;
mod read;

pub use discover::{Input, ProjectError, find_root, resolve_inputs};
pub use load::{Load, LoadedTool, load_specs};
pub(crate) use read::display_name;
