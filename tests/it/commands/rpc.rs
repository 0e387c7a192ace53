//! `deftool rpc`: a client with raw messages. It validates messages against the published schema, except those that tests
//! make invalid.

#![cfg(target_os = "linux")]

pub(super) mod client;
mod journal;
mod output;
mod user_tools;

use std::fs;
use std::time::{Duration, Instant};

use deftool_test_support::server::{Act, Answer, Server, call, finish};
use serde_json::{Value, json};

use self::client::{Client, error_of};
use super::managed;
use crate::managed::fake::{family, runs};
use crate::support::jsonrpc::framed;
use crate::support::project::Project;
use crate::support::watching::LIMIT;

const SPECS: &str = r#"
(deftool :name "count" :description "Count the characters of a text." :category "text"
 :args ((:name "text" :type string :description "The text.")))
(deftool :name "broken" :description "Fails." :args ())
(deftool :name "careful" :description "Change a file." :confirm t
 :args ((:name "path" :type string :description "The file.")))
(deftool :name "guarded" :description "Change a file." :confirm (:when (:path "^/"))
 :args ((:name "path" :type string :description "The file.")))
(deftool :name "wait" :description "Wait." :allow (:run ["sh"]) :args ())
(deftool :name "misspelt" :description "Has an error." :args ((:name "x" :type strng :description "X.")))
(defexit :name "done" :description "The task is done." :args ())
"#;

pub(crate) fn project() -> Project {
    let project = Project::empty();
    project.write("specs/tools.eld", SPECS);
    project.write(
        "scripts/count.lua",
        "return function(text)\n tool.progress(0.5, \"half\")\n log.warn(\"odd\")\n return utf8.len(text)\nend\n",
    );
    project.write("scripts/broken.lua", "return function() error(\"no luck\") end\n");
    for name in ["careful", "guarded"] {
        let script = "return function(path) return \"changed \" .. path end\n";
        project.write(&format!("scripts/{name}.lua"), script);
    }
    project.write(
        "scripts/wait.lua",
        "return function() process.run({ \"sh\", \"-c\", \"echo $$ > pid; sleep 1000\" }) end\n",
    );
    project
}

#[test]
fn the_project_is_listed_checked_and_compiled() {
    let project = project();
    let mut client = Client::start(&project, &[]);
    let listed = client.request("list", json!({}));
    let names = |tools: &Value| -> Vec<Value> {
        tools.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect()
    };
    assert_eq!(names(&listed["tools"]), ["broken", "careful", "count", "done", "guarded", "wait"]);
    assert_eq!((&listed["generation"], &listed["workers"]), (&json!(1), &json!(["default"])));
    let count = json!({
        "name": "count", "kind": "normal", "description": "Count the characters of a text.", "category": "text",
        "confirm": "never", "origin": "project", "file": "specs/tools.eld", "line": 2,
        "parameters": {
            "type": "object", "properties": {"text": {"type": "string", "description": "The text."}},
            "required": ["text"], "additionalProperties": false,
        },
    });
    assert_eq!(listed["tools"][2], count);
    let confirm: Vec<&Value> =
        listed["tools"].as_array().unwrap().iter().map(|tool| &tool["confirm"]).collect();
    assert_eq!(confirm, ["never", "always", "never", "never", "sometimes", "never"]);

    let checked = client.request("check", json!({"targets": ["gemini"]}));
    let expected: Value =
        serde_json::from_str(&project.run(&["check", "--format", "json", "--target", "gemini"]).stdout)
            .unwrap();
    assert_eq!(checked, expected);
    assert_eq!(checked["summary"]["errors"], 1);

    let compiled = client.request("compile", json!({"target": "anthropic", "tools": ["count"]}));
    assert_eq!(compiled["definitions"][0]["input_schema"]["required"], json!(["text"]));
    assert_eq!(names(&client.request("compile", json!({"target": "mcp"}))["definitions"]).len(), 6);
    for (method, params, expected) in [
        ("compile", json!({"target": "opnai"}), "-32602 unknown target `opnai`; did you mean `openai`?"),
        ("compile", json!({"tools": ["cuont"]}), "-32803 unknown tool `cuont`; did you mean `count`?"),
        (
            "compile",
            json!({"tools": ["misspelt"]}),
            "-32803 the spec of `misspelt` has errors: specs/tools.eld:10:",
        ),
        ("check", json!({"target": "gemini"}), "-32602 invalid parameters: unknown field `target`"),
        ("check", json!([]), "-32602 invalid parameters: expected an object"),
        ("lst", json!({}), "-32601 unknown method `lst`; did you mean `list`?"),
        ("textDocument/hover", json!({}), "-32601 unknown method `textDocument/hover`; known methods: list,"),
    ] {
        let error = client.error(method, params);
        assert!(error.starts_with(expected), "{error}");
    }
    let error = client.error("result", json!({"request_id": "req_0"}));
    assert!(error.starts_with("-32602 unknown request `req_0`; a worker keeps"), "{error}");
    client.shut_down();
}

