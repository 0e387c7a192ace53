//! Files on disk → one consistent load of specs and scripts.
//!
//! A project is a folder that holds `specs/` (and `scripts/` beside it). [`find_root`] walks up to it, [`load`]
//! reads files, [`Generation`] is what a request runs on, [`LiveProject`] keeps the newest one at hand.

mod bios;
mod cache;
mod contract_findings;
mod discover;
mod generation;
mod grants;
mod hints;
mod levels;
mod live;
mod load;
mod loader;
mod look;
mod modules;
mod names;
mod outside;
mod overlay;
mod parallel;
mod private;
mod read;
pub mod rules;
mod script_findings;
mod scripts;
mod settle;
mod spare;
mod test_scripts;
mod type_findings;
mod watch;
#[cfg(feature = "cli")]
mod watch_probe;
mod write;

pub use bios::read_bios;
pub use discover::{Input, Outside, ProjectError, find_root, is_test_script, resolve_inputs};
pub use generation::{Changes, Generation, GenerationRunner, unknown_tool};
#[cfg(feature = "cli")]
pub(crate) use grants::follow;
pub use grants::{Grants, MAX_MEMORY, MAX_TIMEOUT, Trust, Wish, wishes};
pub use live::{Listener, LiveProject};
pub use load::{Load, LoadOptions, LoadedTool, ScriptState, load, load_specs, load_with};
pub use overlay::Overlay;
pub(crate) use private::create_private;
pub use read::display_name;
#[cfg(feature = "cli")]
pub(crate) use read::{BYTE_ORDER_MARK, SourceText, read_source, read_stream};
pub use test_scripts::{TestScript, find_tests};
pub use watch::keep_loading;
#[cfg(feature = "cli")]
pub(crate) use watch_probe::{WatchError, try_event, try_watching};
#[cfg(feature = "cli")]
pub(crate) use write::replace_file;
pub use write::replace_text;
