//! The export of OpenTelemetry traces and metrics, with a collector in the test.

#![cfg(all(unix, feature = "otel"))]

mod phoenix;

use std::process::Stdio;

use deftool_test_support::otlp::{Collector, ReceivedSpan};
use deftool_test_support::server::{Act, Answer, ClosedPort, Server, call, delta, finish, usage};
use serde_json::{Value, json};

use super::trace::{PARENT, Peer, STATE, project, trace_of, web};
use crate::support::project::{Ended, Project};

/// Texts that only content contains.
const PROMPT: &str = "a prompt about llamas";
const REPLY: &str = "an answer about llamas";
const KEY: &str = "sk-0123456789abcdefghijklmnop";

/// A model that calls `tool` with a URL, and then answers.
fn model(tool: &str, url: &str) -> Server {
    let arguments = json!({ "url": url }).to_string();
    let model = |id: &str| json!({"id": id, "model": "scripted-2", "choices": []});
    let calling = [model("reply-1"), call(0, tool, &arguments), finish("tool_calls"), usage(12, 5)];
    let answering = [model("reply-2"), delta(REPLY), finish("stop"), usage(30, 6)];
    Server::script([Answer::chunks(&calling), Answer::chunks(&answering)])
}

fn export_to(project: &Project, endpoint: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = project.command(arguments);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint).env("OPENAI_API_KEY", KEY).stdin(Stdio::null());
    command.envs(variables.iter().copied());
    Ended::of(command.output().unwrap())
}

/// Runs a request with a call of `tool`. Returns the model and the server of the tool.
fn run(collector: &Collector, tool: &str, options: &[&str], variables: &[(&str, &str)]) -> (Server, Server) {
    let project = project();
    let (web, url) = web();
    let model = model(tool, &url);
    let endpoint = model.endpoint();
    let arguments = [&["run", PROMPT, "--trust", "--endpoint", &endpoint][..], options].concat();
    let ended = export_to(&project, &collector.endpoint(), &arguments, variables);
    assert_eq!((ended.code, ended.stdout.trim_end()), (Some(0), REPLY), "{ended:?}");
    assert!(!ended.stderr.contains("warning"), "{ended:?}");
    (model, web)
}

/// Returns the only span with a name.
fn span<'s>(spans: &'s [ReceivedSpan], name: &str) -> &'s ReceivedSpan {
    let found: Vec<_> = spans.iter().filter(|span| span.name == name).collect();
    assert_eq!(found.len(), 1, "{name}: {spans:#?}");
    found[0]
}

