//! Calls of tools: the rules of `tests/doors/calls.txt` at each door through which a call comes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use agent_client_protocol::v1::schema::AGENT_METHOD_NAMES;
use deftool_test_support::server::{Answer, Server};
use serde_json::{Value, json};

use crate::commands::acp::raw::RawClient;
use crate::commands::mcp::Host;
use crate::commands::rpc::client::Client;
use crate::support::project::{Ended, Project};

const SPECS: &str = r#"
(deftool :name "sum" :description "Add numbers."
 :args ((:name "numbers" :type array :items (:type integer) :description "The numbers.")))
(deftool :name "fail" :description "Say that there is no luck." :args ())
(deftool :name "write" :description "Write a file." :allow (:write ["."]) :args ())
(deftool :name "ask" :description "Change something." :confirm t :args ())
(deftool :name "find" :description "Find nothing." :command ["sh" "-c" "exit 1"] :ok-codes [0 1] :args ())
(defexit :name "done" :description "The task is done."
 :args ((:name "rating" :type integer :description "How well it went.")))
"#;

const SCRIPTS: [(&str, &str); 4] = [
    (
        "sum",
        "return function(numbers) local sum = 0 for _, n in numbers do sum += n end return \"the sum is \" .. sum end",
    ),
    ("fail", "return function() return tool.failure(\"no luck\") end"),
    ("write", "return function() fs.write(\"written\", \"\") return \"has written\" end"),
    ("ask", "return function() return \"has changed\" end"),
];

fn project() -> Project {
    let project = Project::empty();
    project.write("specs/tools.eld", SPECS);
    for (tool, script) in SCRIPTS {
        project.write(&format!("scripts/{tool}.lua"), script);
    }
    project
}

/// A call, and what each door shows of its result.
struct Rule<'t> {
    name: &'t str,
    tool: &'t str,
    arguments: Value,
    shown: &'t str,
    /// The doors that show something else.
    exceptions: Vec<(&'t str, &'t str)>,
}

fn read_table() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/doors/calls.txt")).unwrap()
}

/// Reads the rules, and the doors with the way in which a call comes through them, or the reason why none does.
fn read(table: &str) -> (Vec<Rule<'_>>, Vec<(&str, &str)>) {
    let (mut rules, mut doors): (Vec<Rule<'_>>, _) = (Vec::new(), Vec::new());
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let parts: Vec<&str> = line.split(" | ").map(str::trim).collect();
        match *parts.as_slice() {
            [call, shown] if call.starts_with("rule ") => {
                let mut words = call.splitn(4, ' ').skip(1);
                let (name, tool) = (words.next().unwrap(), words.next().unwrap());
                let arguments = serde_json::from_str(words.next().unwrap()).unwrap();
                rules.push(Rule { name, tool, arguments, shown, exceptions: Vec::new() });
            }
            [exception, shown, _reason] => {
                let door = exception.strip_prefix("- ").unwrap();
                rules.last_mut().unwrap().exceptions.push((door, shown));
            }
            [door, way] => doors.push((door, way)),
            _ => panic!("{line}"),
        }
    }
    (rules, doors)
}

