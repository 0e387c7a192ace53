//! Runs the console blocks of the README and of the pages in `docs`: each command must print the output shown below it.
//!
//! The commands run in a copy of the repository's examples. Their output is stdout and stderr together, without the exit
//! code. `cargo run -q --` stands for the built binary.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::pages::{Part, Shell, check_page, run_page, write_file};
use crate::support::project::STATE;

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

fn shell_in(folder: &Path) -> Shell {
    Shell { folder: folder.to_owned(), state: STATE.into() }
}

fn run(shell: &mut Shell, command: &str) -> String {
    let command = command.replace("cargo run -q --", "deftool");
    let command = if command.starts_with("cd ") { command } else { format!("({command}) 2>&1") };
    shell.run(&command).map_or_else(String::new, |output| String::from_utf8(output.stdout).unwrap())
}

/// Runs the commands of the page at `path`. Returns their number, or the differences.
fn check(path: &Path) -> Result<usize, String> {
    let folder = tempfile::tempdir().unwrap();
    copy_folder(&root().join("examples"), &folder.path().join("examples"));
    let mut shell = shell_in(folder.path());
    check_page(path, |part| match part {
        Part::Command(command) => run(&mut shell, command),
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
    let pages = pages();
    let results: Vec<Result<usize, String>> = std::thread::scope(|scope| {
        let checks: Vec<_> = pages.iter().map(|page| scope.spawn(move || check(page))).collect();
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

/// The page's blocks with a file name form a project without findings whose tests pass.
#[test]
fn testing_page_project_passes_its_tests() {
    let page = fs::read_to_string(root().join("docs/testing.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut files = 0;
    run_page(&page, |part| {
        if let Part::File { name, text } = part {
            write_file(folder.path(), name, text);
            files += 1;
        }
        String::new()
    });
    assert_eq!(files, 6);
    let printed = run(&mut shell_in(folder.path()), "deftool check --strict && deftool test");
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