#[test]
fn calls_are_validated_approved_and_run() {
    let project = project();
    let mut client = Client::start(&project, &[]);
    let called =
        client.request("call", json!({"tool": "count", "arguments": {"text": "Zoë"}, "call_id": "c1"}));
    assert_eq!(called, json!({"result": 3, "text": "3"}));
    let progress = json!({"id": "c1", "tool": "count", "fraction": 0.5, "text": "half"});
    assert_eq!(client.notification("progress"), progress);
    assert_eq!(
        client.notification("log"),
        json!({"id": "c1", "tool": "count", "level": "warn", "text": "odd"})
    );

    // The client allows, refuses, sends an invalid answer or an error, or approves in advance.
    let path = "a\u{202e}\u{200b}\u{2028}\u{7f}b";
    let careful = json!({"tool": "careful", "arguments": {"path": path}, "call_id": "c2"});
    let id = client.send("call", careful.clone());
    let asked = client.answer(json!({"answer": "allowed"}));
    assert_eq!(asked["text"], r#"careful path: "a\u{202e}\u{200b}\u{2028}\u{7f}b""#);
    assert_eq!((&asked["request_id"], &asked["call_id"]), (&json!(""), &json!("c2")));
    assert_eq!(client.response(id)["result"]["text"], format!("changed {path}"));
    let id = client.send("call", careful.clone());
    client.answer(json!({"answer": "refused", "reason": "not now"}));
    assert_eq!(
        error_of(&client.response(id)),
        "-32803 the user did not allow this call to `careful`: not now"
    );
    let id = client.send("call", careful.clone());
    client.answer(json!(true));
    let error = error_of(&client.response(id));
    assert!(error.contains("the client's answer to `approve` is invalid: "), "{error}");
    let id = client.send("call", careful);
    let asked = client.wait_for(|message| message["method"] == "approve");
    let error = json!({"code": -32601, "message": "unknown method"});
    client.connection.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}));
    let error = error_of(&client.response(id));
    assert!(error.ends_with("the client did not ask the user: unknown method"), "{error}");
    let approved = json!({"tool": "careful", "arguments": {"path": "a"}, "approved": true});
    assert_eq!(client.request("call", approved)["result"], "changed a");
    for (path, expected) in [("/etc", true), ("etc", false)] {
        let params = json!({"tool": "guarded", "arguments": {"path": path}});
        assert_eq!(client.request("needs_approval", params)["needs_approval"], expected);
    }

    for (params, kind, message) in [
        (json!({"tool": "cuont"}), "unknown_tool", "unknown tool `cuont`; did you mean `count`?"),
        (json!({"tool": "count"}), "invalid_arguments", "`count`: \"text\" is a required property"),
        (json!({"tool": "done"}), "unknown_tool", "`done` is an exit tool and cannot be run"),
        (json!({"tool": "broken"}), "script", "scripts/broken.lua:1: no luck"),
        (
            json!({"tool": "wait"}),
            "permission",
            "`wait` was not run: it requires :run [\"sh\"], which is not trusted",
        ),
    ] {
        let id = client.send("call", params);
        let error = client.response(id)["error"].clone();
        client.validate("/$defs/ToolError", &error["data"]);
        assert_eq!((&error["code"], &error["data"]["kind"]), (&json!(-32803), &json!(kind)));
        assert!(error["message"].as_str().unwrap().starts_with(message), "{error}");
    }
    client.shut_down();
}

const WORKERS: &str = "(defworker :name \"a\" :system \"Be brief.\")\n(defworker :name \"b\" :endpoint \"http://127.0.0.1:1/v1\")\n";