#[test]
fn the_spans_and_metrics_of_a_request_arrive() {
    for isolate in ["threads", "process"] {
        let collector = Collector::start();
        let variables = [
            ("TRACEPARENT", PARENT),
            ("TRACESTATE", STATE),
            ("OTEL_SERVICE_NAME", "tests"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,team=a"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-token=abc"),
        ];
        let (model, web) = run(&collector, "fetch", &["--isolate", isolate, "--job", "j"], &variables);
        let spans = collector.spans();
        assert_eq!(spans.len(), 4, "{spans:#?}");
        let agent = span(&spans, "invoke_agent default");
        let tool = span(&spans, "execute_tool fetch");
        let chats: Vec<_> = spans.iter().filter(|span| span.name == "chat scripted").collect();
        let submitter: Vec<&str> = PARENT.split('-').collect();
        assert_eq!(agent.parent, submitter[2]);
        assert!(spans.iter().all(|span| span.trace == submitter[1] && span.state == STATE && !span.is_error));
        assert!([tool, chats[0], chats[1]].iter().all(|span| span.parent == agent.id));
        // Requests that a span sends carry its traceparent.
        let sent: Vec<_> = model.posts();
        let sent: Vec<_> = sent.iter().map(|post| trace_of(post).0.unwrap()).collect();
        assert_eq!(sent, [chats[0].traceparent(), chats[1].traceparent()]);
        assert_eq!(trace_of(&web.posts()[0]), (Some(tool.traceparent().as_str()), Some(STATE)));
        // The times are those of the events.
        let inner = [chats[0], tool, chats[1]].map(|span| span.times);
        assert!(agent.times.0 <= inner[0].0 && inner.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        assert!(inner[2].1 <= agent.times.1, "{inner:?}");

        let attribute = |span: &ReceivedSpan, name: &str| span.attributes[name].clone();
        assert_eq!(attribute(agent, "gen_ai.usage.input_tokens"), "42");
        assert_eq!(attribute(agent, "deftool.job.name"), "j");
        assert_eq!(attribute(chats[0], "gen_ai.response.finish_reasons"), "tool_calls");
        assert_eq!(attribute(chats[1], "gen_ai.response.id"), "reply-2");
        assert_eq!(attribute(chats[1], "gen_ai.response.model"), "scripted-2");
        assert_eq!(attribute(chats[1], "gen_ai.usage.output_tokens"), "6");
        assert!(chats[1].attributes.contains_key("gen_ai.response.time_to_first_chunk"));
        assert_eq!(attribute(tool, "gen_ai.tool.name"), "fetch");
        assert_eq!((&*agent.resource["service.name"], &*agent.resource["team"]), ("tests", "a"));
        assert_eq!(agent.resource["telemetry.sdk.language"], "rust");

        let metrics = collector.metrics();
        // The chunks of a short reply may arrive together.
        let names =
            metrics.keys().map(String::as_str).filter(|name| !name.ends_with(".time_per_output_chunk"));
        assert_eq!(
            names.collect::<Vec<_>>(),
            [
                "gen_ai.client.operation.duration",
                "gen_ai.client.operation.time_to_first_chunk",
                "gen_ai.client.token.usage",
                "gen_ai.execute_tool.duration",
                "gen_ai.invoke_agent.duration",
            ]
        );
        let tokens = &metrics["gen_ai.client.token.usage"];
        let of_type = |kind: &str| tokens.iter().find(|point| point.attributes["gen_ai.token.type"] == kind);
        let (input, output) = (of_type("input").unwrap(), of_type("output").unwrap());
        let sums = [input, output].map(|point| point.sum.to_string());
        assert_eq!((input.count, sums.each_ref().map(String::as_str)), (2, ["42", "11"]));
        assert_eq!(metrics["gen_ai.client.operation.duration"][0].count, 2);
        assert_eq!(metrics["gen_ai.client.operation.time_to_first_chunk"][0].count, 2);
        assert_eq!(metrics["gen_ai.execute_tool.duration"][0].attributes["gen_ai.tool.name"], "fetch");
        assert_eq!(metrics["gen_ai.invoke_agent.duration"][0].count, 1);

        for request in collector.requests() {
            assert_eq!(request.header("x-token"), Some("abc"));
            assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
            let text = String::from_utf8_lossy(&request.raw);
            assert!(
                !text.contains("llamas") && !text.contains(KEY) && !text.contains("127.0.0.1/"),
                "{text}"
            );
        }
    }
}

#[test]
fn without_a_submitter_a_request_starts_a_trace() {
    let collector = Collector::start();
    let (model, web) = run(&collector, "far__fetch", &[], &[]);
    let spans = collector.spans();
    let agent = span(&spans, "invoke_agent default");
    assert_eq!(agent.parent, "");
    let posts = model.posts();
    assert!(trace_of(&posts[0]).0.unwrap().starts_with(&format!("00-{}-", agent.trace)));
    // The call of the MCP server, and the request of its script.
    let tool = span(&spans, "execute_tool far__fetch");
    assert_eq!(trace_of(&web.posts()[0]), (Some(tool.traceparent().as_str()), None));
}

#[test]
fn content_is_exported_only_on_request_and_without_secrets() {
    let collector = Collector::start();
    let project = project();
    let (_web, url) = web();
    let model = model("fetch", &format!("{url}?q={KEY}"));
    let prompt = format!("{PROMPT} {KEY}");
    let arguments = ["run", &prompt, "--trust", "--endpoint", &model.endpoint()];
    let capture = [("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")];
    let ended = export_to(&project, &collector.endpoint(), &arguments, &capture);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let spans = collector.spans();
    let content = |name: &str, attribute: &str| {
        let span = spans.iter().rev().find(|span| span.name == name).unwrap();
        span.attributes[attribute].clone()
    };
    let input: Value = serde_json::from_str(&content("chat scripted", "gen_ai.input.messages")).unwrap();
    // The lines with time and budget stand before the prompt.
    let prompt = format!("{PROMPT} [redacted]");
    let is_prompt = |message: &Value| {
        let text = message["parts"][0]["content"].as_str().unwrap_or_default();
        message["role"] == "user" && text.ends_with(&prompt)
    };
    assert!(input.as_array().unwrap().iter().any(is_prompt), "{input}");
    let output: Value = serde_json::from_str(&content("chat scripted", "gen_ai.output.messages")).unwrap();
    assert_eq!(
        output,
        json!([{"role": "assistant", "parts": [{"type": "text", "content": REPLY}], "finish_reason": "stop"}])
    );
    assert_eq!(content("execute_tool fetch", "gen_ai.tool.call.result"), "200");
    assert!(content("execute_tool fetch", "gen_ai.tool.call.arguments").ends_with("?q=[redacted]\"}"));
    for request in collector.requests() {
        assert!(!String::from_utf8_lossy(&request.raw).contains(KEY));
    }
}

/// Collectors that do not accept spans: a request has the same result, and one line reports the lost spans.
#[test]
fn a_collector_that_fails_costs_one_warning() {
    let closed = ClosedPort::reserve();
    let closed = closed.endpoint().replace("/v1", "");
    let answering = |answer: Answer| {
        let server = Server::answering_all(move |_, _| answer.clone());
        (format!("http://{}", server.address()), Some(server))
    };
    let raw = |bytes: &[u8]| Answer::default().then(Act::Write(bytes.to_vec()));
    for ((endpoint, _server), reason) in [
        ((closed, None), "Connection refused (os error "),
        (answering(Answer::silent()), "no response"),
        (answering(Answer::whole(400, &[], "no")), "HTTP 400"),
        (answering(Answer::whole(503, &[("retry-after", "3600")], "")), "HTTP 503"),
        (answering(Answer::whole(307, &[("location", "http://127.0.0.1:1/")], "")), "HTTP 307"),
        (answering(raw(b"SSH-2.0\r\n").then(Act::Close)), "invalid HTTP version parsed"),
        (answering(Answer::head(500, &[]).then(Act::Endless(b"5\r\n\x1b[31m\r\n".to_vec()))), "HTTP 500"),
    ] {
        let project = project();
        let (web, url) = web();
        let model = model("fetch", &url);
        let arguments = ["run", PROMPT, "--trust", "--endpoint", &model.endpoint()];
        let ended = export_to(&project, &endpoint, &arguments, &[]);
        assert_eq!((ended.code, ended.stdout.trim_end()), (Some(0), REPLY), "{ended:?}");
        let warning = format!("warning: 4 spans lost: {endpoint}/v1/traces: {reason}");
        let last = ended.stderr.lines().last().unwrap();
        assert!(last.starts_with(&warning) && ended.stderr.matches("warning").count() == 1, "{ended:?}");
        assert_eq!((model.posts().len(), web.posts().len()), (2, 1));
    }
}

#[test]
fn a_collector_that_is_busy_gets_the_spans_later() {
    let collector = Server::answering_all(|nth, _| Answer::whole(if nth == 0 { 503 } else { 200 }, &[], ""));
    let project = project();
    let (_web, url) = web();
    let model = model("fetch", &url);
    let arguments = ["run", PROMPT, "--trust", "--endpoint", &model.endpoint()];
    let ended = export_to(&project, &format!("http://{}", collector.address()), &arguments, &[]);
    assert_eq!((ended.code, ended.stderr.matches("warning").count()), (Some(0), 0), "{ended:?}");
    let lines: Vec<String> = collector.posts().into_iter().map(|post| post.line).collect();
    assert_eq!(lines, ["POST /v1/traces", "POST /v1/traces", "POST /v1/metrics"]);
}

#[test]
fn spans_that_do_not_fit_into_the_queue_are_reported() {
    let (collector, project) = (Collector::start(), project());
    let (_web, url) = web();
    let model = model("fetch", &url);
    let arguments = ["run", PROMPT, "--trust", "--endpoint", &model.endpoint()];
    let queue = [("OTEL_BSP_MAX_QUEUE_SIZE", "0")];
    let ended = export_to(&project, &collector.endpoint(), &arguments, &queue);
    assert!(ended.stderr.ends_with("warning: 4 spans lost: the queue was full\n"), "{ended:?}");
    assert_eq!(collector.metrics()["gen_ai.invoke_agent.duration"][0].count, 1);
}

#[test]
fn metrics_are_exported_without_spans() {
    let collector = Collector::start();
    run(&collector, "fetch", &[], &[("OTEL_TRACES_EXPORTER", "none")]);
    assert!(collector.spans().is_empty());
    assert_eq!(collector.metrics()["gen_ai.invoke_agent.duration"][0].count, 1);
}

#[test]
fn settings_that_cannot_be_used_cost_one_warning() {
    let collector = Collector::start();
    for (variable, value, reason) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "unsupported protocol `grpc`; use `http/protobuf`"),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "collector:4317",
            "expected an HTTP URL such as http://localhost:4318",
        ),
    ] {
        let project = project();
        let (_web, url) = web();
        let model = model("fetch", &url);
        let arguments = ["run", PROMPT, "--trust", "--endpoint", &model.endpoint()];
        let ended = export_to(&project, &collector.endpoint(), &arguments, &[(variable, value)]);
        assert_eq!((ended.code, ended.stdout.trim_end()), (Some(0), REPLY), "{ended:?}");
        let warning = format!("warning: no telemetry is exported: {variable}: {reason}\n");
        assert!(ended.stderr.contains(&warning), "{ended:?}");
        assert_eq!(ended.stderr.matches("warning").count(), 1, "{ended:?}");
        assert!(model.posts().iter().all(|post| trace_of(post) == (None, None)));
    }
    for off in [("OTEL_SDK_DISABLED", "true"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "")] {
        let (model, web) = run(&collector, "fetch", &[], &[off]);
        let requests = [model.posts(), web.posts()].concat();
        assert!(requests.iter().all(|request| trace_of(request) == (None, None)));
    }
    assert!(collector.requests().is_empty());
}

