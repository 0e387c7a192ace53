//! The fixes of `check --fix`. The command is in `tests/commands/fix.md`.
//!
//! `tests/fix/NAME.eld` (or `.el`) becomes `NAME.fixed.eld`; with `--unsafe-fixes` where NAME begins with `unsafe`.
//! `UPDATE_EXPECT=1` updates the expected output.

use std::fs;
use std::path::{Path, PathBuf};

use deftool_lang::diagnostic::{Severity, apply_fixes};
use deftool_lang::spec::{FileKind, lower};
use deftool_lang::syntax::parse;
use deftool_lang::text::{SourceFile, SourceId, Sources};
use deftool_test_support::step;

use crate::support::project::{Ended, command_in};
use crate::support::repository::repository_files;

/// Returns the content of the file `name` after `check --fix`.
fn fixed(name: &str, content: &[u8], arguments: &[&str]) -> (Vec<u8>, Ended) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    let arguments = [&["check", "--fix", "--format", "concise", name], arguments].concat();
    let ended = Ended::of(command_in(folder.path(), &arguments).output().unwrap());
    (fs::read(path).unwrap(), ended)
}

#[test]
fn fixed_files_match_the_expected_files() {
    let mut count = 0;
    for path in repository_files(&["tests/fix"]) {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        if Path::new(stem).extension().is_some_and(|extension| extension == "fixed") {
            continue;
        }
        count += 1;
        let name = path.file_name().unwrap().to_str().unwrap();
        let guesses: &[&str] = if stem.starts_with("unsafe") { &["--unsafe-fixes"] } else { &[] };
        let (once, ended) = fixed(name, &fs::read(&path).unwrap(), guesses);
        assert!(ended.stderr.starts_with(&format!("fixed    {name}: ")), "{ended:?}");
        let extension = path.extension().unwrap().to_str().unwrap();
        let expected = path.with_file_name(format!("{stem}.fixed.{extension}"));
        if std::env::var("UPDATE_EXPECT").is_ok() {
            fs::write(&expected, &once).unwrap();
        }
        let expected = fs::read(&expected).unwrap_or_default();
        assert_eq!(String::from_utf8_lossy(&once), String::from_utf8_lossy(&expected), "{name}");
        let (twice, ended) = fixed(name, &once, guesses);
        assert_eq!((twice, ended.stderr.as_str()), (once, ""), "{name}");
    }
    assert!(count >= 6);
}

/// Applies the requested fixes to `text` until none is left.
fn fixed_completely(text: &str, kind: FileKind, with_guesses: bool) -> String {
    let mut now = text.to_owned();
    for _ in 0..32 {
        let (tree, mut findings) = parse(source(), &now);
        findings.extend(lower(source(), &now, &tree, kind).1);
        let fixes = findings.into_iter().filter_map(|finding| finding.fix);
        let fixes: Vec<_> = fixes.filter(|fix| fix.is_safe || with_guesses).collect();
        let fixed = apply_fixes(&now, &fixes);
        if fixed.applied == 0 {
            return now;
        }
        assert!(errors(&fixed.text) <= errors(&now), "fixes break\n{now}, which becomes\n{}", fixed.text);
        now = fixed.text;
    }
    panic!("fixes of\n{text}\ngo on and on, at last\n{now}");
}

/// Returns the number of syntax errors.
fn errors(text: &str) -> usize {
    let (_, findings) = parse(source(), text);
    findings.iter().filter(|finding| finding.severity == Severity::Error).count()
}

fn comments(text: &str) -> Vec<String> {
    let (tree, _) = parse(source(), text);
    tree.comments().iter().map(|span| span.of(text).to_owned()).collect()
}

/// For every file, fixing terminates, adds no syntax errors, and keeps all comments.
#[test]
fn fixes_terminate_for_every_file_of_the_repository() {
    let files = repository_files(&["tests", "examples", "src"]);
    let is_spec = |path: &&PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| ["eld", "el", "lisp", "sexp"].contains(&extension))
    };
    let mut count = 0;
    for path in files.iter().filter(is_spec) {
        count += 1;
        let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        let kind = FileKind::of_name(path.to_str().unwrap());
        for with_guesses in [false, true] {
            let now = fixed_completely(&text, kind, with_guesses);
            assert_eq!(comments(&now), comments(&text), "{}", path.display());
        }
    }
    assert!(count > 10, "{count}");
}

/// The same for the first half of a file, and for a file with a missing part.
#[test]
fn fixes_terminate_for_damaged_files() {
    for path in repository_files(&["tests/fix"]) {
        let text = fs::read_to_string(&path).unwrap();
        let kind = FileKind::of_name(path.to_str().unwrap());
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).step_by(5 * step(8)).collect();
        let prefixes = places.iter().map(|&at| text[..at].to_owned());
        let holes = places.windows(3).map(|at| [&text[..at[0]], &text[at[2]..]].concat());
        for damaged in prefixes.chain(holes) {
            let now = fixed_completely(&damaged, kind, true);
            assert_eq!(comments(&now), comments(&damaged), "{}", path.display());
        }
    }
}

fn source() -> SourceId {
    Sources::new().add(SourceFile::new("", ""))
}
