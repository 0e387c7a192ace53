//! Files on disk → one consistent load of specs and scripts.
//!
//! A project is a folder that holds `specs/` (and `scripts/` beside it). [`find_root`] walks up to it, [`load`]
//! reads files, [`Generation`] is what a request runs on, [`LiveProject`] keeps the newest one at hand.

mod discover;
mod generation;
mod levels;
mod live;
mod load;
mod read;
pub mod rules;
mod scripts;
mod spare;

pub use discover::{Input, ProjectError, find_root, resolve_inputs};
pub use generation::{Changes, Generation, GenerationRunner, unknown_tool};
pub use live::{Listener, LiveProject};
pub use load::{Load, LoadedTool, ScriptState, load, load_specs};
pub use read::display_name;