/// An unsampled trace context is forwarded unchanged. Metrics do not depend on sampling.
#[test]
fn an_unsampled_trace_has_no_spans() {
    let collector = Collector::start();
    let unsampled = PARENT.replace("-01", "-00");
    let (model, web) = run(&collector, "fetch", &[], &[("TRACEPARENT", &unsampled)]);
    let requests = [model.posts(), web.posts()].concat();
    assert!(requests.iter().all(|request| trace_of(request).0 == Some(&unsampled)));
    assert!(collector.spans().is_empty());
    assert_eq!(collector.metrics()["gen_ai.invoke_agent.duration"][0].count, 1);
}

#[test]
fn a_failed_request_has_error_types() {
    let collector = Collector::start();
    let project = Project::new();
    let model = Server::script([
        Answer::error(503, &[("retry-after", "0")], "busy"),
        Answer::chunks(&[call(0, "broken", "{}"), finish("tool_calls")]),
    ]);
    let arguments = ["run", PROMPT, "--endpoint", &model.endpoint()];
    let ended = export_to(&project, &collector.endpoint(), &arguments, &[]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let spans = collector.spans();
    let errors: Vec<_> = spans
        .iter()
        .map(|span| {
            (span.name.as_str(), span.attributes.get("error.type").map(String::as_str), span.is_error)
        })
        .collect();
    assert_eq!(
        errors,
        [
            ("chat scripted", Some("503"), true),
            ("chat scripted", None, false),
            ("execute_tool broken", Some("script"), true),
            ("invoke_agent default", Some("tool_execution_error"), true),
        ]
    );
}

/// The requests of a client, of a chat and of an editor are exported too, and end with their command.
#[test]
fn all_commands_that_run_workers_export() {
    let project = project();
    let (_web, url) = web();
    let collector = Collector::start();
    let endpoint = collector.endpoint();
    let start = |arguments: &[&str], model: &Server| {
        let model = model.endpoint();
        let arguments = [arguments, &["--trust", "--endpoint", &model]].concat();
        let mut command = project.command(&arguments);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint);
        Peer::spawn(command)
    };
    let model = self::model("fetch", &url);
    let mut client = start(&["rpc"], &model);
    let submitted = client.request("submit", json!({"prompt": "x", "traceparent": PARENT}));
    client.request("result", json!({"request_id": submitted["request_id"]}));
    client.end();
    let spans = collector.spans();
    assert_eq!(spans.len(), 4, "{spans:#?}");
    assert_eq!(span(&spans, "invoke_agent default").parent, PARENT.split('-').nth(2).unwrap());

    let model = self::model("fetch", &url);
    let mut editor = start(&["acp"], &model);
    editor.request("initialize", json!({"protocolVersion": 1}));
    let opened = editor.request("session/new", json!({"cwd": project.path(""), "mcpServers": []}));
    let prompt = json!([{"type": "text", "text": "x"}]);
    editor.request("session/prompt", json!({"sessionId": opened["sessionId"], "prompt": prompt}));
    editor.end();
    assert_eq!(collector.spans().len(), 8);

    // Each message of a chat is a request.
    let model = Server::script([Answer::text("one"), Answer::text("two")]);
    let arguments = ["chat", "--no-save", "--trust", "--endpoint", &model.endpoint()];
    let mut command = project.command(&arguments);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut chat = command.stderr(Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut chat.stdin.take().unwrap(), b"hello\nagain\n").unwrap();
    assert!(chat.wait().unwrap().success());
    let spans = collector.spans();
    assert_eq!(spans.len(), 12);
    assert_ne!(spans[9].trace, spans[11].trace);
}

