//! The formatter: expected output in `tests/fmt`, and properties of any text. The command is in `tests/commands/fmt.md`.
//!
//! `tests/fmt/NAME.in.eld` (or `.el`) is formatted to `NAME.out.eld`; `UPDATE_EXPECT=1` updates the expected output.

use std::fs;
use std::path::PathBuf;

use deftool_lang::spec::{FileKind, ToolForms, format};
use deftool_lang::syntax::print::FormatError;
use deftool_lang::syntax::{Kind, parse};
use deftool_lang::text::{SourceFile, Sources};
use deftool_test_support::markdown::{blocks, blocks_in};
use deftool_test_support::step;
use proptest::prelude::*;

use crate::support::project::Project;
use crate::support::repository::repository_files;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn format_text(text: &str, kind: FileKind) -> Result<String, FormatError> {
    format(Sources::new().add(SourceFile::new("spec", "")), text, kind, &ToolForms::default())
}

/// Returns the kinds and texts of all tokens, and the comments.
fn words(text: &str) -> (Vec<(Kind, &str)>, Vec<&str>) {
    let (tree, _) = parse(Sources::new().add(SourceFile::new("spec", "")), text);
    let word = |id| if tree.children(id).next().is_none() { tree.text(id, text) } else { "" };
    let is_list = |id| matches!(tree.kind(id), Kind::List | Kind::Vector);
    let tokens = tree.iter().map(|id| (tree.kind(id), if is_list(id) { "" } else { word(id) }));
    let comments = tree.comments().iter().map(|comment| comment.of(text).trim_end_matches([' ', '\t', '\r']));
    (tokens.collect(), comments.collect())
}

/// Formats `text` and checks the properties of every result. Returns `None` for a text with syntax errors.
fn check(text: &str, kind: FileKind) -> Option<String> {
    let once = match format_text(text, kind) {
        Ok(once) => once,
        Err(FormatError::Syntax(findings)) => {
            assert!(!findings.is_empty());
            return None;
        }
        Err(FormatError::Damaged) => panic!("damaged: {text:?}"),
    };
    assert_eq!(words(text), words(&once), "different tokens:\n{text}\n---\n{once}");
    let twice = format_text(&once, kind).unwrap();
    assert_eq!(once, twice, "formatting is not idempotent for:\n{text:?}");
    Some(once)
}

/// Returns every spec of the repository: files, and code blocks of the language pages.
fn fixtures() -> Vec<(String, String, FileKind)> {
    let mut found = Vec::new();
    for path in repository_files(&["tests", "examples", "src/cli/commands/init"]) {
        let name = path.display().to_string();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("eld" | "el") => {
                found.push((name.clone(), fs::read_to_string(path).unwrap(), FileKind::of_name(&name)));
            }
            Some("md") => {
                let page = fs::read_to_string(path).unwrap();
                for block in blocks(&page) {
                    let kind = match block.language() {
                        "eld" => FileKind::Specs,
                        "el" => FileKind::EmacsLisp,
                        _ => continue,
                    };
                    found.push((name.clone(), block.text.to_owned(), kind));
                }
            }
            _ => {}
        }
    }
    found.sort_by(|a, b| (&a.0, a.1.len()).cmp(&(&b.0, b.1.len())));
    assert!(found.len() > 40, "only {} specs", found.len());
    found
}

#[test]
fn expected_output_matches() {
    let updates_expected = std::env::var("UPDATE_EXPECT").is_ok();
    let mut count = 0;
    for entry in fs::read_dir(root().join("tests/fmt")).unwrap().flatten() {
        let name = entry.path().display().to_string();
        if !name.contains(".in.") {
            continue;
        }
        count += 1;
        let formatted = check(&fs::read_to_string(&name).unwrap(), FileKind::of_name(&name)).unwrap();
        let expected = name.replace(".in.", ".out.");
        if updates_expected {
            fs::write(expected, formatted).unwrap();
        } else {
            let expected = fs::read_to_string(&expected).unwrap();
            assert!(formatted == expected, "{name} became\n{formatted}\nand not\n{expected}");
        }
    }
    assert!(count > 10, "only {count} pages");
}

