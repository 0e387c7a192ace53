//! Watching of a project: reloads it after every change of its files.
//!
//! `reload` is the loop. It scans the files with a `loader` after `notifications` of the operating system, and at intervals:
//! often on `file_systems` that do not report all changes. It debounces the changes (`debounce`). [`LiveProject`] (`live`) decides what to keep of a load.
//! [`EditedProject`] (`edited`) loads on demand, with the texts of an editor. [`FileWatcher`] (`file`) watches one file.

mod debounce;
mod edited;
mod file;
mod file_systems;
mod live;
mod loader;
mod notifications;
mod probe;
mod reload;

pub use edited::EditedProject;
pub use file::FileWatcher;
pub use live::{Listener, LiveProject};
pub use probe::{WatchError, try_event, try_watching};
pub use reload::keep_loading;
