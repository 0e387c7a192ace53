//! Real specs, truncated and damaged at random: every result can be read, lowered, compiled and rendered.

use std::fs;
use std::time::Duration;

use deftool_lang::diagnostic::render::{json_report, render_concise, render_human};
use deftool_lang::diagnostic::{Severity, apply_fixes};
use deftool_lang::schema::{Target, check_tool, check_tools, emit};
use deftool_lang::spec::{FileKind, ToolForms, format, lower};
use deftool_lang::syntax::parse;
use deftool_lang::text::{SourceFile, Sources};
use deftool_project::rules;
use deftool_test_support::cpu::CpuClock;
use deftool_test_support::markdown::blocks;
use deftool_test_support::{is_full, step};

use crate::support::repository::repository_files;

/// Returns every spec in the repository: files, and code blocks of pages.
fn specs() -> Vec<(String, FileKind)> {
    let mut specs = Vec::new();
    for path in repository_files(&["tests", "examples", "docs"]) {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("eld") => specs.push((text, FileKind::Specs)),
            Some("el") => specs.push((text, FileKind::EmacsLisp)),
            Some("md") => specs.extend(sources(&text)),
            _ => {}
        }
    }
    specs.extend(rules::all().into_iter().flat_map(|rule| sources(&rule.explanation())));
    specs.retain(|(text, _)| text.len() < 20_000);
    specs.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then(a.cmp(b)));
    specs.dedup();
    assert!(specs.len() > 80, "only {} specs", specs.len());
    specs
}

fn sources(page: &str) -> Vec<(String, FileKind)> {
    let sources = blocks(page).into_iter().filter_map(|block| match block.language() {
        "eld" | "lisp" => Some((block.text.to_owned(), FileKind::Specs)),
        "el" => Some((block.text.to_owned(), FileKind::EmacsLisp)),
        _ => None,
    });
    sources.collect()
}

