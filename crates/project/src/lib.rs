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
//! Loading compiles and analyses scripts, but never runs them. A broken file does not make the load fail: its problems
//! are reported as findings, and a [`LiveProject`] keeps the last good version of its tools. Running tools for a model
//! is the task of `deftool-worker`.
//!
//! Each module uses only the modules above it:
//!
//! | module | contents |
//! |---|---|
//! | `model` | the result of a load, its options and errors |
//! | `load` | finding and reading files, the cache of unchanged files, findings of scripts |
//! | `coverage` | what asks touch |
//! | `permissions` | what scripts request and what the user trusts |
//! | `generation` | the immutable version that a request uses |
//! | `watch` | file notifications, reloading, and which version of a tool stays current |

mod coverage;
mod generation;
mod load;
mod mcp;
mod model;
mod parallel;
mod paths;
mod permissions;
pub mod rules;
mod watch;

pub use coverage::{AskCoverage, Touched, Untouched, ask_coverage};
pub use generation::{Changes, Generation, GenerationRunner, unknown_tool};
pub use load::{
    FoundFiles, ProjectGlob, SourceText, TestScript, find_projects, find_root, find_tests, has_specs, load,
    load_specs, load_with, outside_bios, projects_below, read_bios, read_source, read_stream,
    read_tool_forms, resolve_inputs, script_candidates, type_findings,
};
pub use mcp::McpOffer;
pub use model::{
    CurrentFolder, Input, Load, LoadOptions, LoadedTool, OfferedTools, OutsideLink, Overlay, ProjectError,
    ScriptState, ToolOrigin,
};
pub use paths::{display_name, is_test_script, is_tool_list, is_visible_spec, normalize, resolve_links};
pub use permissions::{
    PermissionRequest, PermissionSet, Trust, mcp_permission_request, permission_requests, quote, quote_words,
};
pub use watch::{
    EditedProject, FileWatcher, Listener, LiveProject, WatchError, keep_loading, try_event, try_watching,
};
