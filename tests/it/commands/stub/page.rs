//! `docs/faults.md` is generated from the code, and the scenarios of `docs/stub.md` are valid.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use deftool_stub::{Fault, GROUPS, load, read};
use deftool_test_support::markdown::blocks_in;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Reads the outcome of deftool's worker for each fault.
fn outcomes(table: &str) -> HashMap<String, String> {
    let table = fs::read_to_string(root().join("tests/stub").join(table)).unwrap();
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    let cells = rows.filter_map(|line| {
        let mut columns = line.split(" | ").map(str::trim);
        Some((columns.next()?.to_owned(), columns.next()?.to_owned()))
    });
    cells.collect()
}

/// Returns the kind of failure, or `completed`.
fn kind_of(end: &str) -> String {
    let end = end.replace(" stop", "").replace("failed ", "").replace("/-", "");
    end.rsplit('/').next().unwrap_or_default().to_owned()
}

fn generated() -> String {
    let tables = ["outcomes.txt", "outcomes_responses.txt", "outcomes_messages.txt"].map(outcomes);
    let mut text = String::from(
        "# Stub faults\n\nThe faults of [`deftool stub`](stub.md), which `deftool stub --list` prints. The last columns are the \
         outcome of deftool's own worker when the\nfirst answer has the fault, over each API. A fault does not exist in an API \
         whose column is empty.\n",
    );
    for group in &GROUPS {
        write!(
            text,
            "\n## {}\n\n| name | fault | seen in | chat completions | responses | messages |\n|---|---|---|---|---|---|\n",
            group.title
        )
        .unwrap();
        for Fault { name, about, seen, .. } in group.members {
            let [about, seen] = [about, seen].map(|text| text.replace('|', "\\|"));
            let ends = tables
                .each_ref()
                .map(|outcomes| outcomes.get(*name).map_or_else(String::new, |end| kind_of(end)));
            writeln!(text, "| `{name}` | {about} | {seen} | {} |", ends.join(" | ")).unwrap();
        }
    }
    text.push_str(SDKS);
    text.push_str(include_str!("../../../interop/sdks.md"));
    text
}

const SDKS: &str = "
## What SDKs read over messages

`tests/interop/run` reads replies of the stub with Anthropic's SDKs for Python and TypeScript, without retries, and with deftool. A cell lists the
blocks of the reply, then the stop reason or the error; the stop reasons of deftool are those of its events.

";

#[test]
fn the_page_of_faults_is_up_to_date() {
    let path = root().join("docs/faults.md");
    let page = generated();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(path, page).unwrap();
        return;
    }
    let written = fs::read_to_string(path).unwrap_or_default();
    assert!(page == written, "docs/faults.md is out of date; run with UPDATE_EXPECT=1 to update it");
}

#[test]
fn the_scenarios_of_the_page_and_the_example_are_valid() {
    let page = fs::read_to_string(root().join("docs/stub.md")).unwrap();
    let blocks = blocks_in(&page, "eld");
    assert!(!blocks.is_empty());
    for block in blocks {
        let open = |_: &str| Ok(Vec::new());
        read("docs/stub.md", block, &open).unwrap_or_else(|error| panic!("{error}\n{block}"));
    }
    let scenarios = load(Path::new("examples/quickstart/stub/weather.eld")).unwrap();
    assert_eq!(scenarios.len(), 3);
}

/// Every known deviation of real servers has a fault that reproduces it.
#[test]
fn every_known_deviation_has_a_fault() {
    let table = fs::read_to_string(root().join("tests/stub/deviations.txt")).unwrap();
    let mut numbers = Vec::new();
    for line in table.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [number, deviation, names] = columns[..] else { panic!("not three columns: {line}") };
        numbers.push(number.parse::<usize>().unwrap());
        assert!(!deviation.is_empty() && !names.is_empty(), "{line}");
        for name in names.split(' ') {
            assert!(Fault::named(name).is_some(), "unknown fault `{name}`: {line}");
        }
    }
    assert_eq!(numbers, (1..=67).collect::<Vec<_>>());
}
