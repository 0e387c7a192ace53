//! A project that is held loaded: what a save changes, and what a broken one leaves as it was.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use deftool::project::{Changes, LiveProject};
use deftool::spec::WorkerSpec;

const LIMIT: Duration = Duration::from_secs(10);

struct Live {
    folder: tempfile::TempDir,
    project: LiveProject,
    reloads: Receiver<Changes>,
}

impl Live {
    fn open(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            write(folder.path(), name, text);
        }
        let (sender, reloads) = channel();
        let listener = move |reloaded: Result<&deftool::project::Generation, &_>| {
            let _ = sender.send(reloaded.map(|generation| generation.changes.clone()).unwrap_or_default());
        };
        let project = LiveProject::open(folder.path(), folder.path(), Some(Box::new(listener))).unwrap();
        Self { folder, project, reloads }
    }

    /// Saves a file and waits for the reload that tells of it.
    fn save(&self, name: &str, text: &str) -> Changes {
        write(self.folder.path(), name, text);
        self.next()
    }

    fn next(&self) -> Changes {
        self.reloads.recv_timeout(LIMIT).expect("a reload")
    }

    fn offered(&self) -> Vec<String> {
        let set = self.project.current().tool_set(&WorkerSpec::named("w"));
        set.iter().map(|entry| entry.name.clone()).collect()
    }
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // As editors do: never a half-written file under the name itself.
    let beside = path.with_extension("tmp");
    fs::write(&beside, text).unwrap();
    fs::rename(beside, path).unwrap();
}

fn tool(name: &str, more: &str) -> String {
    format!("(deftool :name \"{name}\" :description \"d\" {more})\n")
}

const SCRIPT: &str = "return function() return 1 end\n";

#[test]
fn a_reload_says_what_changed() {
    let live = Live::open(&[("specs/a.eld", &tool("a", "")), ("scripts/a.lua", SCRIPT)]);
    let both = tool("a", ":allow (:read [\"x\"])") + &tool("b", "");
    write(live.folder.path(), "scripts/b.lua", SCRIPT);
    // The script alone is no tool yet; depending on when the looks fall, it is a reload of its own.
    write(live.folder.path(), "specs/a.eld", &both);
    let changes = std::iter::repeat_with(|| live.next()).find(|changes| !changes.added.is_empty()).unwrap();
    assert_eq!((changes.added, changes.widened), (vec![String::from("b")], vec![String::from("a")]));
    let changes = live.save("scripts/b.lua", "return function() return 2 end\n");
    assert_eq!(changes.changed, ["b"]);
    let changes = live.save("specs/a.eld", &tool("b", ""));
    assert_eq!(changes.removed, ["a"]);
    assert_eq!(changes.to_string(), "removed a");
    assert!(live.project.changes_since(0).contains("; then "), "{}", live.project.changes_since(0));
}

#[test]
fn a_broken_tool_stays_as_it_was_until_it_is_mended() {
    let live = Live::open(&[("specs/b.eld", &tool("b", "")), ("scripts/b.lua", SCRIPT)]);
    assert_eq!(live.save("specs/b.eld", "(deftool :name \"b\" :args [1])").kept, ["b"]);
    // A file that is read before it: the broken one is another number among the sources now.
    live.save("specs/a.eld", "");
    assert_eq!(live.offered(), ["b"]);
    // A name that is broken, too, is no removal.
    assert_eq!(live.save("specs/b.eld", "(deftool :name \"b b\" :description \"d\")").kept, ["b"]);
    assert_eq!(live.save("specs/a.eld", "; a comment\n").kept, ["b"]);
    assert_eq!(live.save("specs/b.eld", &tool("b", ":timeout \"1s\"")).changed, ["b"]);
    assert!(live.save("specs/b.eld", "").removed == ["b"]);
}

