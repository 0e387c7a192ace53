//! Projects on disk.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A project in a temporary folder.
pub(crate) struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    /// Creates an empty folder.
    pub(crate) fn empty() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file atomically, so that a watcher never sees it empty.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let beside = self.folder.path().with_extension("saved");
        fs::write(&beside, content).unwrap();
        fs::rename(beside, path).unwrap();
    }

    /// Returns a command that runs `deftool-serve` in this folder, without inherited servers, keys and collectors.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deftool-serve"));
        command.args(arguments).current_dir(self.folder.path());
        for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "OTEL_EXPORTER_OTLP_ENDPOINT"] {
            command.env_remove(name);
        }
        command.env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
        command
    }
}
