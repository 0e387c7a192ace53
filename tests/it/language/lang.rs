//! `tests/lang/*.md` and `docs/language.md`: the documentation of the spec language, which is also its test suite.
//!
//! A page is prose with code blocks. An `eld`, `el` or `org` block is a source file. The blocks after it, up to the next source,
//! are expectations for it: `json TARGET` is the output for a target, `json parameters` the `openai` parameters of the first
//! tool, `findings` the output of `check --format concise` without the file name. Without a `findings` block there must be no
//! findings. A `console` block is a command with its output, stdout before stderr; the source is in `spec.eld` (or `.el`, `.org`).

use std::fs;
use std::path::Path;

use deftool_lang::diagnostic::Severity;
use deftool_lang::diagnostic::render::render_concise;
use deftool_lang::schema::{Target, emit};
use deftool_lang::spec::{FileKind, lower};
use deftool_lang::syntax::parse;
use deftool_lang::text::Sources;
use deftool_project::{Load, LoadOptions, load_with, resolve_inputs};
use deftool_test_support::markdown::{Block, blocks};

use crate::support::project::Project;

fn load_text(name: &str, text: &str) -> Load {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(name), text).unwrap();
    let inputs = resolve_inputs(&[name.into()], folder.path()).unwrap();
    let options = LoadOptions { raises_denied: true, ..LoadOptions::default() };
    load_with(&inputs, folder.path(), &options).unwrap()
}

fn findings(load: &Load) -> String {
    load.findings
        .iter()
        .map(|finding| render_concise(finding, &load.sources))
        .map(|line| line.split_once(':').unwrap().1.to_owned() + "\n")
        .collect()
}

/// Runs the command of a console block. Returns the output if it differs from the block.
fn differs(console: &str, source: &Block<'_>) -> Option<String> {
    let (command, expected) = console.split_once('\n').unwrap();
    let arguments: Vec<&str> = command
        .strip_prefix("$ deftool ")
        .expect("a console block begins with a command")
        .split(' ')
        .collect();
    let project = Project::empty();
    project.write(&format!("spec.{}", source.info), source.text);
    let ended = project.run(&arguments);
    let got = ended.stdout + &ended.stderr;
    (got != expected).then(|| format!("{command} printed\n{got}"))
}