#[test]
fn requests_stream_events_ask_for_approvals_and_continue() {
    let server = Server::script([
        Answer::calls(&[("careful", "{\"path\": \"x\"}"), ("careful", "{\"path\": \"y\"}")]),
        Answer::text("Done."),
        Answer::text("Again."),
    ]);
    let project = project();
    project.write("specs/workers.eld", WORKERS);
    let mut client = Client::start(&project, &["--trust", "--worker", "a", "--endpoint", &server.endpoint()]);
    let submitted = client.request("submit", json!({"prompt": "Change x and y.", "params": {"seed": 1}}));
    let events = client.send("events", submitted.clone());
    for answer in [json!({"answer": "refused", "reason": "no"}), json!({"answer": "allowed"})] {
        assert_eq!(client.answer(answer)["request_id"], submitted["request_id"]);
    }
    let count = client.response(events)["result"]["count"].as_u64().unwrap();
    let received: Vec<Value> = client.received.drain(..).map(|message| message["params"].clone()).collect();
    let kinds: Vec<&str> = received.iter().map(|params| params["event"]["type"].as_str().unwrap()).collect();
    assert_eq!(received.len() as u64, count);
    assert!(received.iter().enumerate().all(|(index, params)| params["index"] == index));
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("submitted", "finished"), "{kinds:?}");
    let finished: Vec<&Value> = received
        .iter()
        .map(|params| &params["event"])
        .filter(|event| event["type"] == "tool_finished")
        .collect();
    assert_eq!(finished[1]["result"], "changed y");
    assert_eq!(finished[0]["ok"], true);

    let result = client.request("result", submitted.clone());
    assert_eq!(
        (&result["outcome"]["state"], &result["outcome"]["text"]),
        (&json!("completed"), &json!("Done."))
    );
    // Only the last event again.
    let mut again = submitted.clone();
    again["from"] = json!(count - 1);
    assert_eq!(client.request("events", again)["count"], count);
    assert_eq!(client.notification("event")["event"]["type"], "finished");

    // The conversation continues.
    let messages = result["messages"].as_array().unwrap().clone();
    let messages = [messages, vec![json!({"role": "user", "content": "Again?"})]].concat();
    let params = json!({"messages": messages, "worker": "a", "tools": [], "system": "In French."});
    let second = client.request("submit", params);
    assert_eq!(client.request("result", second)["outcome"]["text"], "Again.");
    let sent = server.posts().last().unwrap().body.clone();
    let roles: Vec<&str> = sent["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles.iter().filter(|role| **role != "system").count(), 6, "{roles:?}");
    assert!(sent["messages"].to_string().contains("In French."), "{sent}");

    for (params, expected) in [
        (json!({}), "-32602 expected either `prompt` or `messages`"),
        (json!({"prompt": "x", "messages": []}), "-32602 expected either `prompt`"),
        (json!({"prompt": "x", "worker": "c"}), "-32602 unknown worker `c`; known workers: a, b"),
        (json!({"prompt": "x", "tools": ["cuont"]}), "-32803 unknown tool `cuont`"),
        (json!({"prompt": "x", "params": {"stream": false}}), "-32803 parameter `stream` is reserved"),
    ] {
        let error = client.error("submit", params);
        assert!(error.starts_with(expected), "{error}");
    }
    let error = client.error("result", json!({"request_id": "req_0"}));
    assert!(error.starts_with("-32602 unknown request `req_0`; a worker keeps"), "{error}");
    client.shut_down();
}

#[test]
fn a_worker_that_cannot_be_used_is_explained() {
    let project = project();
    project.write("specs/workers.eld", WORKERS);
    let mut client = Client::start(&project, &["--trust"]);
    let error = client.error("submit", json!({"prompt": "x"}));
    assert!(error.contains("several workers (a, b)"), "{error}");
    let error = client.error("submit", json!({"prompt": "x", "worker": "b"}));
    assert!(error.contains("http://127.0.0.1:1"), "{error}");
    client.shut_down();
    project.write("specs/workers.eld", WORKERS.replace(":name \"b\"", ":name \"b\" :default t"));
    let mut client = Client::start(&project, &["--trust"]);
    assert_eq!(client.request("list", json!({}))["workers"], json!(["b", "a"]));
    let error = client.error("submit", json!({"prompt": "x"}));
    assert!(error.contains("http://127.0.0.1:1"), "{error}");
    client.shut_down();
    let mut client = Client::start(&project, &[]);
    let error = client.error("submit", json!({"prompt": "x", "worker": "a"}));
    assert!(error.contains("permissions that are not trusted: wait requires :run [\"sh\"]"), "{error}");
    assert!(error.ends_with("then run `deftool trust grant`"), "{error}");
    client.shut_down();
}

#[test]
fn a_canceled_call_or_request_stops_its_program() {
    let server = Server::script([Answer::calls(&[("wait", "{}")])]);
    let project = project();
    let mut client = Client::start(&project, &["--trust", "--endpoint", &server.endpoint()]);
    let call = client.send("call", json!({"tool": "wait"}));
    let program = wait_for_program(&project);
    assert_eq!(client.error("list", json!({"unknown": 1})).split(' ').next(), Some("-32602"));
    client.connection.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": call}}));
    assert_eq!(error_of(&client.response(call)), "-32800 canceled");
    wait_until_gone(&[program]);

    let request = client.request("submit", json!({"prompt": "Wait.", "worker": "default"}));
    let result = client.send("result", request.clone());
    let program = wait_for_program(&project);
    client.request("cancel", request.clone());
    assert_eq!(client.response(result)["result"]["outcome"]["state"], "canceled");
    wait_until_gone(&[program]);
    client.shut_down();
}

