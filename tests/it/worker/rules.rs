//! `tests/worker_rules.md` names tests for every rule of the worker, or sections of pages. Each one exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the sections of the pages of commands: `page.md: title`.
fn sections(folder: &Path) -> BTreeSet<String> {
    let mut sections = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let page = entry.file_name().into_string().unwrap();
        let text = fs::read_to_string(entry.path()).unwrap();
        let titles = text.lines().filter_map(|line| line.strip_prefix("## "));
        sections.extend(titles.map(|title| format!("{page}: {}", title.replace('`', ""))));
    }
    sections
}

/// Returns the names of all tests in the files below `folder`.
fn tests_beneath(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            tests_beneath(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let mut is_test = false;
            for line in text.lines().map(str::trim_start) {
                let function = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
                if let Some(name) = function.and_then(|rest| rest.split('(').next()) {
                    if std::mem::take(&mut is_test) {
                        found.insert(name.to_owned());
                    }
                } else if line.starts_with("#[") {
                    is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
                }
            }
        }
    }
}

#[test]
fn every_rule_of_the_worker_has_its_test() {
    let mut tests = sections(&root().join("tests/commands"));
    for folder in ["tests/it", "src", "crates"] {
        tests_beneath(&root().join(folder), &mut tests);
    }
    let page = fs::read_to_string(root().join("tests/worker_rules.md")).unwrap();
    let rows: Vec<&str> =
        page.lines().filter(|line| line.starts_with("| ") && !line.contains("| test |")).collect();
    let mut missing = Vec::new();
    for row in &rows {
        let named: Vec<&str> = row.rsplit('|').nth(1).unwrap().split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "{row}");
        missing.extend(named.into_iter().filter(|name| !tests.contains(*name)));
    }
    assert!(rows.len() > 60, "{}", rows.len());
    assert_eq!(missing, Vec::<&str>::new());
}
