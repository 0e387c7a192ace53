//! Whether file change notifications work. Without them, a rescan detects changes within one or two seconds.

use std::path::{Path, PathBuf};
use std::time::Duration;

use deftool_project::{Generation, WatchError, try_event, try_watching};

use super::line::Line;

/// Time limit for a notification. It usually takes 0.1 ms.
const TIMEOUT: Duration = Duration::from_secs(2);

pub(super) fn check(generation: Option<&Generation>) -> Vec<Line> {
    let mut lines = vec![match try_notification() {
        Ok(()) => Line::ok("watching", "file change notifications work"),
        Err(error) => explain(&error),
    }];
    let root = generation.and_then(|generation| generation.load.root.as_deref());
    if let Some(root) = root {
        let folders: Vec<PathBuf> = ["specs", "scripts"]
            .iter()
            .map(|name| root.join(name))
            .filter(|folder| folder.is_dir())
            .collect();
        if let Err(error) = try_watching(folders.iter().map(PathBuf::as_path)) {
            lines = vec![explain(&error)];
        } else if let Some(kind) = kind_without_events(root) {
            let message =
                format!("the project is on {kind}, which does not report changes by other machines");
            lines.push(Line::warning(
                "watching",
                message,
                "none required: a rescan detects them within one or two seconds",
            ));
        }
    }
    lines
}

fn explain(error: &WatchError) -> Line {
    let message = format!("{error}; only a rescan detects changes, within one or two seconds");
    let advice = match error {
        WatchError::Limit => {
            "raise fs.inotify.max_user_watches and fs.inotify.max_user_instances with sysctl, or stop other watchers"
        }
        WatchError::Failed(_) | WatchError::Silent(_) => "none required if that delay is acceptable",
    };
    Line::warning("watching", message, advice)
}

/// Tests notifications in a temporary folder, so that watchers of the project are not triggered.
fn try_notification() -> Result<(), WatchError> {
    let failed =
        |error: std::io::Error| WatchError::Failed(format!("cannot create a temporary folder: {error}"));
    let folder =
        std::env::temp_dir().join(format!("deftool-doctor-{}-{:x}", std::process::id(), fastrand::u64(..)));
    std::fs::create_dir(&folder).map_err(failed)?;
    let folder = TempFolder(folder);
    try_event(&folder.0, TIMEOUT)
}

/// A folder that is removed on drop.
struct TempFolder(PathBuf);

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the kind of a file system that does not report changes by other machines (numbers: statfs(2), 2025-05).
#[cfg(target_os = "linux")]
#[allow(clippy::cast_sign_loss, clippy::unnecessary_cast)]
fn kind_without_events(path: &Path) -> Option<&'static str> {
    let about = rustix::fs::statfs(path).ok()?;
    // The type of the field depends on the architecture; the numbers have 32 bits.
    match about.f_type as u32 {
        0x6969 => Some("NFS"),
        0x517B | 0xFF53_4D42 | 0xFE53_4D42 => Some("a Windows share"),
        0x6573_5546 => Some("a FUSE file system"),
        0x0102_1997 => Some("a 9p file system"),
        0x786F_4256 => Some("a VirtualBox share"),
        _ => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn kind_without_events(_: &Path) -> Option<&'static str> {
    None
}