#[test]
fn formatting_keeps_the_tokens_of_every_spec_in_the_repository() {
    let mut formatted_count = 0;
    for (_, text, kind) in fixtures() {
        let Some(formatted) = check(&text, kind) else { continue };
        formatted_count += 1;
        // Line ends and a byte order mark are kept.
        if !text.contains('\r') && text.contains('\n') {
            let windows = |text: &str| text.replace('\n', "\r\n");
            assert_eq!(check(&windows(&text), kind), Some(windows(&formatted)));
        }
        assert_eq!(check(&format!("\u{FEFF}{text}"), kind), Some(format!("\u{FEFF}{formatted}")));
    }
    assert!(formatted_count > 40, "only {formatted_count} of them have no syntax errors");
}

/// Checks the example in the documentation.
#[test]
fn the_documentation_shows_the_actual_output() {
    let page = fs::read_to_string(root().join("docs/fmt.md")).unwrap();
    let specs = blocks_in(&page, "eld");
    let [before, after] = specs[..] else { panic!("the page has {} specs", specs.len()) };
    assert_eq!(check(before, FileKind::Specs).as_deref(), Some(after));
}

/// Without comments and blank lines, the layout does not depend on the line breaks.
#[test]
fn layout_does_not_depend_on_line_breaks() {
    let text = "(deftool :name \"a\" :args ((:name \"b\" :type string :enum [\"c\" \"d\"]) (:name \"e\" :description \"A text of some length, so that it does not fit on the line.\" :type integer)) :timeout \"2s\")";
    let expected = check(text, FileKind::Specs).unwrap();
    assert!(expected.lines().count() > 6, "{expected}");
    assert_eq!(check(&text.replace(" :", "\n:"), FileKind::Specs).unwrap(), expected);
    assert_eq!(check(&text.replace(" :", "\n\t  :").replace('(', "(  "), FileKind::Specs).unwrap(), expected);
}

#[test]
fn examples_and_templates_are_formatted() {
    for (name, text, kind) in fixtures() {
        if !name.contains("/tests/") {
            assert_eq!(check(&text, kind).as_deref(), Some(text.as_str()), "{name}");
        }
    }
}

#[test]
fn every_prefix_of_every_spec_is_formatted_or_unchanged() {
    for (_, text, kind) in fixtures() {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end) && end % 7 == 0) {
            check(&text[..end], kind);
        }
    }
}

#[test]
fn damaged_specs_are_formatted_or_unchanged() {
    let specs = fixtures();
    let mut random = fastrand::Rng::with_seed(0x000F_0122);
    let mut formatted_count = 0;
    for _ in 0..6000 {
        let (_, text, kind) = &specs[random.usize(..specs.len())];
        let mut characters: Vec<char> = text.chars().collect();
        for _ in 0..=random.usize(..4) {
            crate::language::damage::damage(&mut characters, &mut random);
        }
        let text: String = characters.into_iter().collect();
        formatted_count += usize::from(check(&text, *kind).is_some());
    }
    assert!(formatted_count > 1000, "only {formatted_count} could be read");
}

/// A token, or text between tokens.
fn piece() -> impl Strategy<Value = String> {
    let fixed = [
        ":name",
        ":type",
        ":properties",
        ":function",
        ":null",
        "t",
        "nil",
        "string",
        "list",
        "concat",
        "deftool",
        "lambda",
        "\"short\"",
        "\"two\nlines\"",
        "\"tab\t(\"",
        "1",
        "1.5",
        "?a",
        "?\\(",
        "#'f",
        "#:g",
        "#1=",
        ".",
        "(a . b)",
        "'(c . (d))",
        "'q",
        "`(a ,b ,@(c d))",
        "'",
        "#'(lambda ()\n t)",
        ";; comment\n",
        "; c\n",
        ";;; c\n",
        "  ; c\n",
        "\n",
        "\n\n",
        "\n\n\n",
        " ",
        "   ",
        "\t",
        "\r\n",
        "\u{C}",
        "é日本",
        "a\\\nb",
        ":k\\\ny",
        "\"a text that is long enough to fill half of a line\"",
    ];
    proptest::sample::select(fixed.to_vec()).prop_map(str::to_owned)
}

