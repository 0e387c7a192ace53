//! A program without a guard, which other tests of this workspace set.

#![allow(clippy::unwrap_used)]

use deftool_engine::{OpenError, open};
use deftool_project::Trust;

#[tokio::test]
async fn a_managed_server_requires_a_guard() {
    let folder = tempfile::tempdir().unwrap();
    let spec = r#"(defworker :name "w" :server (:command ["server" "{port}"]))"#;
    std::fs::create_dir(folder.path().join("specs")).unwrap();
    std::fs::write(folder.path().join("specs/w.eld"), spec).unwrap();
    let unguarded = open(folder.path()).trust(Trust::Everything).start().await.unwrap_err();
    assert!(matches!(unguarded, OpenError::NoGuard), "{unguarded}");
}