/// Adds the trust that the tools need, except where the rule is about missing trust.
fn trusting<'a>(rule: &Rule<'_>, arguments: &[&'a str]) -> Vec<&'a str> {
    let trust: &[&str] = if rule.name == "untrusted" { &[] } else { &["--trust"] };
    [arguments, trust].concat()
}

/// Returns a model that makes the call of a rule.
fn model(rule: &Rule<'_>) -> Server {
    Server::script([Answer::calls(&[(rule.tool, &rule.arguments.to_string())]), Answer::text("Finished.")])
}

/// Returns the response to a request of rpc. Allows no calls.
fn answer(client: &mut Client, id: i64) -> Value {
    loop {
        let is_response = |message: &Value| message["id"] == id && message.get("method").is_none();
        let message = client.wait_for(|message| message["method"] == "approve" || is_response(message));
        if is_response(&message) {
            return message;
        }
        let refused = json!({"answer": "refused", "reason": "the call is refused"});
        client.connection.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": refused}));
    }
}

/// Makes the call at a door, and returns everything that the user and the client see.
fn shown_at(door: &str, rule: &Rule<'_>) -> Option<String> {
    let project = project();
    let model = model(rule);
    let endpoint = model.endpoint();
    let output = |ended: Ended| format!("{}{}", ended.stdout, ended.stderr);
    let name_and_arguments = json!({"name": rule.tool, "arguments": rule.arguments});
    Some(match door {
        "command call" => {
            output(project.run(&trusting(rule, &["call", rule.tool, &rule.arguments.to_string()])))
        }
        "command run" => output(project.run(&trusting(rule, &["run", "Go on.", "--endpoint", &endpoint]))),
        "command chat" => {
            output(project.run_with_stdin(
                &trusting(rule, &["chat", "--endpoint", &endpoint, "--no-save"]),
                b"Go on.\n",
            ))
        }
        "mcp tools/call" => Host::start(&project, &trusting(rule, &["--exit-tools"]))
            .request(1, "tools/call", &name_and_arguments)
            .to_string(),
        "rpc call" => {
            let mut client = Client::start(&project, &trusting(rule, &[]));
            let id = client.send("call", json!({"tool": rule.tool, "arguments": rule.arguments}));
            answer(&mut client, id).to_string()
        }
        "rpc submit" => {
            let mut client = Client::start(&project, &trusting(rule, &["--endpoint", &endpoint]));
            let id = client.send("submit", json!({"prompt": "Go on."}));
            let submitted = client.response(id);
            if submitted.get("result").is_some() {
                let events = client.send("events", submitted["result"].clone());
                answer(&mut client, events);
            }
            client.received.iter().chain([&submitted]).map(Value::to_string).collect()
        }
        "acp session/prompt" => {
            let mut client = RawClient::start(&project, &trusting(rule, &["--endpoint", &endpoint]));
            client.send("session/new", &json!({"cwd": project.path(""), "mcpServers": []}));
            let opened = client.receive();
            let prompt = json!([{"type": "text", "text": "Go on."}]);
            let params = json!({"sessionId": opened["result"]["sessionId"], "prompt": prompt});
            client.send("session/prompt", &params);
            format!("{opened}{}", client.until_answer())
        }
        _ => return None,
    })
}

#[test]
fn every_door_keeps_the_rules_of_calls() {
    let table = read_table();
    let (rules, doors) = read(&table);
    let listed: BTreeSet<String> = doors.iter().map(|(door, _)| (*door).to_owned()).collect();
    let known = known_doors();
    // The methods of MCP are those of the table.
    let methods_of_mcp = listed.iter().filter(|door| door.starts_with("mcp ")).cloned();
    let known: BTreeSet<String> = known.into_iter().chain(methods_of_mcp).collect();
    let unknown: Vec<&String> = listed.symmetric_difference(&known).collect();
    assert!(unknown.is_empty(), "listed or existing, but not both: {unknown:?}");
    let mut wrong = Vec::new();
    for rule in &rules {
        for (door, way) in &doors {
            let is_call = matches!(*way, "the client calls" | "a model calls");
            let Some(shown) = is_call.then(|| shown_at(door, rule)) else { continue };
            let shown = shown.unwrap_or_else(|| panic!("nothing makes a call at {door}"));
            let exception = rule.exceptions.iter().find(|(excepted, _)| excepted == door);
            let expected = exception.map_or(rule.shown, |(_, shown)| *shown);
            if !shown.replace("\\\"", "\"").contains(expected) {
                wrong.push(format!("{} at {door} does not show: {expected}\n{shown}", rule.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the commands, and the methods of rpc and ACP.
fn known_doors() -> BTreeSet<String> {
    let completions = Project::empty().run(&["completions", "fish"]).stdout;
    let name =
        |line: &str| Some(line.split_once("needs_command\" -f -a \"")?.1.split('"').next()?.to_owned());
    let commands = completions.lines().filter_map(name).map(|name| format!("command {name}"));
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schemas/rpc.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let of_rpc = schema["$defs"]["Requests"]["properties"].as_object().unwrap().keys();
    let of_acp = serde_json::to_value(AGENT_METHOD_NAMES).unwrap();
    let of_acp = of_acp.as_object().unwrap().values().map(|name| format!("acp {}", name.as_str().unwrap()));
    commands.chain(of_rpc.map(|name| format!("rpc {name}"))).chain(of_acp).collect()
}

/// A method that is listed as unsupported has no other answer than that, and a method that is listed as supported has.
#[test]
fn the_table_names_the_methods_that_are_served() {
    let table = read_table();
    // Of one of the methods, and invalid for the others.
    let (project, params) = (project(), json!({"level": "info"}));
    let mut agent = RawClient::start(&project, &["--endpoint", "http://127.0.0.1:1"]);
    let mut host = Host::start(&project, &[]);
    for (door, way) in read(&table).1 {
        // Sent before, or without an answer.
        if ["begins the session", "is a notification"].contains(&way) {
            continue;
        }
        let answer = match door.split_once(' ').unwrap() {
            ("acp", method) => {
                agent.send(method, &params);
                agent.receive()
            }
            ("mcp", method) => host.request(1, method, &params),
            _ => continue,
        };
        assert_eq!(answer["error"]["code"] == -32601, way == "not supported", "{door}: {answer}");
    }
}
