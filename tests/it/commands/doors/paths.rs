//! The files that options name.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::support::project::Project;

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)).unwrap()
}

/// Returns the options whose value is a file, as in `call --output`, without `-C`.
fn path_options() -> BTreeSet<String> {
    let completions = Project::empty().run(&["completions", "fish"]).stdout;
    let word_after = |line: &str, before: &str| -> Option<String> {
        let rest = line.split_once(before)?.1;
        Some(rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect())
    };
    let named = completions.lines().filter(|line| line.ends_with(" -r -F")).filter_map(|line| {
        let command = word_after(line, "__fish_deftool_using_subcommand ")?;
        Some((command, word_after(line, " -l ")?))
    });
    let named = named.filter(|(_, option)| option != "directory");
    named.map(|(command, option)| format!("{command} --{option}")).collect()
}

/// Each option that names an output is shown to replace links, and to refuse pipes and devices.
#[test]
fn every_option_with_a_path_keeps_the_rule_of_outputs() {
    let (table, page) = (read("doors/paths.txt"), read("commands/outputs.md"));
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().collect())
        .collect();
    let known: BTreeSet<String> = rows.iter().map(|row| format!("{} {}", row[0], row[1])).collect();
    assert_eq!(path_options(), known);
    for row in rows.iter().filter(|row| ["output", "gradual"].contains(&row[2])) {
        // The same option of another command is the same code.
        let (command, option) = if row.len() > 3 { (row[4], row[5]) } else { (row[0], row[1]) };
        let short = option.replace("--output", "-o");
        let is_shown = |line: &str| {
            line.starts_with("door ")
                && line.contains(&format!("deftool {command} "))
                && line.contains(&short)
        };
        // The stub runs the commands that need a server, and is one itself.
        let is_stub = |line: &str| line.starts_with("door 'stub --log'") && command == "stub";
        assert!(page.lines().any(|line| is_shown(line) || is_stub(line)), "{row:?}");
    }
}
