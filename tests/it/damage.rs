//! Real specs, cut and damaged at random: whatever a file has become, it is read, lowered, compiled and rendered.

use std::fs;
use std::path::Path;

use deftool::diagnostic::render::{json_report, render_concise, render_human};
use deftool::schema::{Target, check_tools, compile_tool, emit};
use deftool::spec::{FileKind, lower};
use deftool::syntax::parse;
use deftool::text::{SourceFile, Sources};

/// The seeds and every source of the language's pages.
fn specs() -> Vec<(String, FileKind)> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut specs = Vec::new();
    for entry in fs::read_dir(tests.join("seed")).unwrap().flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "el") {
            specs.push((fs::read_to_string(entry.path()).unwrap(), FileKind::EmacsLisp));
        }
    }
    for entry in fs::read_dir(tests.join("lang")).unwrap().flatten() {
        let page = fs::read_to_string(entry.path()).unwrap();
        for block in page.split("\n```").skip(1).step_by(2) {
            let Some((info, text)) = block.split_once('\n') else { continue };
            match info {
                "eld" => specs.push((format!("{text}\n"), FileKind::Specs)),
                "el" => specs.push((format!("{text}\n"), FileKind::EmacsLisp)),
                _ => {}
            }
        }
    }
    specs.sort_by_key(|(text, _)| text.len());
    assert!(specs.len() > 20, "only {} specs", specs.len());
    specs
}

/// Reads, lowers, compiles and renders `text`; every place lies in it.
fn take_whole_way(text: &str, kind: FileKind, render: bool) {
    let mut sources = Sources::new();
    let source = sources.add(SourceFile::new("damaged.eld", text));
    let (tree, mut findings) = parse(source, text);
    let (definitions, more) = lower(source, text, &tree, kind);
    findings.extend(more);
    for tool in &definitions.tools {
        assert!(text.get(tool.span.range()).is_some() && text.get(tool.name.span.range()).is_some());
        findings.extend(compile_tool(tool).1);
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
            assert!(!render_human(finding, &sources, false).is_empty());
            assert!(!render_concise(finding, &sources).contains('\n'), "{}", finding.message);
        }
    }
    if render {
        assert_eq!(json_report(&findings, &sources).findings.len(), findings.len());
    }
}

#[test]
fn every_prefix_of_every_spec_goes_the_whole_way() {
    for (text, kind) in specs() {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            take_whole_way(&text[..end], kind, end % 16 == 0);
        }
    }
}

#[test]
fn damaged_specs_go_the_whole_way() {
    let specs = specs();
    let mut random = fastrand::Rng::with_seed(0x000D_EF70_0100);
    for round in 0..4000 {
        let (text, kind) = &specs[random.usize(..specs.len())];
        let mut characters: Vec<char> = text.chars().collect();
        for _ in 0..=random.usize(..4) {
            damage(&mut characters, &mut random);
        }
        let text: String = characters.into_iter().collect();
        take_whole_way(&text, *kind, round % 8 == 0);
    }
}

fn damage(characters: &mut Vec<char>, random: &mut fastrand::Rng) {
    const ODD: &[char] = &[
        '(', ')', '[', ']', '"', '\\', '?', '#', '\'', '`', ',', '.', ':', ';', '\n', '\r', ' ', '\0', 'é',
        '\u{A0}',
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
