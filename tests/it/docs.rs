//! Pages of `docs/` that are made from the code say what the code says. `DEFTOOL_BLESS=1` writes them anew.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use deftool::diagnostic::Rule;
use deftool::project::rules;
use deftool::script::{Script, TableDoc, check_script, host_tables, is_known_global};
use serde_json::Value;

use crate::script::run_script;

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

/// What stands above the host tables in `docs/scripting.md` is written by hand, the rest is made.
const MADE: &str = "## Host tables\n";

fn table_section(table: &TableDoc) -> String {
    let mut page = format!("### `{}`\n\n{}\n\n", table.name, table.about.trim());
    if !table.permissions.is_empty() {
        let keys: Vec<String> =
            table.permissions.iter().map(|key| format!("`:allow (:{key} […])`")).collect();
        writeln!(page, "Permission: {}.\n", keys.join(", ")).unwrap();
    }
    if !table.types.is_empty() {
        writeln!(page, "```lua\n{}\n```\n", table.types.trim()).unwrap();
    }
    for value in table.values {
        writeln!(page, "**`{}.{}`**`: {}` · {}\n", table.name, value.name, value.luau_type, value.about)
            .unwrap();
    }
    for function in table.functions {
        let signature = function.signature;
        writeln!(page, "**`{}.{}`**` {signature}`\n\n{}\n", table.name, function.name, function.about)
            .unwrap();
        if !function.permissions.is_empty() && table.permissions.len() > 1 {
            let keys: Vec<String> = function.permissions.iter().map(|key| format!("`:{key}`")).collect();
            writeln!(page, "*Permission*: {}.\n", keys.join(" or ")).unwrap();
        }
        if !function.errors.is_empty() {
            writeln!(page, "*Fails*: {}\n", function.errors).unwrap();
        }
        if !function.example.is_empty() {
            writeln!(page, "```lua\n{}\n```\n", function.example.trim()).unwrap();
        }
    }
    page
}

fn host_table_section() -> String {
    let mut page = format!(
        "{MADE}\nGlobals of every script; made from the code, as `deftool types` is.\n\n\
         | table | permission | functions |\n|---|---|---|\n"
    );
    for table in host_tables() {
        let functions: Vec<String> =
            table.functions.iter().map(|function| format!("`{}`", function.name)).collect();
        let keys: Vec<String> = table.permissions.iter().map(|key| format!("`:{key}`")).collect();
        let (name, keys, functions) = (table.name, keys.join(", "), functions.join(", "));
        writeln!(page, "| [`{name}`](#{name}) | {keys} | {functions} |").unwrap();
    }
    page.push('\n');
    for table in host_tables() {
        page.push_str(&table_section(table));
    }
    page.trim_end().to_owned() + "\n"
}

fn scripting_page() -> (std::path::PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/scripting.md");
    let page = fs::read_to_string(&path).unwrap();
    (path, page)
}

#[test]
fn the_page_on_scripting_is_what_the_host_tables_say() {
    let (path, page) = scripting_page();
    let by_hand = page.split(MADE).next().unwrap().trim_end();
    let made = format!("{by_hand}\n\n{}", host_table_section());
    if std::env::var_os("DEFTOOL_BLESS").is_some() {
        fs::write(&path, &made).unwrap();
        return;
    }
    assert!(
        page == made,
        "docs/scripting.md is not what the host tables say; write it anew with DEFTOOL_BLESS=1"
    );
}

/// Compiles, and uses no name that is not there.
fn assert_good(name: &str, source: &str) {
    let contract =
        check_script(&Script::new("example", name, source)).unwrap_or_else(|why| panic!("{why}\n{source}"));
    for used in contract.globals {
        let path: Vec<&str> = used.path.iter().map(String::as_str).collect();
        // A host table that is empty as yet promises nothing.
        let is_promised =
            host_tables().iter().any(|table| table.name == path[0] && table.functions.is_empty());
        assert!(is_known_global(&path) || is_promised, "{name} uses {}:\n{source}", path.join("."));
    }
}

/// Every block of Lua on the page: it is good, and gives what the comment above it says.
#[test]
fn the_scripts_on_the_page_do_what_it_says() {
    let (_, page) = scripting_page();
    let page = page.split(MADE).next().unwrap();
    let mut ran = 0;
    let mut before = "";
    let mut rest = page;
    while let Some((text, after)) = rest.split_once("```lua\n") {
        let (source, after) = after.split_once("```").unwrap();
        before = text.trim_end().lines().last().unwrap_or(before);
        rest = after;
        assert_good("docs/scripting.md", source);
        let Some(told) = before.strip_prefix("<!-- ").and_then(|told| told.strip_suffix(" -->")) else {
            continue;
        };
        let (is_result, (arguments, expected)) = match told.split_once(" gives ") {
            Some(parts) => (true, parts),
            None => (false, told.split_once(" fails ").unwrap()),
        };
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        let names: Vec<&str> = arguments.as_object().unwrap().keys().map(String::as_str).collect();
        match run_script(source, &names, arguments.clone()) {
            Ok(value) if is_result => assert_eq!(value.to_string(), expected, "{source}"),
            Err(error) if !is_result => assert_eq!(error.message, expected, "{source}"),
            other => panic!("{other:?}\n{source}"),
        }
        ran += 1;
    }
    assert!(ran >= 3, "{ran} ran");
}

/// The examples of host functions: all are good, and those that need no permission run.
#[test]
fn the_examples_of_host_functions_run() {
    for table in host_tables() {
        for function in table.functions.iter().filter(|function| !function.example.is_empty()) {
            let name = format!("{}.{}", table.name, function.name);
            let source = format!("return function()\n{}\nend", function.example);
            assert_good(&name, &source);
            if !table.permissions.is_empty() {
                continue;
            }
            let is_failure = function.example.contains("error(");
            match run_script(&source, &[], serde_json::json!({})) {
                Ok(_) => {}
                Err(error) if is_failure && error.kind == deftool::tool::ToolErrorKind::Failure => {}
                Err(error) => panic!("{name}: {error:?}\n{source}"),
            }
        }
    }
}

/// The tables of `docs/worker.md` are written by hand: they leave no key out and have none that is not there.
#[test]
fn the_page_on_workers_has_every_key_of_a_worker_and_no_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = fs::read_to_string(root.join("src/spec/lower/worker.rs")).unwrap();
    let list = source.split("const WORKER_KEYS").nth(1).unwrap().split("];").next().unwrap();
    let mut keys: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
    let page = fs::read_to_string(root.join("docs/worker.md")).unwrap();
    let cells = page.lines().filter_map(|line| line.strip_prefix("| `:")?.split(" | ").next());
    let mut told: Vec<&str> = cells.flat_map(|cell| cell.trim_end_matches('`').split("`, `:")).collect();
    keys.sort_unstable();
    told.sort_unstable();
    assert_eq!(told, keys);
}
