//! Pages of `docs/` that are made from the code say what the code says. `DEFTOOL_BLESS=1` writes them anew.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use deftool::diagnostic::Rule;
use deftool::project::rules;

/// The groups of codes, by their first digit.
const GROUPS: [(char, &str); 7] = [
    ('0', "Reading"),
    ('1', "Forms and plists"),
    ('2', "Arguments and schemas"),
    ('3', "Workers"),
    ('4', "Projects and scripts"),
    ('5', "Targets"),
    ('6', "Import"),
];

fn group_of(rule: &Rule) -> char {
    rule.code.chars().nth(2).unwrap()
}

/// `lisp` is what editors and forges colour; the words behind it are for the tests.
fn shown(explanation: &str) -> String {
    let mut page = String::new();
    for line in explanation.lines().skip(1) {
        let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else {
            page.extend([line, "\n"]);
            continue;
        };
        let words: Vec<&str> = info.split_whitespace().collect();
        let what = if words.contains(&"fails") { "Fails" } else { "Repaired" };
        let file = words.iter().find(|word| word.contains('.')).map(|file| format!(", `{file}`"));
        let target = words.iter().find_map(|word| word.strip_prefix("for-"));
        let target = target.map(|name| format!(", for `{name}`"));
        let language = match words[0] {
            "eld" | "el" => "lisp",
            other => other,
        };
        write!(page, "{what}{}{}:\n\n```{language}\n", file.unwrap_or_default(), target.unwrap_or_default())
            .unwrap();
    }
    page
}

fn rules_page() -> String {
    let all = rules::all();
    let mut page = String::from(
        "# Rules\n\n\
         What `deftool check` finds, made from the rules themselves; `deftool rule CODE` prints one. An error is what some\n\
         API refuses or what cannot mean what was written, a warning is legal and likely wrong, a note is worth knowing.\n\n",
    );
    for (digit, title) in GROUPS {
        let of_group: Vec<&&Rule> = all.iter().filter(|rule| group_of(rule) == digit).collect();
        if of_group.is_empty() {
            continue;
        }
        write!(page, "## {title}\n\n| code | name | severity | finds |\n|---|---|---|---|\n").unwrap();
        for rule in of_group {
            let (code, name, severity) = (rule.code, rule.name, rule.severity.as_str());
            let summary = rule.summary().replace('|', "\\|");
            writeln!(page, "| [{code}](#{}-{name}) | {name} | {severity} | {summary} |", code.to_lowercase())
                .unwrap();
        }
        page.push('\n');
    }
    for rule in all {
        let (code, name, severity) = (rule.code, rule.name, rule.severity.as_str());
        let mut summary = rule.summary().to_owned();
        if let Some(first) = summary.get(..1).map(str::to_uppercase) {
            summary.replace_range(..1, &first);
        }
        write!(page, "### {code} {name}\n\n*{severity}* · {summary}.\n").unwrap();
        page.push_str(&shown(&rule.explanation()));
        page.push('\n');
    }
    page.trim_end().to_owned() + "\n"
}

#[test]
fn the_page_of_rules_is_what_the_rules_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rules.md");
    let page = rules_page();
    if std::env::var_os("DEFTOOL_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let differs = page.lines().zip(written.lines()).position(|(made, written)| made != written);
    assert!(
        page == written,
        "docs/rules.md is not what the rules say, from line {differs:?} on; write it anew with DEFTOOL_BLESS=1"
    );
}
