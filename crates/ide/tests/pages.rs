//! Features, from pages in `tests/pages`.
//!
//! Each section of a page has the files of a project, with `‸` at the cursor, and the expected result of a feature.
//! `UPDATE_EXPECT=1 cargo test -p deftool-ide` writes the results.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_ide::{self as ide, FileSpan, Language, Project};
use deftool_lang::diagnostic::{Edit, Fix, apply_fixes};
use deftool_lang::schema::Target;
use deftool_lang::text::{SourceFile, Span};
use deftool_project::LoadOptions;
use deftool_test_support::markdown::{Block, blocks};

const CURSOR: char = '‸';

/// Returns whether a block is a file, and not the result of a feature.
fn is_file(name: &str) -> bool {
    Language::of(Path::new(name)).is_some()
        || Path::new(name).extension().is_some_and(|extension| extension == "jsonl")
}

/// The project of a section, with the cursor.
struct Case {
    project: Project,
    root: PathBuf,
    path: PathBuf,
    offset: usize,
    _folder: tempfile::TempDir,
}

impl Case {
    fn of(blocks: &[Block<'_>]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("specs")).unwrap();
        let (mut cursor, mut first) = (None, None);
        let mut unsaved = Vec::new();
        for block in blocks {
            let Some((_, name)) = block.info.split_once(' ') else { continue };
            let (name, is_unsaved) = name.strip_suffix(" unsaved").map_or((name, false), |name| (name, true));
            let path = root.join(name);
            if !is_file(name) {
                continue;
            }
            if let Some(at) = block.text.find(CURSOR) {
                cursor = Some((path.clone(), at));
            }
            first.get_or_insert_with(|| path.clone());
            let text = block.text.replace(CURSOR, "");
            if is_unsaved {
                unsaved.push((path, text));
            } else {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
        }
        let (path, offset) = cursor.unwrap_or_else(|| (first.unwrap(), 0));
        let mut project =
            if path.starts_with(root.join("specs")) || Language::of(&path) == Some(Language::Script) {
                Project::open(&root, LoadOptions::default(), || ())
            } else {
                Project::of_file(&path, LoadOptions::default())
            };
        for (path, text) in unsaved {
            project.set_text(&path, Some(Arc::from(text)));
        }
        project.refresh().unwrap();
        Self { project, root, path, offset, _folder: folder }
    }

    fn describe(&self, path: &Path, span: Span) -> String {
        let text = self.project.text(path).unwrap();
        let file =
            SourceFile::new(path.strip_prefix(&self.root).unwrap().to_string_lossy(), Arc::clone(&text));
        let at = file.line_column(span.start);
        let shown = span.of(&text);
        let shown = shown.lines().next().unwrap_or_default();
        let shown: String = shown.chars().take(40).collect();
        format!("{}:{}:{} {shown}", file.name, at.line, at.column).trim_end().to_owned()
    }

    fn here(&self, span: Span) -> String {
        self.describe(&self.path, span)
    }

    fn places(&self, found: &[FileSpan]) -> Vec<String> {
        found.iter().map(|found| self.describe(&found.path, found.span)).collect()
    }

    fn edited(&self, path: &Path, edits: Vec<Edit>) -> String {
        let text = self.project.text(path).unwrap();
        let fix = Fix { title: String::new(), edits, is_safe: true };
        apply_fixes(&text, [&fix]).text
    }

    #[allow(clippy::too_many_lines)] // One arm for each feature.
    fn run(&self, feature: &str) -> String {
        let (project, path, offset) = (&self.project, &*self.path, self.offset);
        let (name, argument) = feature.split_once(' ').unwrap_or((feature, ""));
        let lines: Vec<String> = match name {
            "completion" => ide::completions(project, path, offset)
                .items
                .into_iter()
                .map(|found| {
                    let replaced = found.replaces.of(&project.text(path).unwrap()).to_owned();
                    let replaced =
                        if replaced.is_empty() { replaced } else { format!(" replaces {replaced}") };
                    format!("{:?} {} → {:?}{replaced}", found.kind, found.label, found.snippet)
                })
                .collect(),
            "known" => match ide::string_completions(project, path, offset) {
                None => vec![String::from("not known to the project")],
                Some(found) => found
                    .into_iter()
                    .map(|found| {
                        format!(
                            "{} replaces {}",
                            found.label,
                            found.replaces.of(&project.text(path).unwrap())
                        )
                    })
                    .collect(),
            },
            "labels" => {
                let found = ide::completions(project, path, offset);
                let labels = found.items.into_iter().map(|found| found.label);
                let labels = labels.filter(|label| label.contains(argument));
                labels.chain(found.is_incomplete.then(|| String::from("and more"))).collect()
            }
            "signature" => ide::signature(project, path, offset)
                .map(|found| {
                    let active = &found.keys[found.active];
                    let key = active.span.of(&found.label);
                    format!("{}\n{}\n\n{key}\n{}", found.label, found.documentation, active.documentation)
                })
                .into_iter()
                .collect(),
            "highlights" => ide::highlights(project, path, offset)
                .into_iter()
                .map(|found| {
                    let kind = if found.is_definition { "definition" } else { "use" };
                    format!("{kind} {}", self.here(found.span))
                })
                .collect(),
            "hover" => ide::hover(project, path, offset, Target::OpenAi)
                .map(|hover| format!("{}\n\n{}", self.here(hover.span), hover.markdown))
                .into_iter()
                .collect(),
            "findings" => {
                let groups = project.findings().flat_map(|(_, findings)| findings);
                let described = groups.map(|finding| {
                    let at = project.load().sources.describe(finding.primary);
                    format!("{at}: {}: {}", finding.rule.code, finding.message)
                });
                described.collect()
            }
            "definition" => self.places(&ide::definition(project, path, offset)),
            "references" => self.places(&ide::references(project, path, offset, true)),
            "rename" | "rename-without-moves" => {
                match ide::rename(project, path, offset, argument, name == "rename") {
                    Err(error) => vec![format!("error: {error}")],
                    Ok(rename) => {
                        let (span, old) = ide::rename_target(project, path, offset).unwrap();
                        let mut shown = vec![format!("{old} at {}", self.here(span))];
                        let name = |path: &Path| path.strip_prefix(&self.root).unwrap().display().to_string();
                        for (path, edits) in rename.edits {
                            shown.push(format!(
                                "--- {}\n{}",
                                name(&path),
                                self.edited(&path, edits).trim_end()
                            ));
                        }
                        shown.extend(
                            rename
                                .moves
                                .iter()
                                .map(|(from, to)| format!("--- {} → {}", name(from), name(to))),
                        );
                        shown.extend(rename.unedited.iter().map(|unedited| format!("unedited {unedited}")));
                        shown
                    }
                }
            }
            "symbols" => {
                let mut lines = Vec::new();
                for symbol in ide::symbols(project, path) {
                    lines.push(format!("{:?} {} {}", symbol.kind, symbol.name, self.here(symbol.span)));
                    let children = symbol.children.iter();
                    lines.extend(
                        children.map(|child| format!("  {:?} {}", child.kind, self.here(child.name_span))),
                    );
                }
                lines
            }
            "search" => ide::project_symbols(project, argument, 10)
                .into_iter()
                .map(|(path, symbol)| format!("{:?} {}", symbol.kind, self.describe(&path, symbol.name_span)))
                .collect(),
            "folds" => ide::folds(project, path).into_iter().map(|span| self.here(span)).collect(),
            "selections" => {
                ide::selections(project, path, offset).into_iter().map(|span| self.here(span)).collect()
            }
            "tokens" => {
                let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
                for token in ide::tokens(project, path) {
                    let text = token.span.of(&project.text(path).unwrap()).to_owned();
                    kinds.entry(format!("{:?}", token.kind)).or_default().push(text);
                }
                kinds.into_iter().map(|(kind, texts)| format!("{kind}: {}", texts.join(" "))).collect()
            }
            "hints" => {
                let mut text = project.text(path).unwrap().to_string();
                for hint in ide::hints(project, path).into_iter().rev() {
                    text.insert_str(hint.offset, &format!("«{}»", hint.label));
                }
                vec![text.trim_end().to_owned()]
            }
            "lenses" => ide::lenses(project, path)
                .into_iter()
                .map(|lens| format!("{:?} {} {}", lens.kind, lens.tool, self.here(lens.span)))
                .collect(),
            "format" => {
                let range = (argument == "here").then_some(Span::at(offset));
                vec![self.edited(path, ide::format(project, path, range)).trim_end().to_owned()]
            }
            "actions" => {
                let mut shown = Vec::new();
                for action in ide::actions(project, path, Span::at(offset)) {
                    let fixed = self.edited(path, action.fix.edits);
                    shown.push(format!(
                        "{}: {}\n{}",
                        action.finding.rule.code,
                        action.fix.title,
                        fixed.trim_end()
                    ));
                }
                for fixes in ide::fixes_of_rules(project, path, Span::at(offset)) {
                    let fixed = self.edited(path, fixes.edits);
                    shown.push(format!(
                        "all {} of {}\n{}",
                        fixes.count,
                        fixes.finding.rule.code,
                        fixed.trim_end()
                    ));
                }
                shown
            }
            "fix-all" => {
                ide::fix_all(project, path).map(|text| text.trim_end().to_owned()).into_iter().collect()
            }
            other => panic!("unknown feature {other}"),
        };
        lines.into_iter().fold(String::new(), |mut text, line| {
            writeln!(text, "{line}").unwrap();
            text
        })
    }
}

#[test]
fn pages() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages");
    let mut failures = String::new();
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let page = fs::read_to_string(entry.path()).unwrap();
        let mut updated: Vec<String> = page.lines().map(str::to_owned).collect();
        let blocks = blocks(&page);
        let sections: Vec<&[Block<'_>]> = blocks.chunk_by(|one, next| one.section == next.section).collect();
        for blocks in sections.into_iter().rev() {
            let case = Case::of(blocks);
            for block in blocks.iter().rev().filter(|block| {
                let name = block.info.split(' ').nth(1).unwrap_or_default();
                !is_file(name)
            }) {
                count += 1;
                let found = case.run(block.info);
                if found != block.text {
                    let page = entry.path();
                    writeln!(failures, "{} / {} / {}:\n{found}", page.display(), block.section, block.info)
                        .unwrap();
                    let lines = block.line..block.line + block.text.lines().count();
                    updated.splice(lines, found.lines().map(str::to_owned));
                }
            }
        }
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(entry.path(), updated.join("\n") + "\n").unwrap();
        }
    }
    assert!(count > 30, "found only {count} cases");
    assert!(failures.is_empty() || std::env::var_os("UPDATE_EXPECT").is_some(), "{failures}");
}
