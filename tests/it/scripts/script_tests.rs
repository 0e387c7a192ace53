//! Script tests: the project in `tests/test_command/scripts`, whose tests pass or fail as described in its files, with
//! the expected output of the failing tests. Also the selection of files, `--watch`, and modules with fakes.
//!
//! `UPDATE_EXPECT=1` updates the expected output.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use deftool_lang::schema::{Arguments, ToolEntry, ToolKind};
use deftool_lang::tool::{ToolError, ToolErrorKind};
use deftool_script::{
    Module, Parameter, Script, TestFile, TestOutcome, TestSubject, known_globals, known_test_globals,
    list_tests, run_test,
};
use serde_json::{Value, json};

use crate::support::project::{Ended, Project, command_in};
use crate::support::watching::WatchProcess;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/test_command/scripts")
}

fn deftool(arguments: &[&str]) -> Ended {
    let mut command = command_in(&root(), arguments);
    Ended::of(command.env_remove("CLICOLOR_FORCE").output().unwrap())
}

fn report(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

const PASSING: [&str; 9] = [
    "scripts/fs_test.lua",
    "scripts/host_test.lua",
    "scripts/http_test.lua",
    "scripts/luau_test.lua",
    "scripts/matchers_test.lua",
    "scripts/process_test.lua",
    "scripts/text_test.lua",
    "scripts/tools_test.lua",
    "scripts/lib/dates_test.luau",
];

#[test]
fn the_test_functions_work() {
    let before = folders();
    let ended = deftool(&[&["test", "--trust", "--timeout", "60s"], &PASSING[..]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let left: Vec<_> = folders().into_iter().filter(|folder| !before.contains(folder)).collect();
    // Other tests may be running: folders of running processes are ignored.
    assert!(left.iter().all(|folder| is_running(folder) || !folder.exists()), "{left:?} left behind");
    // Tests are not unused scripts. One of them does not compile.
    let checked = deftool(&["check", "--ignore", "module-does-not-compile"]);
    assert!(checked.code == Some(0) && !checked.stdout.contains("DT408"), "{checked:?}");
}

fn folders() -> Vec<PathBuf> {
    let entries = fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("deftool-test-"));
    ours.map(|entry| entry.path()).collect()
}

fn is_running(folder: &Path) -> bool {
    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    let process = name.split('-').nth(2).unwrap().to_owned();
    Path::new("/proc").join(process).exists()
}

#[test]
fn failures_have_message_and_location() {
    let files = ["broken", "empty", "failures", "top", "undefined"];
    let files = files.map(|name| format!("scripts/{name}_test.lua"));
    let files = files.iter().map(String::as_str).collect::<Vec<_>>();
    let ended = deftool(&[&["test", "--timeout", "1s"], &files[..]].concat());
    assert_eq!(ended.code, Some(1));
    let failing: Vec<&str> = ended.stdout.lines().filter(|line| !line.starts_with("ok ")).collect();
    let (written, path) = (failing.join("\n") + "\n" + &ended.stderr, root().join("../scripts.txt"));
    if std::env::var("UPDATE_EXPECT").is_ok() {
        fs::write(path, written).unwrap();
        return;
    }
    assert_eq!(written, fs::read_to_string(path).unwrap());
}

#[test]
fn json_and_junit_reports_contain_all_results() {
    let ended = deftool(&["test", "--timeout", "1s", "--format", "json", "scripts/failures_test.lua"]);
    let report = report(&ended);
    assert_eq!(ended.code, Some(1));
    let results = report["results"].as_array().unwrap();
    let keys: Vec<&String> = results[0].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "kind",
            "name",
            "ok",
            "file",
            "line",
            "column",
            "end_line",
            "end_column",
            "message",
            "tools",
            "failure",
            "failed_at",
            "details",
            "log",
            "elapsed_ms",
        ]
    );
    assert_eq!(results[0]["kind"], "script");
    assert_eq!(results[0]["failed_at"]["line"], 6);
    let failures: Vec<&str> = results.iter().map(|result| result["failure"].as_str().unwrap()).collect();
    for kind in ["expectation", "script", "timeout", "memory", "load"] {
        assert!(failures.contains(&kind), "{failures:?}");
    }
    let calls = results.iter().find(|result| result["name"] == "a tool that fails").unwrap();
    assert_eq!(calls["tools"], json!(["misbehave"]));
    assert_eq!((&report["summary"]["tests"], &report["summary"]["test_files"]), (&json!(15), &json!(1)));
    // Each test is one case in the suite of its file.
    let xml =
        deftool(&["test", "--timeout", "100ms", "--format", "junit", "scripts/failures_test.lua"]).stdout;
    assert_eq!((xml.matches("<testcase ").count(), xml.matches("<testsuite ").count()), (15, 1), "{xml}");
    assert!(xml.contains("name=\"scripts/failures_test.lua: spins\""), "{xml}");
    assert!(!xml.contains('\u{1b}'));
}

