//! `check --fix`: the fixed files, and the files that it does not change.
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

const BAD: &str = "(deftool :name \"t\" :description: \"d\" :function #'t)\n";
const GOOD: &str = "(deftool :name \"t\" :description \"d\" :function #'t)\n";

fn run(folder: &Path, arguments: &[&str]) -> Ended {
    Ended::of(command_in(folder, &[&["check"], arguments].concat()).output().unwrap())
}

/// Returns the content of the file `name` after `check --fix`.
fn fixed(name: &str, content: &[u8], arguments: &[&str]) -> (Vec<u8>, Ended) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    let ended = run(folder.path(), &[&["--fix", "--format", "concise", name], arguments].concat());
    (fs::read(path).unwrap(), ended)
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() {
                pending.push(entry.path());
            } else {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    files
}

#[test]
fn fixed_files_match_the_expected_files() {
    let mut count = 0;
    for path in files_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fix")) {
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files: Vec<PathBuf> =
        ["tests", "examples", "src"].iter().flat_map(|name| files_in(&root.join(name))).collect();
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
    for path in files_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fix")) {
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

#[test]
fn reports_applied_fixes_and_remaining_findings() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.eld"), BAD).unwrap();
    fs::write(folder.path().join("b.eld"), "(deftool :name \"b b\" :description: \"d\")\n").unwrap();
    fs::write(folder.path().join("c.eld"), GOOD.replace("\"t\"", "\"c\"")).unwrap();
    let before = fs::metadata(folder.path().join("c.eld")).unwrap().modified().unwrap();
    let ended = run(folder.path(), &["--fix", "--format", "json", "."]);
    assert_eq!(ended.stderr, "fixed    a.eld: 1 finding\nfixed    b.eld: 1 finding\n");
    assert_eq!(ended.code, Some(1));
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["summary"], serde_json::json!({"errors": 1, "warnings": 0, "notes": 0}));
    assert_eq!(fs::metadata(folder.path().join("c.eld")).unwrap().modified().unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left beside them");
}

#[test]
fn diff_shows_the_fixes_without_writing() {
    let folder = tempfile::tempdir().unwrap();
    let nested = "(deftool :name \"t\" :description: \"d\"\n :args ((:name \"a\" :type '''string :description \"a\")))\n";
    fs::write(folder.path().join("a.eld"), nested).unwrap();
    let ended = run(folder.path(), &["--diff", "a.eld"]);
    assert_eq!(
        (ended.code, ended.stdout.as_str(), ended.stderr.as_str()),
        (
            Some(1),
            "--- a/a.eld\n+++ b/a.eld\n@@ -1,2 +1,2 @@\n-(deftool :name \"t\" :description: \"d\"\n- :args ((:name \"a\" :type '''string :description \"a\")))\n+(deftool :name \"t\" :description \"d\"\n+ :args ((:name \"a\" :type 'string :description \"a\")))\n",
            "would fix 3 findings in 1 file\n"
        )
    );
    assert_eq!(fs::read_to_string(folder.path().join("a.eld")).unwrap(), nested);
    assert_eq!(run(folder.path(), &["--fix", "a.eld"]).code, Some(0));
    let ended = run(folder.path(), &["--diff", "a.eld"]);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "", "nothing to fix\n"));
}

/// Each round removes one quote. A file that needs too many rounds is not changed; others are fixed.
#[test]
fn a_file_that_needs_too_many_rounds_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let quotes = "'".repeat(60);
    let endless =
        format!("(deftool :name \"e\" :description: \"d\" :args ((:name \"a\" :type {quotes}string)))\n");
    fs::write(folder.path().join("a.eld"), &endless).unwrap();
    fs::write(folder.path().join("b.eld"), BAD).unwrap();
    let ended = run(folder.path(), &["--diff", "."]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended
            .stderr
            .starts_with("error: cannot fix a.eld: the fixes do not converge; the file was not changed\n"),
        "{ended:?}"
    );
    assert!(!ended.stdout.contains("a.eld"), "{ended:?}");
    let ended = run(folder.path(), &["--fix", "--format", "concise", "a.eld", "b.eld"]);
    assert_eq!(ended.code, Some(1));
    let left = "error: cannot fix a.eld: the fixes do not converge; the file was not changed\n";
    assert_eq!(ended.stderr, format!("fixed    b.eld: 1 finding\n{left}"));
    assert!(
        ended.stdout.contains("a.eld:1:20: warning[DT107]"),
        "what is left is what is on disk: {ended:?}"
    );
    assert_eq!(fs::read_to_string(folder.path().join("a.eld")).unwrap(), endless);
    assert_eq!(fs::read_to_string(folder.path().join("b.eld")).unwrap(), GOOD);
}

