//! Console pages: Markdown files whose commands run, and print the output shown below them.
//!
//! In a block marked `console`, a line `$ command` runs in a shell; lines that begin with `> ` continue the command. The
//! lines up to the next command are its expected output; `[..]` matches any text within a line. `cd` changes the folder
//! of later commands. `UPDATE_EXPECT=1` updates the output, and keeps each `[..]` that still matches. A block marked `sh` is
//! a script without expected output.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::project::INHERITED;

/// A part of a page.
pub(crate) enum Part<'a> {
    /// A heading of the second level.
    Section,
    /// A block with a file name in its first line.
    File { name: &'a str, text: &'a str },
    /// A command in a console block.
    Command(&'a str),
    /// A script. The result is empty, or describes the failure.
    Script(&'a str),
}

/// Reports whether the page is updated instead of compared.
fn updates_expected() -> bool {
    std::env::var_os("UPDATE_EXPECT").is_some()
}

/// Runs the parts of the page at `path`: `run` returns the output of a command. Returns the number of commands, or the
/// differences.
pub(crate) fn check_page(path: &Path, run: impl FnMut(Part<'_>) -> String) -> Result<usize, String> {
    let page = fs::read_to_string(path).unwrap();
    let (written, wrong, count) = run_page(&page, run);
    if updates_expected() {
        if written != page {
            fs::write(path, written).unwrap();
        }
        return Ok(count);
    }
    if wrong.is_empty() { Ok(count) } else { Err(format!("{}:\n{}", path.display(), wrong.join("\n\n"))) }
}

/// Returns the page with the actual output, the differences and the number of commands.
pub(crate) fn run_page(page: &str, mut run: impl FnMut(Part<'_>) -> String) -> (String, Vec<String>, usize) {
    let mut written = String::new();
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut rest = page;
    while let Some((line, after)) = next_line(rest) {
        written.push_str(line);
        rest = after;
        if line.starts_with("## ") {
            run(Part::Section);
        }
        let Some(info) = line.trim_end().strip_prefix("```") else { continue };
        let block;
        (block, rest) = rest.split_at(end_of_block(rest));
        if info == "console" {
            for (command, expected) in commands(block) {
                count += 1;
                written.extend(["$ ", command]);
                let output = run(Part::Command(&command.trim_end().replace("\n> ", "\n")));
                if is_same(expected, &output) {
                    written.push_str(expected);
                } else {
                    wrong.push(format!("$ {command}expected:\n{expected}\nprinted:\n{output}"));
                    written.push_str(&updated(expected, &output));
                }
            }
        } else {
            if info == "sh" {
                count += 1;
                let failure = run(Part::Script(block));
                if !failure.is_empty() {
                    wrong.push(format!("{block}failed:\n{failure}"));
                }
            } else if let Some((_, name)) = info.split_once(' ') {
                run(Part::File { name, text: block });
            }
            written.push_str(block);
        }
        if let Some((fence, after)) = next_line(rest) {
            written.push_str(fence);
            rest = after;
        }
    }
    (written, wrong, count)
}

/// Splits off the first line, with its line end.
fn next_line(text: &str) -> Option<(&str, &str)> {
    (!text.is_empty()).then(|| text.split_at(text.find('\n').map_or(text.len(), |end| end + 1)))
}

/// Returns the length of the text before the next fence.
fn end_of_block(text: &str) -> usize {
    if text.starts_with("```") { 0 } else { text.find("\n```").map_or(text.len(), |end| end + 1) }
}

/// Returns the commands of a console block, each with its expected output.
fn commands(block: &str) -> Vec<(&str, &str)> {
    let mut rest = block.strip_prefix("$ ").unwrap_or_else(|| panic!("expected a command, found {block:?}"));
    let mut found = Vec::new();
    while let Some((command, after)) = rest.split_once("\n$ ") {
        found.push(split_command(&rest[..=command.len()]));
        rest = after;
    }
    found.push(split_command(rest));
    found
}

/// Splits a command from its expected output.
fn split_command(text: &str) -> (&str, &str) {
    let mut end = 0;
    while let Some((line, _)) = next_line(&text[end..])
        && (end == 0 || line.starts_with("> "))
    {
        end += line.len();
    }
    text.split_at(end)
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

fn is_same(expected: &str, output: &str) -> bool {
    let (expected, output): (Vec<_>, Vec<_>) =
        (expected.trim_end().lines().collect(), output.trim_end().lines().collect());
    expected.len() == output.len()
        && expected.iter().zip(&output).all(|(pattern, line)| is_match(pattern, line.trim_end()))
}

/// Returns the output with the patterns of the expected output that still match a line.
fn updated(expected: &str, output: &str) -> String {
    let patterns: Vec<&str> = expected.lines().filter(|line| line.contains("[..]")).collect();
    let mut text = String::new();
    for line in output.trim_end().lines().map(str::trim_end) {
        let kept = patterns.iter().copied().find(|pattern| is_match(pattern, line));
        text.extend([kept.unwrap_or(line), "\n"]);
    }
    text
}

/// Variables of the user that a page does not inherit, either.
const OF_USER: [&str; 4] = ["NO_COLOR", "CLICOLOR_FORCE", "DEFTOOL_CONFIG_DIR", "XDG_CONFIG_HOME"];

/// A shell for the commands of a page. Its variables, except `PATH`, do not depend on the user.
pub(crate) struct Shell {
    pub(crate) folder: PathBuf,
    /// The folder of the state, which is also the home folder.
    pub(crate) state: PathBuf,
}

impl Shell {
    /// Runs the command. Returns `None` for `cd`, which changes the folder.
    pub(crate) fn run(&mut self, command: &str) -> Option<Output> {
        if let Some(to) = command.strip_prefix("cd ") {
            self.folder = self.folder.join(to);
            return None;
        }
        let binaries = Path::new(env!("CARGO_BIN_EXE_deftool")).parent().unwrap();
        let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(&self.folder).stdin(Stdio::null());
        for name in INHERITED.iter().chain(&OF_USER) {
            shell.env_remove(name);
        }
        shell.env("PATH", path).env("XDG_STATE_HOME", &self.state).env("HOME", &self.state);
        Some(shell.output().unwrap())
    }
}

/// Writes a file of a page.
pub(crate) fn write_file(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}
