//! Stored data has no authority: every field of a journal, a recording and a session is listed, and a field that may
//! not decide is changed to show that nothing follows from it.

mod journal;
mod recording;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use deftool_test_support::server::Server;
use serde_json::Value;

use crate::support::project::Project;

/// The fields of each file, with their authority.
const FIELDS: &str = include_str!("stored/fields.txt");
const AUTHORITIES: [&str; 4] = ["restores", "limits", "needs-trust", "nothing"];

/// The stored types of each file, with their sources.
const TYPES: [(&str, &[(&str, &str)]); 3] = [
    (
        "journal",
        &[
            ("JournalContext", "src/cli/worker/journal/context.rs"),
            ("Session", "crates/record/src/recording/format.rs"),
            ("RequestOptions", "crates/chat/src/request/config.rs"),
            ("RunConfig", "crates/chat/src/request/config.rs"),
            ("ReplyState", "crates/chat/src/request/run/state.rs"),
            ("PlannedCall", "crates/chat/src/request/run/state.rs"),
            ("CallPlan", "crates/chat/src/request/run/batch.rs"),
            ("JournalEntry", "crates/chat/src/request/run/journal.rs"),
            ("Event", "crates/chat/src/request/event.rs"),
        ],
    ),
    (
        "recording",
        &[
            ("Session", "crates/record/src/recording/format.rs"),
            ("RequestOptions", "crates/chat/src/request/config.rs"),
            ("Line", "crates/record/src/recording/format.rs"),
            ("Event", "crates/chat/src/request/event.rs"),
            ("Stopped", "crates/record/src/recording/format.rs"),
        ],
    ),
    ("session", &[("Line", "crates/record/src/session/line.rs")]),
];

/// Fields that contain another listed type.
const CONTAINERS: [&str; 9] = [
    "Session.options",
    "ReplyState.calls",
    "PlannedCall.Run",
    "JournalEntry.Event",
    "JournalEntry.Reply",
    "Line.Session.session",
    "Line.Event.event",
    "Line.Stopped",
    "JournaledRequest",
];

/// Returns the fields of a type in a source file: `field` of a struct, `Variant.field` and `Variant` of an enum.
fn fields(name: &str, source: &str) -> Vec<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(source)).unwrap();
    let starts =
        |line: &&str| ["struct", "enum"].iter().any(|kind| line.contains(&format!("{kind} {name} {{")));
    let body = text.lines().skip_while(|line| !starts(line)).skip(1).take_while(|line| *line != "}");
    let mut variant = None;
    let mut found = Vec::new();
    for line in body {
        let depth = line.len() - line.trim_start().len();
        let line = line.trim_start();
        let line = line
            .strip_prefix("pub ")
            .or_else(|| {
                line.split_once(") ").filter(|(start, _)| start.starts_with("pub(")).map(|(_, rest)| rest)
            })
            .unwrap_or(line);
        let word: String = line.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let rest = &line[word.len()..];
        if word.is_empty() {
        } else if depth == 4 && word.starts_with(char::is_uppercase) {
            found.extend(rest.starts_with(['(', ',']).then(|| word.clone()));
            // A variant on one line.
            for field in rest
                .strip_prefix(" { ")
                .and_then(|rest| rest.strip_suffix(" },"))
                .into_iter()
                .flat_map(|rest| rest.split(", "))
            {
                found.push(format!("{word}.{}", field.split(':').next().unwrap()));
            }
            variant = Some(word);
        } else if rest.starts_with(':') && !rest.starts_with("::") {
            found.push(match &variant {
                Some(variant) => format!("{variant}.{word}"),
                None => word,
            });
        }
    }
    assert!(!found.is_empty(), "{name} in {source}");
    found
}

/// Returns the fields of a file, each with its authority.
fn rows(file: &str) -> Vec<(&'static str, &'static str)> {
    let mut sections = FIELDS.split("\n[").filter_map(|section| section.split_once(']'));
    let (_, section) = sections.find(|(name, _)| *name == file).unwrap();
    let rows = section.lines().skip(1).filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|row| row.split_once(' ').unwrap()).map(|(field, word)| (field, word.trim())).collect()
}

#[test]
fn every_stored_field_is_listed() {
    for (file, types) in TYPES {
        let rows = rows(file);
        assert!(rows.iter().all(|(_, authority)| AUTHORITIES.contains(authority)), "{file}: {rows:?}");
        let mut used = BTreeSet::new();
        for (name, source) in types {
            for field in fields(name, source) {
                let whole = format!("{name}.{field}");
                let variant = whole.rsplit_once('.').map_or(whole.as_str(), |(variant, _)| variant);
                // The fields of an untagged enum have no variant.
                let untagged = field.rsplit_once('.').map(|(_, field)| format!("{name}.{field}"));
                let candidates = [Some(whole.as_str()), untagged.as_deref(), Some(variant)];
                let row =
                    candidates.into_iter().flatten().find(|name| rows.iter().any(|(row, _)| row == name));
                match row {
                    Some(row) => drop(used.insert(row.to_owned())),
                    None => assert!(CONTAINERS.contains(&whole.as_str()), "{file}: {whole} is not listed"),
                }
            }
        }
        if file == "journal" {
            let columns = [
                "request.number",
                "request.id",
                "request.state",
                "entry.request",
                "entry.number",
                "entry.at_ms",
            ];
            used.extend(columns.map(String::from));
        }
        let stale: Vec<_> = rows.iter().filter(|(row, _)| !used.contains(*row)).collect();
        assert!(stale.is_empty(), "{file}: no such field: {stale:?}");
    }
}

/// Returns the rows of a file whose fields may not decide alone.
fn restricted(file: &str) -> BTreeSet<&'static str> {
    rows(file).into_iter().filter(|(_, authority)| *authority != "restores").map(|(row, _)| row).collect()
}

/// A change of stored JSON.
type Change = Box<dyn Fn(&mut Value)>;

/// A project whose worker may call `look` and `pay`. `look` waits for a file, `pay` needs an approval, `other` is not
/// offered.
fn project(server: &Server) -> Project {
    let project = Project::empty();
    let allow = r#":allow (:read ["log/"] :write ["log/"])"#;
    project.write(
        "specs/tools.eld",
        format!(
            r#"(deftool :name "look" :description "Look." :effect pure {allow})
(deftool :name "send" :description "Send." :effect once :timeout "30s" {allow})
(deftool :name "pay" :description "Pay." :effect keyed :confirm t {allow}
 :args ((:name "amount" :type integer :maximum 10 :description "How much.")))
(deftool :name "other" :description "Other." {allow})
(defworker :name "w" :endpoint "{}" :model "m" :tools ("look" "send" "pay") :tool-budget 1 :system "Be brief.")"#,
            server.endpoint()
        ),
    );
    let script = r#"
return function()
  log.info("runs")
  fs.append("log/runs", tool.name .. "\n")
  while not fs.exists("log/go") do task.wait(0.005) end
  return tool.name .. " is done"
end
"#;
    for tool in ["look", "send", "pay", "other"] {
        let parameters = if tool == "pay" { "_amount" } else { "" };
        project.write(
            &format!("scripts/{tool}.lua"),
            script.replace("function()", &format!("function({parameters})")),
        );
    }
    project.write("log/runs", "");
    project
}