#[test]
fn byte_order_marks_and_line_endings_are_kept() {
    let crlf = "\u{feff}; c\r\n(deftool :name \"t\"\r\n :description: \"d\"\r\n :function #'t)\r\n";
    let (after, ended) = fixed("a.eld", crlf.as_bytes(), &[]);
    assert_eq!(String::from_utf8(after).unwrap(), crlf.replace("description:", "description"));
    assert_eq!(ended.code, Some(0));
    let (after, _) = fixed("a.eld", BAD.trim_end().as_bytes(), &[]);
    assert_eq!(after, GOOD.trim_end().as_bytes(), "no line end is added");
}

#[test]
fn files_that_are_not_utf_8_are_never_written() {
    let latin = [BAD.as_bytes(), b"; caf\xe9\n"].concat();
    let (after, ended) = fixed("a.eld", &latin, &[]);
    assert_eq!(after, latin);
    assert!(!ended.stderr.contains("fixed") && ended.code == Some(1), "{ended:?}");
    assert!(ended.stdout.contains("DT107"), "findings are still reported: {ended:?}");
}

#[cfg(unix)]
#[test]
fn permissions_and_links_are_kept_and_read_only_files_are_not_changed() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("real.txt"), BAD).unwrap();
    fs::set_permissions(path("real.txt"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("real.txt", path("link.eld")).unwrap();
    fs::write(path("locked.eld"), BAD.replace("\"t\"", "\"u\"")).unwrap();
    fs::set_permissions(path("locked.eld"), fs::Permissions::from_mode(0o444)).unwrap();
    let ended = run(folder.path(), &["--fix", "--format", "concise", "link.eld", "locked.eld"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(
        ended.stderr,
        "fixed    link.eld: 1 finding\nerror: cannot write locked.eld: the file is read-only\n"
    );
    // The remaining findings match the files on disk.
    assert!(ended.stdout.contains("locked.eld:1:20: ") && !ended.stdout.contains("link.eld"), "{ended:?}");
    assert_eq!(fs::read_to_string(path("real.txt")).unwrap(), GOOD);
    assert_eq!(fs::metadata(path("real.txt")).unwrap().mode() & 0o777, 0o640);
    assert!(fs::symlink_metadata(path("link.eld")).unwrap().is_symlink());
}

#[test]
fn conflicting_options_are_usage_errors() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.eld"), GOOD).unwrap();
    for arguments in [
        &["--unsafe-fixes", "a.eld"][..],
        &["--watch", "--fix", "a.eld"],
        &["--diff", "--format", "sarif", "a.eld"],
        &["--watch", "--format", "sarif", "a.eld"],
    ] {
        assert_eq!(run(folder.path(), arguments).code, Some(2), "{arguments:?}");
    }
    assert_eq!(run(folder.path(), &["--fix", "--diff", "a.eld"]).code, Some(0), "--diff writes nothing");
}

/// A link out of the project is followed for writing only if the user specified the file.
#[cfg(unix)]
#[test]
fn a_linked_file_outside_the_project_is_written_only_on_request() {
    use std::os::unix::fs::symlink;

    let outside = tempfile::tempdir().unwrap();
    let init = outside.path().join("init.eld");
    for (commands, after) in [
        ([&["check", "--fix"][..], &["check", "--fix", "."], &["check", "--fix", "specs"]], GOOD),
        ([&["fmt"], &["fmt", "."], &["fmt", "specs"]], "(deftool\n :name \"t\")\n"),
    ] {
        let bad = if after == GOOD { BAD } else { "(deftool    :name   \"t\")\n" };
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("specs")).unwrap();
        fs::write(&init, bad).unwrap();
        symlink(&init, folder.path().join("specs/x.eld")).unwrap();
        let go = |arguments: &[&str]| Ended::of(command_in(folder.path(), arguments).output().unwrap());
        for command in commands {
            let ended = go(command);
            assert_eq!(ended.code, Some(1), "{command:?} {ended:?}");
            let output = format!("{}{}", ended.stdout, ended.stderr);
            assert!(output.contains("leads out of the project to "), "{command:?} {ended:?}");
            assert_eq!(fs::read_to_string(&init).unwrap(), bad, "{command:?}");
        }
        go(&[commands[0], &["specs/x.eld"][..]].concat());
        assert_eq!(fs::read_to_string(&init).unwrap(), after);
    }
}
