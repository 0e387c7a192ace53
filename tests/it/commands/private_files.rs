//! Journals, locks, recordings and sessions are regular files that no other user can write. No other file is opened.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::Command;

use deftool_durable::SqliteJournal;
use deftool_test_support::server::{Answer, Server};

use crate::support::ledger::wait_until;
use crate::support::project::{Ended, Project};

/// The files that are rejected, with the message.
const REJECTED: [(&str, &str); 5] = [
    ("pipe", "not a regular file"),
    ("device", "not a regular file"),
    ("dangling", "No such file or directory|a link to a file that does not exist"),
    ("shared", "the file is writable by other users (to fix it, run `chmod go-w`)"),
    ("theirs", "the file belongs to another user"),
];

/// Creates `name` as a file that is rejected. Returns false if this user cannot create it.
fn create(project: &Project, kind: &str, name: &str) -> bool {
    let path = project.path(name);
    let _ = fs::remove_file(&path);
    match kind {
        "pipe" => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
        "device" => symlink("/dev/zero", &path).unwrap(),
        "dangling" => symlink(project.path("missing"), &path).unwrap(),
        _ => {
            fs::write(&path, "").unwrap();
            fs::set_permissions(
                &path,
                fs::Permissions::from_mode(if kind == "shared" { 0o666 } else { 0o600 }),
            )
            .unwrap();
            // Only root can change the owner.
            return kind == "shared" || chown(&path, Some(4321), None).is_ok();
        }
    }
    true
}

#[test]
fn other_files_are_rejected() {
    let server = Server::answering(|_, _| Answer::text("Hello."));
    let endpoint = server.endpoint();
    let project = Project::new();
    let run = ["run", "x", "--endpoint", &endpoint];
    for (kind, messages) in REJECTED {
        for (arguments, file, reads_only) in [
            (&[&run[..], &["--journal", "file"]].concat()[..], "file", false),
            (&[&run[..], &["--journal", "other"]].concat(), "other.lock", false),
            (&[&run[..], &["--record", "file"]].concat(), "file", false),
            (&["journal", "resume", "file"], "file", false),
            (&["journal", "list", "file"], "file", false),
            (&["chat", "x", "--endpoint", &endpoint, "--resume", "file"], "file", false),
            (&["run", "--replay", "file"], "file", true),
            (&["view", "file", "-o", "page.html"], "file", true),
        ] {
            // A recording that is only read may come from another user.
            if !create(&project, kind, file) || (reads_only && ["shared", "theirs"].contains(&kind)) {
                continue;
            }
            let ended = project.run_with_stdin(arguments, b"");
            assert_eq!(ended.code, Some(2), "{kind}: {arguments:?}: {ended:?}");
            let is_explained = messages.split('|').any(|message| ended.stderr.contains(message));
            assert!(is_explained && ended.stderr.contains(file), "{kind}: {arguments:?}: {}", ended.stderr);
            assert!(!project.path("missing").exists(), "{arguments:?}");
        }
    }
    assert_eq!(server.posts().len(), 0);
}

/// The streams of the system are written, and a file of others is replaced by a private one.
#[test]
fn a_page_is_written_to_a_stream_or_to_a_new_private_file() {
    let server = Server::answering(|_, _| Answer::text("Hello."));
    let project = Project::new();
    let ended = project.run(&["run", "x", "--endpoint", &server.endpoint(), "--record", "r.jsonl"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(project.run(&["view", "r.jsonl", "-o", "/dev/null"]).code, Some(0));
    let page = project.run(&["view", "r.jsonl", "-o", "/dev/stdout"]);
    assert!(page.code == Some(0) && page.stdout.starts_with("<!DOCTYPE html>"), "{}", page.stderr);
    create(&project, "shared", "page.html");
    let ended = project.run(&["view", "r.jsonl", "-o", "page.html"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(fs::metadata(project.path("page.html")).unwrap().permissions().mode() & 0o777, 0o600);
}

/// Runs a command in a folder with a file system of its own. Returns `None` if this user cannot mount one.
fn run_mounted(project: &Project, mount: &str, arguments: &[&str]) -> Option<Ended> {
    if !Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|status| status.success()) {
        return None;
    }
    let run = project.command(arguments);
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", &format!("{mount} && exec \"$@\""), "sh"]);
    command.arg(run.get_program()).args(run.get_args()).current_dir(project.path(""));
    Some(Ended::of(command.output().unwrap()))
}

