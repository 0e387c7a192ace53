//! MCP servers that break the protocol in one item: it is left out or ignored, named once, and the rest works.

#![cfg(unix)]

mod schemas;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::project::{Ended, Project, command_in};

/// A project with the server `t` that answers with `pages` and `result`.
fn project(pages: &Value, result: &Value, replies: &str) -> Project {
    project_with(&json!({"initialize": {}, "list": pages, "call": result}), replies)
}

/// A project with the server `t` that answers with `results`.
fn project_with(results: &Value, replies: &str) -> Project {
    let project = Project::empty();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/played.py");
    project.write(
        "specs/a.eld",
        format!(
            "(defmcp :name \"t\" :command [\"python3\" \"{}\"])\n(defworker :name \"w\" :on-tool-error report)\n",
            server.display()
        ),
    );
    project.write("server.json", results.to_string());
    project.write("stub.eld", format!("(defscenario :name \"s\" {replies} (reply \"done\"))"));
    project
}

/// Trusts the server of a project, and returns a function that runs `deftool` in it.
fn trusted(project: &Project) -> impl Fn(&[&str]) -> Ended {
    let (root, state) = (project.path(""), project.path("state"));
    let deftool = move |arguments: &[&str]| {
        let mut command = command_in(&root, arguments);
        Ended::of(command.env("XDG_STATE_HOME", &state).output().unwrap())
    };
    assert_eq!(deftool(&["trust", "grant"]).code, Some(0));
    deftool
}

/// The outcome of a run.
struct Ran {
    shown: String,
    /// The lines about the server.
    reports: Vec<String>,
    /// The parameters of the offered tools, by name.
    offered: serde_json::Map<String, Value>,
}

/// Runs the worker, whose model calls `tool` with `{}`.
fn run(pages: &Value, result: &Value, tool: &str) -> Ran {
    run_with(&json!({"initialize": {}, "list": pages, "call": result}), tool)
}

fn run_with(results: &Value, tool: &str) -> Ran {
    let project = project_with(results, &format!("(reply (call \"{tool}\"))"));
    let run = ["run", "x", "--trust", "--record", "run.jsonl"];
    let stub = ["stub", "stub.eld", "--quiet", "--", env!("CARGO_BIN_EXE_deftool")];
    let mut command = command_in(&project.path(""), &[&stub[..], &run].concat());
    let ended = Ended::of(command.stdin(Stdio::null()).output().unwrap());
    let recorded = std::fs::read_to_string(project.path("run.jsonl")).unwrap();
    let mut offered = serde_json::Map::new();
    for line in recorded.lines().filter_map(|line| serde_json::from_str(line).ok()) {
        add_definitions(&line, &mut offered);
    }
    let reports = ended.stderr.lines().filter(|line| line.starts_with("MCP server `t`"));
    Ran { reports: reports.map(str::to_owned).collect(), shown: ended.stderr, offered }
}

