//! Arguments and exit codes of `check`, `compile`, `init` and `new`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::project::Project;

const GOOD: &str = "(deftool :name \"good\" :description \"d\" :function #'ignore)\n";
const BAD: &str = "(deftool :name \"bad name\" :description \"d\")\n";

struct Ended {
    code: i32,
    out: String,
    err: String,
}

fn deftool(folder: &Path, arguments: &[&str]) -> Ended {
    let output =
        Command::new(env!("CARGO_BIN_EXE_deftool")).current_dir(folder).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

fn folder_with(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

#[test]
fn exit_codes_distinguish_success_findings_and_usage_errors() {
    let folder =
        folder_with(&[("good.eld", GOOD.as_bytes()), ("bad.eld", BAD.as_bytes()), ("empty.eld", b"")]);
    fs::create_dir(folder.path().join("nothing")).unwrap();
    for (arguments, code) in [
        (vec!["check", "good.eld"], 0),
        (vec!["check", "bad.eld"], 1),
        (vec!["check", "empty.eld"], 0),
        (vec!["check", "good.eld", "gone.eld"], 2),
        (vec!["check", "."], 1),
        (vec!["check"], 2),
        (vec!["compile"], 2),
        (vec!["compile", "good.eld"], 0),
        (vec!["compile", "bad.eld"], 1),
        (vec!["compile", "gone.eld"], 2),
        (vec!["check", "nothing"], 2),
        (vec!["compile", "nothing"], 2),
        (vec!["compile", "--target", "nobody", "good.eld"], 2),
    ] {
        assert_eq!(deftool(folder.path(), &arguments).code, code, "{arguments:?}");
    }
}

/// A folder with `specs/` may belong to another program. A CI job that checks nothing must not pass.
#[test]
fn a_project_without_definitions_is_an_error() {
    for files in [
        &[("specs/a_spec.rb", "describe")][..],
        &[("specs/empty.eld", "")],
        &[("specs/a.eld", "; nothing\n")],
    ] {
        let files: Vec<(&str, &[u8])> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
        let folder = folder_with(&files);
        for command in [&["check"][..], &["check", "--exit-zero"], &["test"], &["compile"]] {
            let ended = deftool(folder.path(), command);
            assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{command:?}: {}", ended.err);
            let expected =
                "specs` contains no tools, workers or MCP servers; add a tool with `deftool new`\n";
            assert!(ended.err.ends_with(expected), "{}", ended.err);
        }
    }
    let folder = folder_with(&[("specs/a_spec.rb", b"describe"), ("empty.eld", b"")]);
    assert_eq!(deftool(folder.path(), &["fmt", "--check"]).code, 2);
    let named = deftool(folder.path(), &["check", "empty.eld"]);
    assert_eq!(named.code, 0, "{}", named.err);
    assert!(named.err.contains("0 tools in 1 file"), "{}", named.err);
    let lisp = folder_with(&[("plain.el", b"(message \"hi\")")]);
    let named = deftool(lisp.path(), &["check", "plain.el"]);
    assert_eq!((named.code, named.err.as_str()), (0, "note: 0 tools in 1 file: nothing was checked\n"));
}

#[test]
fn projects_in_subfolders_are_suggested() {
    let folder = folder_with(&[
        ("a/b/tools/specs/t.eld", GOOD.as_bytes()),
        (".hidden/specs/t.eld", GOOD.as_bytes()),
        ("node_modules/m/specs/t.eld", GOOD.as_bytes()),
        ("a/ruby/specs/t.rb", b""),
    ]);
    let ended = deftool(folder.path(), &["check"]);
    let expected = "contains `specs/`; use the project in `a/b/tools` (-C a/b/tools), or create a project with `deftool init`\n";
    assert_eq!(ended.code, 2);
    assert!(ended.err.ends_with(expected), "{}", ended.err);
    assert_eq!(deftool(folder.path(), &["check", "-C", "a/b/tools"]).code, 0);
    fs::create_dir_all(folder.path().join("specs")).unwrap();
    fs::create_dir_all(folder.path().join("z/specs")).unwrap();
    fs::write(folder.path().join("z/specs/t.eld"), GOOD).unwrap();
    let expected = "; use a project in `a/b/tools`, `z` (-C DIR), or add a tool with `deftool new`\n";
    let ended = deftool(folder.path(), &["check"]);
    assert!(ended.code == 2 && ended.err.ends_with(expected), "{}", ended.err);
}

/// A program that reads JSON gets JSON also if nothing was attempted.
#[test]
fn with_json_errors_are_printed_as_json() {
    let folder = folder_with(&[("good.eld", GOOD.as_bytes())]);
    for arguments in [
        &["check", "--format", "json"][..],
        &["check", "--format=json", "gone.eld"],
        &["call", "good", "--json"],
        &["diff", "gone", "good.eld", "--json"],
        &["run", "hello", "--json"],
        &["tools", "--json"],
    ] {
        let ended = deftool(folder.path(), arguments);
        assert_eq!(ended.code, 2, "{arguments:?}: {}", ended.err);
        let json: serde_json::Value =
            serde_json::from_str(&ended.out).unwrap_or_else(|_| panic!("{arguments:?}: {}", ended.out));
        let message = json["error"]["message"].as_str().unwrap();
        assert!(ended.err.contains(message.lines().next().unwrap()), "{} {}", ended.out, ended.err);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_device_is_an_error_and_a_closed_pipe_is_not() {
    let folder = folder_with(&[("bad.eld", BAD.as_bytes()), ("good.eld", GOOD.as_bytes())]);
    let run = |arguments: &[&str], out: std::process::Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deftool"));
        command.current_dir(folder.path()).args(arguments).stdout(out).output().unwrap()
    };
    for arguments in [
        &["check", "--exit-zero", "bad.eld"][..],
        &["check", "--format", "json", "good.eld"],
        &["compile", "good.eld"],
        &["fmt", "--diff", "good.eld"],
    ] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let ended = run(arguments, full.into());
        let err = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{arguments:?}: {err}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = run(arguments, writer.into());
        let err = String::from_utf8_lossy(&ended.stderr);
        assert!(!err.contains("pipe"), "{arguments:?}: {err}");
    }
}

#[test]
fn compile_prints_valid_tools_and_reports_the_others() {
    let folder = folder_with(&[("good.eld", GOOD.as_bytes()), ("bad.eld", BAD.as_bytes())]);
    let ended = deftool(folder.path(), &["compile", "bad.eld", "good.eld"]);
    assert_eq!(ended.code, 1);
    assert!(ended.out.contains("\"good\"") && !ended.out.contains("bad name"), "{}", ended.out);
    assert!(ended.err.contains("DT110") && ended.err.ends_with("1 error; these tools are omitted\n"));
}

#[test]
fn a_binary_file_causes_one_finding() {
    let folder = folder_with(&[
        ("binary.eld", b"(\x00\xff\x01 \"x\" \xfe) foo bar ]"),
        ("latin.eld", b"(deftool :name \"latin\" :description \"caf\xe9\")\n(deftool :name \"plain\" :description \"d\")\n"),
    ]);
    let ended = deftool(folder.path(), &["check", "--format", "concise", "binary.eld"]);
    assert_eq!((ended.code, ended.out.as_str()), (1, "binary.eld:1:3: error[DT008]: invalid UTF-8\n"));
    let ended = deftool(folder.path(), &["compile", "latin.eld"]);
    assert_eq!(ended.code, 1);
    assert!(ended.out.contains("plain") && !ended.out.contains("latin"), "{}", ended.out);
}

#[test]
fn a_file_with_several_names_is_read_once() {
    let folder = folder_with(&[("good.eld", GOOD.as_bytes())]);
    let ended = deftool(folder.path(), &["check", "good.eld", "./good.eld", "."]);
    assert_eq!((ended.code, ended.err.as_str()), (0, "1 tool in 1 file: all good\n"));
}

/// Each project has its own names, scripts and workers.
#[test]
fn several_projects_are_kept_apart() {
    let spec = b"(deftool :name \"t\" :description \"d\")\n(defworker :name \"w\" :tools [\"t\"])\n";
    let folder = folder_with(&[
        ("one/specs/t.eld", spec),
        ("one/scripts/t.lua", b"return function() return 1 end\n"),
        ("two/specs/t.eld", spec),
        ("two/scripts/t.lua", b"return function(a) return a end\n"),
        ("loose.eld", b"(deftool :name \"t\" :description \"d\")\n"),
    ]);
    let ended = deftool(folder.path(), &["check", "--format", "concise", "one", "two", "loose.eld"]);
    let line = "two/scripts/t.lua:1:1: error[DT403]: the function of `t` takes 1 parameter, but the spec has 0 arguments\n";
    assert_eq!((ended.code, ended.out.as_str()), (1, line));
    // A file belongs to its own project, regardless of the current folder, or to no project.
    let specs = folder.path().join("one/specs");
    assert_eq!(deftool(&specs, &["check", "../../two/specs/t.eld"]).code, 1);
    assert_eq!(deftool(&specs, &["check", "../../loose.eld"]).err, "1 tool in 1 file: all good\n");
}

#[test]
fn check_loads_scripts_in_projects_and_compile_does_not() {
    let two = "(gptel-make-tool :name \"a\" :description \"d\" :function #'a)\n(gptel-make-tool :name \"b\" :description \"d\" :function #'b)\n";
    let folder = folder_with(&[
        ("specs/t.eld", b"(deftool :name \"t\" :description \"d\")\n"),
        ("specs/e.el", two.as_bytes()),
        ("loose.el", two.as_bytes()),
    ]);
    let ended = deftool(folder.path(), &["check", "--format", "concise"]);
    assert_eq!(ended.code, 1);
    let codes: Vec<&str> = ended.out.lines().filter_map(|line| line.split(['[', ']']).nth(1)).collect();
    assert_eq!(codes, ["DT405", "DT401"], "{}", ended.out);
    let ended = deftool(folder.path(), &["compile"]);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""));
    assert_eq!(deftool(folder.path(), &["check", "loose.el"]).err, "2 tools in 1 file: all good\n");
}