/// The spans of a request that is continued in another process belong to one trace, with one root.
#[test]
fn a_resumed_request_continues_its_spans() {
    let project = project();
    let (_web, url) = web();
    let collector = Collector::start();
    let silent = Server::answering(|_, _| Answer::silent());
    let arguments = ["run", PROMPT, "--journal", "j", "--trust", "--endpoint", &silent.endpoint()];
    let mut command = project.command(&arguments);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint()).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    silent.wait_for_posts(1);
    child.kill().unwrap();
    child.wait().unwrap();
    let posts = silent.posts();
    let before: Vec<&str> = trace_of(&posts[0]).0.unwrap().split('-').collect();
    let model = model("fetch", &url);
    let arguments = ["journal", "resume", "j", "--trust", "--endpoint", &model.endpoint()];
    let ended = export_to(&project, &collector.endpoint(), &arguments, &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let spans = collector.spans();
    assert_eq!(spans.len(), 4, "{spans:#?}");
    let agent = span(&spans, "invoke_agent default");
    assert!(spans.iter().all(|span| span.trace == before[1]));
    assert!(spans.iter().all(|span| span.name.starts_with("invoke") || span.parent == agent.id));
}

#[test]
fn a_replay_exports_nothing() {
    let collector = Collector::start();
    let project = project();
    let (_web, url) = web();
    let model = model("fetch", &url);
    let endpoint = model.endpoint();
    let recorded = ["run", PROMPT, "--trust", "--record", "r.jsonl", "--endpoint", &endpoint];
    assert_eq!(project.run(&recorded).code, Some(0));
    let replayed = ["run", "--trust", "--replay", "r.jsonl", "--recorded-tools"];
    let ended = export_to(&project, &collector.endpoint(), &replayed, &[]);
    assert_eq!((ended.code, ended.stdout.trim_end()), (Some(0), REPLY), "{ended:?}");
    assert!(collector.requests().is_empty());
}
