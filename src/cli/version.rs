//! The text of `--version`: what a bug report needs to know about the build.

use std::env::consts::{ARCH, OS};
use std::sync::LazyLock;

/// Returns the version, commit, platform and features. `-V` prints only the version.
pub(super) fn long_version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let version = env!("CARGO_PKG_VERSION");
        // Set by `packaging/build`.
        let commit = option_env!("DEFTOOL_COMMIT").unwrap_or("unknown");
        let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
        format!("{version}\ncommit: {commit}\nplatform: {ARCH} {OS}, {profile}\nfeatures: cli")
    });
    &TEXT
}