#[cfg(unix)]
#[test]
fn links_pipes_and_folders_in_place_of_files_are_skipped() {
    use std::os::unix::fs::symlink;

    let folder = folder_with(&[("specs/good.eld", GOOD.as_bytes()), ("specs/deep/more.eld", b"")]);
    let specs = folder.path().join("specs");
    symlink("..", specs.join("loop")).unwrap();
    symlink("self", specs.join("self")).unwrap();
    symlink("good.eld", specs.join("twin.eld")).unwrap();
    symlink("gone.eld", specs.join("dangling.eld")).unwrap();
    fs::create_dir(specs.join("folder.eld")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(specs.join("pipe.eld")).status();
    let ended = deftool(folder.path(), &["compile"]);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""));
    assert_eq!(ended.out.matches("\"good\"").count(), 1, "{}", ended.out);
    if made.is_ok_and(|status| status.success()) {
        let ended = deftool(folder.path(), &["check", "specs/pipe.eld"]);
        assert_eq!(ended.code, 2);
        assert!(ended.err.contains("not a regular file"), "{}", ended.err);
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_or_folder_in_place_of_a_script_is_reported_without_blocking() {
    for (name, make) in [
        ("a pipe", &["mkfifo"][..]),
        ("a device", &["ln", "-s", "/dev/zero"]),
        ("a device to wait for", &["ln", "-s", "/dev/tty"]),
        ("a folder", &["mkdir"]),
    ] {
        let folder = folder_with(&[("specs/good.eld", GOOD.as_bytes()), ("scripts/other.lua", b"return 1")]);
        let place = folder.path().join("scripts/good.lua");
        let made = std::process::Command::new(make[0]).args(&make[1..]).arg(&place).status().unwrap();
        assert!(made.success(), "{name}");
        let ended = deftool(folder.path(), &["check"]);
        let is_reported = ended.out.contains("not a regular file")
            || ended.out.contains("the link leads out of the project");
        assert!(is_reported, "{name}: {}", ended.out);
        assert_eq!(deftool(folder.path(), &["call", "good", "{}"]).code, 1, "{name}");
    }
}

#[test]
fn init_keeps_existing_files() {
    let folder = folder_with(&[("scripts/word_count.lua", b"mine"), ("notes.txt", b""), ("file/specs", b"")]);
    let ended = deftool(folder.path(), &["init"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    // File names are shown relative to the current folder.
    let said = "created  specs/tools.eld\nkept     scripts/word_count.lua\ncreated  sample.recording.jsonl\ncreated  specs/worker.eld\ncreated  .gitignore\nnext:    deftool check ";
    assert!(ended.err.starts_with(said), "{}", ended.err);
    let ended = deftool(folder.path(), &["init", "my agent"]);
    assert!(ended.err.contains("next:    cd 'my agent' && deftool check "), "{}", ended.err);
    assert_eq!(fs::read_to_string(folder.path().join("scripts/word_count.lua")).unwrap(), "mine");
    let ended = deftool(folder.path(), &["init"]);
    assert!(ended.code == 2 && ended.err.contains("is already a project"), "{}", ended.err);
    for path in ["file", "notes.txt"] {
        let ended = deftool(folder.path(), &["init", path]);
        assert!(ended.code == 2 && ended.err.contains("exists and is not a directory"), "{}", ended.err);
    }
}

#[test]
fn new_accepts_names_that_apis_accept() {
    let folder = folder_with(&[("specs/good.eld", GOOD.as_bytes()), ("specs/there.eld", b"")]);
    let long = "a".repeat(65);
    for name in ["", "a b", "../x", "a/b", "é", "good", "there", "-x", &long] {
        let ended = deftool(folder.path(), &["new", "--", name]);
        assert_eq!(ended.code, 2, "{name}: {}", ended.err);
        assert!(ended.err.starts_with("error: "), "{}", ended.err);
    }
    assert_eq!(fs::read_dir(folder.path().join("specs")).unwrap().count(), 2);
    let ended = deftool(folder.path(), &["new", "fine-name"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(folder.path().join("scripts/fine-name.lua").is_file());
}

/// The content of an editor buffer is checked in place of the file, in the context of its project.
#[test]
fn stdin_is_checked_under_the_given_file_name() {
    let project = Project::new();
    let check = |arguments: &[&str], text: &[u8]| {
        project.run_with_stdin(&[&["check", "--format", "concise", "-"], arguments].concat(), text)
    };
    let ended = check(&[], b"(deftool :nmae \"now\" :description \"Tell the time.\")\n");
    let expected = "stdin.eld:1:10: error[DT109]: missing `:name` for a tool, found `:nmae`\n";
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), expected));
    let ended = check(&["--stdin-filename", "init.el"], b"\xef\xbb\xbf(setq x 1)\n");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""));
    // Outside of the project's specs, its script is not checked.
    let count = b"(deftool :name \"count\" :description \"Tell how long it is.\")\n";
    assert_eq!(check(&[], count).stdout, "");
    let ended = check(&["--stdin-filename", "specs/tools.eld"], count);
    assert!(ended.stdout.starts_with("scripts/count.lua:1:1: error[DT403]"), "{}", ended.stdout);
    for (arguments, text) in [(&["--fix"][..], &b""[..]), (&["specs"], b""), (&[], b"\xff")] {
        let ended = check(arguments, text);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{arguments:?}: {}", ended.stderr);
    }
}