#[cfg(target_os = "linux")]
#[test]
fn a_read_only_archive_can_be_listed_and_viewed() {
    let server = Server::answering(|_, _| Answer::text("Hello."));
    let project = Project::new();
    fs::create_dir(project.path("archive")).unwrap();
    let endpoint = server.endpoint();
    let journal = "archive/old?.journal";
    let ended = project.run(&["run", "x", "--endpoint", &endpoint, "--journal", journal]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    fs::remove_file(project.path("archive/old?.journal.lock")).unwrap();
    let mount = "mount --bind archive archive && mount -o remount,ro,bind archive";
    for (arguments, expected) in
        [(&["journal", "list", journal][..], "completed"), (&["view", journal, "-o", "-"], "Hello.")]
    {
        let Some(ended) = run_mounted(&project, mount, arguments) else { return };
        assert!(ended.code == Some(0) && ended.stdout.contains(expected), "{arguments:?}: {ended:?}");
    }
    let ended = run_mounted(&project, mount, &["journal", "prune", journal]).unwrap();
    assert!(ended.code == Some(2) && ended.stderr.contains("Read-only file system"), "{ended:?}");
}

/// The process of the journal was killed, so its last changes are in a second file.
#[cfg(target_os = "linux")]
#[test]
fn a_read_only_archive_with_unwritten_changes_is_explained() {
    let project = Project::new();
    fs::create_dir(project.path("archive")).unwrap();
    let journal = SqliteJournal::open(&project.path("j")).unwrap();
    for suffix in ["", "-wal"] {
        fs::copy(project.path(&format!("j{suffix}")), project.path(&format!("archive/j{suffix}"))).unwrap();
    }
    drop(journal);
    symlink("archive/j", project.path("link")).unwrap();
    let mount = "mount --bind archive archive && mount -o remount,ro,bind archive";
    for name in ["archive/j", "link"] {
        let Some(ended) = run_mounted(&project, mount, &["journal", "list", name]) else { return };
        let (start, end) = (format!("error: {name} has changes in "), "archive/j-wal, which cannot be read");
        assert!(ended.code == Some(2) && ended.stderr.starts_with(&start), "{ended:?}");
        assert!(ended.stderr.contains(end), "{ended:?}");
    }
}

#[test]
fn canceling_a_request_creates_no_journal() {
    let project = Project::empty();
    let ended = project.run(&["journal", "cancel", "typo", "req_1"]);
    let expected = "error: typo: No such file or directory (os error 2)\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(2), expected));
    assert_eq!(fs::read_dir(project.path("")).unwrap().count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported() {
    let server = Server::answering(|_, _| Answer::text(&"Hello. ".repeat(20_000)));
    let project = Project::new();
    fs::create_dir(project.path("small")).unwrap();
    let endpoint = server.endpoint();
    for size in ["16k", "128k"] {
        let mount = format!("mount -t tmpfs -o size={size} none small");
        let arguments = ["run", "x", "--endpoint", &endpoint, "--journal", "small/j"];
        let Some(ended) = run_mounted(&project, &mount, &arguments) else { return };
        assert!(ended.code != Some(0) && ended.stderr.contains("the disk is full"), "{size}: {ended:?}");
    }
}

/// A batch does not start further jobs.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_ends_a_batch() {
    let server = Server::answering(|_, _| Answer::text(&"Hello. ".repeat(2_000)));
    let project = Project::new();
    fs::create_dir(project.path("small")).unwrap();
    project.write("jobs.jsonl", "{\"prompt\": \"hello\"}\n".repeat(200));
    let endpoint = server.endpoint();
    let arguments = ["run", "--batch", "jobs.jsonl", "--endpoint", &endpoint, "--journal", "small/j"];
    let Some(ended) = run_mounted(&project, "mount -t tmpfs -o size=512k none small", &arguments) else {
        return;
    };
    assert!(ended.code == Some(1) && ended.stderr.contains("the disk is full"), "{ended:?}");
    let (posts, results) = (server.posts().len(), ended.events().len());
    assert!(posts > 1 && posts < 200 && results > 0 && results <= posts, "{posts}, {results}");
}

/// The lock of a journal is held for a short time after its process ended.
#[test]
fn a_lock_that_is_released_soon_is_waited_for() {
    let server = Server::answering(|_, _| Answer::text("Hello."));
    let project = Project::new();
    let ended = project.run(&["run", "x", "--endpoint", &server.endpoint(), "--journal", "j"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let lock = fs::File::options().write(true).open(project.path("j.lock")).unwrap();
    lock.lock().unwrap();
    let mut child = project.spawn(&["journal", "prune", "j"]);
    // It has opened the lock, so it is waiting for it.
    let descriptors = format!("/proc/{}/fd", child.id());
    let has_opened = || {
        let links = fs::read_dir(&descriptors).into_iter().flatten().flatten();
        links.filter_map(|link| fs::read_link(link.path()).ok()).any(|path| path.ends_with("j.lock"))
    };
    wait_until("the lock is opened", || has_opened() || child.try_wait().unwrap().is_some());
    drop(lock);
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), "removed 1 request\n"), "{ended:?}");
}