fn form() -> impl Strategy<Value = String> {
    let blank = || proptest::sample::select(vec![" ", " ", "\n", "\n\n ", "  ", " ; c\n"]);
    piece().prop_recursive(7, 120, 9, move |inner| {
        let brackets =
            proptest::sample::select(vec![("(", ")"), ("(", ")"), ("[", "]"), ("'(", ")"), ("#s(", ")")]);
        let head = proptest::sample::select(vec!["", "", ":a 1 ", "list ", "deftool :name ", "foo "]);
        (brackets, head, proptest::collection::vec((inner, blank()), 0..9)).prop_map(
            |((open, close), head, items)| {
                let items: String = items.into_iter().map(|(item, blank)| item + blank).collect();
                format!("{open}{head}{items}{close}")
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500 / step(4) as u32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_forms_are_formatted_or_unchanged(
        forms in proptest::collection::vec((proptest::sample::select(vec!["", "(deftool :name \"x\" :args ", " "]), form()), 1..4),
        lisp in any::<bool>(),
    ) {
        let mut text = String::new();
        for (before, form) in forms {
            text.extend([before, &form, if before.len() > 1 { ")" } else { "" }, "\n"]);
        }
        check(&text, if lisp { FileKind::EmacsLisp } else { FileKind::Specs });
    }
}

#[test]
fn output_size_is_bounded_for_deep_and_wide_input() {
    let depth = 20_000 / step(4);
    let lists = |depth: usize, open: &str| format!("{}{}\n", open.repeat(depth), ")".repeat(depth));
    for open in [
        "(",
        "'(",
        "(:a ",
        "(:a 1 :b ",
        "((:a\n 1) ",
        "(list 1 ",
        "(list '(:a ",
        "(:a\\\nb ",
        "(a . ",
        "(\n;; c\n",
    ] {
        let closing = open.matches('(').count() - open.matches(')').count();
        let text =
            format!("(deftool :name \"x\" :args {}{})\n", open.repeat(depth), ")".repeat(depth * closing));
        if let Some(formatted) = check(&text, FileKind::Specs) {
            let lines = text.lines().count();
            assert!(
                formatted.len() < text.len() + 110 * lines + 20_000,
                "{open:?} makes {}",
                formatted.len()
            );
        }
    }
    assert!(check(&lists(100_000 / step(4), "("), FileKind::Specs).is_some());
    assert!(format_text(&"(".repeat(1_000_000), FileKind::Specs).is_err());
    // A key of a megabyte does not indent the lines below it by a megabyte.
    let items = "(a)\n".repeat(20_000 / step(4));
    for text in [
        format!("(deftool :{} ({items}))\n", "k".repeat(1 << 20)),
        format!("(deftool :{} (lambda ()\n{items}))\n", "k".repeat(1 << 20)),
        format!("\"{}\" (deftool :a ({items}))\n", "k".repeat(1 << 20)),
    ] {
        for kind in [FileKind::Specs, FileKind::EmacsLisp] {
            assert!(check(&text, kind).unwrap().len() < 2 * text.len() + (1 << 20));
        }
    }
}

#[test]
fn only_tool_forms_are_formatted_in_emacs_lisp() {
    let before = ";;; init.el  -*- x -*-\t \n\n\n\n(defun   f (x)\n\t  x)   ; here\n(progn  ";
    let after = "  )\n\n\n (deftool)  ;; no line end";
    let text = format!("{before}(gptel-make-tool :name \"x\"){after}");
    let expected = format!("{before}(gptel-make-tool\n         :name \"x\"){after}");
    assert_eq!(check(&text, FileKind::EmacsLisp), Some(expected));
}

/// A carriage return at the end of a line may be a character literal.
#[test]
fn a_carriage_return_literal_is_not_a_line_end() {
    for text in ["?\r", "?\r\n", "(a ?\r\n b)\r\n", "a\\\r\n", "; who?\r\n(a)\r\n"] {
        let once = format_text(text, FileKind::Specs).unwrap();
        assert_eq!(format_text(&once, FileKind::Specs).unwrap(), once, "from {text:?}");
    }
    assert_eq!(format_text("; who?\r\n(a)\r\n", FileKind::Specs).unwrap(), "; who?\r\n(a)\r\n");
}

/// A temporary file is locked until it has its final name: another process must not remove it as left behind.
#[test]
fn files_are_formatted_by_several_processes_at_once() {
    let project = Project::empty();
    for round in 0..5 {
        for file in 0..4 {
            project.write(
                &format!("{file}.eld"),
                format!("(deftool   :name \"a{file}{round}\"\n:description \"Do.\")"),
            );
        }
        let processes: Vec<_> = (0..8).map(|_| project.spawn(&["fmt", "."])).collect();
        for process in processes {
            let ended = process.wait_with_output().unwrap();
            assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        }
        assert_eq!(project.run(&["fmt", "--check", "."]).code, Some(0));
        assert_eq!(fs::read_dir(project.path("")).unwrap().count(), 4);
    }
}