/// Returns the factor for the number of cases. `DEFTOOL_FUZZ=100` runs a hundred times as long.
fn effort() -> usize {
    std::env::var("DEFTOOL_FUZZ").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// Asserts that `work` takes little CPU time, as it must for any small input.
fn in_time(text: &str, work: impl FnOnce()) {
    let clock = CpuClock::start();
    work();
    assert!(clock.elapsed() < Duration::from_secs(30), "{:?} for {text:?}", clock.elapsed());
}

/// Parses `text`. All spans must be inside it and in order, and cover all characters except blanks and comments.
fn read(text: &str) {
    let source = Sources::new().id_ahead(0);
    let (tree, findings) = parse(source, text);
    let mut covered = vec![false; text.len()];
    for root in tree.roots() {
        covered[tree.span(root).range()].fill(true);
    }
    for comment in tree.comments() {
        covered[comment.range()].fill(true);
    }
    let mut last = 0;
    for id in tree.iter() {
        let span = tree.span(id);
        assert!(text.get(span.range()).is_some() && span.start >= last, "{span:?} in {text:?}");
        last = span.start;
        for child in tree.children(id) {
            let inner = tree.span(child);
            assert!(inner.start >= span.start && inner.end <= span.end, "{inner:?} in {span:?} in {text:?}");
        }
    }
    // A label is not part of a form, and `#@` skips text.
    if findings.is_empty() && !text.contains("#1=") && !text.contains("#@") {
        let lost = text
            .char_indices()
            .find(|(at, c)| !covered[*at] && *c > ' ' && *c != '\u{FEFF}' && !c.is_whitespace());
        assert!(lost.is_none(), "{lost:?} of {text:?} is not in a form");
    }
}

/// Parses, lowers, compiles, renders, fixes and formats `text`. All locations must be inside it. `of_spec` is true
/// if the text is a damaged spec.
fn process(text: &str, kind: FileKind, render: bool, of_spec: bool) {
    let mut sources = Sources::new();
    let source = sources.add(SourceFile::new("damaged.eld", text));
    let (tree, mut findings) = parse(source, text);
    let (definitions, more) = lower(source, text, &tree, kind);
    findings.extend(more);
    for tool in &definitions.tools {
        assert!(text.get(tool.span.range()).is_some() && text.get(tool.name.span.range()).is_some());
        findings.extend(check_tool(tool));
    }
    for target in Target::ALL {
        let tools = || definitions.tools.iter().filter(|tool| tool.valid);
        emit(target, tools());
        check_tools(target, tools());
    }
    for finding in &findings {
        let edits = finding.fix.iter().flat_map(|fix| &fix.edits).map(|edit| edit.span);
        let labels = finding.labels.iter().map(|label| label.location.span);
        for span in edits.chain(labels).chain([finding.primary.span]) {
            assert!(text.get(span.range()).is_some(), "{}: {span:?} in {text:?}", finding.message);
        }
        if render {
            assert!(!render_human(finding, &sources, 140, false).is_empty());
            assert!(!render_concise(finding, &sources).contains('\n'), "{}", finding.message);
        }
    }
    if render {
        assert_eq!(json_report(&findings, &sources).findings.len(), findings.len());
        // Removals can join words. `check --fix` drops unsafe fixes that cause syntax errors, as in some heavily
        // damaged texts.
        for is_safe in [true, false].into_iter().filter(|is_safe| of_spec && (*is_safe || effort() == 1)) {
            let fixes = findings.iter().filter_map(|finding| finding.fix.as_ref());
            let fixed = apply_fixes(text, fixes.filter(|fix| fix.is_safe || !is_safe)).text;
            assert!(
                reader_errors(&fixed) <= reader_errors(text),
                "fixes break {text:?}, which becomes {fixed:?}"
            );
        }
        let none = ToolForms::default();
        if let Ok(laid_out) = format(source, text, kind, &none) {
            assert_eq!(format(source, &laid_out, kind, &none).unwrap(), laid_out, "from {text:?}");
        }
    }
}

fn reader_errors(text: &str) -> usize {
    let (_, findings) = parse(Sources::new().id_ahead(0), text);
    findings.iter().filter(|finding| finding.severity == Severity::Error).count()
}

#[test]
fn every_prefix_of_every_spec_is_processed() {
    for (text, kind) in specs() {
        // At most 1,000 prefixes of a file, or 4 in a reduced run.
        let prefixes = if is_full() { 1_000 } else { 4 };
        let step = (text.len() / prefixes / effort()).max(1);
        for end in (0..text.len()).step_by(step).filter(|end| text.is_char_boundary(*end)) {
            in_time(&text[..end], || process(&text[..end], kind, end % 64 == 0, true));
        }
    }
}

#[test]
fn damaged_specs_are_processed() {
    let mut random = fastrand::Rng::with_seed(0x000D_EF70_0100);
    for (text, kind) in specs() {
        for round in 0..20 * effort() / step(10) {
            let mut characters: Vec<char> = text.chars().collect();
            for _ in 0..=random.usize(..4) {
                damage(&mut characters, &mut random);
            }
            let text: String = characters.into_iter().collect();
            in_time(&text, || process(&text, kind, round % 4 == 0, true));
        }
    }
}

/// Random sequences of syntax elements.
#[test]
fn any_text_is_read() {
    const PIECES: &[&str] = &[
        "(",
        ")",
        "[",
        "]",
        "\"",
        "\\",
        "?",
        "#",
        "'",
        "`",
        ",",
        ",@",
        ".",
        ":",
        ";",
        "\n",
        "\r",
        " ",
        "#s(",
        "#(",
        "#[",
        "#@",
        "#1=",
        "#1#",
        "#:",
        "#'",
        "#x1f",
        "#b",
        "##",
        "#!",
        "?\\",
        "?\\C-",
        "?\\M-\\^",
        "\\x",
        "\\N{",
        "}",
        "\\u00e9",
        "1e3",
        "+.5",
        "-",
        "1+",
        "nil",
        "t",
        ":name",
        "deftool",
        "\"a\"",
        "é",
        "\u{A0}",
        "\u{200B}",
        "\u{201C}",
        "\0",
        "\u{FEFF}",
        "\u{1F600}",
        "\u{c}",
        "|#",
        "(deftool :name \"x\" :args (",
        "(:name \"y\" :type ",
    ];
    let mut random = fastrand::Rng::with_seed(0x000D_EF70_0200);
    for round in 0..20_000 * effort() {
        let text: String = (0..random.usize(..40)).map(|_| PIECES[random.usize(..PIECES.len())]).collect();
        in_time(&text, || read(&text));
        if round % 8 == 0 {
            in_time(&text, || process(&text, FileKind::Specs, round % 64 == 0, false));
        }
    }
}

pub(crate) fn damage(characters: &mut Vec<char>, random: &mut fastrand::Rng) {
    const ODD: &[char] = &[
        '(', ')', '[', ']', '"', '\\', '?', '#', '\'', '`', ',', '.', ':', ';', '\n', '\r', ' ', '\0', 'é',
        '\u{A0}', '“', '”', '‘', '«', '\u{2003}', '\u{200B}',
    ];
    if characters.is_empty() {
        return;
    }
    let at = random.usize(..characters.len());
    match random.u8(..6) {
        0 => {
            characters.remove(at);
        }
        1 => characters.insert(at, ODD[random.usize(..ODD.len())]),
        2 => characters[at] = ODD[random.usize(..ODD.len())],
        3 => {
            let other = random.usize(..characters.len());
            characters.swap(at, other);
        }
        4 => {
            let end = (at + random.usize(..60)).min(characters.len());
            let piece: Vec<char> = characters[at..end].to_vec();
            let place = random.usize(..=characters.len());
            characters.splice(place..place, piece);
        }
        _ => {
            let end = (at + random.usize(..20)).min(characters.len());
            characters.drain(at..end);
        }
    }
}

/// Calls that expand a small input: `format` can repeat, pad and escape an argument, and calls can be nested.
#[test]
fn the_size_of_folded_constants_is_bounded() {
    let nested = |open: &str, core: &str, close: &str, depth: usize| {
        let folded = [open.repeat(depth).as_str(), core, close.repeat(depth).as_str()].concat();
        format!("(gptel-make-tool :name \"a\" :function #'a :description {folded})\n")
    };
    let long = "x".repeat(100_000);
    let wide = vec!["(format \"%999s\" 1)"; 20_000].join(" ");
    let called = |template: &str| nested(&format!("(format \"{template}\" "), &format!("\"{long}\""), ")", 1);
    for text in [
        nested("(format \"%1$s%1$s\" ", "\"a\"", ")", 30),
        nested("(format \"%S\" ", "\"\\\"\"", ")", 100),
        nested(&format!("(format \"{}\" ", "%1$s".repeat(40)), &format!("\"{long}\""), ")", 4),
        called(&"%1$s".repeat(20_000)),
        called(&"%1$.0s".repeat(20_000)),
        called(&"%1$999s".repeat(20_000)),
        nested("(concat ", &wide, ")", 1),
    ] {
        let source = Sources::new().id_ahead(0);
        let (tree, _) = parse(source, &text);
        let clock = CpuClock::start();
        let (definitions, findings) = lower(source, &text, &tree, FileKind::EmacsLisp);
        let shown = &text[..text.len().min(100)];
        assert!(clock.elapsed() < Duration::from_secs(30), "{:?} for {shown}", clock.elapsed());
        assert!(
            findings[0].message.contains("exceeds the limit for this file"),
            "{}: {shown}",
            findings[0].message
        );
        assert!(definitions.tools.iter().all(|tool| !tool.valid), "{shown}");
    }
    // A small expansion is folded.
    let text = nested("(format \"%1$s and %1$s\" ", "\"a\"", ")", 10);
    let source = Sources::new().id_ahead(0);
    assert!(lower(source, &text, &parse(source, &text).0, FileKind::EmacsLisp).0.tools[0].valid);
}
