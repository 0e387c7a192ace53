//! `fs`: links, and files that another process replaces during a call.

#![cfg(unix)]

use super::files::TestProject;
use super::*;

#[test]
fn writes_respect_modes_links_and_hard_links() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    let project = TestProject::new(
        &[],
        &["out/"],
        &[
            ("out/tool", "old"),
            ("out/target", "old"),
            ("secret", "old"),
            ("twin", "old"),
            ("out/locked", "old"),
        ],
    );
    let mode = |name: &str, mode| {
        std::fs::set_permissions(project.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("out/tool", 0o4755);
    mode("out/locked", 0o444);
    symlink("target", project.path("out/inner")).unwrap();
    symlink("../secret", project.path("out/outer")).unwrap();
    symlink("nothing", project.path("out/dangling")).unwrap();
    std::fs::hard_link(project.path("twin"), project.path("out/twin")).unwrap();
    project.run("fs.write('out/tool', 'new') fs.write('out/inner', 'new') fs.write('out/new', '')").unwrap();
    let modes = |name: &str| std::fs::metadata(project.path(name)).unwrap().mode() & 0o7777;
    assert_eq!(modes("out/tool"), 0o755, "the setuid bit is not copied");
    assert_eq!(modes("out/new") & 0o111, 0);
    assert!(project.path("out/inner").is_symlink(), "a link is followed, not replaced");
    assert_eq!(project.text("out/target"), "new");
    for (body, expected) in [
        (
            "fs.write('out/outer', 'new')",
            "leads out of the granted folder; to allow its target, add it to :allow (:write […])",
        ),
        ("fs.append('out/outer', 'new')", "leads out of the granted folder"),
        ("fs.write('out/dangling', 'new')", "No such file"),
        ("fs.append('out/dangling', 'new')", "No such file"),
        ("fs.append('out/twin', 'new')", "has other hard links"),
        ("fs.write('out/locked', 'new')", "is read-only"),
        ("fs.rename('out/new', 'out/outer')", "already exists and is not a regular file"),
    ] {
        let message = project.error_message(body);
        assert!(message.contains(expected), "{body}: {message}");
    }
    // Replacing one hard link does not change the other.
    project.run("fs.write('out/twin', 'new')").unwrap();
    assert_eq!(
        [project.text("out/twin"), project.text("twin"), project.text("secret")],
        ["new", "old", "old"]
    );
    project.run("fs.remove('out/outer') fs.remove('out/dangling')").unwrap();
    assert_eq!(project.text("secret"), "old");
    assert!(!project.path("out/outer").is_symlink());
}

/// A grant may be a link, because the spec's author named it.
#[test]
fn a_grant_may_be_a_link() {
    let project = TestProject::new(&["notes", "one"], &["notes"], &[("real/a", "a"), ("real/one", "1")]);
    std::os::unix::fs::symlink(project.path("real"), project.path("notes")).unwrap();
    std::os::unix::fs::symlink(project.path("real/one"), project.path("one")).unwrap();
    let read = project
        .run("fs.write('notes/b', 'b') return { fs.read('notes/a'), fs.read('notes/b'), fs.read('one') }");
    assert_eq!(read, Ok(json!(["a", "b", "1"])));
    assert_eq!(project.text("real/b"), "b");
}

/// The user trusts the real path of a grant when a call is requested. A link that is changed during the call is an
/// error.
#[test]
fn the_real_path_of_a_grant_is_fixed_for_a_call() {
    use std::os::unix::fs::symlink;

    let read = "fs.write('box/ready', '') repeat task.wait(0.005) until fs.stat('box/go')
                local ok, text = pcall(fs.read, 'data/f') return tostring(text)";
    for (was, becomes, expected) in [
        (None, Some("outside"), "fs.read: data leads to a different place than when the call began"),
        (Some("real"), Some("outside"), "fs.read: data leads to a different place than when the call began"),
        (Some("real"), Some("real"), "inside"),
        (None, None, "made"),
    ] {
        let files = [("outside/f", "CANARY"), ("real/f", "inside"), ("box/.keep", "")];
        let project = TestProject::new(&["data", "box"], &["box"], &files);
        let root = project.folder.path().to_path_buf();
        let link = |target: &str| {
            let _ = std::fs::remove_file(root.join("data"));
            symlink(root.join(target), root.join("data")).unwrap();
        };
        if let Some(was) = was {
            link(was);
        }
        let message = std::thread::scope(|scope| {
            let call = scope.spawn(|| project.run(read));
            while !root.join("box/ready").exists() && !call.is_finished() {
                std::thread::yield_now();
            }
            match becomes {
                Some(becomes) => link(becomes),
                None => {
                    std::fs::create_dir(root.join("data")).unwrap();
                    std::fs::write(root.join("data/f"), "made").unwrap();
                }
            }
            std::fs::write(root.join("box/go"), "").unwrap();
            call.join().unwrap().unwrap()
        });
        assert!(message.as_str().unwrap().contains(expected), "{was:?} {becomes:?} {message}");
    }
}

/// A script cannot access files outside of its grants, even if another process swaps folders and links.
#[test]
fn no_race_leads_out_of_the_grant() {
    race("../outside", "outside");
}

/// The same for hidden files in a granted folder.
#[test]
fn no_race_leads_to_a_hidden_file() {
    race(".hidden", "box/.hidden");
}

/// Reads and writes in a folder that is repeatedly swapped with a link to `target`, the folder `closed`.
fn race(target: &'static str, closed: &str) {
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    let secret = format!("{closed}/f");
    let project = TestProject::new(&["box/"], &["box/"], &[("box/dir/f", "inside"), (&secret, "CANARY")]);
    let done = Arc::new(AtomicBool::new(false));
    let swapper = {
        let (done, root) = (Arc::clone(&done), project.folder.path().to_path_buf());
        std::thread::spawn(move || {
            let (folder, away, link) = (root.join("box/dir"), root.join("box/away"), root.join("box/link"));
            while !done.load(Ordering::Relaxed) {
                symlink(target, &link).unwrap();
                std::fs::rename(&folder, &away).unwrap();
                std::fs::rename(&link, &folder).unwrap();
                std::fs::remove_file(&folder).unwrap();
                std::fs::rename(&away, &folder).unwrap();
            }
        })
    };
    let read = project.run(
        "local seen, rounds = {}, 0
         repeat
           rounds += 1
           local ok, text = pcall(fs.read, 'box/dir/f') if ok then seen[text] = true end
           pcall(fs.append, 'box/dir/f', '') pcall(fs.write, 'box/dir/g', 'written') pcall(fs.remove, 'box/dir/g')
           for _, path in (fs.glob('box/**/*')) do seen[path] = true end
         until rounds >= 400 and seen.inside -- the swapper may wait while the folder is away
         return seen",
    );
    done.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    let seen = read.unwrap();
    assert!(seen.get("CANARY").is_none() && seen.get("inside").is_some(), "{seen}");
    assert_eq!(project.names(closed), ["f"]);
    assert_eq!(project.text(&secret), "CANARY");
}