/// Waits until the tool `wait` runs, and returns the ID of its program.
fn wait_for_program(project: &Project) -> u32 {
    let file = project.path("pid");
    let begun = Instant::now();
    loop {
        let id = fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
        if let Some(id) = id {
            fs::remove_file(&file).unwrap();
            return id;
        }
        assert!(begun.elapsed() < LIMIT, "the tool does not run");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn wait_until_gone(processes: &[u32]) {
    let begun = Instant::now();
    while processes.iter().any(|id| runs(*id)) {
        assert!(begun.elapsed() < LIMIT, "a process still runs");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A canceled request withdraws its approval request.
#[test]
fn an_approval_of_a_canceled_request_is_withdrawn() {
    let server = Server::script([Answer::calls(&[("careful", "{\"path\": \"x\"}")])]);
    let project = project();
    let mut client = Client::start(&project, &["--trust", "--endpoint", &server.endpoint()]);
    let request = client.request("submit", json!({"prompt": "x"}));
    let asked = client.wait_for(|message| message["method"] == "approve");
    client.request("cancel", request);
    assert_eq!(client.notification("$/cancelRequest")["id"], asked["id"]);
    // Too late.
    client.connection.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"answer": "allowed"}}));
    client.shut_down();
}

#[test]
fn reloads_are_reported() {
    let project = project();
    let mut client = Client::start(&project, &[]);
    client.request("list", json!({}));
    project.write("scripts/count.lua", "return function(text) return 7 end\n");
    let reloaded = client.notification("reloaded");
    assert_eq!(reloaded["generation"], 2);
    assert!(reloaded["changes"].as_str().unwrap().starts_with("changed count "), "{reloaded}");
    let called = client.request("call", json!({"tool": "count", "arguments": {"text": "abc"}}));
    assert_eq!(called["result"], 7);
    client.shut_down();
}

/// Each line is a message, and the responses are lines.
#[test]
fn requests_may_come_from_a_pipe() {
    let project = project();
    let input = "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"compile\",\"params\":{\"tools\":[]}}\n[]\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"check\"}\n";
    let ended = project.run_with_stdin(&["rpc"], input.as_bytes());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let mut lines: Vec<&str> = ended.stdout.lines().collect();
    lines.sort_by_key(|line| line.len());
    assert_eq!(lines[0], r#"{"jsonrpc":"2.0","id":"a","result":{"generation":1,"definitions":[]}}"#);
    assert!(lines[1].contains("batches are not supported"), "{lines:?}");
    assert!(lines[2].contains("\"rule\":\"DT204\""), "{lines:?}");
    assert_eq!(lines.len(), 3);
    let ended = Project::empty().run_with_stdin(&["rpc"], b"");
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("no project found"), "{}", ended.stderr);
}

/// The messages of a result name the images of the conversation, and the next request sends them again.
#[test]
fn a_conversation_with_images_is_continued() {
    let server = Server::script([
        Answer::calls(&[("picture", "{}")]),
        Answer::text("A dot."),
        Answer::text("Again."),
        Answer::text("In another process."),
    ]);
    let project = project();
    project
        .write("specs/picture.eld", "(deftool :name \"picture\" :description \"Return a dot.\" :args ())\n");
    project
        .write("scripts/picture.lua", "return function() return tool.image('\\137PNG\\r\\n\\26\\n') end\n");
    let arguments = ["--trust", "--endpoint", &server.endpoint()];
    let mut client = Client::start(&project, &arguments);
    let next = |result: &Value| -> Value {
        let messages = result["messages"].as_array().unwrap().clone();
        [messages, vec![json!({"role": "user", "content": "And now?"})]].concat().into()
    };
    let submitted = client.request("submit", json!({"prompt": "Draw."}));
    let result = client.request("result", submitted.clone());
    let submitted = client.request("submit", json!({"messages": next(&result)}));
    assert_eq!(client.request("result", submitted.clone())["outcome"]["text"], "Again.");
    let whole = json!({"request_id": submitted["request_id"], "attachments": true});
    let result = client.request("result", whole);
    let stored = result["attachments"].as_array().unwrap();
    assert_eq!((stored.len(), &stored[0]["data"]), (1, &json!("iVBORw0KGgo=")));
    client.shut_down();

    let mut client = Client::start(&project, &arguments);
    let params = json!({"messages": next(&result), "attachments": result["attachments"]});
    let submitted = client.request("submit", params);
    assert_eq!(client.request("result", submitted)["outcome"]["text"], "In another process.");
    client.shut_down();
    for post in &server.posts()[1..] {
        assert_eq!(post.body.to_string().matches("data:image/png;base64,iVBORw0KGgo=").count(), 1);
    }
}