/// Collects the definitions of tools in a line of a recording.
fn add_definitions(value: &Value, offered: &mut serde_json::Map<String, Value>) {
    match value {
        Value::Object(members) => {
            if let (Some(Value::String(name)), Some(parameters)) =
                (members.get("name"), members.get("parameters"))
            {
                offered.insert(name.clone(), parameters.clone());
            }
            members.values().for_each(|member| add_definitions(member, offered));
        }
        Value::Array(items) => items.iter().for_each(|item| add_definitions(item, offered)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn ping() -> Value {
    json!({"name": "ping", "description": "Ping.", "inputSchema": {"type": "object"}})
}

fn pong() -> Value {
    json!({"content": [{"type": "text", "text": "pong"}]})
}

/// Other tools that are listed beside `ping`: what is offered for the tool `x`, and what is reported once.
#[test]
fn one_bad_tool_is_left_out_or_used_without_its_bad_part() {
    let plain = json!({"type": "object", "properties": {}});
    let of = |schema: Value| json!({"name": "x", "description": "X.", "inputSchema": schema});
    let rows = [
        (
            json!({"name": "x"}),
            Some(plain.clone()),
            "offers `x`, which breaks the protocol and is used without the bad part: missing field `inputSchema`",
        ),
        (of(Value::Null), Some(plain.clone()), "offers `x`, which breaks the protocol"),
        (of(json!([])), Some(plain.clone()), "offers `x`, which breaks the protocol"),
        (of(json!({})), Some(plain.clone()), ""),
        (of(json!({"type": "object", "properties": []})), Some(plain.clone()), ""),
        (of(json!("none")), None, "offers `x`, which is left out: its `inputSchema` is not an object"),
        (
            of(json!({"type": "string", "description": "the title"})),
            None,
            "offers `x`, which is left out: the arguments in its `inputSchema` are not an object",
        ),
        (
            of(json!({"type": "object", "properties": {"a": {"type": "no-type"}}})),
            None,
            "offers `x`, which is left out: the schema of `t__x` does not compile at /properties/a/type",
        ),
        (
            json!({"description": "No name.", "inputSchema": {}}),
            None,
            "offers a tool without a name, which is left out",
        ),
        (json!({"name": 5, "inputSchema": {}}), None, "offers a tool without a name, which is left out"),
        (json!("ping"), None, "offers a tool without a name, which is left out"),
        (
            json!({"name": "x", "inputSchema": {}, "annotations": {"readOnlyHint": "yes"}}),
            Some(plain.clone()),
            "offers `x`, which breaks the protocol and is used without the bad part: invalid type: string \"yes\", expected a boolean",
        ),
        (
            json!({"name": "x", "inputSchema": {}, "annotations": [], "title": 5, "icons": "none"}),
            Some(plain.clone()),
            "offers `x`, which breaks the protocol",
        ),
        (
            json!({"name": "x", "inputSchema": {}, "outputSchema": null, "annotations": null, "added": 1}),
            Some(plain.clone()),
            "",
        ),
        (
            json!({"name": "x", "inputSchema": {}, "outputSchema": []}),
            Some(plain.clone()),
            "offers `x`, which breaks the protocol",
        ),
        (
            of(json!({"type": "object", "properties": {"a": {"type": "array"}}})),
            Some(json!({"type": "object", "properties": {"a": {"type": "array", "items": {}}}})),
            "",
        ),
        (
            of(
                json!({"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, {"type": "object", "properties": {"b": {"type": "string"}}}]}),
            ),
            Some(json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}})),
            "",
        ),
        (
            of(
                json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"t": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}}}),
            ),
            Some(
                json!({"type": "object", "properties": {"t": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": {}}}}),
            ),
            "",
        ),
        // Definitions get names that need no encoding.
        (
            of(
                json!({"properties": {"a": {"$ref": "#/$defs/My Type"}, "b": {"$ref": "#/$defs/My%20Type"}}, "$defs": {"My Type": {"type": "integer"}}}),
            ),
            Some(
                json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/My_Type_66eb2181"}, "b": {"$ref": "#/$defs/My_Type_66eb2181"}}, "$defs": {"My_Type_66eb2181": {"type": "integer"}}}),
            ),
            "",
        ),
    ];
    for (tool, offered, report) in rows {
        let ran = run(&json!([{"tools": [tool, ping()]}]), &pong(), "t__ping");
        assert!(ran.shown.contains("tool   t__ping → \"pong\""), "{tool}: {}", ran.shown);
        assert_eq!(ran.offered.get("t__x"), offered.as_ref(), "{tool}: {}", ran.shown);
        assert_eq!(ran.offered.len(), 1 + usize::from(offered.is_some()), "{tool}");
        let reports = &ran.reports;
        assert_eq!(reports.len(), usize::from(!report.is_empty()), "{tool}: {reports:?}");
        assert!(reports.iter().all(|line| line.contains(report)), "{tool}: {reports:?}");
    }
}

/// Members of the answer to `initialize`, and what is reported once. The tools can be used.
#[test]
fn a_handshake_that_breaks_the_protocol_is_used() {
    let rows = [
        (json!({"instructions": null, "added": 1}), ""),
        (json!({"serverInfo": {"name": "t"}}), "missing field `version`"),
        (json!({"serverInfo": {"name": "t", "version": null}}), "invalid type: null, expected a string"),
        (json!({"serverInfo": {"name": "t", "version": 1}}), "invalid type: integer `1`, expected a string"),
        (json!({"serverInfo": null}), "invalid type: null, expected struct Implementation"),
        (json!({"capabilities": null}), "invalid type: null, expected struct ServerCapabilities"),
        (json!({"capabilities": {"tools": true}}), "invalid type: boolean `true`, expected"),
        (json!({"instructions": ["a"]}), "invalid type: sequence, expected a string"),
    ];
    for (members, report) in rows {
        let ran = run_with(
            &json!({"initialize": members, "list": [{"tools": [ping()]}], "call": pong()}),
            "t__ping",
        );
        assert!(ran.shown.contains("tool   t__ping → \"pong\""), "{members}: {}", ran.shown);
        let reports = &ran.reports;
        assert_eq!(reports.len(), usize::from(!report.is_empty()), "{members}: {reports:?}");
        let line = format!(
            "MCP server `t`: breaks the protocol in its answer to `initialize`, which is used without the bad part: {report}"
        );
        assert!(reports.iter().all(|shown| shown.contains(&line)), "{members}: {reports:?}");
    }
}

/// Every command uses the last of several tools with the same name, and reports the name.
#[test]
fn the_last_of_several_tools_with_the_same_name_is_used() {
    let of = |argument: &str| {
        let schema = json!({"type": "object", "properties": {argument: {"type": "string"}}});
        json!({"name": "x", "description": "X.", "inputSchema": schema})
    };
    let pages = json!([{"tools": [of("a"), ping()], "nextCursor": "1"}, {"tools": [of("b")]}]);
    let ran = run(&pages, &pong(), "t__x");
    assert_eq!(ran.offered["t__x"]["properties"], json!({"b": {"type": "string"}}), "{}", ran.shown);
    assert_eq!(ran.reports, ["MCP server `t`: offers several tools `t__x`; only the last is used"]);
    let three = json!([{"tools": [of("a"), ping(), of("b"), of("c")]}]);
    let ran = run(&three, &pong(), "t__x");
    assert_eq!(ran.offered["t__x"]["properties"], json!({"c": {"type": "string"}}), "{}", ran.shown);
    assert_eq!((ran.offered.len(), ran.reports.len()), (2, 1), "{}", ran.shown);
    let project = project(&pages, &pong(), "");
    let deftool = trusted(&project);
    let checked = deftool(&["check", "--online", "--format", "concise"]);
    let warning = "warning[DT315]: MCP server `t` offers several tools `t__x`; only the last is used";
    assert_eq!(checked.stdout.matches(warning).count(), 1, "{checked:?}");
    let imported = deftool(&["import", "--mcp", "t"]);
    let last = ":args ((:name \"b\" :type string :optional t))";
    assert!(imported.stdout.contains(last) && !imported.stdout.contains("\"a\""), "{imported:?}");
    let warning = "warning[DT602]: duplicate tool `x`; only the last definition is imported";
    assert_eq!(imported.stderr.matches(warning).count(), 1, "{imported:?}");
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/played.py");
    let made = deftool(&["init", "--from", "mcp", &format!("python3 {}", server.display()), "made"]);
    assert!(made.stderr.contains(warning), "{made:?}");
    assert!(std::fs::read_to_string(project.path("made/specs/x.eld")).unwrap().contains(last), "{made:?}");
}

/// Tools whose names are too long, the same with portable characters, or those of another server: each is offered under a
/// name that does not depend on the list, and its call reaches the server under its own name.
#[test]
fn every_tool_has_a_name() {
    let (long, tools) =
        ("get_repository_branch_protection_rule_required_status_checks_contexts", "abcdefghi");
    let own = [&format!("{long}_a"), &format!("{long}_b"), "a.b", "a_b", "a b", "c.d", "bar__x", "x", "é"];
    let described = |tool: usize| {
        let schema = json!({"type": "object", "properties": {tools[tool..=tool].to_owned(): {}}});
        json!({"name": own[tool], "inputSchema": schema})
    };
    let of = |list: &[usize]| {
        let list: Vec<Value> = list.iter().copied().map(described).collect();
        json!({"initialize": {}, "list": [{"tools": list}], "call": "name"}).to_string()
    };
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/played.py");
    let servers = ["t", "foo", "foo__bar"].map(|name| {
        format!("(defmcp :name \"{name}\" :command [\"python3\" \"{}\" \"{name}.json\"])", server.display())
    });
    let servers = servers.join("\n");
    let run = |lists: [&[usize]; 3], replies: &str, worker: &str| {
        let project = Project::empty();
        project.write("specs/a.eld", format!("{servers}\n(defworker :name \"w\" {worker})\n"));
        for (name, list) in ["t", "foo", "foo__bar"].iter().zip(lists) {
            project.write(&format!("{name}.json"), of(list));
        }
        project.write("stub.eld", format!("(defscenario :name \"s\" {replies} (reply \"done\"))"));
        let run = ["run", "x", "--trust", "--record", "run.jsonl"];
        let stub = ["stub", "stub.eld", "--quiet", "--", env!("CARGO_BIN_EXE_deftool")];
        let mut command = command_in(&project.path(""), &[&stub[..], &run].concat());
        let ended = Ended::of(command.stdin(Stdio::null()).output().unwrap());
        let mut offered = serde_json::Map::new();
        let recorded = std::fs::read_to_string(project.path("run.jsonl")).unwrap();
        for line in recorded.lines().filter_map(|line| serde_json::from_str(line).ok()) {
            add_definitions(&line, &mut offered);
        }
        let names: BTreeMap<String, String> = offered
            .iter()
            .map(|(name, of)| {
                (of["properties"].as_object().unwrap().keys().next().unwrap().clone(), name.clone())
            })
            .collect();
        (ended, names, project)
    };
    let (ended, names, _project) = run([&[0, 1, 2, 3, 4, 5, 8], &[6], &[7]], "", "");
    let expected = [
        ("a", "t__get_repository_branch_protection_rule_required_statu_"),
        ("b", "t__get_repository_branch_protection_rule_required_statu_"),
        ("c", "t__a_b_"),
        ("d", "t__a_b"),
        ("e", "t__a_b_"),
        ("f", "t__c_d"),
        ("g", "foo__bar__x"),
        ("h", "foo__bar__x_"),
        ("i", "t___"),
    ];
    for (tool, start) in expected {
        let name = &names[tool];
        assert!(name.starts_with(start) && name.len() <= 64, "{tool}: {name}");
        assert_eq!(
            name.len() - start.len(),
            if start.ends_with('_') && tool != "i" { 8 } else { 0 },
            "{name}"
        );
    }
    let distinct: BTreeSet<&String> = names.values().collect();
    assert_eq!((names.len(), distinct.len()), (9, 9), "{names:?}");
    assert!(!ended.stderr.contains("MCP server"), "{ended:?}");
    // Another order, and a call of each.
    let calls: Vec<_> = names.values().map(|name| format!("(reply (call \"{name}\"))")).collect();
    let (ended, again, _project) =
        run([&[8, 5, 4, 3, 2, 1, 0], &[6], &[7]], &calls.concat(), ":tool-budget 20");
    assert_eq!(again, names);
    for (own, name) in own.iter().zip(names.values()) {
        assert!(ended.stderr.contains(&format!("tool   {name} → \"{own}\"")), "{name}: {ended:?}");
    }
    // A worker may name a tool with or without the hash.
    let worker = format!(":tools [\"t__{}\" \"t__a b\" \"{}\"]", own[0], names["h"]);
    let (ended, chosen, project) = run([&[0, 1, 2, 3, 4, 5, 8], &[6], &[7]], "", &worker);
    let chosen: Vec<&str> = chosen.keys().map(String::as_str).collect();
    assert_eq!(chosen, ["a", "e", "h"], "{ended:?}");
    let deftool = trusted(&project);
    let checked = deftool(&["check", "--online", "--format", "concise"]);
    assert_eq!((checked.code, checked.stdout.as_str()), (Some(0), ""), "{checked:?}");
    let imported = deftool(&["import", "--mcp", "t"]);
    let imported_names: BTreeSet<&str> =
        imported.stdout.lines().filter(|line| line.contains(":name \"")).collect();
    assert_eq!((imported.code, imported.stdout.matches("(deftool").count()), (Some(0), 7), "{imported:?}");
    assert!(imported_names.contains(" :name \"a_b\"") && imported_names.len() >= 7, "{imported:?}");
}

/// A change of the tools that a server announces before a result counts in the next turn.
#[test]
fn a_change_before_a_result_counts_in_the_next_turn() {
    let more = json!({"name": "more", "inputSchema": {"type": "object"}});
    let pages = json!([{"tools": [ping()]}, {"tools": [ping(), more]}]);
    let results = json!({"initialize": {}, "list": pages, "call": pong(), "changed": true});
    let ran = run_with(&results, "t__ping\")) (reply (call \"t__more");
    assert!(ran.shown.contains("tool   t__more → \"pong\""), "{}", ran.shown);
}

/// A server gets the variables about the user, as from both official SDKs, and no others.
#[test]
fn a_server_gets_the_variables_about_the_user() {
    let results = json!({"initialize": {}, "list": [{"tools": [ping()]}], "call": "environment"});
    let project = project_with(&results, "(reply (call \"t__ping\"))");
    let stub = ["stub", "stub.eld", "--quiet", "--", env!("CARGO_BIN_EXE_deftool"), "run", "x", "--trust"];
    let mut command = command_in(&project.path(""), &stub);
    let passed = ["HOME", "LOGNAME", "SHELL", "TERM", "USER"];
    for variable in passed.into_iter().chain(["A_SECRET"]) {
        command.env(variable, project.path(""));
    }
    let ended = Ended::of(command.stdin(Stdio::null()).output().unwrap());
    for variable in passed.into_iter().chain(["PATH"]) {
        assert!(ended.stderr.contains(&format!("{variable} ")), "{variable}: {ended:?}");
    }
    assert!(ended.stderr.contains("tool   t__ping") && !ended.stderr.contains("A_SECRET"), "{ended:?}");
}

/// Lists of tools: the names that are offered, and what is reported.
#[test]
fn a_list_that_does_not_end_is_used_as_far_as_it_goes() {
    let tool = |name: &str| json!({"name": name, "inputSchema": {}});
    let rows = [
        (
            json!([{"tools": [tool("a")], "nextCursor": "1"}, {"tools": [tool("b")]}]),
            vec!["t__a", "t__b"],
            "",
        ),
        // The cursor does not move.
        (
            json!([{"tools": [tool("a")], "nextCursor": "1"}]),
            vec!["t__a"],
            "repeats a cursor in the list of its tools, which ends there",
        ),
        (
            json!([{"tools": [tool("a")], "nextCursor": "1"}, {"tools": [tool("b")], "nextCursor": "1"}]),
            vec!["t__a", "t__b"],
            "repeats a cursor",
        ),
        (
            json!([{"tools": [tool("a")], "nextCursor": "1"}, {"tools": [], "nextCursor": "2"}, {"tools": [tool("b")], "nextCursor": null}]),
            vec!["t__a", "t__b"],
            "",
        ),
        (
            json!([{"tools": [tool("a"), null], "nextCursor": 5}]),
            vec!["t__a"],
            "offers a tool without a name",
        ),
        (
            json!([{"tools": [tool("a")], "nextCursor": "1"}, null]),
            vec!["t__a"],
            "cannot list the rest of its tools: unknown method",
        ),
        (
            json!([{"tools": [tool("a")], "nextCursor": "1"}, {"tools": null}]),
            vec!["t__a"],
            "cannot list the rest of its tools: the answer has no list `tools`",
        ),
    ];
    for (pages, offered, report) in rows {
        let ran = run(&pages, &pong(), "t__a");
        assert!(ran.shown.contains("tool   t__a → \"pong\""), "{pages}: {}", ran.shown);
        assert_eq!(ran.offered.keys().collect::<Vec<_>>(), offered, "{pages}");
        let reports = &ran.reports;
        assert_eq!(reports.len(), usize::from(!report.is_empty()), "{pages}: {reports:?}");
        assert!(reports.iter().all(|line| line.contains(report)), "{pages}: {reports:?}");
    }
    let endless = json!([{"tools": "none"}]);
    let project = project(&endless, &pong(), "");
    let ended = project.run(&["run", "x", "--trust", "--endpoint", "http://127.0.0.1:1/v1"]);
    let reason = "error: MCP server `t`: cannot list its tools: the answer has no list `tools`";
    assert!(ended.stderr.contains(reason), "{ended:?}");
}

/// Results of calls: what the model gets, and what is reported.
#[test]
fn what_is_unknown_in_a_result_is_left_out() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"});
    let data = format!("iVBORw0KGgo{}=", "A".repeat(32));
    let large = json!({"type": "image", "data": data, "mimeType": "image/png"});
    let odd = json!({"audience": ["robot"], "priority": "high", "lastModified": 5});
    let rows = [
        (json!({"content": [text("a"), text("b")]}), r#""a\nb""#, ""),
        (json!({"content": [{"type": "text", "text": "a", "annotations": odd, "_meta": 5}]}), r#""a""#, ""),
        (
            json!({"content": [text("a")], "structuredContent": null, "isError": false, "_meta": null}),
            r#""a""#,
            "",
        ),
        (json!({"content": [text("a")], "structuredContent": {"n": 1}}), r#"{"n":1}"#, ""),
        // The same image in the structured result, and in its text.
        (
            json!({"content": [&image], "structuredContent": {"picture": "iVBORw0KGgo=", "n": 1}}),
            r#"{"picture":"[image: image/png, 8 bytes]","n":1}"#,
            "",
        ),
        (
            json!({"content": [&large, text(&format!("{{\"url\":\"data:image/png;base64,{data}\"}}"))]}),
            r#""[image: image/png, 0×0, 32 bytes]\n{\"url\":\"data:image/png;base64,[image: image/png, 0×0, 32 bytes]\"}""#,
            "",
        ),
        (json!({"content": [text("a"), &image]}), r#""a\n[image: image/png, 8 bytes]""#, ""),
        // The first bytes decide the type.
        (
            json!({"content": [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/jpeg"}]}),
            r#""[image: image/png, 8 bytes]""#,
            "",
        ),
        (
            json!({"content": [{"type": "image", "data": "UE5H"}, {"type": "image", "data": "", "mimeType": "image/png"}]}),
            r#""[image: 3 bytes; not sent: not PNG, JPEG, GIF or WebP]\n[image: image/png, 0 bytes; not sent: empty]""#,
            "",
        ),
        (
            json!({"content": [{"type": "audio", "data": "SUQzBA==", "mimeType": "audio/mpeg"}]}),
            r#""[audio: audio/mpeg, 4 bytes]""#,
            "",
        ),
        (json!({"content": [{"type": "text", "text": 5}]}), r#""5""#, ""),
        (json!("a"), r#""a""#, ""),
        (
            json!({"content": [{"type": "resource", "resource": {"uri": "x:1", "text": "a"}}, {"type": "resource", "resource": {"uri": "x:2", "blob": "UE5H"}}]}),
            r#""a\n[resource: x:2, 3 bytes; not sent: not an image]""#,
            "",
        ),
        (
            json!({"content": [{"type": "resource", "resource": {"uri": "x:3", "blob": "iVBORw0KGgo="}}]}),
            r#""[image: image/png, 8 bytes]""#,
            "",
        ),
        (
            json!({"content": [{"type": "resource", "resource": {"uri": "x:4", "blob": "iVBORw0KGgo=", "mimeType": "application/pdf"}}]}),
            r#""[resource: x:4, application/pdf, 8 bytes; not sent: not an image]""#,
            "",
        ),
        (
            json!({"content": [{"type": "resource_link", "uri": "x:1", "name": "one"}]}),
            r#""[resource: one, x:1]""#,
            "",
        ),
        (
            json!({"content": [text("a"), {"type": "hologram", "data": "UE5H"}, {"type": "hologram"}]}),
            r#""a\n[content of the unknown type `hologram`, not shown]\n[content of the unknown type `hologram`, not shown]""#,
            "`x` returns content of the unknown type `hologram`, which is left out",
        ),
        (json!({"content": "a"}), r#""a""#, ""),
        (json!({"content": [{"text": "a"}]}), r#""a""#, ""),
        (json!({"content": []}), r#""""#, ""),
        (json!({}), r#""""#, ""),
        (
            json!({"content": [{"type": "text"}], "isError": true}),
            "failed: [content of the unknown type `text`, not shown]",
            "",
        ),
        (
            json!({"content": [text("a"), image], "isError": true}),
            "failed: a; [image: image/png, 8 bytes; not sent: the call failed]",
            "",
        ),
        (json!({"content": null, "isError": true}), "failed: the tool failed without a message", ""),
        (json!({"isError": true, "structuredContent": {"trace": "a"}}), r#"failed: {"trace":"a"}"#, ""),
    ];
    let tool = json!({"name": "x", "inputSchema": {}});
    for (result, value, report) in rows {
        let ran = run(&json!([{"tools": [tool]}]), &result, "t__x");
        assert!(ran.shown.contains(&format!("tool   t__x → {value}")), "{result}: {}", ran.shown);
        let reports = &ran.reports;
        assert_eq!(reports.len(), usize::from(!report.is_empty()), "{result}: {reports:?}");
        assert!(reports.iter().all(|line| line.contains(report)), "{result}: {reports:?}");
    }
    let tool = json!({"name": "x", "inputSchema": {}, "outputSchema": {"type": "object", "required": ["n"]}});
    let ran = run(&json!([{"tools": [tool]}]), &pong(), "t__x");
    assert!(ran.shown.contains("→ \"pong\""), "{}", ran.shown);
    assert!(
        ran.shown.contains("`x` returns a text instead of the result that its schema describes"),
        "{}",
        ran.shown
    );
}
