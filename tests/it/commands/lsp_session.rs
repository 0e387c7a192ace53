//! `deftool lsp`: a session of random edits, compared with `deftool check`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use super::lsp::client;
use crate::support::lsp::{Client, uri};
use crate::support::project::{Project, command_in};

/// The findings of a file as `check` reports them: each with its line, rule, severity and message.
type Reported = BTreeMap<String, Vec<String>>;

/// Returns what `check` reports of a project, by file.
fn checked(root: &Path) -> Reported {
    let output = command_in(root, &["check", "--format", "json", "specs"]).output().unwrap();
    let output: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut reported = Reported::new();
    for finding in output["findings"].as_array().unwrap() {
        let [rule, severity, message] =
            ["rule", "severity", "message"].map(|key| finding[key].as_str().unwrap());
        let shown = format!("{}: {severity} {rule}: {message}", finding["line"]);
        reported.entry(finding["file"].as_str().unwrap().to_owned()).or_default().push(shown);
    }
    reported
}

/// Returns what the server has reported of the project at `root`, by file.
fn sent(client: &Client, root: &Path) -> Reported {
    let prefix = format!("{}/", uri(root));
    let shown = |finding: &Value| {
        let line = finding["range"]["start"]["line"].as_u64().unwrap() + 1;
        let severity = ["error", "warning", "note"][finding["severity"].as_u64().unwrap() as usize - 1];
        let message = finding["message"].as_str().unwrap().lines().next().unwrap();
        format!("{line}: {severity} {}: {message}", finding["code"].as_str().unwrap())
    };
    let files = client.findings.iter().map(|(uri, findings)| {
        // With `deftool-analyze`, a server that is idle for a while also sends the findings of `check --types`.
        let findings = findings.as_array().unwrap().iter().filter(|finding| finding["code"] != "DT427");
        let findings = findings.map(shown).collect::<Vec<_>>();
        (uri.strip_prefix(&prefix).unwrap().to_owned(), findings)
    });
    files.filter(|(_, findings)| !findings.is_empty()).collect()
}

/// A file with a finding that tells which load the server has sent.
const MARKER: &str = "specs/marker.eld";

/// Replaces the text of a document.
fn change(client: &mut Client, path: &Path, edit: usize, text: &str) {
    let document = json!({"uri": uri(path), "version": edit + 2});
    let changes = json!([{"text": text}]);
    client.notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": changes}));
}

/// After each edit of a session, the findings are those of `check` for files with the same texts: edits of forms, moves of
/// forms within a file and to others, and edits of scripts.
#[test]
fn findings_are_those_of_check_after_each_edit() {
    const FORMS: [&str; 12] = [
        "(deftool :name \"a\" :description \"Does it.\")",
        "(deftool :name \"a\" :description \"Does it.\" :args ((:name \"x\" :type strng :description \"An x.\")))",
        "(deftool :name \"A\" :description \"Does it.\" :args ((:name \"x\" :type \"string\" :description \"An x.\")))",
        "(deftool :name \"b\" :description \"Does it.\" :unknown 1)",
        "(deftool :name \"b-c\" :description \"Does it.\" :script \"scripts/b.lua\")",
        "(deftool :name \"b_c\" :description \"Does it.\" :allow (:read [\"x\"]))",
        "(deftool :name \"c\" :description \"Does it.\" :returns (:type string :maxLength 900000))",
        "(defexit :name \"done\" :description \"Ends.\")",
        "(defworker :name \"w\" :tools [\"a\" \"b\" \"nope\"] :exit-tools [\"done\"])",
        ";; deftool: allow(unknown-key, missing-script)",
        "(deftool :name \"d\" :description \"Does it.\"",
        "\n;; Moves what follows: é😀",
    ];
    const SCRIPTS: [&str; 5] = [
        "return function() return 1 end",
        "return function(x) return x end",
        "return function(",
        "return function() return nowhere end",
        "test(\"a\", function() expect(tool.load(\"a\")({ y = 1 })) end)",
    ];
    let (edited, saved) = (Project::empty(), Project::empty());
    let names =
        ["specs/1.eld", "specs/2.eld", "specs/3.eld", "scripts/a.lua", "scripts/b.lua", "scripts/a_test.lua"];
    for project in [&edited, &saved] {
        names.iter().chain([&MARKER]).for_each(|name| project.write(name, ""));
    }
    let root = edited.path("").canonicalize().unwrap();
    let mut client = client(&root);
    names.iter().chain([&MARKER]).for_each(|name| client.did_open(&root.join(name), ""));
    let mut random = fastrand::Rng::with_seed(5);
    let mut files: Vec<Vec<&str>> = vec![Vec::new(); names.len()];
    let mut seen = BTreeSet::new();
    for edit in 0..60 {
        let file = random.usize(..names.len());
        let texts: &[&str] = if file < 3 { &FORMS } else { &SCRIPTS };
        let piece = texts[random.usize(..texts.len())];
        match random.usize(..4) {
            _ if file >= 3 => files[file] = vec![piece],
            0 if !files[file].is_empty() => {
                let at = random.usize(..files[file].len());
                let moved = files[file].remove(at);
                files[random.usize(..3)].push(moved);
            }
            1 if !files[file].is_empty() => {
                let at = random.usize(..files[file].len());
                files[file][at] = piece;
            }
            _ => {
                let at = random.usize(..=files[file].len());
                files[file].insert(at, piece);
                files[file].truncate(8);
            }
        }
        for (name, forms) in names.iter().zip(&files) {
            let text = forms.join("\n");
            saved.write(name, &text);
            change(&mut client, &root.join(name), edit, &text);
        }
        // The other findings of the load arrive before the response to a later request.
        let text = "\n".repeat(edit + 1) + ";; deftool: allow(nope)\n(defproject)\n";
        saved.write(MARKER, &text);
        change(&mut client, &root.join(MARKER), edit, &text);
        let line = format!("{}:", edit + 2);
        client.wait_for(&root.join(MARKER), |codes| codes.iter().any(|code| code.starts_with(&line)));
        client.request("workspace/symbol", json!({"query": ""}));
        let expected = checked(&saved.path("").canonicalize().unwrap());
        assert_eq!(sent(&client, &root), expected, "after edit {edit}: {files:?}");
        seen.extend(
            expected.into_values().flatten().filter_map(|shown| Some(shown.split(' ').nth(2)?.to_owned())),
        );
    }
    assert!(seen.len() > 12, "too few rules: {seen:?}");
    assert!(client.shut_down().success());
}
