//! `docs/stub.md`: its table of misbehaviours is made from the tables of the code, its scenarios are read.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use deftool::serve::stub::{GROUPS, Misbehaviour, load, read};

/// What stands above is written by hand, the rest is made.
const MADE: &str = "## Misbehaviours\n";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    fs::read_to_string(root().join("docs/stub.md")).unwrap()
}

/// How deftool's own worker ends with each.
fn outcomes() -> HashMap<String, String> {
    let table = fs::read_to_string(root().join("tests/stub/outcomes.txt")).unwrap();
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    let cells = rows.filter_map(|line| {
        let mut columns = line.split(" | ").map(str::trim);
        Some((columns.next()?.to_owned(), columns.next()?.to_owned()))
    });
    cells.collect()
}

fn made() -> String {
    let outcomes = outcomes();
    let mut text = format!(
        "{MADE}\n`deftool stub --list` prints them. The last column says how a request of deftool's own worker ends whose first answer \
         misbehaves so:\nthat is what its tests hold it to.\n"
    );
    for group in &GROUPS {
        write!(
            text,
            "\n### {}\n\n| name | what is wrong | seen | a request ends |\n|---|---|---|---|\n",
            group.title
        )
        .unwrap();
        for Misbehaviour { name, about, seen, .. } in group.members {
            let end = outcomes.get(*name).map_or("?", String::as_str);
            let end = end.replace(" stop", "").replace("failed ", "").replace("/-", "");
            let kind = end.rsplit('/').next().unwrap_or_default();
            writeln!(
                text,
                "| `{name}` | {} | {} | {kind} |",
                about.replace('|', "\\|"),
                seen.replace('|', "\\|")
            )
            .unwrap();
        }
    }
    text
}

#[test]
fn the_table_on_the_page_is_what_the_code_says() {
    let page = page();
    let by_hand = page.split(MADE).next().unwrap().trim_end();
    let whole = format!("{by_hand}\n\n{}", made());
    if std::env::var_os("DEFTOOL_BLESS").is_some() {
        fs::write(root().join("docs/stub.md"), &whole).unwrap();
        return;
    }
    assert!(page == whole, "docs/stub.md is not what the tables say; write it anew with DEFTOOL_BLESS=1");
}

#[test]
fn the_scenarios_on_the_page_and_of_the_example_are_read() {
    let page = page();
    let blocks: Vec<&str> =
        page.split("```eld\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let open = |_: &str| Ok(Vec::new());
        read("docs/stub.md", block, &open).unwrap_or_else(|error| panic!("{error}\n{block}"));
    }
    let scenarios = load(Path::new("examples/quickstart/stub/weather.eld")).unwrap();
    assert_eq!(scenarios.len(), 3);
}
