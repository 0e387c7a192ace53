//! Runs the console blocks of the README and of the pages in `docs`: each command must print the output shown below it.
//!
//! A line `$ command` runs in a copy of the repository's examples. The lines up to the next command are its expected
//! output, stdout and stderr together; `[..]` matches any text within a line. `cd` changes the folder of later commands.
//! `cargo run -q --` stands for the built binary. Only blocks marked `console` run. `UPDATE_EXPECT=1` updates the output.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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

fn run(command: &str, folder: &Path) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_deftool"));
    let command = command.replace("cargo run -q --", "deftool");
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", &format!("({command}) 2>&1")])
        .current_dir(folder)
        .env("PATH", path)
        .env("XDG_STATE_HOME", STATE)
        .env_remove("OPENAI_BASE_URL")
        .env_remove("OPENAI_API_KEY")
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn is_match(pattern: &str, line: &str) -> bool {
    let mut pieces = pattern.split("[..]");
    let first = pieces.next().unwrap_or("");
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let pieces: Vec<&str> = pieces.collect();
    for (index, piece) in pieces.iter().enumerate() {
        let found = if index + 1 == pieces.len() {
            rest.ends_with(piece).then(|| rest.len() - piece.len())
        } else {
            rest.find(piece)
        };
        let Some(at) = found else { return false };
        rest = &rest[at + piece.len()..];
    }
    !pieces.is_empty() || rest.is_empty()
}

fn is_same(expected: &str, got: &str) -> bool {
    let (expected, got): (Vec<_>, Vec<_>) =
        (expected.trim_end().lines().collect(), got.trim_end().lines().collect());
    expected.len() == got.len()
        && expected.iter().zip(&got).all(|(pattern, line)| is_match(pattern, line.trim_end()))
}

/// Runs the commands of one page. Returns the page with the actual output, the differences and the number of commands.
fn run_page(page: &str, folder: &Path) -> (String, Vec<String>, usize) {
    let mut folder = folder.to_owned();
    let mut written = String::new();
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        written.push_str(line);
        written.push('\n');
        if line != "```console" {
            continue;
        }
        while let Some(line) = lines.next_if(|line| *line != "```") {
            let command =
                line.strip_prefix("$ ").unwrap_or_else(|| panic!("expected a command, found {line:?}"));
            let mut expected = String::new();
            while let Some(output) = lines.next_if(|line| *line != "```" && !line.starts_with("$ ")) {
                expected.push_str(output);
                expected.push('\n');
            }
            count += 1;
            written.extend(["$ ", command, "\n"]);
            let got = match command.strip_prefix("cd ") {
                Some(to) => {
                    folder = folder.join(to);
                    String::new()
                }
                None => run(command, &folder),
            };
            if is_same(&expected, &got) {
                written.push_str(&expected);
            } else {
                wrong.push(format!("$ {command}\nexpected:\n{expected}\nprinted:\n{got}"));
                written.push_str(got.trim_end());
                written.push('\n');
            }
        }
    }
    (written, wrong, count)
}

/// Runs the commands of the page at `path`. Returns their number, or the differences.
fn check_page(path: &Path) -> Result<usize, String> {
    let folder = tempfile::tempdir().unwrap();
    copy_folder(&root().join("examples"), &folder.path().join("examples"));
    let page = fs::read_to_string(path).unwrap();
    let (written, wrong, count) = run_page(&page, folder.path());
    if std::env::var("UPDATE_EXPECT").is_ok() {
        fs::write(path, written).unwrap();
        return Ok(count);
    }
    if wrong.is_empty() { Ok(count) } else { Err(format!("{}:\n{}", path.display(), wrong.join("\n\n"))) }
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
        let checks: Vec<_> = pages.iter().map(|page| scope.spawn(move || check_page(page))).collect();
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
    let mut lines = page.lines();
    let mut files = 0;
    while let Some(line) = lines.next() {
        let Some((_, name)) = line.strip_prefix("```").and_then(|block| block.split_once(' ')) else {
            continue;
        };
        let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text.join("\n") + "\n").unwrap();
        files += 1;
    }
    assert_eq!(files, 6);
    let printed = run("deftool check --strict && deftool test", folder.path());
    assert!(printed.contains("6 tests in 3 files: 6 ok") && !printed.contains("FAIL"), "{printed}");
}
