//! `deftool compile --list-targets`: lists the target APIs, or describes one.

use std::fmt::Write;

use deftool_lang::schema::Target;
use deftool_lang::schema::support::SupportEntry;
use serde_json::{Value, json};

use crate::cli::terminal::output::{print, print_json};

/// Prints the list of targets, or the support table of one target.
pub(super) fn print_targets(target: Option<Target>, json: bool) {
    match (target, json) {
        (None, false) => print(&list()),
        (None, true) => print_json(&Target::ALL.into_iter().map(head).collect::<Value>(), true),
        (Some(target), false) => print(&table(target)),
        (Some(target), true) => print_json(&support(target), true),
    }
}

fn list() -> String {
    let line = |target: Target| format!("{:<18}{}\n", target.as_str(), target.summary());
    Target::ALL.into_iter().map(line).collect()
}

fn head(target: Target) -> Value {
    json!({"name": target.as_str(), "summary": target.summary(), "leaves_out_refused": target.omits_refused_tools()})
}

/// Returns one paragraph per entry: the level and the subject, then the details, the enforcer and the source.
fn table(target: Target) -> String {
    let mut text = format!("{}: {}\n", target.as_str(), target.summary());
    if target.omits_refused_tools() {
        text.push_str("Tools that this target rejects are omitted from the compiled output.\n");
    }
    for entry in target.support_table() {
        // Writing to a string does not fail.
        let _ = writeln!(text, "\n{}: {}", entry.level.as_str(), entry.about());
        let mut line = |head: &str, body: &str| {
            if !body.is_empty() {
                let _ = writeln!(text, "    {head}{body}");
            }
        };
        line("where ", entry.when.map_or("", |condition| condition.text));
        line("", entry.detail);
        line("enforced by ", entry.enforced_by.as_str());
        line("source: ", &format!("{}, {}", entry.source.at, entry.source.date));
    }
    text
}

fn support(target: Target) -> Value {
    let row = |entry: &SupportEntry| {
        json!({
            "about": entry.about(),
            "where": entry.when.map(|condition| condition.text),
            "fate": entry.level,
            "says": entry.detail,
            "enforced_by": entry.enforced_by,
            "source": entry.source,
        })
    };
    let mut json = head(target);
    if let Value::Object(members) = &mut json {
        members.insert(String::from("claims"), target.support_table().iter().map(row).collect());
    }
    json
}