const SPEC: &str = "(deftool :name \"count\" :description \"Count what there is to be counted.\"
 :args ((:name \"text\" :type string :description \"What is counted.\"))
 :accepts [(:text \"a\")])
(deftool :name \"other\" :description \"Do something else than to count.\" :args ())\n";
const COUNT: &str = "return function(text) return #text end\n";
const OTHER: &str = "return function() end\n";
const TEST: &str =
    "test(\"counts\", function() expect(tool.load(\"count\")({ text = \"abc\" })).is(3) end)\n";

fn project() -> Project {
    let project = Project::empty();
    project.write("specs/a.eld", SPEC);
    project.write("scripts/count.lua", COUNT);
    project.write("scripts/other.lua", OTHER);
    project.write("scripts/count_test.lua", TEST);
    project
}

#[test]
fn process_isolation_requires_fuzz() {
    let project = project();
    for more in [&[][..], &["--watch"], &["scripts/count_test.lua", "--trust"]] {
        let ended = project.run(&[&["test", "--isolate", "process"], more].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains("--isolate process requires --fuzz"), "{}", ended.stderr);
    }
    let fuzz = ["test", "--fuzz", "--cases", "1", "--filter", "count", "--isolate"];
    assert_eq!(project.run(&[&fuzz[..], &["process"]].concat()).code, Some(0));
    assert_eq!(project.run(&["test", "--isolate", "threads"]).code, Some(0));
}

#[test]
fn paths_and_filters_select_tests() {
    let project = project();
    project.write(
        "scripts/deep/down/b_test.luau",
        "test(\"b\", function() end) test(\"counted\", function() end)",
    );
    project.write("scripts/.hidden_test.lua", "nonsense");
    let case = |arguments: &[&str], code: i32, summary: &str| {
        let ended = project.run(&[&["test"], arguments].concat());
        assert_eq!(
            (ended.code, ended.stderr.lines().next()),
            (Some(code), Some(summary)),
            "{arguments:?}: {ended:?}"
        );
    };
    let all = "1 example of 1 tool, 3 tests in 2 files: 4 ok; 1 tool without examples and tests";
    case(&[], 0, all);
    case(&["."], 0, all);
    case(&["--filter", "count"], 0, "1 example of 1 tool, 2 tests in 2 files: 3 ok");
    case(&["--filter", "counted"], 0, "1 test in 1 file: 1 ok");
    case(&["--filter", "b_test"], 0, "2 tests in 1 file: 2 ok");
    case(&["--filter", "nobody"], 2, "error: no tool or test name contains `nobody`");
    case(&["scripts/count_test.lua"], 0, "1 test in 1 file: 1 ok");
    case(&["scripts/deep/down/b_test.luau", "scripts/count_test.lua"], 0, "3 tests in 2 files: 3 ok");
    // A script selects the tests named after it; a spec selects no tests.
    case(&["scripts/count.lua"], 0, "1 example of 1 tool, 1 test in 1 file: 2 ok");
    case(&["specs/a.eld"], 0, "1 example of 1 tool: 1 ok; 1 tool without examples");
    assert_eq!(
        project.run(&["check", "scripts/count_test.lua"]).code,
        Some(0),
        "a hook passes the changed file"
    );
    // The name of a tool may end with `_test`.
    let spec = SPEC.to_owned()
        + "(deftool :name \"run_test\" :description \"Run the tests of a project.\" :args ())";
    project.write("specs/a.eld", spec);
    project.write("scripts/run_test.lua", OTHER);
    case(&[], 0, "1 example of 1 tool, 3 tests in 2 files: 4 ok; 2 tools without examples and tests");
    assert_eq!(project.run(&["check"]).stderr, "3 tools in 1 file: all good\n");
    case(&["scripts/run_test.lua"], 0, "no examples of 1 tool");
}

#[test]
fn a_broken_tool_fails_the_tests_that_load_it() {
    let project = project();
    project.write("scripts/count.lua", "return function(");
    let ended = project.run(&["test", "--format", "json"]);
    let report = report(&ended);
    assert_eq!((ended.code, report["results"][0]["ok"].as_bool()), (Some(1), Some(true)), "the example");
    assert_eq!(report["results"][1]["kind"], "load");
    let message = report["results"][2]["message"].as_str().unwrap();
    assert!(message.starts_with("tool.load: scripts/count.lua:1: "), "{message}");
    project.write("specs/a.eld", SPEC.replace(":type string", ":type strin"));
    let report = self::report(&project.run(&["test", "--format", "json"]));
    let message = report["results"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("tool.load: the spec of `count` has errors: specs/a.eld:2:"), "{message}");
}

#[test]
fn tests_run_after_each_change() {
    let project = project();
    let watching = WatchProcess::start(&project.path("."), "test", &["--format", "json"]);
    assert_eq!(watching.report()["summary"]["ok"], 2);
    for (file, content, ok, failed) in [
        ("scripts/count.lua", "return function(text) return 4 end", 1, 1),
        ("scripts/count.lua", COUNT, 2, 0),
        ("scripts/count_test.lua", "test(\"no\", function() expect(1).is(2) end)", 1, 1),
        ("scripts/lib/new_test.lua", "test(\"new\", function() end)", 2, 1),
    ] {
        project.write(file, content);
        let summary = watching.report()["summary"].clone();
        assert_eq!((&summary["ok"], &summary["failed"]), (&json!(ok), &json!(failed)), "{file}: {summary}");
    }
}

/// Control characters in the output of a test are removed, and its length is limited.
#[test]
fn the_output_of_hostile_tests_is_safe() {
    let project = project();
    project.write(
        "scripts/count_test.lua",
        "test(\"\\27[2J\\u{202e}name\\n\", function()
           for i = 1, 1e5 do print(string.rep(\"\\27]0;x\\7\", 1000)) end
           error(\"\\27[31m\" .. string.rep(\"y\", 1e6))
         end)
         test(string.rep(\"long\", 1e5), function() end)
         for i = 1, 20 do test(\"t\" .. i, function() while true do end end) end",
    );
    for format in ["human", "json", "junit"] {
        let ended = project.run(&["test", "--timeout", "50ms", "--format", format]);
        assert_eq!(ended.code, Some(1));
        let shown = ended.stdout + &ended.stderr;
        assert!(shown.len() < 2_000_000, "{format}: {}", shown.len());
        let is_harmful = |c: char| c != '\n' && (c.is_control() || (format == "human" && c == '\u{202e}'));
        assert!(!shown.contains(is_harmful), "{format}");
    }
}

fn subject(script: Script) -> TestSubject {
    let validate = |value: Value| {
        Arguments::try_from(value)
            .map_err(|error| ToolError::new(ToolErrorKind::InvalidArguments, error.to_string()))
    };
    let entry = ToolEntry::new(ToolKind::Normal, json!({}), None).unwrap();
    TestSubject {
        script: Arc::new(script),
        entry: Arc::new(entry),
        validate: Arc::new(validate),
        authorize: Arc::new(|_| Ok(())),
    }
}

fn run_on(test: &str, tool: impl Fn() -> Script + Send + Sync + 'static) -> TestOutcome {
    let find = move |_: &str| Ok(subject(tool()));
    let script = Arc::new(Script::new("probe_test", "scripts/probe_test.lua", test));
    let file = TestFile { script, tools: Arc::new(find) };
    assert_eq!(list_tests(&file).unwrap().len(), 1);
    run_test(&file, 0, Duration::from_secs(10))
}

/// A name that does not exist would hide mistakes.
#[test]
fn the_known_globals_of_test_scripts_exist() {
    let own: Vec<String> =
        known_test_globals().into_iter().filter(|name| !known_globals().contains(name)).collect();
    let checks: Vec<String> = own.iter().map(|name| format!("assert({name} ~= nil, '{name}')\n")).collect();
    let checks = checks.concat();
    let outcome = run_on(&format!("test('all', function()\n{checks}end)"), || {
        Script::new("a", "scripts/a.lua", "return function() end")
    });
    assert_eq!(outcome.failure, None);
    assert!(own.contains(&String::from("tool.load")) && own.len() > 7, "{own:?}");
}

/// Fakes replace host functions in the modules of a tool too.
#[test]
fn fakes_apply_to_modules() {
    let tool = || {
        let source =
            "local lib = require('./lib/clock') return function(n) return { lib.now(), time.now(), n } end";
        let mut script = Script::new("probe", "scripts/probe.lua", source);
        script.parameters = vec![Parameter::new("n")];
        let module = "return { now = function() return time.now() end }";
        script.modules = vec![Arc::new(Module::new("scripts/lib/clock.lua", module))].into();
        script
    };
    let end = run_on(
        "test('t', function()
           local probe = tool.load('probe', { time = { now = mock(9) } })
           expect(probe({ n = 1 })).equals({ 9, 9, 1 })
           expect(tool.load('probe')({ n = 1 })).never.equals({ 9, 9, 1 })
         end)",
        tool,
    );
    assert_eq!(end.failure, None);
    assert!(end.tools.contains("probe"));
}

/// A tool has its own memory limit, and the test continues after the error.
#[test]
fn a_tool_has_its_own_limits() {
    let tool = || {
        let mut script =
            Script::new("probe", "scripts/probe.lua", "return function() return #string.rep('x', 3e6) end");
        script.memory = Some(1 << 20);
        script
    };
    let test = "test('t', function()
        expect(tool.load('probe')).fails({ kind = 'memory', message = '1024 KiB' })
        expect(#string.rep('x', 3e6)).is(3e6)
      end)";
    assert_eq!(run_on(test, tool).failure, None);
}

/// Values are copied between states. Functions fail after their state has ended, and unsupported values are errors.
#[test]
fn values_are_copied_between_states() {
    let tool = || {
        let source = "return function()
            local seen = {}
            http.get(function(x) seen[#seen + 1] = x return x + 1 end, { 1, { 2 } }, buffer.fromstring('b'))
            local deep = {} deep.deep = deep
            local ok, cycle = pcall(http.get, deep)
            local ok2, thread = pcall(http.get, coroutine.create(print))
            return { seen = seen, cycle = cycle, thread = thread }
          end";
        Script::new("probe", "scripts/probe.lua", source)
    };
    let test = "local kept
      test('t', function()
        local get = function(called, list, bytes)
          kept = called
          expect(called(1)).is(2)
          expect(list).equals({ 1, { 2 } })
          expect(buffer.tostring(bytes)).is('b')
        end
        local result = tool.load('probe', { http = { get = get } })()
        expect(result.seen).equals({ 1 })
        expect(result.cycle).contains('contains itself')
        expect(result.thread).contains('cannot pass a thread')
        expect(function() kept(1) end).fails('has ended')
      end)";
    assert_eq!(run_on(test, tool).failure, None);
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_the_tests_and_removes_their_folders() {
    let project = project();
    project.write(
        "scripts/count_test.lua",
        "test(\"t\", function() temp.write(\"a\", \"\") while true do end end)",
    );
    let mut child = project.spawn(&["test", "--timeout", "60s"]);
    let of_child = |folder: &PathBuf| folder.to_string_lossy().contains(&format!("test-{}-", child.id()));
    let started = Instant::now();
    while !folders().iter().any(of_child) {
        assert!(started.elapsed() < deftool_test_support::HANG_LIMIT, "the test does not start");
        std::thread::yield_now();
    }
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let id = child.id();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!folders().iter().any(|folder| folder.to_string_lossy().contains(&format!("test-{id}-"))));
}

/// Access outside of the project must be faked, excluded by grants or trusted. Other tests need no trust.
#[test]
fn tests_require_trust_for_external_access() {
    let project = Project::new();
    project.write(
        "specs/a.eld",
        "(deftool :name \"fetch\" :description \"Fetch the news.\" :args () :allow (:net [\"127.0.0.1:9\"] :write [\"out\"]))",
    );
    let script = "return function() local r = http.get('http://127.0.0.1:9/') fs.write('out/x', r.body, { parents = true }) return r.status end";
    project.write("scripts/fetch.lua", script);
    let tests = "
        test('replaced', function()
          local fakes = { http = { get = mock({ status = 200, body = 'b' }) }, root = temp_dir() }
          expect(tool.load('fetch', fakes)({})).is(200)
          expect(temp.read('out/x')).is('b')
        end)
        test('narrowed', function()
          local fetch = tool.load('fetch', { grants = { net = {}, write = {} } })
          expect(function() fetch({}) end).fails({ kind = 'permission', message = '127.0.0.1:9' })
        end)
        test('real', function()
          expect(function() tool.load('fetch')({}) end).fails({ kind = 'script' })
        end)";
    project.write("scripts/fetch_test.lua", tests);
    let ended = project.run(&["test"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("ok   replaced") && ended.stdout.contains("ok   narrowed"), "{ended:?}");
    assert!(ended.stdout.contains("FAIL real") && ended.stdout.contains("deftool trust grant"), "{ended:?}");
    let ended = project.run(&["test", "--trust"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// Programs receive the variables of the spec even if `env` is faked.
#[cfg(unix)]
#[test]
fn variables_of_programs_require_trust_even_if_env_is_faked() {
    let project = Project::new();
    project.write(
        "specs/a.eld",
        "(deftool :name \"show\" :description \"Show the home.\" :args () :allow (:run [\"printenv\"] :env [\"HOME\"]))",
    );
    project
        .write("scripts/show.lua", "return function() return process.run({ 'printenv', 'HOME' }).stdout end");
    let tests = "
        test('passed', function() tool.load('show', { env = { get = mock('x') } })({}) end)
        test('no program', function()
          local show = tool.load('show', { env = { get = mock('x') }, grants = { run = {} } })
          expect(function() show({}) end).fails({ kind = 'permission', message = 'printenv is not allowed' })
        end)";
    project.write("scripts/show_test.lua", tests);
    let ended = project.run(&["test"]);
    assert!(ended.stdout.contains("FAIL passed") && ended.stdout.contains("ok   no program"), "{ended:?}");
    assert!(ended.stdout.contains("HOME"), "{ended:?}");
}

/// Links in a cloned project cannot load files from outside as scripts, modules or tests.
#[cfg(unix)]
#[test]
fn script_links_out_of_the_project_are_rejected() {
    let (project, outside) = (project(), tempfile::tempdir().unwrap());
    let secret = outside.path().join("secret.lua");
    fs::write(&secret, "return function() return 'hunter2' end").unwrap();
    let link = |name: &str| {
        let _ = fs::remove_file(project.path(name));
        std::os::unix::fs::symlink(&secret, project.path(name)).unwrap();
    };
    let rejected = |arguments: &[&str]| {
        let ended = project.run(arguments);
        assert_ne!(ended.code, Some(0), "{arguments:?} {ended:?}");
        let output = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!output.contains("hunter2"), "{arguments:?} {ended:?}");
        assert!(output.contains("leads out of the project to"), "{arguments:?} {ended:?}");
    };
    link("scripts/other.lua");
    rejected(&["check"]);
    rejected(&["call", "other"]);
    project.write("scripts/lib/own.lua", "return function() return 1 end");
    link("scripts/lib/s.lua");
    fs::remove_file(project.path("scripts/other.lua")).unwrap();
    project.write("scripts/other.lua", "return require('./lib/s')");
    rejected(&["check"]);
    project.write("scripts/other.lua", OTHER);
    project.write("scripts/lib_test.lua", "test('lib', function() expect(require('./lib/s')()).is('x') end)");
    let ended = project.run(&["test", "scripts/lib_test.lua"]);
    assert!(ended.code == Some(1) && !ended.stdout.contains("hunter2"), "{ended:?}");
    link("scripts/lib_test.lua");
    rejected(&["test"]);
    // The whole folder may be a link, as in some setups.
    fs::remove_file(project.path("scripts/lib_test.lua")).unwrap();
    fs::remove_file(project.path("scripts/lib/s.lua")).unwrap();
    fs::rename(project.path("scripts"), outside.path().join("scripts")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("scripts"), project.path("scripts")).unwrap();
    assert_eq!(project.run(&["test"]).code, Some(0));
}

/// A tool that may move files can move a link into the test's folder or to a path that is granted to another tool.
#[cfg(unix)]
#[test]
fn moved_links_give_no_access_to_their_targets() {
    let (project, outside) = (Project::new(), tempfile::tempdir().unwrap());
    let secret = outside.path().join("secret");
    fs::write(&secret, "kept").unwrap();
    project.write(
        "specs/a.eld",
        "(deftool :name \"move\" :description \"Rename a file.\" :allow (:write [\"out\"]) :args ((:name \"from\" :type \
         string :description \"The old name.\") (:name \"to\" :type string :description \"The new name.\")))
         (deftool :name \"get\" :description \"Read a secret.\" :args () :allow (:read [\"out/data\"]))",
    );
    project.write("scripts/move.lua", "return function(from, to) fs.rename(from, to) return 1 end");
    project.write("scripts/get.lua", "return function() return fs.read('out/data/secret') end");
    project.write("out/.keep", "");
    let tests = "
        test('read', function()
          tool.load('move', { grants = { write = { 'out', temp_dir() } } })({ from = 'out/file', to = temp_dir() .. '/link' })
          expect(function() temp.read('link') end).fails('outside')
          expect(function() temp.write('link', 'lost') end).fails('outside')
        end)
        test('swap', function()
          local get = tool.load('get')
          tool.load('move')({ from = 'out/folder', to = 'out/data' })
          expect(function() get({}) end).fails({ kind = 'permission', message = 'deftool trust grant' })
        end)";
    project.write("scripts/move_test.lua", tests);
    std::os::unix::fs::symlink(&secret, project.path("out/file")).unwrap();
    std::os::unix::fs::symlink(outside.path(), project.path("out/folder")).unwrap();
    let state = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        Ended::of(project.command(arguments).env("XDG_STATE_HOME", state.path()).output().unwrap())
    };
    assert_eq!(run(&["trust", "grant"]).code, Some(0));
    let ended = run(&["test"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "kept");
}

/// Comparing and copying tables with many shared references is limited.
#[test]
fn comparing_and_copying_huge_tables_is_limited() {
    let project = project();
    project.write(
        "scripts/count_test.lua",
        "test('contains', function()
           local one, other = { 1 }, { 1 }
           for i = 1, 60 do one, other = { one, one }, { other, other } end
           expect({ one }).contains(other)
         end)
         test('copied', function()
           local text, list = string.rep('x', 1e6), {}
           for i = 1, 1e4 do list[i] = text end
           tool.load('other', { time = { now = mock(list) } })({})
         end)",
    );
    project.write("scripts/other.lua", "return function() return #time.now() end");
    let ended = project.run(&["test"]);
    for fragment in ["the values are too large to compare", "contains itself or is too large"] {
        assert!(ended.stdout.contains(fragment), "{ended:?}");
    }
}
