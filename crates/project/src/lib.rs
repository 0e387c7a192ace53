//! Projects: folders with spec files and scripts, loaded from disk and reloaded after changes.
//!
//! A project is a folder that contains `specs/` and usually `scripts/`. [`find_root`] searches the parent folders for
//! it, [`load`] reads the files, a [`Generation`] is the immutable version that a request uses, and [`LiveProject`]
//! reloads the project when a file changes.
//!
//! ```
//! use std::path::Path;
//!
//! use deftool_project::{Generation, find_root};
//!
//! let root = find_root(Path::new("../../examples/quickstart/specs"))?;
//! let generation = Generation::load(&root, Path::new("."), None)?;
//! assert!(generation.tool("get_weather").is_some());
//! assert!(generation.load.findings.is_empty());
//! # Ok::<(), deftool_project::ProjectError>(())
//! ```
//!
//! Loading compiles and analyses scripts, but never runs them. A broken file does not fail a load: it adds findings, and
//! a [`LiveProject`] keeps the last good version of its tools. Running tools for a model is the task of
//! `deftool-worker`.

mod bios;
mod cache;
mod contract_findings;
mod debounce;
mod discover;
mod file_events;
mod generation;
mod levels;
mod live;
mod load;
mod loader;
mod modules;
mod names;
mod outside;
mod overlay;
mod parallel;
mod permissions;
mod private;
mod read;
pub mod rules;
mod script_findings;
mod scripts;
mod snapshot;
mod test_scripts;
mod type_findings;
mod unused_scripts;
mod watch;
mod watch_probe;
mod write;

pub use bios::read_bios;
pub use discover::{Input, OutsideLink, ProjectError, find_root, is_test_script, resolve_inputs};
pub use generation::{Changes, Generation, GenerationRunner, unknown_tool};
pub use live::{Listener, LiveProject};
pub use load::{Load, LoadOptions, LoadedTool, ScriptState, load, load_specs, load_with};
pub use overlay::Overlay;
pub use permissions::resolve_links;
pub use permissions::{
    MAX_MEMORY, MAX_TIMEOUT, PermissionRequest, PermissionSet, Trust, permission_requests,
};
pub use private::create_private;
pub use read::display_name;
pub use read::{BYTE_ORDER_MARK, SourceText, read_source, read_stream};
pub use test_scripts::{TestScript, find_tests};
pub use watch::keep_loading;
pub use watch_probe::{WatchError, try_event, try_watching};
pub use write::replace_file;
pub use write::replace_text;
