//! The generated parts of `docs/` match the code. `UPDATE_EXPECT=1` regenerates them.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use deftool_lang::diagnostic::Rule;
use deftool_lang::spec::reference::{Plist, keys};
use deftool_project::rules;
use deftool_script::{Script, TableDoc, check_script, host_tables, is_known_global};
use deftool_test_support::markdown::blocks;
use serde_json::Value;

use crate::scripts::runtime::run_script;

/// Rule groups by the first digit of their codes.
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

/// Converts the code blocks of an explanation to plain Markdown: info words for tests become text, and `eld` becomes
/// `lisp`, which editors and forges highlight.
fn markdown_of(explanation: &str) -> String {
    let mut page = String::new();
    for line in explanation.lines().skip(1) {
        let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else {
            page.extend([line, "\n"]);
            continue;
        };
        let words: Vec<&str> = info.split_whitespace().collect();
        let what = if words.contains(&"fails") { "Fails" } else { "Fixed" };
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
         The findings of `deftool check`, generated from the rules. `deftool rule CODE` prints one.\n\n\
         An error is rejected by some API or cannot mean what was written. A warning is legal but probably wrong. A note is\n\
         information.\n\n",
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
        page.push_str(&markdown_of(&rule.explanation()));
        page.push('\n');
    }
    page.trim_end().to_owned() + "\n"
}

#[test]
fn rules_page_matches_the_rules() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rules.md");
    let page = rules_page();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let differs = page.lines().zip(written.lines()).position(|(generated, written)| generated != written);
    assert!(
        page == written,
        "docs/rules.md differs from the rules at line {differs:?}; run with UPDATE_EXPECT=1 to update it"
    );
}

/// Start of the generated part of `docs/scripting.md`.
const GENERATED: &str = "## Host tables\n";

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
            writeln!(page, "*Errors*: {}\n", function.errors).unwrap();
        }
        if !function.example.is_empty() {
            writeln!(page, "```lua\n{}\n```\n", function.example.trim()).unwrap();
        }
    }
    page
}

fn host_table_section() -> String {
    let mut page = format!(
        "{GENERATED}\nGlobals of every script, generated from the code like the output of `deftool types`.\n\n\
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
fn scripting_page_matches_the_host_tables() {
    let (path, page) = scripting_page();
    let by_hand = page.split(GENERATED).next().unwrap().trim_end();
    let generated = format!("{by_hand}\n\n{}", host_table_section());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, &generated).unwrap();
        return;
    }
    assert!(
        page == generated,
        "docs/scripting.md differs from the host tables; run with UPDATE_EXPECT=1 to update it"
    );
}

/// Asserts that a script compiles and uses only known names.
fn assert_good(name: &str, source: &str) {
    let contract =
        check_script(&Script::new("example", name, source)).unwrap_or_else(|why| panic!("{why}\n{source}"));
    for used in contract.globals {
        let path: Vec<&str> = used.path.iter().map(String::as_str).collect();
        // An empty host table allows any name.
        let is_open = host_tables().iter().any(|table| table.name == path[0] && table.functions.is_empty());
        assert!(is_known_global(&path) || is_open, "{name} uses {}:\n{source}", path.join("."));
    }
}

/// Every Lua block of the page compiles, and returns what the comment above it states.
#[test]
fn scripting_page_examples_return_the_stated_values() {
    let (_, page) = scripting_page();
    let page = page.split(GENERATED).next().unwrap();
    let mut ran = 0;
    let lines: Vec<&str> = page.lines().collect();
    for block in blocks(page).iter().filter(|block| block.language() == "lua") {
        let source = block.text;
        let mut before = lines[..block.line - 1].iter().rev();
        let before = before.find(|line| !line.is_empty()).unwrap();
        assert_good("docs/scripting.md", source);
        let Some(claim) = before.strip_prefix("<!-- ").and_then(|claim| claim.strip_suffix(" -->")) else {
            continue;
        };
        let (is_result, (arguments, expected)) = match claim.split_once(" gives ") {
            Some(parts) => (true, parts),
            None => (false, claim.split_once(" fails ").unwrap()),
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

/// Every example of a host function compiles; those that need no permission also run.
#[test]
fn host_function_examples_run() {
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
                Err(error) if is_failure && error.kind == deftool_lang::tool::ToolErrorKind::Failure => {}
                Err(error) => panic!("{name}: {error:?}\n{source}"),
            }
        }
    }
}

/// The hand-written tables of `docs/worker.md` list every key of a worker, and no other keys.
#[test]
fn worker_page_lists_every_worker_key() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut keys: Vec<&str> = keys(Plist::Worker).iter().map(|key| key.name).collect();
    let page = fs::read_to_string(root.join("docs/worker.md")).unwrap();
    let cells = page.lines().filter_map(|line| line.strip_prefix("| `:")?.split(" | ").next());
    let mut listed: Vec<&str> = cells.flat_map(|cell| cell.trim_end_matches('`').split("`, `:")).collect();
    keys.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, keys);
}

#[test]
fn every_page_is_in_the_contents_of_the_site() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let contents = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    for entry in fs::read_dir(docs).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.extension().is_some_and(|extension| extension == "md") && name != "SUMMARY.md" {
            assert!(contents.contains(&format!("]({name})")), "SUMMARY.md lacks {name}");
        }
    }
}

#[test]
fn files_of_the_code_map_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    for name in page.split('`').skip(1).step_by(2).filter(|name| name.contains('/')) {
        assert!(root.join(name).exists(), "ARCHITECTURE.md names {name}");
    }
}