/// A path without spec files is an error, so that a wrong path in CI is noticed.
#[test]
fn a_path_without_spec_files_is_an_error() {
    let project = Project::empty();
    std::fs::create_dir(project.path("tools")).unwrap();
    let ended = project.run(&["check", "tools"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("no spec files found"), "{}", ended.stderr);
    std::fs::create_dir(project.path("tools/specs")).unwrap();
    assert_eq!(project.run(&["check", "tools"]).code, Some(2));
    assert_eq!(project.run(&["check", "-C", "tools"]).code, Some(2));
}

/// Checking `specs/` also reports project-wide findings.
#[test]
fn the_specs_folder_stands_for_its_project() {
    let project = Project::with_worker("(defworker :name \"w\" :tools [\"zz\"])");
    for path in [&[][..], &["."], &["specs"], &["specs/"]] {
        let ended = project.run(&[&["check", "--format", "concise"], path].concat());
        assert!(ended.stdout.contains("error[DT302]"), "{path:?}: {}", ended.stdout);
    }
}

/// An Emacs Lisp file in another encoding is an error only if it defines a tool.
#[test]
fn emacs_lisp_without_tools_may_have_any_encoding() {
    let tool = "(gptel-make-tool :name \"now\" :description \"Tell the time.\" :function #'now)";
    for (code, exit_code, findings) in [("", 0, 0), (tool, 1, 1)] {
        let file = [b"(setq name \"Ren\xE9\")\n", code.as_bytes()].concat();
        let folder = folder_with(&[("a.el", &file)]);
        let ended = deftool(folder.path(), &["check", "--format", "concise", "a.el"]);
        assert_eq!((ended.code, ended.out.matches("DT008").count()), (exit_code, findings), "{}", ended.out);
    }
}
