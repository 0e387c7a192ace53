//! The text of `--version`: the build, for bug reports.

use std::env::consts::{ARCH, OS};
use std::sync::LazyLock;

/// Returns the version, commit, platform and features. `-V` prints only the version.
pub(in crate::cli) fn long_version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let version = env!("CARGO_PKG_VERSION");
        // Set by `packaging/build`.
        let commit = option_env!("DEFTOOL_COMMIT").unwrap_or("unknown");
        let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
        let features = [
            ("cli", cfg!(feature = "cli")),
            ("otel", cfg!(feature = "otel")),
            ("analyze", cfg!(feature = "analyze")),
        ];
        let features: Vec<&str> =
            features.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| *name).collect();
        let features = features.join(", ");
        format!("{version}\ncommit: {commit}\nplatform: {ARCH} {OS}, {profile}\nfeatures: {features}")
    });
    &TEXT
}