#[test]
fn the_expectations_on_every_language_page_hold() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages: Vec<_> =
        fs::read_dir(root.join("tests/lang")).unwrap().flatten().map(|entry| entry.path()).collect();
    pages.push(root.join("docs/language.md"));
    let mut checked = 0;
    let mut wrong = Vec::new();
    for path in pages {
        let page = fs::read_to_string(&path).unwrap();
        let page_name = path.file_name().unwrap().to_string_lossy().into_owned();
        let blocks = blocks(&page);
        let is_source = |block: &Block<'_>| matches!(block.info, "eld" | "el" | "org");
        for (index, source) in blocks.iter().enumerate().filter(|(_, block)| is_source(block)) {
            let load = load_text(&format!("spec.{}", source.info), source.text);
            let mut expected_findings = "";
            for expectation in blocks[index + 1..].iter().take_while(|block| !is_source(block)) {
                checked += 1;
                if expectation.info == "findings" {
                    expected_findings = expectation.text;
                    continue;
                }
                if expectation.info == "console" {
                    wrong.extend(
                        differs(expectation.text, source)
                            .map(|got| format!("{page_name}:{}: {got}", expectation.line)),
                    );
                    continue;
                }
                let target = expectation
                    .info
                    .strip_prefix("json ")
                    .unwrap_or_else(|| panic!("{page_name}: {}", expectation.info));
                let tools = load.valid_tools().map(|loaded| &*loaded.tool);
                let json = if target == "parameters" {
                    emit(Target::OpenAi, tools)[0]["function"]["parameters"].clone()
                } else {
                    emit(Target::ALL.into_iter().find(|known| known.as_str() == target).unwrap(), tools)
                };
                let expected: serde_json::Value = serde_json::from_str(expectation.text).unwrap();
                // Compared as text, because the order of keys matters.
                let (text, expected) = (json.to_string(), expected.to_string());
                if text != expected {
                    let got = serde_json::to_string_pretty(&json).unwrap();
                    wrong.push(format!("{page_name}:{}: compiled to\n{got}", expectation.line));
                }
            }
            let found = findings(&load);
            if found != expected_findings {
                wrong.push(format!(
                    "{page_name}:{}: found\n{found}expected\n{expected_findings}",
                    source.line
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(checked >= 20, "only {checked} expectations were checked");
}

/// Each line has one form with one mistake, which must have exactly one finding.
#[test]
fn each_mistake_has_one_finding() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lang/one_mistake.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks = blocks(&page);
    let forms = blocks.iter().find(|block| block.info == "eld").unwrap().text.lines().count();
    let found = blocks.iter().find(|block| block.info == "findings").unwrap().text;
    let lines: Vec<usize> =
        found.lines().map(|line| line.split_once(':').unwrap().0.parse().unwrap()).collect();
    assert!(forms > 40);
    assert_eq!(lines, (1..=forms).collect::<Vec<_>>());
}

/// Applies every safe fix on every page alone: only its finding must disappear.
#[test]
fn a_safe_fix_removes_its_finding() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lang");
    let (mut tried, mut wrong) = (0, Vec::new());
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let page = fs::read_to_string(entry.path()).unwrap();
        for source in blocks(&page).iter().filter(|block| matches!(block.info, "eld" | "el" | "org")) {
            let name = format!("spec.{}", source.info);
            let load = load_text(&name, source.text);
            let rule_names = |load: &Load| {
                let mut rules: Vec<&str> = load.findings.iter().map(|finding| finding.rule.name).collect();
                rules.sort_unstable();
                rules.into_iter().map(str::to_owned).collect::<Vec<_>>()
            };
            for finding in &load.findings {
                let Some(fix) = finding.fix.as_ref().filter(|fix| fix.is_safe) else { continue };
                let mut text = source.text.to_owned();
                for edit in fix.edits.iter().rev() {
                    text.replace_range(edit.span.range(), &edit.replacement);
                }
                let mut expected = rule_names(&load);
                let index = expected.iter().position(|rule| rule == finding.rule.name).unwrap();
                expected.remove(index);
                let after = rule_names(&load_text(&name, &text));
                tried += 1;
                // After an error is fixed, other findings may appear.
                let is_right = after == expected
                    || (finding.severity == Severity::Error
                        && expected.iter().all(|rule| after.contains(rule)));
                if !is_right {
                    let line = render_concise(finding, &load.sources);
                    wrong.push(format!("{}: {line}: {}", entry.path().display(), fix.title));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried >= 40, "only {tried} fixes were tried");
}

/// Reads every prefix of real specs: there is no panic, and the incomplete form is an error.
#[test]
fn every_prefix_of_the_seeds_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seed");
    for name in ["get_weather.el", "record_summary.el"] {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        let start = text.find('(').unwrap() + 1;
        for end in (start..text.trim_end().len()).filter(|end| text.is_char_boundary(*end)) {
            let source = Sources::new().id_ahead(0);
            let (tree, mut findings) = parse(source, &text[..end]);
            findings.extend(lower(source, &text[..end], &tree, FileKind::EmacsLisp).1);
            let has_error = findings.iter().any(|finding| finding.severity == Severity::Error);
            assert!(has_error, "{name} cut at {end} has no error");
        }
    }
}

#[test]
fn the_seeds_compile_to_their_json() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seed");
    for name in ["get_weather", "record_summary"] {
        let text = fs::read_to_string(folder.join(format!("{name}.el"))).unwrap();
        let load = load_text("seed.el", &text);
        for target in Target::ALL {
            let expected =
                fs::read_to_string(folder.join(format!("{name}.{}.json", target.as_str()))).unwrap();
            let json = emit(target, load.valid_tools().map(|loaded| &*loaded.tool));
            assert_eq!(
                serde_json::to_string_pretty(&json).unwrap(),
                expected.trim_end(),
                "{name} for {}",
                target.as_str()
            );
        }
    }
}
