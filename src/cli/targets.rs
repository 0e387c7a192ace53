//! `deftool targets`.

use std::fmt::Write;

use serde_json::{Value, json};

use super::Exit;
use super::args::TargetsOptions;
use super::output::{print, print_json};
use crate::schema::Target;
use crate::schema::claims::Claim;

/// Lists the targets, or what is claimed of one.
pub(super) fn run(options: &TargetsOptions) -> Exit {
    match (options.target, options.json) {
        (None, false) => print(&list()),
        (None, true) => print_json(&Target::ALL.into_iter().map(head).collect::<Value>(), true),
        (Some(target), false) => print(&table(target)),
        (Some(target), true) => print_json(&claims(target), true),
    }
    Exit::Clean
}

fn list() -> String {
    let line = |target: Target| format!("{:<18}{}\n", target.as_str(), target.summary());
    Target::ALL.into_iter().map(line).collect()
}

fn head(target: Target) -> Value {
    json!({"name": target.as_str(), "summary": target.summary(), "leaves_out_refused": target.quarantines()})
}

/// A paragraph for every claim: what it is about and what happens, then why, who enforces it, and the source.
fn table(target: Target) -> String {
    let mut text = format!("{}: {}\n", target.as_str(), target.summary());
    if target.quarantines() {
        text.push_str("A tool that it refuses is left out of what is compiled for it.\n");
    }
    for claim in target.claims() {
        // Writing to a string does not fail.
        let _ = writeln!(text, "\n{}: {}", claim.fate.as_str(), claim.about());
        let mut line = |head: &str, body: &str| {
            if !body.is_empty() {
                let _ = writeln!(text, "    {head}{body}");
            }
        };
        line("where ", claim.when.map_or("", |condition| condition.text));
        line("", claim.says);
        line("enforced by ", claim.enforced_by.as_str());
        line("source: ", &format!("{}, {}", claim.source.at, claim.source.date));
    }
    text
}

fn claims(target: Target) -> Value {
    let row = |claim: &Claim| {
        json!({
            "about": claim.about(),
            "where": claim.when.map(|condition| condition.text),
            "fate": claim.fate,
            "says": claim.says,
            "enforced_by": claim.enforced_by,
            "source": claim.source,
        })
    };
    let mut json = head(target);
    if let Value::Object(members) = &mut json {
        members.insert(String::from("claims"), target.claims().iter().map(row).collect());
    }
    json
}
