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
fn outcomes(table: &str) -> HashMap<String, String> {
    let table = fs::read_to_string(root().join("tests/stub").join(table)).unwrap();
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    let cells = rows.filter_map(|line| {
        let mut columns = line.split(" | ").map(str::trim);
        Some((columns.next()?.to_owned(), columns.next()?.to_owned()))
    });
    cells.collect()
}

/// A kind of failure, or how it is completed.
fn kind_of(end: &str) -> String {
    let end = end.replace(" stop", "").replace("failed ", "").replace("/-", "");
    end.rsplit('/').next().unwrap_or_default().to_owned()
}

fn made() -> String {
    let (over_chat, over_responses) = (outcomes("outcomes.txt"), outcomes("outcomes_responses.txt"));
    let mut text = format!(
        "{MADE}\n`deftool stub --list` prints them. The last columns say how a request of deftool's own worker ends whose first answer \
         misbehaves so, over\nchat completions and over responses: that is what its tests hold it to. Those without a last column are of \
         chat completions only; asked for over\n`/v1/responses`, they are refused.\n"
    );
    for group in &GROUPS {
        write!(
            text,
            "\n### {}\n\n| name | what is wrong | seen | a request ends | over responses |\n|---|---|---|---|---|\n",
            group.title
        )
        .unwrap();
        for Misbehaviour { name, about, seen, .. } in group.members {
            let of = |outcomes: &HashMap<String, String>| {
                outcomes.get(*name).map_or_else(String::new, |end| kind_of(end))
            };
            writeln!(
                text,
                "| `{name}` | {} | {} | {} | {} |",
                about.replace('|', "\\|"),
                seen.replace('|', "\\|"),
                of(&over_chat),
                of(&over_responses)
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

/// What is known of real servers, row by row: each deviation has a misbehaviour that plays it.
#[test]
fn every_known_deviation_has_its_misbehaviour() {
    let table = fs::read_to_string(root().join("tests/stub/deviations.txt")).unwrap();
    let mut numbers = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [number, deviation, names] = columns[..] else { panic!("not three columns: {line}") };
        numbers.push(number.parse::<usize>().unwrap());
        assert!(!deviation.is_empty() && !names.is_empty(), "{line}");
        for name in names.split(' ') {
            assert!(Misbehaviour::named(name).is_some(), "no misbehaviour is called {name}: {line}");
        }
    }
    assert_eq!(numbers, (1..=57).collect::<Vec<_>>());
}