#[test]
fn bad_messages_have_clear_errors_and_end_nothing() {
    let project = project();
    let mut client = Client::start(&project, &["--trust"]);
    for (sent, expected) in [
        (b"Content-Length: 3\r\n\r\n{x}".to_vec(), "-32700 not JSON: "),
        (b"hello\r\n\r\n".to_vec(), "-32700 expected a `Content-Length` header, found `hello`"),
        (framed(&json!({"id": {}, "method": "list"})), "-32600 expected an integer or a string as `id`"),
        (framed(&json!({"id": 1})), "-32600 expected a string as `method`"),
    ] {
        client.connection.write(&sent);
        let error = error_of(&client.receive());
        assert!(error.starts_with(expected), "{error}");
    }
    // Responses to no request, and cancellations of no request, are ignored.
    client.connection.send(&json!({"jsonrpc": "2.0", "id": 77, "result": null}));
    client.connection.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "x"}}));
    client.connection.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": 3}));
    // An ID that is in use, and more calls than are allowed.
    let open: Vec<i64> = (0..128).map(|_| client.send("call", json!({"tool": "wait"}))).collect();
    for method in ["call", "check"] {
        let error = client.error(method, json!({"tool": "count"}));
        assert_eq!(error, "-32803 too many open requests; wait for one of 128 to finish");
    }
    client.request("list", json!({}));
    client.connection.send(&json!({"jsonrpc": "2.0", "id": open[0], "method": "list"}));
    assert_eq!(error_of(&client.response(open[0])), "-32600 another request with this ID is not finished");
    client.shut_down();
}

/// A client that is gone leaves nothing behind: neither the programs of its calls nor a managed server.
#[test]
fn a_client_that_disappears_ends_everything() {
    let managed = managed::project("family");
    for name in ["tools.eld", "wait.lua"] {
        let folder = if name == "wait.lua" { "scripts" } else { "specs" };
        let other = project();
        fs::copy(other.path(&format!("{folder}/{name}")), managed.path(&format!("{folder}/{name}"))).unwrap();
    }
    for is_killed in [false, true] {
        let mut client = Client::start(&managed, &["--trust"]);
        let request = client.request("submit", json!({"prompt": "hello"}));
        client.request("result", request);
        client.send("call", json!({"tool": "wait"}));
        let program = wait_for_program(&managed);
        let mut processes = family(client.connection.server.id());
        // deftool, the guards, the server with its children, and the program.
        assert!(processes.len() >= 5 && processes.contains(&program), "{processes:?}");
        processes.remove(0);
        if is_killed {
            client.connection.server.kill().unwrap();
            client.connection.server.wait().unwrap();
        } else {
            client.connection.write(b"Content-Length: 50\r\n\r\n{");
            assert!(client.connection.disconnect().success());
            // Already ended.
            assert!(!processes.iter().any(|id| runs(*id)), "{processes:?}");
        }
        wait_until_gone(&processes);
    }
}

#[test]
fn two_clients_share_a_project() {
    let project = project();
    let mut clients = [(); 2].map(|()| Client::start(&project, &[]));
    for client in &mut clients {
        client.request("list", json!({}));
    }
    project.write("scripts/count.lua", "return function(text) return 7 end\n");
    for client in &mut clients {
        assert_eq!(client.notification("reloaded")["generation"], 2);
    }
    clients.into_iter().for_each(Client::shut_down);
}

/// A program forwards the arguments as the model wrote them.
#[test]
fn arguments_of_calls_are_repaired() {
    let project = project();
    let spec = r#"(deftool :name "add" :description "Adds one." :args ((:name "n" :type integer :description "N.")))"#;
    project.write("specs/add.eld", spec);
    project.write("scripts/add.lua", "return function(n) return n + 1 end\n");
    let mut client = Client::start(&project, &[]);
    let called = client.request("call", json!({"tool": "add", "arguments": {"n": "2"}}));
    let repairs = json!([{"path": ".n", "kind": "integer_as_string"}]);
    assert_eq!(called, json!({"result": 3, "text": "3", "repairs": repairs}));
    client.shut_down();
}
