//! Whether a save is heard of at once. Where it is not, the sweep sees it within a second or two.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Line;
use crate::project::{Generation, WatchError, try_event, try_watching};

/// An event takes 0.1 ms; a busy machine may take its time.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn check(generation: Option<&Generation>) -> Vec<Line> {
    let mut lines = vec![match tried() {
        Ok(()) => Line::ok("watching", "a save is heard of at once"),
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
                format!("the project lies on {kind}, which tells nothing of changes made elsewhere");
            lines.push(Line::warning(
                "watching",
                message,
                "nothing: the sweep sees them within a second or two",
            ));
        }
    }
    lines
}

fn explain(error: &WatchError) -> Line {
    let message = format!("{error}; saves are seen by the sweep only, within a second or two");
    let advice = match error {
        WatchError::Limit => {
            "raise fs.inotify.max_user_watches and fs.inotify.max_user_instances with sysctl, or end other watchers"
        }
        WatchError::Failed(_) | WatchError::Silent(_) => "nothing, if that is soon enough",
    };
    Line::warning("watching", message, advice)
}

/// In a folder of our own: a project's watchers are not to be disturbed.
fn tried() -> Result<(), WatchError> {
    let failed = |error: std::io::Error| WatchError::Failed(format!("no folder to try it in: {error}"));
    let folder =
        std::env::temp_dir().join(format!("deftool-doctor-{}-{:x}", std::process::id(), fastrand::u64(..)));
    std::fs::create_dir(&folder).map_err(failed)?;
    let folder = Folder(folder);
    try_event(&folder.0, PATIENCE)
}

/// Gone when it is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The kind of a file system whose changes on other machines are not heard of here (numbers: statfs(2), 2025-05).
#[cfg(target_os = "linux")]
#[allow(clippy::cast_sign_loss, clippy::unnecessary_cast)]
fn kind_without_events(path: &Path) -> Option<&'static str> {
    let about = rustix::fs::statfs(path).ok()?;
    // The field's type differs from machine to machine; the numbers have 32 bits.
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
