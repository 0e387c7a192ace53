//! The files of a journal are the same for all names of it, and only their user can write them.

#![cfg(unix)]
// Clippy does not treat helper functions outside of a `#[test]` as test code.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use deftool_durable::{OpenError, SqliteJournal};

/// Creates an empty journal `real/j` and the link `links/l` to it.
fn linked(folder: &Path) -> (PathBuf, PathBuf) {
    let folder = fs::canonicalize(folder).unwrap();
    fs::create_dir(folder.join("real")).unwrap();
    fs::create_dir(folder.join("links")).unwrap();
    let (path, link) = (folder.join("real/j"), folder.join("links/l"));
    symlink(&path, &link).unwrap();
    (path, link)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_link_uses_the_lock_of_its_target() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = linked(folder.path());
    let error = SqliteJournal::open(&link).unwrap_err().to_string();
    assert_eq!(error, format!("{}: a link to a file that does not exist", link.display()));
    assert!(names(path.parent().unwrap()).is_empty());
    let journal = SqliteJournal::open(&path).unwrap();
    assert_eq!(SqliteJournal::requests(&link).unwrap(), []);
    for result in [
        SqliteJournal::open(&link).map(drop),
        SqliteJournal::open_existing(&link).map(drop),
        SqliteJournal::remove(&link, |_| true).map(drop),
    ] {
        assert!(matches!(result, Err(OpenError::Locked { .. })), "{result:?}");
    }
    drop(journal);
    drop(SqliteJournal::open(&link).unwrap());
    assert_eq!(names(link.parent().unwrap()), ["l"]);
}

#[test]
fn a_journal_with_several_names_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = linked(folder.path());
    drop(SqliteJournal::open(&path).unwrap());
    let other = path.with_file_name("other");
    fs::hard_link(&path, &other).unwrap();
    for path in [&path, &other] {
        let error = SqliteJournal::requests(path).unwrap_err().to_string();
        assert!(error.contains("the file has several names (hard links)"), "{error}");
        assert!(SqliteJournal::open(path).is_err());
    }
    fs::remove_file(other).unwrap();
    assert_eq!(SqliteJournal::requests(&path).unwrap(), []);
}

#[test]
fn a_file_beside_the_journal_that_others_can_write_is_named() {
    for suffix in ["-wal", "-shm", "-journal", ".lock"] {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = linked(folder.path());
        drop(SqliteJournal::open(&path).unwrap());
        let beside = path.with_file_name(format!("j{suffix}"));
        fs::write(&beside, "").unwrap();
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o666)).unwrap();
        for path in [&path, &link] {
            let error = SqliteJournal::open(path).unwrap_err().to_string();
            let expected = format!("{}: the file is writable by other users", beside.display());
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}

/// SQLite would replace pages of the journal by those in this file.
#[test]
fn a_journal_with_a_rollback_file_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = linked(folder.path());
    drop(SqliteJournal::open(&path).unwrap());
    let (bytes, rollback) = (fs::read(&path).unwrap(), path.with_file_name("j-journal"));
    fs::write(&rollback, "x").unwrap();
    fs::set_permissions(&rollback, fs::Permissions::from_mode(0o600)).unwrap();
    for error in [SqliteJournal::requests(&path).unwrap_err(), SqliteJournal::open(&path).unwrap_err()] {
        let error = error.to_string();
        assert!(error.starts_with(&format!("{}: a journal has no such file", rollback.display())), "{error}");
    }
    assert!(fs::read(&path).unwrap() == bytes && rollback.exists());
    // The process that created the journal may have ended before it created the tables.
    fs::write(&path, "").unwrap();
    drop(SqliteJournal::open(&path).unwrap());
    assert_eq!(SqliteJournal::requests(&path).unwrap(), []);
}

#[test]
fn only_opening_a_new_journal_creates_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("typo");
    for result in [
        SqliteJournal::open_existing(&path).map(drop),
        SqliteJournal::requests(&path).map(drop),
        SqliteJournal::remove(&path, |_| true).map(drop),
    ] {
        let error = result.unwrap_err().to_string();
        assert!(error.contains("typo: No such file or directory"), "{error}");
    }
    assert!(names(folder.path()).is_empty());
}
