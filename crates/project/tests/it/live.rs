//! `LiveProject`: reloads after file changes, and last good versions of broken tools.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use deftool_lang::spec::WorkerSpec;
use deftool_project::{Changes, LiveProject, ScriptState, ToolOrigin};
use deftool_script::Script;

/// Time after which a reload is missing. It takes milliseconds, so this is enough beside builds.
const LIMIT: Duration = Duration::from_secs(60);

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
        let listener = move |reloaded: Result<&deftool_project::Generation, &_>| {
            let _ = sender.send(reloaded.map(|generation| generation.changes.clone()).unwrap_or_default());
        };
        let project = LiveProject::open(folder.path(), folder.path(), Some(Box::new(listener))).unwrap();
        Self { folder, project, reloads }
    }

    /// Saves a file and waits for the reload.
    fn save(&self, name: &str, text: &str) -> Changes {
        write(self.folder.path(), name, text);
        self.next()
    }

    fn next(&self) -> Changes {
        self.reloads.recv_timeout(LIMIT).expect("missing reload")
    }

    fn offered(&self) -> Vec<String> {
        let set = self.project.current().tool_set(&WorkerSpec::named("w"));
        set.iter().map(|entry| entry.name.clone()).collect()
    }
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // Write atomically, as editors do.
    let beside = path.with_extension("tmp");
    fs::write(&beside, text).unwrap();
    fs::rename(beside, path).unwrap();
}

fn tool(name: &str, more: &str) -> String {
    format!("(deftool :name \"{name}\" :description \"d\" {more})\n")
}

const SCRIPT: &str = "return function() return 1 end\n";