/// What one file no longer names is not looked at any more: its end is no second change.
#[test]
fn a_removed_tool_is_one_reload() {
    let elsewhere = tool("a", ":script \"other/a.lua\"") + &tool("b", "");
    let live = Live::open(&[("specs/a.eld", &elsewhere), ("other/a.lua", SCRIPT), ("scripts/b.lua", SCRIPT)]);
    assert_eq!(live.save("specs/a.eld", &tool("b", "")).removed, ["a"]);
    let more = live.reloads.recv_timeout(Duration::from_millis(2500));
    assert!(more.is_err(), "a reload that says: {}", more.unwrap());
    // It comes back, and its script is looked at again.
    assert_eq!(live.save("specs/a.eld", &elsewhere).added, ["a"]);
    assert_eq!(live.save("other/a.lua", "return function() return 2 end\n").changed, ["a"]);
}

/// What a request holds of a tool is made anew only when it would be another.
#[test]
fn unchanged_tools_keep_their_entries() {
    let arguments = |names: [&str; 2]| {
        let of = |name| format!("(:name \"{name}\" :type string :description \"d\")");
        format!(":args ({} {})", of(names[0]), of(names[1]))
    };
    let specs = |a: &str| tool("a", a) + &tool("b", "") + "(defexit :name \"c\" :description \"d\")\n";
    let live = Live::open(&[
        ("specs/a.eld", &specs(&arguments(["x", "y"]))),
        ("scripts/a.lua", "return function(...) return 1 end\n"),
        ("scripts/b.lua", SCRIPT),
    ]);
    let entries = || {
        let generation = live.project.current();
        ["a", "b", "c"].map(|name| std::sync::Arc::clone(generation.tool(name).unwrap().entry()))
    };
    let kept = |before: &[std::sync::Arc<_>; 3]| {
        let pairs = before.iter().zip(entries());
        pairs.map(|(before, now)| std::sync::Arc::ptr_eq(before, &now)).collect::<Vec<_>>()
    };
    let first = entries();
    assert_eq!(live.save("scripts/b.lua", "return function() return 2 end\n").changed, ["b"]);
    assert_eq!(kept(&first), [true, true, true]);
    // The order of arguments is sent, too.
    assert_eq!(live.save("specs/a.eld", &specs(&arguments(["y", "x"]))).changed, ["a"]);
    assert_eq!(kept(&first), [false, true, true]);
    let second = entries();
    live.save("specs/a.eld", &(specs(&arguments(["y", "x"])).replace("\"b\"", "\"b\" :timeout \"3s\"")));
    assert_eq!(kept(&second), [true, false, true]);
}

#[test]
fn a_tool_whose_script_was_never_right_is_not_offered() {
    let live = Live::open(&[
        ("specs/a.eld", &(tool("good", "") + &tool("missing", "") + &tool("broken", ""))),
        ("scripts/good.lua", SCRIPT),
        ("scripts/broken.lua", "return function("),
    ]);
    assert_eq!(live.offered(), ["good"]);
    assert_eq!(live.save("scripts/broken.lua", SCRIPT).changed, ["broken"]);
    assert_eq!(live.offered(), ["good", "broken"]);
}

#[test]
fn a_file_that_is_written_on_and_on_holds_up_no_reload() {
    let live = Live::open(&[("specs/a.eld", &tool("a", "")), ("scripts/a.lua", SCRIPT)]);
    let noisy = live.folder.path().join("scripts/noise.lua");
    let started = Instant::now();
    let mut writes = 0;
    write(live.folder.path(), "scripts/a.lua", "return function() return 2 end\n");
    loop {
        writes += 1;
        fs::write(&noisy, "-".repeat(writes % 1000)).unwrap();
        if live.reloads.try_iter().any(|changes| changes.changed == ["a"]) {
            break;
        }
        assert!(started.elapsed() < LIMIT, "no reload while a file is being written");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_project_that_is_dropped_is_not_watched_any_more() {
    let live = Live::open(&[("specs/a.eld", &tool("a", "")), ("scripts/a.lua", SCRIPT)]);
    drop(live.project);
    // The listener goes with the thread.
    let gone = live.reloads.recv_timeout(LIMIT);
    assert_eq!(gone.unwrap_err(), std::sync::mpsc::RecvTimeoutError::Disconnected);
}
