//! Trust: prompts, refusals and the store. Uses the real binary; each test has its own state folder.

mod keys;
mod untrusted_projects;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use deftool_test_support::server::{Act, Answer, Server, Texts};
use serde_json::{Value, json};

use crate::support::project::{Ended, Project};
use crate::support::watching::WatchProcess;

/// A project and a state folder.
struct Home {
    project: Project,
    state: tempfile::TempDir,
}

fn tool(name: &str, allow: &str) -> String {
    format!("(deftool :name \"{name}\" :description \"Do it.\" :allow ({allow}))\n")
}

const SCRIPT: &str = "return function() return 'ran' end\n";

impl Home {
    /// Creates a project with tools and their `:allow` lists.
    fn of(tools: &[(&str, &str)]) -> Self {
        let home = Self { project: Project::empty(), state: tempfile::tempdir().unwrap() };
        for (name, allow) in tools {
            home.project.write(&format!("specs/{name}.eld"), tool(name, allow));
            home.project.write(&format!("scripts/{name}.lua"), SCRIPT);
        }
        home
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.project.command(arguments);
        command.env("XDG_STATE_HOME", self.state.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        Ended::of(self.command(arguments).output().unwrap())
    }

    fn call(&self, tool: &str) -> Option<i32> {
        self.run(&["call", tool]).code
    }

    fn store(&self) -> PathBuf {
        self.state.path().join("deftool/trust.json")
    }

    /// Returns the permissions of this project in `trust --json`.
    fn granted(&self) -> Value {
        let listed: Value = serde_json::from_str(&self.run(&["trust", "--json"]).stdout).unwrap();
        let root = fs::canonicalize(self.project.path(".")).unwrap();
        let mine = listed.as_array().unwrap().iter().find(|entry| entry["project"] == root.to_str().unwrap());
        mine.map_or(Value::Null, |entry| entry["grants"].clone())
    }
}

/// Trust in one project does not allow fuzzing of another, in any order of arguments.
#[test]
fn fuzzing_requires_trust_for_each_project() {
    let mut trusted = Home::of(&[("one", ":env [\"HOME\"]")]);
    let other = Home::of(&[("two", ":env [\"HOME\"]")]);
    assert_eq!(trusted.run(&["trust", "grant"]).code, Some(0));
    let stranger = std::mem::replace(&mut trusted.project, other.project);
    let names = [stranger.path("."), trusted.project.path(".")].map(|path| path.display().to_string());
    for names in [[&names[0], &names[1]], [&names[1], &names[0]]] {
        let ended = trusted.run(&["test", "--fuzz", "--cases", "1", names[0], names[1]]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("two requires") && !ended.stderr.contains("one requires"), "{ended:?}");
    }
    let ended = trusted.run(&["test", "--fuzz", "--cases", "1", &names[0]]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn reading_the_own_project_needs_no_trust() {
    let home = Home::of(&[("plain", ""), ("reader", ":read [\".\" \"notes/\"]")]);
    assert_eq!((home.call("plain"), home.call("reader")), (Some(0), Some(0)));
    assert_eq!(fs::read_dir(home.state.path()).unwrap().count(), 0);
    let ended = home.run(&["trust", "grant"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.stderr.starts_with("nothing to grant"), "{ended:?}");
}

#[test]
fn without_a_terminal_the_error_names_both_alternatives() {
    for (kind, allow, shown) in [
        ("net", ":net [\"API.example.org\"]", ":net [\"api.example.org\"]"),
        ("write", ":write [\"out/\"]", ":write [\"out\"]"),
        ("run", ":run [\"git\"]", ":run [\"git\"]"),
        ("env", ":env [\"HOME\"]", ":env [\"HOME\"]"),
        ("read", ":read [\"/etc\"]", ":read [\"/etc\"]"),
    ] {
        let home = Home::of(&[(kind, allow)]);
        let ended = home.run(&["call", kind]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        let place = format!("{kind} requires {shown} (specs/{kind}.eld:1:16)");
        for part in [place.as_str(), "`deftool trust grant`", "`--trust`"] {
            assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
        }
        let ended = home.run(&["call", kind, "--trust"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "\"ran\"\n"), "{ended:?}");
        assert_eq!(home.call(kind), Some(2), "--trust must not be stored");
        assert_eq!(home.run(&["trust", "grant", "--dry-run"]).stdout, format!("{place}\n"));
        assert_eq!(home.call(kind), Some(2), "--dry-run must not grant");
        assert_eq!(home.run(&["trust", "grant"]).stdout, format!("{place}\n"));
        assert_eq!(home.call(kind), Some(0));
    }
}

#[test]
fn commands_that_run_no_script_never_prompt() {
    let home = Home::of(&[("fetch", ":net [\"a.example\"]")]);
    for arguments in [&["check"][..], &["compile"], &["fmt"], &["test"], &["compile", "--list-targets"]] {
        assert_eq!(home.run(arguments).code, Some(0), "{arguments:?}");
    }
    // Tools that are not run do not require trust.
    assert_eq!(home.run(&["call", "fetch", "[]"]).code, Some(1));
    assert_eq!(home.run(&["call", "nobody"]).code, Some(1));
}

/// Fuzzing can include several projects. Each must be trusted.
#[test]
fn trust_applies_to_one_project_only() {
    let home = Home::of(&[]);
    for name in ["fa", "fb"] {
        home.project.write(&format!("{name}/specs/{name}.eld"), tool(name, ":read [\"/etc\"]"));
        home.project.write(&format!("{name}/scripts/{name}.lua"), "return function() error('it ran') end\n");
    }
    let fuzz = |more: &[&str]| home.run(&[&["test", "--fuzz", "--seed", "1"], more].concat());
    home.run(&["trust", "grant", "fa"]);
    for projects in [&["fb"][..], &["fa", "fb"], &["fb", "fa"], &["fb/specs/fb.eld", "fa"]] {
        let ended = fuzz(projects);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{projects:?}: {ended:?}");
        assert!(ended.stderr.contains("fb requires :read [\"/etc\"] (fb/specs/fb.eld:1:16)"), "{ended:?}");
        assert!(!ended.stderr.contains("fa requires"), "{ended:?}");
    }
    assert!(fuzz(&["fa"]).stdout.contains("it ran"));
    home.run(&["trust", "grant", "fb"]);
    let ended = fuzz(&["fa", "fb"]);
    assert_eq!((ended.code, ended.stdout.matches("it ran").count()), (Some(1), 2), "{ended:?}");
    home.run(&["trust", "revoke", "--all"]);
    assert_eq!(fuzz(&["fa", "fb", "--trust"]).stdout, ended.stdout);
}

#[test]
fn a_changed_script_stays_trusted_and_a_new_permission_does_not() {
    let home = Home::of(&[("fetch", ":net [\"a.example\" \"b.example\"] :write [\"out\"]"), ("other", "")]);
    home.run(&["trust", "grant"]);
    home.project.write("scripts/fetch.lua", "return function() return 'other' end\n");
    assert_eq!(home.run(&["call", "fetch"]).stdout, "\"other\"\n");
    for (allow, code) in [
        (":net [\"a.example\"] :write [\"out/deep\"]", 0),
        (":net [\"B.example\"] :write [\"./out/\"] :read [\"x\"]", 0),
        (":net [\"a.example\" \"c.example\"]", 2),
        (":write [\".\"]", 2),
        (":read [\"..\"]", 2),
        (":run [\"out\"]", 2),
    ] {
        home.project.write("specs/fetch.eld", tool("fetch", allow));
        assert_eq!(home.call("fetch"), Some(code), "{allow}");
    }
    let ended = home.run(&["call", "fetch"]);
    assert!(ended.stderr.contains(":run [\"out\"]") && !ended.stderr.contains(":net"), "{}", ended.stderr);
    assert_eq!(home.call("other"), Some(0), "the permissions of other tools are not required");
    // A tool may use a permission that was granted for another tool.
    home.project.write("specs/other.eld", tool("other", ":net [\"a.example\"]"));
    assert_eq!(home.call("other"), Some(0));
}

#[test]
fn granting_again_revokes_unused_permissions() {
    let home = Home::of(&[("fetch", ":net [\"a.example\"]"), ("save", ":write [\"out\"]")]);
    home.run(&["trust", "grant"]);
    assert_eq!(home.granted(), json!({"net": ["a.example"], "write": ["out"]}));
    home.project.write("specs/save.eld", tool("save", ""));
    home.run(&["trust", "grant", "specs"]);
    assert_eq!(home.granted(), json!({"net": ["a.example"]}));
}

#[cfg(unix)]
#[test]
fn a_granted_folder_replaced_by_a_link_is_not_trusted() {
    let home = Home::of(&[("save", ":write [\"out\"]"), ("notes", ":read [\"notes\"]")]);
    home.run(&["trust", "grant"]);
    assert_eq!((home.call("save"), home.call("notes")), (Some(0), Some(0)));
    std::os::unix::fs::symlink(home.state.path(), home.project.path("out")).unwrap();
    std::os::unix::fs::symlink("/", home.project.path("notes")).unwrap();
    assert_eq!((home.call("save"), home.call("notes")), (Some(2), Some(2)));
}

#[cfg(unix)]
#[test]
fn a_project_has_one_key_for_all_of_its_paths() {
    let home = Home::of(&[("fetch", ":net [\"a.example\"]")]);
    let alias = home.state.path().join("alias");
    std::os::unix::fs::symlink(home.project.path("."), &alias).unwrap();
    home.run(&["trust", "grant", alias.to_str().unwrap()]);
    assert_eq!(home.call("fetch"), Some(0));
    assert_eq!(home.run(&["call", "fetch", "-C", alias.join("scripts").to_str().unwrap()]).code, Some(0));
    // A copy of the project is a different project.
    let copy = home.state.path().join("copy/specs");
    fs::create_dir_all(&copy).unwrap();
    fs::copy(home.project.path("specs/fetch.eld"), copy.join("fetch.eld")).unwrap();
    fs::create_dir(copy.with_file_name("scripts")).unwrap();
    fs::write(copy.with_file_name("scripts").join("fetch.lua"), SCRIPT).unwrap();
    assert_eq!(home.run(&["call", "fetch", "-C", copy.to_str().unwrap()]).code, Some(2));
}

#[test]
fn trust_is_listed_and_revoked() {
    let home = Home::of(&[("fetch", ":net [\"a.example\"]")]);
    let ended = home.run(&["trust"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
    assert_eq!(home.run(&["trust", "--json"]).stdout, "[]\n");
    home.run(&["trust", "grant"]);
    let root = fs::canonicalize(home.project.path(".")).unwrap();
    let listed = format!("{}\n  :net [\"a.example\"]\n", root.display());
    assert_eq!(home.run(&["trust"]).stdout, listed);
    assert_eq!(home.run(&["trust", "revoke", "specs"]).code, Some(0));
    assert_eq!((home.granted(), home.call("fetch")), (Value::Null, Some(2)));
    assert!(home.run(&["trust", "revoke"]).stderr.starts_with("nothing to revoke"));
    home.run(&["trust", "grant"]);
    assert_eq!(home.run(&["trust", "revoke", "--all"]).code, Some(0));
    assert_eq!(home.granted(), Value::Null);
    // The trust of a deleted project can be revoked.
    let gone = Home { project: Project::empty(), state: home.state };
    for path in ["old/", "./old", "other/../old"] {
        gone.project.write("old/specs/a.eld", tool("a", ":run [\"git\"]"));
        gone.run(&["trust", "grant", "old/"]);
        fs::remove_dir_all(gone.project.path("old")).unwrap();
        assert!(gone.run(&["trust"]).stdout.contains("/old (gone)\n"));
        assert!(gone.run(&["trust", "revoke", path]).stderr.starts_with("no longer trusted: "), "{path}");
        assert_eq!(gone.run(&["trust"]).stdout, "");
    }
}

#[test]
fn a_damaged_store_counts_as_empty_and_is_kept() {
    for damage in ["", "{", "[]", "{\"version\":1,\"projects\":{\"/\":{\"everything\":[]}}}", "\u{0}"] {
        let home = Home::of(&[("fetch", ":net [\"a.example\"]")]);
        home.run(&["trust", "grant"]);
        fs::write(home.store(), damage).unwrap();
        let ended = home.run(&["call", "fetch"]);
        assert_eq!(ended.code, Some(2), "{damage:?}");
        assert!(ended.stderr.contains("trust.json is damaged"), "{}", ended.stderr);
        assert_eq!(
            fs::read_to_string(home.store()).unwrap(),
            damage,
            "left until there is something to write"
        );
        let ended = home.run(&["trust", "grant"]);
        assert_eq!((ended.code, home.call("fetch")), (Some(0), Some(0)));
        let aside = home.store().with_file_name("trust.json.damaged-1");
        assert!(ended.stderr.contains(&format!("is in {}", aside.display())), "{ended:?}");
        assert_eq!(fs::read_to_string(aside).unwrap(), damage);
    }
}

#[test]
fn a_store_of_a_newer_version_is_not_changed() {
    let home = Home::of(&[("fetch", ":net [\"a.example\"]")]);
    home.run(&["trust", "grant"]);
    let newer = "{\"version\": 2, \"projects\": []}";
    fs::write(home.store(), newer).unwrap();
    for arguments in [&["call", "fetch"][..], &["trust", "grant"], &["trust", "revoke"], &["trust"]] {
        let ended = home.run(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}");
        assert!(ended.stderr.contains("newer version of deftool"), "{}", ended.stderr);
    }
    assert_eq!(fs::read_to_string(home.store()).unwrap(), newer);
}

#[cfg(unix)]
#[test]
fn a_store_that_others_can_write_is_ignored() {
    use std::os::unix::fs::PermissionsExt;

    let home = Home::of(&[("fetch", ":net [\"a.example\"]")]);
    home.run(&["trust", "grant"]);
    let folder = home.store().parent().unwrap().to_owned();
    let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&home.store())), (0o700, 0o600));
    for (path, open, own) in [(folder, 0o770, 0o700), (home.store(), 0o602, 0o600)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
        let ended = home.run(&["call", "fetch"]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("is ignored: it is writable by other users"), "{}", ended.stderr);
        assert_eq!(home.run(&["trust", "grant"]).code, Some(2));
        fs::set_permissions(&path, fs::Permissions::from_mode(own)).unwrap();
        assert_eq!(home.call("fetch"), Some(0));
    }
    // A pipe in place of the file does not block.
    fs::remove_file(home.store()).unwrap();
    assert!(Command::new("mkfifo").arg(home.store()).status().unwrap().success());
    assert!(home.run(&["call", "fetch"]).stderr.contains("not a regular file"));
    if std::os::unix::fs::chown(home.store(), Some(4321), None).is_ok() {
        fs::remove_file(home.store()).unwrap();
        home.run(&["trust", "grant"]);
        std::os::unix::fs::chown(home.store(), Some(4321), None).unwrap();
        assert!(home.run(&["call", "fetch"]).stderr.contains("it belongs to another user"));
    }
}

#[test]
fn without_a_home_folder_granting_fails() {
    let home = Home::of(&[("fetch", ":net [\"a.example\"]")]);
    let homeless = |arguments: &[&str], state: &str| {
        let mut command = home.command(arguments);
        command.env("XDG_STATE_HOME", state).env_remove("HOME").env_remove("LOCALAPPDATA");
        Ended::of(command.output().unwrap())
    };
    for state in ["", "relative"] {
        assert_eq!(homeless(&["call", "fetch"], state).code, Some(2));
        assert_eq!(homeless(&["call", "fetch", "--trust"], state).code, Some(0));
        let ended = homeless(&["trust", "grant"], state);
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains("no state folder: "), "{}", ended.stderr);
    }
}

#[test]
fn concurrent_grants_are_all_stored() {
    let state = tempfile::tempdir().unwrap();
    let projects: Vec<Project> = (0..12)
        .map(|_| {
            let project = Project::empty();
            project.write("specs/a.eld", tool("a", ":run [\"git\"]"));
            project
        })
        .collect();
    let started = projects.iter().map(|project| {
        let mut command = project.command(&["trust", "grant"]);
        command
            .env("XDG_STATE_HOME", state.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    });
    let started: Vec<_> = started.collect();
    for mut child in started {
        assert!(child.wait().unwrap().success());
    }
    let content = fs::read(state.path().join("deftool/trust.json")).unwrap();
    let content: Value = serde_json::from_slice(&content).unwrap();
    assert_eq!(content["projects"].as_object().unwrap().len(), projects.len());
}

/// A permission that a reload adds during a request is refused at the call, and works after it is granted.
#[test]
fn a_permission_added_during_a_run_is_refused() {
    grow_during_a_run(&[]);
}

/// `--trust` covers the permissions at the start of the run. Later edits of the specs by the model are not covered.
#[test]
fn a_permission_added_during_a_run_is_refused_with_trust_option() {
    grow_during_a_run(&["--trust"]);
}

fn grow_during_a_run(options: &[&str]) {
    let home = Home::of(&[("fetch", ":net [\"a.example\"]")]);
    home.project
        .write("specs/worker.eld", "(defworker :name \"w\" :tool-budget 1000 :on-tool-error report)\n");
    if options.is_empty() {
        home.run(&["trust", "grant"]);
    }
    let home = Arc::new(home);
    let shared = Arc::clone(&home);
    let (widen, grant) = (tool("fetch", ":net [\"a.example\" \"evil.example\"]"), Arc::clone(&home));
    let server = Server::answering(move |index, request| {
        let results = request.texts("tool");
        let is_refused = |result: &String| result.contains("evil.example");
        let (refused, last) = (results.iter().any(is_refused), results.last());
        // Call until the reload is visible, then until the grant is.
        let call = Answer::stream().then(Act::Wait(std::time::Duration::from_millis(100)));
        let call = call
            .chunk(&deftool_test_support::server::call(0, "fetch", "{}"))
            .chunk(&deftool_test_support::server::finish("tool_calls"))
            .done()
            .end();
        if index == 1 {
            assert!(last.is_some_and(|last| last.contains("ran")), "{results:?}");
            let beside = shared.project.path("new");
            fs::write(&beside, &widen).unwrap();
            fs::rename(beside, shared.project.path("specs/fetch.eld")).unwrap();
        }
        if last.is_some_and(is_refused) {
            assert_eq!(grant.run(&["trust", "grant"]).code, Some(0));
        } else if refused {
            return Answer::text(last.unwrap());
        }
        call
    });
    let endpoint = server.endpoint();
    let ended = home.run(&[&["run", "go", "--endpoint", &endpoint], options].concat());
    assert_eq!((ended.code, ended.stdout.contains("ran")), (Some(0), true), "{ended:?}");
    let expected = "not trusted, so calls are refused: fetch requires :net [\"evil.example\"]";
    assert!(ended.stderr.contains("new permissions: fetch"), "{}", ended.stderr);
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    assert!(ended.stderr.contains("run `deftool trust grant`"), "{}", ended.stderr);
    let is_refused = |result: &String| result.contains("evil.example");
    assert!(server.posts().last().unwrap().texts("tool").iter().any(is_refused));
}

#[test]
fn a_run_requires_the_permissions_of_its_worker() {
    let home = Home::of(&[("fetch", ":net [\"a.example\"]"), ("plain", "")]);
    home.project
        .write("specs/w.eld", "(defworker :name \"plain\" :tools [\"plain\"])\n(defworker :name \"all\")\n");
    let server = Server::script([Answer::text("hi")]);
    let endpoint = server.endpoint();
    let run = |arguments: &[&str]| {
        home.run(&[&["run", "hello", "--endpoint", &endpoint, "--worker"], arguments].concat()).code
    };
    assert_eq!((run(&["plain"]), run(&["all"]), run(&["all", "--trust"])), (Some(0), Some(2), Some(0)));
    assert_eq!(server.posts().len(), 2, "untrusted runs must not send requests");
}

#[test]
fn test_watch_reports_untrusted_permissions() {
    let home = Home::of(&[("fetch", ":net [\"never.example\"]")]);
    let mut command = home.command(&["test", "--watch"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let watching = WatchProcess::of(child);
    let line = |start: &str| loop {
        let line = watching.stdout.recv_timeout(crate::support::watching::LIMIT).unwrap();
        if line.starts_with(start) {
            return line;
        }
    };
    assert!(line("not trusted: ").contains("fetch requires :net [\"never.example\"]"));
    let beside = home.project.path("new");
    fs::write(&beside, tool("fetch", ":run [\"git\"]")).unwrap();
    fs::rename(beside, home.project.path("specs/fetch.eld")).unwrap();
    assert!(line("generation 2: ").contains("new permissions: fetch"));
    assert!(line("not trusted: ").contains("fetch requires :run [\"git\"]"));
}

#[cfg(target_os = "linux")]
mod terminal {
    use std::io::{Read, Write};

    use super::*;
    use crate::support::terminal::pseudo_terminal;

    /// Runs the binary with a pseudo-terminal for stdin and stderr. Returns the terminal output and the result.
    fn answer(command: Command, answer: &[u8]) -> (String, Ended) {
        answer_after(command, b"", answer)
    }

    /// Like [`answer`], with text that is typed before the binary starts.
    fn answer_after(mut command: Command, typed_ahead: &[u8], answer: &[u8]) -> (String, Ended) {
        let (mut master, slave) = pseudo_terminal();
        master.write_all(typed_ahead).unwrap();
        let other = slave.try_clone().unwrap();
        let child = command.stdin(slave).stderr(other).stdout(Stdio::piped()).spawn().unwrap();
        // The command holds the other ends.
        drop(command);
        let mut typist = master.try_clone().unwrap();
        let answer = answer.to_vec();
        let reader = std::thread::spawn(move || {
            let (mut said, mut bytes) = (Vec::new(), [0; 4096]);
            let mut is_answered = false;
            let mut master = master;
            // Linux returns EIO after the last other end is closed.
            while let Ok(count @ 1..) = master.read(&mut bytes) {
                said.extend_from_slice(&bytes[..count]);
                if !is_answered && said.ends_with(b"[y/N] ") {
                    typist.write_all(&answer).unwrap();
                    is_answered = true;
                }
            }
            String::from_utf8(said).unwrap()
        });
        let ended = Ended::of(child.wait_with_output().unwrap());
        (reader.join().unwrap(), ended)
    }

    #[test]
    fn yes_is_stored_and_any_other_answer_runs_nothing() {
        let home = Home::of(&[("fetch", ":net [\"a.example\"]"), ("save", ":write [\"out\"]")]);
        // 4: Ctrl-D, the end of input.
        for no in ["\n", "n\n", "yess\n", "\u{4}"] {
            let (said, ended) = answer(home.command(&["call", "fetch"]), no.as_bytes());
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{no:?}");
            assert!(said.contains("nothing was run"), "{said}");
        }
        let (said, ended) = answer(home.command(&["call", "fetch"]), b"y\n");
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "\"ran\"\n"), "{said}");
        assert!(said.contains("fetch requires :net [\"a.example\"] (specs/fetch.eld:1:16)\r\n"), "{said}");
        assert!(!said.contains("save"), "tools that are not run must not be listed: {said}");
        assert_eq!(
            home.granted(),
            json!({"net": ["a.example"]}),
            "what was granted is remembered, and no more"
        );
        assert_eq!((home.call("fetch"), home.call("save")), (Some(0), Some(2)));
        let (_, ended) = answer(home.command(&["call", "save"]), b"YES\n");
        assert_eq!(ended.code, Some(0));
        assert_eq!(home.granted(), json!({"net": ["a.example"], "write": ["out"]}));
    }

    /// Text that was typed before the prompt does not answer it.
    #[test]
    fn an_answer_before_the_prompt_is_ignored() {
        let home = Home::of(&[("fetch", ":net [\"a.example\"]")]);
        let (said, ended) = answer_after(home.command(&["call", "fetch"]), b"y\n", b"n\n");
        assert_eq!(ended.code, Some(2), "{said}");
        assert!(said.contains("nothing was run"), "{said}");
    }

    #[test]
    fn the_prompt_contains_no_control_characters() {
        let hostile =
            r#":run ["git\e[2K\rharmless" "a\nTrust it? [y/N] y" "\u202egnp" "a\u200bb\u2028c\u00a0d"]"#;
        let home = Home::of(&[("fetch", hostile)]);
        let (said, ended) = answer(home.command(&["call", "fetch", "--color", "never"]), b"n\n");
        assert_eq!(ended.code, Some(2), "{said}");
        let bad = |c: char| c.is_control() && !matches!(c, '\r' | '\n');
        assert!(
            !said.contains(bad) && !said.contains(['\u{202e}', '\u{200b}', '\u{2028}', '\u{a0}']),
            "{said:?}"
        );
        let requests: Vec<&str> = said.lines().filter(|line| line.contains("fetch requires")).collect();
        assert_eq!(requests.len(), 1, "{said}");
        assert!(requests[0].contains(r"\u{1b}[2K\rharmless"), "{said}");
    }

    #[test]
    fn without_a_home_folder_the_answer_applies_to_this_run() {
        let home = Home::of(&[("fetch", ":net [\"a.example\"]")]);
        let mut command = home.command(&["call", "fetch"]);
        command.env_remove("XDG_STATE_HOME").env_remove("HOME");
        let (said, ended) = answer(command, b"y\n");
        assert_eq!(ended.code, Some(0), "{said}");
        assert!(said.contains("cannot store the trust: no state folder"), "{said}");
    }

    /// No prompt is shown if stdin is not a terminal.
    #[test]
    fn stdin_and_stderr_must_both_be_terminals() {
        let home = Home::of(&[("fetch", ":net [\"a.example\"]")]);
        let (_typist, slave) = pseudo_terminal();
        let output = home.command(&["call", "fetch"]).stdin(slave).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
    }
}
