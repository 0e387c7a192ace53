//! Cleanup of files that a killed deftool left behind, and limits of the files that script tests write.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use deftool_test_support::step;

use crate::support::project::{Ended, Project};

/// A project with one test, and a folder for temporary files.
struct Ground {
    project: Project,
    temporary: tempfile::TempDir,
}

impl Ground {
    fn new(test: &str) -> Self {
        let ground = Self { project: Project::new(), temporary: tempfile::tempdir().unwrap() };
        ground.project.write("scripts/some_test.lua", format!("test('some', function() {test} end)\n"));
        ground
    }

    fn test(&self) -> Ended {
        let mut command = self.project.command(&["test", "--timeout", "60s"]);
        Ended::of(command.env("TMPDIR", self.temporary.path()).output().unwrap())
    }

    fn start(&self) -> Child {
        let mut command = self.project.command(&["test", "--timeout", "600s"]);
        command
            .env("TMPDIR", self.temporary.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn names(&self) -> Vec<String> {
        names(self.temporary.path())
    }

    /// Waits for and returns the folder of a running test.
    fn wait_for_folder(&self, known: &[String]) -> PathBuf {
        loop {
            let new = self.names().into_iter().find(|name| !known.contains(name));
            let path = new.map(|name| self.temporary.path().join(name));
            if let Some(path) = path.filter(|path| path.join("a").exists()) {
                return path;
            }
            std::thread::yield_now();
        }
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn folders_of_killed_tests_are_removed_by_the_next_run() {
    let ground = Ground::new("temp.write('a', 'x') while true do end");
    let mut killed = ground.start();
    let left = ground.wait_for_folder(&[]);
    // Links in the folder are removed, not followed.
    let outside = ground.project.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "").unwrap();
    symlink(&outside, left.join("link")).unwrap();
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(left.exists());
    let mut living = ground.start();
    let used = ground.wait_for_folder(&[left.file_name().unwrap().to_str().unwrap().to_owned()]);
    assert!(!left.exists() && outside.join("kept").exists());
    ground.project.write("scripts/some_test.lua", "test('some', function() temp.write('a', 'x') end)\n");
    assert_eq!(ground.test().code, Some(0));
    assert!(used.join("a").exists(), "a folder in use must stay");
    living.kill().unwrap();
    living.wait().unwrap();
    assert_eq!(ground.test().code, Some(0));
    assert_eq!(ground.names(), [""; 0]);
}

/// Files with similar names, or with the same name but another content, are not removed.
#[test]
fn only_leftovers_of_deftool_are_removed() {
    let ground = Ground::new("expect(1).is(1)");
    let path = |name: &str| ground.temporary.path().join(name);
    let folder = |name: &str, mode| {
        fs::create_dir(path(name)).unwrap();
        fs::write(path(name).join("x"), "").unwrap();
        fs::set_permissions(path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    folder("deftool-test-1-0123abcd", 0o700);
    for name in [
        "deftool-test-1-0123abc",
        "deftool-test-1-0123abcg",
        "deftool-test-x-0123abcd",
        "deftool-tests-1-0123abcd",
    ] {
        folder(name, 0o700);
    }
    folder("deftool-test-2-0123abcd", 0o755);
    let target = ground.project.path("target");
    fs::create_dir(&target).unwrap();
    fs::write(target.join("kept"), "").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o700)).unwrap();
    symlink(&target, path("deftool-test-3-0123abcd")).unwrap();
    fs::write(path("deftool-test-4-0123abcd"), "a file").unwrap();
    assert_eq!(ground.test().code, Some(0));
    assert_eq!(
        ground.names(),
        [
            "deftool-test-1-0123abc",
            "deftool-test-1-0123abcg",
            "deftool-test-2-0123abcd",
            "deftool-test-3-0123abcd",
            "deftool-test-4-0123abcd",
            "deftool-test-x-0123abcd",
            "deftool-tests-1-0123abcd"
        ]
    );
    assert!(target.join("kept").exists());
}

/// An incomplete temporary file is in the folder of the file that it would have replaced.
#[test]
fn incomplete_files_are_removed_by_the_next_write_to_their_folder() {
    let project = Project::empty();
    project
        .write("specs/save.eld", "(deftool :name \"save\" :description \"Save.\" :allow (:write [\"out\"]))");
    project.write("scripts/save.lua", "return function() fs.write('out/a', 'x') return 1 end");
    let left = ".deftool-0123456789abcdef.tmp";
    for name in [left, ".other.tmp", ".deftool-1.tmp"] {
        project.write(&format!("out/{name}"), "half");
        project.write(&format!("specs/{name}"), "half");
    }
    project.write("specs/loose.eld", "(deftool    :name \"b\" :description \"Do.\")\n");
    assert_eq!(project.run(&["call", "save", "--trust"]).code, Some(0));
    assert_eq!(names(&project.path("out")), [".deftool-1.tmp", ".other.tmp", "a"]);
    assert!(project.path("specs").join(left).exists(), "other folders must not be cleaned up");
    assert_eq!(project.run(&["fmt"]).code, Some(0));
    assert_eq!(names(&project.path("specs")), [".deftool-1.tmp", ".other.tmp", "loose.eld", "save.eld"]);
}

#[test]
fn files_written_by_tests_are_limited() {
    let cases = [
        (
            "local mib = string.rep('x', 1048576) for i = 1, 65 do temp.write('a' .. i, mib) end",
            "a test can write at most 64 MiB in total",
        ),
        (
            "local mib = string.rep('x', 1048576) for i = 1, 65 do temp.write('a', mib) end",
            "a test can write at most 64 MiB in total",
        ),
        (
            "for i = 1, 10001 do temp.write('a' .. i, '') end",
            "a test can create at most 10000 files and folders",
        ),
        (
            "for i = 1, 5001 do temp.write(i .. '/a', '') end",
            "a test can create at most 10000 files and folders",
        ),
    ];
    for (test, says) in cases.into_iter().step_by(step(4)) {
        let ground = Ground::new(test);
        let ended = ground.test();
        assert_eq!((ended.code, ended.stdout.contains(says)), (Some(1), true), "{test}: {ended:?}");
        assert_eq!(ground.names(), [""; 0]);
    }
    let ground = Ground::new(
        "for i = 1, 500 do temp.write('d/' .. i, 'x') temp.write('d/' .. i, 'y') end expect(temp.read('d/7')).is('y')",
    );
    let ended = ground.test();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
