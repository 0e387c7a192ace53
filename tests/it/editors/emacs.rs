//! The Emacs packages in a real Emacs, and with the real gptel if it is in `EMACSLOADPATH`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use deftool_test_support::markdown::blocks_in;
use deftool_test_support::server::{Answer, Server, Texts};

use super::features::emacsen;
use super::{are_installed, folder, path_with_deftool, project};
use crate::commands::rpc;
use crate::support::project::{Project, STATE};
use crate::support::terminal::{Piped, Terminal};
use crate::support::watching::LIMIT;

const SEEN_IN_GPTEL: &str = "tool: deftool/broken Fails. never
tool: deftool/careful Change a file. always
tool: text/count Count the characters of a text. never
tool: deftool/guarded Change a file. sometimes
tool: deftool/nested Return the arguments. never
tool: deftool/wait Wait. never
asked: guarded (:path \"/etc\")
text: Done.
compiled: 6 t nil
asked: guarded (:path \"a\")
text: Sorry.
enabled: careful count guarded nested wait
known: careful guarded mended nested wait
broken: deftool: broken, last good version kept: count (N ms): specs/tools.eld:3:29: error[DT204]: unknown type `strng`
kept: Count characters.
";

const SEEN_OF_ERRORS: &str = "success: 4
failure: Error: scripts/broken.lua:1: no luck
null character: Error: Emacs cannot read the result
no JSON value: Error: Wrong type argument: listp, \"b\"
end of the server: Error: `deftool rpc' has ended
not trusted: Error: `wait` was not run: it requires :run [\"sh\"], which is not trusted; review the spec, then run `deftool trust grant`
no program: Error: Cannot find the program `missing-program'; see `deftool-program'
approval without program: t
no project: Error: no project found: neither `HERE` nor a parent folder contains `specs/`; create a project with `deftool init`
approval without project: t
canceled: Error: the user canceled the call
approval that is canceled: t
server that ends at once: Error: no good
end of all servers: reached
missing project: Error: `/missing/' is not a directory
other project: other
";

const SEEN_IN_EMACS: &str = "mode: deftool-mode
findings: 2 {finding} strng
repaired:{space}
face: font-lock-keyword-face
script: deftool-script-mode font-lock-keyword-face
no forms: nil
forms: 2 warning[DT108]: unknown key `:descripton` for a tool :descripton
";

const SEEN_WITH_EGLOT: &str = r#"renamed: (deftool :name "weather" :description "Get the weather."
 :args ((:name "town" :type string :description "The city to look at."))
 :accepts [(:town "Paris")])

script: return function(town) return town end

test: test("a", function() expect(tool.load("weather")({ town = "Rome" })).is("Rome") end)

formatted: (deftool
 :name "weather"
 :description "Get the weather."
 :args ((:name "town" :type string :description "The city to look at."))
 :accepts [(:town "Paris")])

tests: 0
called: "Oslo"

"#;

/// Returns the configuration in `docs/editors.md`.
pub(super) fn documented_setup() -> String {
    let page = fs::read_to_string(folder().join("../../docs/editors.md")).unwrap();
    let documented = blocks_in(&page, "elisp")[0];
    documented.replace("PATH", folder().join("../..").canonicalize().unwrap().to_str().unwrap())
}

/// The package with the language server, and without Eglot.
#[test]
fn emacs_shows_findings_renames_and_formats() {
    if !are_installed() {
        return;
    }
    let setup = documented_setup();
    let checkers = [
        ("flymake", "error[DT204]: unknown type `strng`", ""),
        ("eglot", "deftool [DT204]: unknown type `strng`", SEEN_WITH_EGLOT),
    ];
    let with_each =
        emacsen().into_iter().flat_map(|(program, _)| checkers.map(|with| (program.clone(), with)));
    for (program, (checker, finding, more)) in with_each {
        let project = project();
        let mut command = Command::new(program);
        fs::write(project.path("init.el"), &setup).unwrap();
        fs::write(project.path("plain.el"), "(defun look () \"Look.\" (undefined-function))\n").unwrap();
        command.args(["--batch", "-q", "-l", "init.el", "-l"]).arg(folder().join("emacs.el"));
        command
            .env("HOME", project.path("home"))
            .env("XDG_STATE_HOME", STATE)
            .env("PATH", path_with_deftool());
        command.env("CHECKER", checker).env("RESULT", project.path("result"));
        let ended = command.current_dir(project.path("")).output().unwrap();
        let seen = fs::read_to_string(project.path("result")).unwrap_or_else(|_| panic!("{ended:?}"));
        let expected = SEEN_IN_EMACS.replace("{finding}", finding).replace("{space}", " ") + more;
        assert_eq!(seen, expected, "{ended:?}");
    }
}

#[test]
fn the_emacs_package_compiles_and_has_no_lint() {
    if !are_installed() {
        return;
    }
    let project = Project::empty();
    let mut files = Vec::new();
    for entry in fs::read_dir(folder().join("../../editors/emacs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "el") {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            fs::copy(&path, project.path(&name)).unwrap();
            files.push(name);
        }
    }
    let compile = ["--eval", "(setq byte-compile-error-on-warn t)", "-f", "batch-byte-compile"];
    let main_file = "(setq package-lint-main-file \"deftool.el\")";
    let lint = ["-l", "package-lint", "--eval", main_file, "-f", "package-lint-batch-and-exit"];
    let with_each = emacsen().into_iter().map(|(program, _)| (program, &compile[..]));
    for (program, arguments) in with_each.chain([(PathBuf::from("emacs"), &lint[..])]) {
        let mut command = Command::new(program);
        command.args(["--batch", "-q", "-L", "."]).args(arguments).args(&files);
        command.env("HOME", project.path("home"));
        let ended = command.current_dir(project.path("")).output().unwrap();
        let printed = String::from_utf8_lossy(&ended.stderr) + String::from_utf8_lossy(&ended.stdout);
        let found: Vec<&str> = printed
            .lines()
            // The package-lint of Debian 12 is older than Emacs 28.
            .filter(|line| line.contains(".el:") && !line.contains("uninstallable in all released"))
            .collect();
        assert!(found.is_empty(), "{printed}");
        assert!(ended.status.success() || printed.contains("uninstallable"), "{printed}");
    }
    assert!(files.iter().all(|file| project.path(&format!("{file}c")).exists()), "{files:?}");
}

/// An Emacs in a terminal.
struct EmacsInTerminal {
    terminal: Terminal,
    result: PathBuf,
}

impl EmacsInTerminal {
    /// Types `keys` and waits until the echo area or the current buffer contains `text`.
    fn type_and_wait_for(&mut self, keys: &str, text: &str) -> String {
        self.terminal.type_text(keys);
        let started = Instant::now();
        loop {
            let seen = fs::read_to_string(&self.result).unwrap_or_default();
            if seen.contains(text) {
                return seen;
            }
            assert!(started.elapsed() < LIMIT, "{text:?} is not in {seen:?}: {}", self.terminal.output());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

const SEEN_IN_CONVERSATION: &str = r#"> Count abcd

count {"text":"abcd"} ok
careful {"path":"a"} ok
Call careful path: "a"? refused
It is 4.

> And again?

Still 4.

> "#;

/// `deftool-call`, `deftool-run`, approvals, a second message, and a canceled request.
#[test]
fn emacs_in_a_terminal_calls_tools_and_talks_to_a_worker() {
    if !are_installed() {
        return;
    }
    let two_calls = Answer::calls(&[("count", "{\"text\": \"abcd\"}"), ("careful", "{\"path\": \"a\"}")]);
    let server = Server::script([
        two_calls,
        Answer::text("It is 4."),
        Answer::text("Still 4."),
        Answer::calls(&[("wait", "{}")]),
    ]);
    let project = rpc::project();
    let mut command = Command::new("emacs");
    command.args(["-nw", "-Q", "-L"]).arg(folder().join("../../editors/emacs"));
    command.arg("-l").arg(folder().join("emacs-terminal.el")).current_dir(project.path(""));
    let result = project.path("result");
    command.env("HOME", project.path("home")).env("XDG_STATE_HOME", STATE).env("PATH", path_with_deftool());
    command.env("ARGUMENTS", format!("--trust --endpoint {}", server.endpoint())).env("RESULT", &result);
    let mut emacs = EmacsInTerminal { terminal: Terminal::run(&command, Piped::Nothing), result };
    emacs.type_and_wait_for("", "Lisp evaluation");
    emacs.type_and_wait_for("\x1bxdeftool-call\rcount\rabcdef\r", "6\n");
    emacs.type_and_wait_for("\x1bxdeftool-call\rcareful\rfile\r", "Call `careful' with {\"path\":\"file\"}?");
    emacs.type_and_wait_for("y", "changed file\n");
    emacs.type_and_wait_for("\x1bxdeftool-call\rbroken\r", "no luck");
    emacs.type_and_wait_for("\x1bxdeftool-run\rCount abcd\r", "[Allow] [Refuse]");
    emacs.type_and_wait_for("\t\t\t\t\r", "Reason for the model");
    emacs.type_and_wait_for("not now\r", "It is 4.\n\n> ");
    let seen = emacs.type_and_wait_for("\x1b>And again?\x03\x03", "Still 4.\n\n> ");
    assert!(seen.ends_with(SEEN_IN_CONVERSATION), "{seen}");
    // The result of the first call is hidden.
    emacs.type_and_wait_for("\t\r", "ok\n4\n");
    emacs.type_and_wait_for("\x1b>Wait.\x03\x03", "wait {}");
    emacs.type_and_wait_for("\x03\x0b", "canceled");
    emacs.terminal.type_text("\x18\x03");
    assert_eq!(emacs.terminal.end().code, Some(0));
    let posts = server.posts();
    let messages = posts[2].body["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "assistant", "user"]);
    assert!(messages[4]["content"].as_str().unwrap().contains("not now"), "{}", messages[4]);
}

/// Returns a project without errors.
fn valid_project() -> Project {
    let project = rpc::project();
    let specs = fs::read_to_string(project.path("specs/tools.eld")).unwrap();
    let valid: Vec<&str> = specs.lines().filter(|line| !line.contains("misspelt")).collect();
    project.write("specs/tools.eld", valid.join("\n"));
    project
}

/// Compiles the tools of `project` for gptel, runs `script` in Emacs, and returns its result.
fn seen_with_compiled(project: &Project, script: &str, address: &str) -> String {
    let ended = project.command(&["compile", "--target", "gptel", "-o", "tools.el"]).output().unwrap();
    assert!(project.path("tools.el").exists(), "{ended:?}");
    // Only an Emacs with a terminal or windows ignores this signal, of a server that ends while it is written to.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' PIPE && exec emacs \"$@\"", "emacs", "--batch", "-Q", "-L"]);
    command.arg(folder().join("../../editors/emacs"));
    command.arg("-l").arg(folder().join(script)).current_dir(project.path(""));
    command.env("HOME", project.path("home")).env("XDG_STATE_HOME", STATE).env("PATH", path_with_deftool());
    command.env("ADDRESS", address).env("RESULT", project.path("result"));
    let ended = command.output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    fs::read_to_string(project.path("result")).unwrap_or_else(|_| panic!("{ended:?}"))
}

/// Every error of an exported tool reaches the callback, because gptel waits for it.
#[test]
fn errors_of_exported_tools_reach_the_callback_of_gptel() {
    if !are_installed() {
        return;
    }
    let project = valid_project();
    project.write(
        "specs/zero.eld",
        "(deftool :name \"zero\" :description \"Return a null character.\" :args ())",
    );
    project.write("scripts/zero.lua", "return function() return \"\\0\" end\n");
    project.write(
        "other/specs/a.eld",
        "(deftool :name \"count\" :description \"Count.\" :args ((:name \"text\" :type string :description \"The text.\")))",
    );
    project.write("other/scripts/count.lua", "return function(text) return \"other\" end\n");
    for (name, script) in [("silent", "exec sleep 1000"), ("failing", "echo 'error: no good' >&2; exit 2")] {
        project.write(name, format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(project.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    assert_eq!(seen_with_compiled(&project, "emacs-gptel-errors.el", ""), SEEN_OF_ERRORS);
}

/// gptel offers the tools to a model and calls them, asks for approvals, and follows reloads.
#[test]
fn gptel_uses_the_tools_of_a_project() {
    let has_gptel = || {
        let mut command = Command::new("emacs");
        command.args(["--batch", "-Q", "-l", "gptel"]).output().unwrap().status.success()
    };
    if !are_installed() {
        return;
    }
    if !has_gptel() {
        let _ = writeln!(std::io::stderr(), "skipped: no gptel in EMACSLOADPATH");
        return;
    }
    let calls = [
        ("count", "{\"text\": \"abcd\"}"),
        ("guarded", "{\"path\": \"a\"}"),
        ("guarded", "{\"path\": \"/etc\"}"),
        ("broken", "{}"),
        ("nested", "{\"values\": [null, {\"open\": {}, \"is_set\": false}], \"maybe\": null}"),
    ];
    let compiled_calls = [("count", "{\"text\": \"abcd\"}"), ("guarded", "{\"path\": \"a\"}")];
    let server = Server::script([
        Answer::calls(&calls),
        Answer::text("Done."),
        Answer::calls(&compiled_calls),
        Answer::text("Sorry."),
    ]);
    let project = valid_project();
    project.write(
        "specs/nested.eld",
        "(deftool :name \"nested\" :description \"Return the arguments.\" :args (
 (:name \"values\" :type array :description \"Values.\" :items (:type [\"object\" \"null\"] :properties
  (:open (:type object) :is_set (:type boolean))))
 (:name \"maybe\" :type [\"string\" \"null\"] :description \"A value.\")
 (:name \"missing\" :type string :optional t :description \"A value.\")))",
    );
    project.write(
        "scripts/nested.lua",
        "return function(values, maybe, missing)\n return { values = values, maybe = maybe, missing = missing }\nend\n",
    );
    project.write("scripts/mended.lua", "return function() return 1 end\n");
    assert_eq!(seen_with_compiled(&project, "emacs-gptel.el", &server.address().to_string()), SEEN_IN_GPTEL);
    let posts = server.posts();
    // gptel returns them in reverse order.
    let expected = [
        "{\"maybe\":null,\"values\":[null,{\"is_set\":false,\"open\":{}}]}",
        "Error: scripts/broken.lua:1: no luck",
        "changed /etc",
        "changed a",
        "4",
    ];
    assert_eq!(posts[1].texts("tool"), expected);
    let missing = "Error: `/missing/' is not a directory";
    assert_eq!(posts[3].texts("tool"), [missing, missing]);
}
