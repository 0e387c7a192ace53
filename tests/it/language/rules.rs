//! The examples in the documentation of every rule are checked.
//!
//! In the documentation, a code block whose info string ends in `fails` or `repaired` is a file. The second word is its
//! name; the default is `specs/example.eld` (`.el` for `el`). `for-TARGET` also checks it for that target. Consecutive
//! blocks of one kind form a project. The failing project has exactly one finding, of this rule. The repaired project
//! has none. A safe fix removes the finding. A `json` block is imported instead of checked.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use deftool_lang::diagnostic::render::render_concise;
use deftool_lang::diagnostic::{Diagnostic, Rule};
use deftool_lang::schema::{Importer, Target};
use deftool_lang::text::{SourceFile, Sources};
use deftool_project::{LoadOptions, load_with, resolve_inputs, rules};
use deftool_test_support::markdown::{Block, blocks};

/// Rules that cannot be shown by a short text file.
const WITHOUT_EXAMPLE: [&str; 10] = [
    "invalid-utf8",
    "unreadable",
    "too-many-tools",
    "too-many-tools-for-target",
    "too-large-for-target",
    "costly-schema",
    // Tested in `tests/it/commands/types.rs`, because it is only checked on request.
    "script-type",
    "mcp-unavailable",
    "mcp-tool",
    "mcp-schema",
];

struct Example {
    fails: bool,
    target: Option<Target>,
    files: BTreeMap<String, String>,
}

fn examples(rule: &Rule) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    for Block { info, text, .. } in blocks(&rule.explanation()) {
        let (options, words): (Vec<&str>, Vec<&str>) =
            info.split_whitespace().partition(|word| word.starts_with("for-"));
        let named = options.first().and_then(|word| word.strip_prefix("for-"));
        let target = named.map(|name| {
            let known = Target::ALL.into_iter().find(|known| known.as_str() == name);
            known.unwrap_or_else(|| panic!("{}: no target {name}", rule.name))
        });
        let fails = match words.last() {
            Some(&"fails") => true,
            Some(&"repaired") => false,
            _ => panic!("{}: a fenced block says `fails` or `repaired`: {info}", rule.name),
        };
        let name = match words.as_slice() {
            [_, name, _] => (*name).to_owned(),
            [language, _] => format!("specs/example.{language}"),
            _ => panic!("{}: {info}", rule.name),
        };
        let text = text.to_owned();
        match examples.last_mut() {
            Some(last) if last.fails == fails && !last.files.contains_key(&name) => {
                last.files.insert(name, text);
            }
            _ => examples.push(Example { fails, target, files: BTreeMap::from([(name, text)]) }),
        }
    }
    examples
}

/// Findings with their sources.
struct Found {
    findings: Vec<Diagnostic>,
    sources: Sources,
}

fn import(name: &str, text: &str) -> Found {
    let mut sources = Sources::new();
    let source = sources.add(SourceFile::new(name, text));
    let mut importer = Importer::new(None);
    importer.add(source, text, None);
    Found { findings: importer.finish().findings, sources }
}

fn check(files: &BTreeMap<String, String>, target: Option<Target>) -> Found {
    if let Some((name, text)) = files.get_key_value("specs/example.json") {
        return import(name, text);
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    // Load scripts only if the example contains one. Otherwise every tool would lack its script.
    let with_scripts =
        files.iter().any(|(name, text)| name.starts_with("scripts/") || text.contains(":bios \""));
    let inputs = resolve_inputs(&[], folder.path()).unwrap();
    let options =
        LoadOptions { with_scripts, targets: target.into_iter().collect(), ..LoadOptions::default() };
    let load = load_with(&inputs, folder.path(), &options).unwrap();
    Found { findings: load.findings, sources: Arc::unwrap_or_clone(load.sources) }
}

fn findings(load: &Found) -> Vec<String> {
    load.findings.iter().map(|finding| render_concise(finding, &load.sources)).collect()
}

#[test]
fn codes_and_names_are_unique() {
    let all = rules::all();
    assert!(all.windows(2).all(|pair| pair[0].code < pair[1].code));
    let mut names: Vec<_> = all.iter().map(|rule| rule.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all.len());
}

#[test]
fn every_rule_has_a_failing_and_a_repaired_example() {
    let mut wrong = Vec::new();
    for rule in rules::all() {
        let examples = examples(rule);
        let shows_both =
            examples.iter().any(|example| example.fails) && examples.iter().any(|example| !example.fails);
        if !shows_both && !WITHOUT_EXAMPLE.contains(&rule.name) {
            wrong.push(format!("{} has no failing or no repaired example", rule.name));
        }
        for example in examples {
            let mut load = check(&example.files, example.target);
            // Some rules are about names that are not in snake_case.
            load.findings.retain(|finding| finding.rule == rule || finding.rule.name != "name-style");
            let found = findings(&load);
            let is_right = if example.fails {
                matches!(load.findings.as_slice(), [finding] if finding.rule == rule)
            } else {
                load.findings.is_empty()
            };
            if !is_right {
                let sort = if example.fails { "fails" } else { "repaired" };
                wrong.push(format!("{}, {sort}: found\n  {}", rule.name, found.join("\n  ")));
            }
            let Some((finding, fix)) =
                load.findings.first().and_then(|finding| Some((finding, finding.fix.as_ref()?)))
            else {
                continue;
            };
            if !fix.is_safe || load.findings.len() != 1 {
                continue;
            }
            let file = load.sources.get(finding.primary.source).unwrap();
            let mut text = file.text.to_string();
            for edit in fix.edits.iter().rev() {
                text.replace_range(edit.span.range(), &edit.replacement);
            }
            let mut files = example.files.clone();
            files.insert(file.name.clone(), text.clone());
            let found = findings(&check(&files, example.target));
            if !found.is_empty() {
                wrong.push(format!(
                    "{}: its fix makes\n{text}\nin which is found\n  {}",
                    rule.name,
                    found.join("\n  ")
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
}