#[test]
fn a_reload_reports_the_changes() {
    let live = Live::open(&[("specs/a.eld", &tool("a", "")), ("scripts/a.lua", SCRIPT)]);
    let both = tool("a", ":allow (:read [\"x\"])") + &tool("b", "");
    write(live.folder.path(), "scripts/b.lua", SCRIPT);
    // The script alone is not a tool. It may cause a separate reload first.
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
fn a_broken_tool_keeps_its_last_good_version() {
    let live = Live::open(&[("specs/b.eld", &tool("b", "")), ("scripts/b.lua", SCRIPT)]);
    assert_eq!(live.save("specs/b.eld", "(deftool :name \"b\" :args [1])").kept, ["b"]);
    // A new file that sorts before the broken file changes the source id of the broken file.
    live.save("specs/a.eld", "");
    assert_eq!(live.offered(), ["b"]);
    // A tool with a broken name is not removed either.
    assert_eq!(live.save("specs/b.eld", "(deftool :name \"b b\" :description \"d\")").kept, ["b"]);
    assert_eq!(live.save("specs/a.eld", "; a comment\n").kept, ["b"]);
    let changes = live.save("specs/b.eld", &tool("b", ":timeout \"1s\""));
    assert_eq!(changes.to_string(), "changed b; works again: b");
    assert!(live.save("specs/b.eld", "").removed == ["b"]);
}

/// A script that is no longer referenced is not watched, so its removal causes no second reload.
#[test]
fn removing_a_tool_causes_one_reload() {
    let external = tool("a", ":script \"other/a.lua\"") + &tool("b", "");
    let live = Live::open(&[("specs/a.eld", &external), ("other/a.lua", SCRIPT), ("scripts/b.lua", SCRIPT)]);
    assert_eq!(live.save("specs/a.eld", &tool("b", "")).removed, ["a"]);
    let more = live.reloads.recv_timeout(Duration::from_millis(2500));
    assert!(more.is_err(), "unexpected reload: {}", more.unwrap());
    // The tool comes back, and its script is watched again.
    assert_eq!(live.save("specs/a.eld", &external).added, ["a"]);
    assert_eq!(live.save("other/a.lua", "return function() return 2 end\n").changed, ["a"]);
}

/// A compiled schema is replaced only if it changes.
#[test]
fn unchanged_tools_keep_their_compiled_schemas() {
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
    // The order of arguments is part of the schema.
    assert_eq!(live.save("specs/a.eld", &specs(&arguments(["y", "x"]))).changed, ["a"]);
    assert_eq!(kept(&first), [false, true, true]);
    // These keys are not sent to the model.
    let mut keys = String::from("\"b\"");
    for key in [":timeout \"3s\"", ":effect pure", ":max-result \"1KiB\""] {
        keys = format!("{keys} {key}");
        let before = entries();
        live.save("specs/a.eld", &(specs(&arguments(["y", "x"])).replace("\"b\"", &keys)));
        assert_eq!(kept(&before), [true, false, true], "{key}");
    }
}

#[test]
fn a_tool_with_a_broken_script_is_not_offered() {
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
fn a_file_under_constant_writes_does_not_delay_reloads() {
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
        assert!(started.elapsed() < LIMIT, "missing reload while another file is being written");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn dropping_the_project_ends_the_watching_thread() {
    let live = Live::open(&[("specs/a.eld", &tool("a", "")), ("scripts/a.lua", SCRIPT)]);
    drop(live.project);
    // The listener is dropped with the thread.
    let gone = live.reloads.recv_timeout(LIMIT);
    assert_eq!(gone.unwrap_err(), std::sync::mpsc::RecvTimeoutError::Disconnected);
}

fn script(value: u32) -> String {
    format!("return function() return {value} end\n")
}

const NO_RELOAD: Duration = Duration::from_millis(1500);

impl Live {
    /// Waits for a reload with the expected changes. Other reloads may come before it.
    fn until(&self, is_expected: impl Fn(&Changes) -> bool) -> Changes {
        std::iter::repeat_with(|| self.next()).find(|changes| is_expected(changes)).unwrap()
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn expect_no_reload(&self) {
        let more = self.reloads.recv_timeout(NO_RELOAD);
        assert!(more.is_err(), "unexpected reload: {}", more.unwrap());
    }

    fn script_of(&self, name: &str) -> std::sync::Arc<Script> {
        match &self.project.current().tool(name).unwrap().script {
            ScriptState::Ready(script) => std::sync::Arc::clone(script),
            other => panic!("{other:?}"),
        }
    }

    fn messages(&self) -> Vec<String> {
        self.project.current().load.findings.iter().map(|finding| finding.message.clone()).collect()
    }
}

#[test]
fn rewriting_the_same_content_causes_no_reload() {
    let live = Live::open(&[("specs/a.eld", &tool("a", "")), ("scripts/a.lua", SCRIPT)]);
    write(live.folder.path(), "scripts/a.lua", SCRIPT);
    fs::write(live.path("specs/a.eld"), tool("a", "")).unwrap();
    live.expect_no_reload();
    assert_eq!(live.save("scripts/a.lua", &script(2)).changed, ["a"]);
    assert_eq!(live.project.current().number, 2);
}

/// A file that is truncated and then written may be valid in between.
#[test]
fn a_missing_tool_is_removed_after_a_delay() {
    let live = Live::open(&[
        ("specs/a.eld", &tool("a", "")),
        ("specs/b.eld", &tool("b", "")),
        ("scripts/a.lua", SCRIPT),
        ("scripts/b.lua", SCRIPT),
    ]);
    fs::write(live.path("specs/a.eld"), "").unwrap();
    // Other tools are updated in the meantime.
    assert_eq!(live.save("scripts/b.lua", &script(2)).changed, ["b"]);
    assert_eq!(live.offered(), ["b", "a"]);
    fs::write(live.path("specs/a.eld"), tool("a", ":timeout \"2s\"")).unwrap();
    let changes = live.until(|changes| !changes.is_empty());
    assert_eq!((changes.changed, changes.removed, changes.added), (vec![String::from("a")], vec![], vec![]));
    fs::remove_file(live.path("specs/a.eld")).unwrap();
    assert_eq!(live.next().removed, ["a"]);
    assert_eq!(live.offered(), ["b"]);
}

#[test]
fn a_deleted_script_keeps_the_last_good_version() {
    let live = Live::open(&[("specs/a.eld", &tool("a", "")), ("scripts/a.lua", SCRIPT)]);
    let good = live.script_of("a");
    fs::remove_file(live.path("scripts/a.lua")).unwrap();
    assert_eq!(live.next().kept, ["a"]);
    assert!(std::sync::Arc::ptr_eq(&good, &live.script_of("a")));
    write(live.folder.path(), "scripts/a.lua", SCRIPT);
    assert_eq!(live.next().to_string(), "works again: a");
    assert!(std::sync::Arc::ptr_eq(&good, &live.script_of("a")), "the script was replaced");
}

#[test]
fn new_folders_are_watched() {
    let live = Live::open(&[("specs/a.eld", &tool("a", ""))]);
    assert_eq!(live.save("scripts/a.lua", SCRIPT).changed, ["a"]);
    assert_eq!(live.save("specs/more/deep/b.eld", &tool("b", ":script \"code/b.lua\"")).added, ["b"]);
    assert_eq!(live.save("code/b.lua", SCRIPT).changed, ["b"]);
    assert_eq!(
        live.save("specs/more/deep/b.eld", &(tool("b", ":script \"code/b.lua\"") + &tool("c", ""))).added,
        ["c"]
    );
    let requires = "local m = require('./lib/net/m') return function() return m end\n";
    let changes = live.save("scripts/a.lua", requires);
    assert_eq!((changes.kept, changes.changed), (vec![String::from("a")], vec![]));
    assert_eq!(live.save("scripts/lib/net/m.lua", "return 1\n").changed, ["a"]);
    assert_eq!(live.save("scripts/lib/net/m.lua", "return 2\n").changed, ["a"]);
}

/// Spec, script and modules form a unit: an error in one of them keeps the last good version of that tool only.
#[test]
fn a_changed_module_changes_the_tools_that_require_it() {
    let requires =
        |module: &str| format!("local m = require('./lib/{module}') return function() return m end\n");
    let live = Live::open(&[
        ("specs/a.eld", &(tool("a", "") + &tool("b", "") + &tool("c", ""))),
        ("scripts/a.lua", &requires("one")),
        ("scripts/b.lua", &requires("both")),
        ("scripts/c.lua", SCRIPT),
        ("scripts/lib/one.lua", "return 1\n"),
        ("scripts/lib/both.lua", "return require('./one')\n"),
        ("scripts/lib/unused.lua", "return 1\n"),
    ]);
    assert_eq!(live.messages(), [""; 0]);
    let c = live.script_of("c");
    assert_eq!(live.save("scripts/lib/one.lua", "return 2\n").changed, ["a", "b"]);
    assert_eq!(live.save("scripts/lib/both.lua", "return {\n").kept, ["b"]);
    assert_eq!(live.messages().len(), 1, "{:?}", live.messages());
    // Tool `a` is updated. The broken tool keeps its old modules.
    assert_eq!(live.save("scripts/lib/one.lua", "return 3\n").changed, ["a"]);
    let of = |name: &str| {
        let script = live.script_of(name);
        script
            .modules
            .iter()
            .map(|module| String::from_utf8(module.source.to_vec()).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("a"), ["return 3\n"]);
    assert_eq!(of("b"), ["return require('./one')\n", "return 2\n"]);
    assert_eq!(live.save("scripts/lib/both.lua", "return require('./one')\n").changed, ["b"]);
    assert_eq!(of("b"), ["return require('./one')\n", "return 3\n"]);
    // An empty module compiles but returns nothing.
    assert_eq!(live.save("scripts/lib/one.lua", "").kept, ["a", "b"]);
    assert_eq!(live.save("scripts/lib/one.lua", "return 4\n").changed, ["a", "b"]);
    fs::remove_file(live.path("scripts/lib/one.lua")).unwrap();
    assert_eq!(live.next().kept, ["a", "b"]);
    assert!(std::sync::Arc::ptr_eq(&c, &live.script_of("c")));
    write(live.folder.path(), "scripts/lib/unused.lua", "return 2\n");
    live.expect_no_reload();
}

#[test]
fn a_changed_spec_does_not_affect_other_tools() {
    let live = Live::open(&[
        ("specs/a.eld", &(tool("a", "") + &tool("b", ""))),
        ("scripts/a.lua", SCRIPT),
        ("scripts/b.lua", SCRIPT),
    ]);
    let before = ["a", "b"].map(|name| live.script_of(name));
    assert_eq!(live.save("specs/a.eld", &(tool("a", ":timeout \"3s\"") + &tool("b", ""))).changed, ["a"]);
    assert!(std::sync::Arc::ptr_eq(&before[1], &live.script_of("b")));
    assert_eq!(live.script_of("a").timeout, Some(Duration::from_secs(3)));
    // A new first file changes the source ids of all other files.
    live.save("specs/0.eld", "; nothing\n");
    assert!(std::sync::Arc::ptr_eq(&before[1], &live.script_of("b")));
}

#[cfg(unix)]
#[test]
fn a_pipe_in_place_of_a_file_is_reported_and_never_read() {
    use std::process::Command;

    let live = Live::open(&[
        ("specs/a.eld", &(tool("a", "") + &tool("b", ""))),
        ("scripts/a.lua", SCRIPT),
        ("scripts/b.lua", SCRIPT),
        ("specs/c.eld", "(defexit :name \"c\" :description \"d\")"),
    ]);
    for name in ["specs/c.eld", "scripts/b.lua"] {
        fs::remove_file(live.path(name)).unwrap();
        assert!(Command::new("mkfifo").arg(live.path(name)).status().unwrap().success());
    }
    let changes = live.until(|changes| changes.kept == ["b"]);
    assert!(changes.removed.is_empty(), "{changes}");
    assert!(live.messages()[0].contains("not a regular file"), "{:?}", live.messages());
    live.until(|changes| changes.removed == ["c"]);
    assert_eq!(live.save("scripts/a.lua", &script(2)).changed, ["a"]);
}

#[test]
fn added_permissions_are_reported_and_removed_ones_are_a_change() {
    let live = Live::open(&[("specs/a.eld", &tool("a", "")), ("scripts/a.lua", SCRIPT)]);
    let changes = live.save("specs/a.eld", &tool("a", ":allow (:read [\"x\"])"));
    assert_eq!(changes.to_string(), "changed a; new permissions: a (:read \"x\")");
    let changes = live.save("specs/a.eld", &tool("a", ":allow (:read [\"x\" \"y\"])"));
    assert_eq!(changes.to_string(), "changed a; new permissions: a (:read \"y\")");
    let changes = live.save("specs/a.eld", &tool("a", ""));
    assert_eq!(changes.to_string(), "changed a");
}

/// A missing project is reported once, and the current generation stays.
#[test]
fn a_project_that_is_moved_away_and_back_reloads() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("project");
    write(&root, "specs/a.eld", &tool("a", ""));
    write(&root, "scripts/a.lua", SCRIPT);
    // The parent folder is another project and must not be used.
    write(folder.path(), "specs/b.eld", &tool("b", ""));
    let (sender, reloads) = channel();
    let listener = move |reloaded: Result<&deftool_project::Generation, &deftool_project::ProjectError>| {
        let _ = sender.send(reloaded.map(|next| next.changes.to_string()).map_err(ToString::to_string));
    };
    let project = LiveProject::open(&root, &root, Some(Box::new(listener))).unwrap();
    fs::rename(&root, folder.path().join("away")).unwrap();
    let error = reloads.recv_timeout(LIMIT).unwrap().unwrap_err();
    assert!(error.contains("specs"), "{error}");
    assert!(reloads.recv_timeout(NO_RELOAD).is_err());
    assert_eq!(project.current().tool_names().collect::<Vec<_>>(), ["a"]);
    fs::rename(folder.path().join("away"), &root).unwrap();
    assert_eq!(reloads.recv_timeout(LIMIT).unwrap(), Ok(String::from("no tool changed")));
    write(&root, "scripts/a.lua", &script(2));
    assert_eq!(reloads.recv_timeout(LIMIT).unwrap(), Ok(String::from("changed a")));
}

/// Returns the tools with their origins.
fn origins(project: &LiveProject) -> Vec<(String, ToolOrigin)> {
    let generation = project.current();
    generation.tools().map(|loaded| (loaded.tool.name.value.clone(), loaded.origin)).collect()
}

#[test]
fn tools_of_the_user_are_reloaded_beside_those_of_a_project() {
    use ToolOrigin::{Project, Replacement, User};

    let of_user = Live::open(&[("specs/u.eld", &tool("u", "")), ("scripts/u.lua", SCRIPT)]);
    let of_project = Live::open(&[("specs/a.eld", &tool("a", "")), ("scripts/a.lua", SCRIPT)]);
    let alone = of_project.project.alone();
    let project = of_project.project.beside(std::sync::Arc::new(of_user.project));
    let named = |tools: [(&str, ToolOrigin); 2]| tools.map(|(name, origin)| (name.to_owned(), origin));
    assert_eq!(origins(&project), named([("a", Project), ("u", User)]));
    let worker = WorkerSpec::named("w");
    let first = project.current();
    let names = |generation: &deftool_project::Generation| -> Vec<String> {
        generation.tool_set(&worker).iter().map(|entry| entry.name.clone()).collect()
    };
    assert_eq!(
        (names(&first), names(&alone.current())),
        (vec![String::from("a"), String::from("u")], vec![String::from("a")])
    );
    write(of_user.folder.path(), "specs/a.eld", &tool("a", ""));
    write(of_user.folder.path(), "scripts/a.lua", SCRIPT);
    while origins(&project) != named([("a", Replacement), ("u", User)]) {
        of_user.reloads.recv_timeout(LIMIT).unwrap();
    }
    let second = project.current();
    assert!(second.number > first.number);
    write(of_project.folder.path(), "specs/a.eld", "");
    while origins(&project) != named([("a", User), ("u", User)]) {
        of_project.reloads.recv_timeout(LIMIT).unwrap();
    }
    assert!(project.current().number > second.number);
    assert!(project.changes_since(second.number).contains("removed a"));
    let changes = project.changes_since(first.number);
    assert!(changes.starts_with("removed a") && changes.contains("; then added a"), "{changes}");
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_write_is_not_loaded_into_a_private_project() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "specs/a.eld", &tool("a", ""));
    write(folder.path(), "scripts/a.lua", SCRIPT);
    let (sender, reloads) = channel();
    let listener = move |reloaded: Result<&deftool_project::Generation, &deftool_project::ProjectError>| {
        let _ = sender.send(reloaded.unwrap().changes.clone());
    };
    let nowhere = Err(std::sync::Arc::from("nowhere"));
    let (root, listener) = (folder.path(), Box::new(listener));
    let project = LiveProject::open_of_user(root, root, nowhere, Some(listener)).unwrap();
    let shared = folder.path().join("shared");
    fs::write(&shared, script(2)).unwrap();
    fs::set_permissions(&shared, PermissionsExt::from_mode(0o666)).unwrap();
    fs::rename(shared, folder.path().join("scripts/a.lua")).unwrap();
    assert_eq!(reloads.recv_timeout(LIMIT).unwrap().kept, ["a"]);
    let generation = project.current();
    let mut messages = generation.load.findings.iter().map(|finding| &finding.message);
    assert!(messages.any(|message| message.contains("writable by other users")), "{generation:?}");
}
