//! Runs the commands of the README and of the pages in `docs`: each command of a console block must print the output shown
//! below it, and each `sh` block, and each command that prints nothing, must exit with 0.
//!
//! They run in a copy of the repository's examples, with a home folder of their own. The output is stdout and stderr
//! together, without the exit code. In `sh` blocks, a stub server is the model at `OPENAI_BASE_URL` and at the address
//! that the pages use for a local server.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::support::pages::{Part, Shell, check_page, run_page, write_file};

/// What a block needs that its page does not show.
#[derive(Clone, Copy)]
enum Needs {
    /// More than this machine has: the block does not run.
    Absent(&'static str),
    /// Commands before it.
    Before(&'static str),
}

use Needs::{Absent, Before};

/// The `sh` blocks that do not run as they are: the page, the start of the block, and what it needs.
const BLOCKS: [(&str, &str, Needs); 30] = [
    ("README.md", "cargo run", Absent("`.ci/run` runs these commands")),
    ("README.md", "cargo install", Absent("a second build of deftool")),
    ("README.md", "deftool run \"Tidy", Before("echo '{\"prompt\": \"Hello\"}' > jobs.jsonl")),
    (
        "ci.md",
        "deftool check    ",
        Before("mkdir packages; cp -r examples/ci packages/words; cp -r examples/quickstart packages/maps"),
    ),
    ("ci.md", "deftool check tools.json", Absent("an MCP server on the network")),
    ("ci.md", "deftool check --format", Before("cd packages/words")),
    (
        "ci.md",
        "deftool check lisp",
        Before("git init -q; cp -r examples/from-gptel/specs lisp; git add lisp"),
    ),
    ("ci.md", "deftool compile", Before("cd packages/words")),
    (
        "ci.md",
        "deftool diff",
        Before("cd packages/words; git init -q; git add .; git commit -qm old; git branch origin/main"),
    ),
    ("commands.md", "deftool check", Before("cd examples/quickstart")),
    (
        "commands.md",
        "deftool run \"Explain",
        Before(concat!(
            "cd examples/quickstart; git init -q; mkdir src; echo 'fn main() {}' > src/main.rs; echo 'Why?' > question.txt; ",
            "cp ",
            env!("CARGO_MANIFEST_DIR"),
            "/docs/images/view.png picture.png",
        )),
    ),
    ("commands.md", "deftool run \"Which", Before(EXIT_TOOLS)),
    ("editors.md", "cd editors/vscode", Absent("Node, a package registry and VS Code")),
    (
        "fmt.md",
        "deftool fmt",
        Before("cd examples/from-gptel; cp specs/notes.eld tools.eld; mkdir lisp; cp specs/tools.el lisp"),
    ),
    (
        "gptel.md",
        "deftool check",
        Before(
            "mkdir ~/.emacs.d; cd ~/.emacs.d; echo '#+begin_src emacs-lisp' > config.org; \
             cat \"$OLDPWD/specs/tools.el\" >> config.org; echo '#+end_src' >> config.org",
        ),
    ),
    ("import.md", "llm tools", Absent("llm")),
    ("import.md", "baml-cli", Absent("BAML")),
    ("mcp.md", "export MY_TOKEN", Absent("somebody who stops the server")),
    ("recipes.md", "claude mcp add --scope user tools", Absent("Claude Code")),
    ("recipes.md", "claude mcp add --scope user deftool", Absent("Claude Code")),
    ("recipes.md", "jq -Rs", Before("printf 'two\\none\\n' > names.txt")),
    ("recipes.md", "git subtree", Absent("a remote repository")),
    ("recipes.md", "deftool call statistics", Absent("Python, Node and Emacs")),
    ("replay.md", "deftool run", Before("cp -r examples/quickstart paris; cd paris")),
    ("scale-out.md", "examples/restate/start n1 /var/lib/restate &", Absent("Restate")),
    ("scale-out.md", "examples/restate/start n1 /var/lib/restate 10", Absent("three machines with Restate")),
    ("scale-out.md", "curl -X PATCH", Absent("Restate")),
    (
        "stub.md",
        "deftool stub",
        Before("printf '#!/bin/sh\\nexec deftool run \"$@\"\\n' > my-agent; chmod +x my-agent; PATH=.:$PATH"),
    ),
    ("telemetry.md", "pip install", Absent("a package registry and Phoenix")),
    (
        "view.md",
        "deftool view",
        Before(
            "echo '{\"prompt\": \"Hello\"}' > jobs.jsonl; deftool run --batch jobs.jsonl --journal jobs.journal",
        ),
    ),
];

/// A project with exit tools that its model calls.
const EXIT_TOOLS: &str = r#"
mkdir -p cities/specs; cd cities; git init -q; echo Oslo > report.txt; git add .; export GIT_EDITOR='echo Fix >'
echo '(defexit :name "cities" :description "Report cities." :args ((:name "names" :type array :items (:type string) :description "Names.")))
(defexit :name "done" :description "Report the end.")' > specs/tools.eld
echo '(defscenario :name "calls" (reply (call "cities" (:names ["Oslo"])) (call "done" ())))' > calls.eld
deftool() { command deftool stub calls.eld --quiet -- deftool "$@"; }
"#;

/// The address of a local server in the pages.
const LOCAL: &str = "http://127.0.0.1:8080/v1";

/// A stub server for the scripts of the pages. It ends with the value, which closes its stdin.
struct Stub {
    process: Child,
    address: String,
}

impl Stub {
    fn start() -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_deftool"))
            .args(["stub", "--quiet", "--until-stdin-closes"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("READY ").unwrap().to_owned();
        Self { process, address }
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Returns a shell in `folder`, whose home folder is `home` beside it.
fn shell_in(folder: &Path) -> Shell {
    let state = folder.with_extension("home");
    fs::create_dir_all(&state).unwrap();
    Shell { folder: folder.to_owned(), state }
}

/// Returns what a command printed, or its exit code if it failed without output.
fn run(shell: &mut Shell, command: &str) -> String {
    let command = if command.starts_with("cd ") { command } else { &format!("({command}) 2>&1") };
    shell.run(command).map_or_else(String::new, |output| match String::from_utf8(output.stdout).unwrap() {
        text if text.is_empty() && !output.status.success() => format!("{}\n", output.status),
        text => text,
    })
}

/// Runs a script after `before`, with `address` as the model server. Returns its output if it failed.
fn run_script(shell: &mut Shell, before: &str, script: &str, address: &str) -> String {
    let variables = "GIT_AUTHOR_NAME=me GIT_AUTHOR_EMAIL=me@example.org GIT_COMMITTER_NAME=me \
                     GIT_COMMITTER_EMAIL=me@example.org";
    let script = script.replace(LOCAL, address);
    let script =
        format!("exec 2>&1; set -e; export OPENAI_BASE_URL={address} {variables}\n{before}\n{script}");
    let Output { status, stdout, .. } = shell.run(&script).unwrap();
    if status.success() {
        return String::new();
    }
    format!("{}{status}\n", String::from_utf8_lossy(&stdout))
}

/// Returns the index of the row of a block, and what the block needs.
fn needs(page: &Path, block: &str) -> Option<(usize, Needs)> {
    let row = BLOCKS.iter().position(|(name, start, _)| page.ends_with(name) && block.starts_with(start))?;
    Some((row, BLOCKS[row].2))
}

/// Runs the commands of the page at `path`. Returns their number, or the differences.
fn check(path: &Path, address: &str) -> Result<usize, String> {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work");
    copy_folder(&root().join("examples"), &work.join("examples"));
    let mut shell = shell_in(&work);
    check_page(path, |part| match part {
        Part::Command(command) => run(&mut shell, command),
        Part::Script(block) => match needs(path, block) {
            Some((_, Absent(_))) => String::new(),
            Some((_, Before(before))) => run_script(&mut shell, before, block, address),
            None => run_script(&mut shell, "", block, address),
        },
        Part::Section | Part::File { .. } => String::new(),
    })
}

/// The README and the pages in `docs`, without `docs/language.md`, whose examples are run by the tests of the language.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    let entries = fs::read_dir(root().join("docs")).unwrap();
    pages.extend(entries.map(|entry| entry.unwrap().path()).filter(|path| {
        path.extension().is_some_and(|extension| extension == "md") && !path.ends_with("language.md")
    }));
    pages
}

#[test]
fn commands_of_all_pages_print_the_shown_output() {
    let (pages, stub) = (pages(), Stub::start());
    let results: Vec<Result<usize, String>> = std::thread::scope(|scope| {
        let checks: Vec<_> = pages.iter().map(|page| scope.spawn(|| check(page, &stub.address))).collect();
        checks.into_iter().map(|check| check.join().unwrap()).collect()
    });
    let (counts, wrong): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert!(
        wrong.is_empty(),
        "{}",
        wrong.into_iter().filter_map(Result::err).collect::<Vec<_>>().join("\n\n")
    );
    let count: usize = counts.into_iter().filter_map(Result::ok).sum();
    assert!(count >= 90, "the pages have only {count} commands");
}

/// Each row of `BLOCKS` stands for one block.
#[test]
fn the_blocks_with_needs_exist() {
    let mut found = [0; BLOCKS.len()];
    for path in pages() {
        run_page(&fs::read_to_string(&path).unwrap(), |part| {
            if let Part::Script(block) = part
                && let Some((row, _)) = needs(&path, block)
            {
                found[row] += 1;
            }
            String::new()
        });
    }
    for ((page, start, needs), found) in BLOCKS.iter().zip(found) {
        let (Absent(what) | Before(what)) = needs;
        assert_eq!(found, 1, "{page}: blocks that begin with `{start}` and need {what}");
    }
}

/// The page's blocks with a file name form a project without findings whose tests pass.
#[test]
fn testing_page_project_passes_its_tests() {
    let page = fs::read_to_string(root().join("docs/testing.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut files = 0;
    run_page(&page, |part| {
        if let Part::File { name, text } = part {
            write_file(&folder.path().join("work"), name, text);
            files += 1;
        }
        String::new()
    });
    assert_eq!(files, 6);
    let folder = folder.path().join("work");
    let printed = run(&mut shell_in(&folder), "deftool check --strict && deftool test");
    assert!(printed.contains("6 tests in 3 files: 6 ok") && !printed.contains("FAIL"), "{printed}");
}

/// The gate runs the README's two commands, as they are written there.
#[test]
fn the_gate_runs_the_commands_of_the_readme() {
    let read = |name: &str| fs::read_to_string(root().join(name)).unwrap();
    let (readme, gate) = (read("README.md"), read(".ci/run"));
    let commands: Vec<&str> =
        readme.lines().filter(|line| line.starts_with("cargo run") || *line == "cargo test").collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    for command in commands {
        let runs = |line: &str| {
            ["step", "step_tests"].iter().any(|step| line.ends_with(&format!("{step} {command}")))
        };
        assert!(gate.lines().any(runs), "{command}");
    }
}
