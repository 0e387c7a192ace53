//! `deftool doctor` and servers: one test per problem that it detects. Everything else is in `tests/commands/doctor.md`.

use std::time::Duration;

use deftool_test_support::server::{Act, Answer, ClosedPort, Received, Server};
use serde_json::{Value, json};

use crate::support::project::{Ended, Project};

/// The output of `doctor --json`: the result of the command, and the lines of all checks.
#[derive(Debug)]
struct Report(Ended, Vec<Value>);

fn doctor(project: &Project, arguments: &[&str], environment: &[(&str, &str)]) -> Report {
    let mut command = project.command(&[&["doctor", "--json"], arguments].concat());
    for (name, value) in environment {
        command.env(name, value);
    }
    let ended = Ended::of(command.output().unwrap());
    let report: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
    let checks = report["checks"].as_array().unwrap().clone();
    let is_fine = checks.iter().all(|line| line["level"] != "error");
    assert_eq!((report["ok"] == true, ended.code), (is_fine, Some(i32::from(!is_fine))), "{ended:?}");
    for line in &checks {
        let advised = line["advice"].as_str().is_some_and(|advice| !advice.is_empty());
        assert!(advised || line["level"] == "ok", "each problem has an advice: {line}");
    }
    Report(ended, checks)
}

impl Report {
    /// Returns the lines of a check, each as `level|message|advice`.
    fn of(&self, check: &str) -> Vec<String> {
        let lines = self.1.iter().filter(|line| line["check"] == check);
        let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
        lines
            .map(|line| [text(line, "level"), text(line, "message"), text(line, "advice")].join("|"))
            .collect()
    }

    /// Asserts that one of the lines of `check` has this level and contains these parts.
    fn assert_line(&self, check: &str, level: &str, parts: &[&str]) {
        let lines = self.of(check);
        let matches = |line: &String| line.starts_with(level) && parts.iter().all(|part| line.contains(part));
        assert!(lines.iter().any(matches), "{check}: expected {level} with {parts:?}, found {lines:#?}");
    }
}

fn json_page(body: &Value) -> Answer {
    Answer::whole(200, &[("content-type", "application/json")], &body.to_string())
}

fn models(names: &[&str]) -> Answer {
    let data: Vec<Value> = names.iter().map(|name| json!({"id": name})).collect();
    json_page(&json!({"object": "list", "data": data}))
}

#[test]
fn a_valid_set_up_is_reported_on_one_screen() {
    let project = Project::new();
    let server = Server::script([]);
    let endpoint = server.endpoint();
    let ended = project.run(&["doctor", "--endpoint", &endpoint]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines.len() < 24 && lines.iter().all(|line| line.len() < 400), "{ended:?}");
    assert!(lines[0].starts_with("ok       deftool     0."), "{lines:?}");
    assert!(
        ended.stdout.contains("project     here: 1 spec file, 2 tools, 1 exit tool, no worker\n"),
        "{lines:?}"
    );
    assert!(ended.stdout.contains("ok       model       `scripted`, the server's only model"), "{lines:?}");
    assert!(server.posts().is_empty(), "no request was sent to a model");
}

/// Each problem of an endpoint has its own message.
#[test]
fn an_unusable_server_is_explained() {
    type Page = Box<dyn Fn(&Received) -> Answer + Send + Sync>;
    let page = |status: u16, kind: &'static str, body: &'static str| -> Page {
        Box::new(move |_| Answer::whole(status, &[("content-type", kind)], body))
    };
    let deeper: Page = Box::new(|request| match request.line.as_str() {
        "GET /v1/models" => models(&["m"]),
        _ => Answer::error(404, &[], "no such route"),
    });
    let moved: Page = Box::new(|_| Answer::whole(308, &[("location", "https://api.example/v1/models")], ""));
    let cut: Page = Box::new(|_| Answer::default().then(Act::Close));
    for (pages, path, parts) in [
        (
            page(401, "application/json", "{}"),
            "/v1",
            &["returned HTTP 401: an API key is required", "OPENAI_API_KEY"][..],
        ),
        (page(403, "application/json", "{}"), "/v1", &["returned HTTP 403: an API key is required"]),
        (page(404, "text/plain", "gone"), "/v1", &["returned HTTP 404", "usually ends in `/v1`"]),
        (
            deeper,
            "",
            &["/models does not exist, but http://", "/v1/models does", "add `/v1` to the endpoint"],
        ),
        (page(200, "text/html; charset=utf-8", "<!doctype html>"), "/v1", &["a web page"]),
        (page(200, "application/json", "{\"models\": []}"), "/v1", &["JSON of an unexpected shape"]),
        (page(200, "application/json", "{\"data\": 1}"), "/v1", &["JSON of an unexpected shape"]),
        (page(200, "application/json", "{"), "/v1", &["not JSON"]),
        (page(200, "application/json", ""), "/v1", &["empty body"]),
        (
            page(503, "application/json", "{\"error\": {\"message\": \"Loading\\u001b[2J\"}}"),
            "/v1",
            &["returned HTTP 503 (Loading\\u{1b}[2J)"],
        ),
        (moved, "/v1", &["returned HTTP 308; it redirects to https://api.example/v1/models"]),
        (cut, "/v1", &["no answer from http://"]),
    ] {
        let server = Server::pages(pages);
        let endpoint = server.endpoint().replace("/v1", path);
        let report = doctor(&Project::empty(), &["--endpoint", &endpoint], &[]);
        report.assert_line("endpoint", "error", parts);
        assert!(report.of("model").is_empty(), "no consequential errors");
    }
}

#[test]
fn an_unreachable_server_is_explained() {
    let endpoint = |url: &str| doctor(&Project::empty(), &["--endpoint", url], &[]);
    endpoint(&ClosedPort::reserve().endpoint()).assert_line(
        "endpoint",
        "error",
        &["nothing is listening at http://127.0.0.1:"],
    );
    let silent = Server::pages(|_| Answer::silent());
    endpoint(&silent.endpoint()).assert_line("endpoint", "error", &["did not answer within 3 s"]);
    let endless = Server::pages(|_| Answer::head(200, &[]).then(Act::Wait(Duration::from_secs(60))));
    endpoint(&endless.endpoint()).assert_line("endpoint", "error", &["did not answer within 3 s"]);
    // Either a TLS error or, without CA certificates, TLS is not available.
    let plain = Server::script([]).endpoint().replace("http:", "https:");
    let report = endpoint(&plain);
    assert!(report.of("endpoint")[0].starts_with("error|"), "{report:?}");
}

#[test]
fn the_state_of_the_key_is_reported_but_not_its_value() {
    let key = "sk-very-secret-indeed";
    let answers = |request: &Received| {
        if request.header("authorization") == Some("Bearer sk-right") {
            return models(&["m"]);
        }
        // Return the received key.
        let sent = request.header("authorization").unwrap_or_default().to_owned();
        let echo = format!("{{\"data\": [{{\"id\": \"{sent}\"}}], \"error\": {{\"message\": \"{sent}\"}}}}");
        Answer::whole(if request.line.contains("echo") { 200 } else { 401 }, &[], &echo)
    };
    let server = Server::pages(answers);
    let endpoint = server.endpoint();
    let report = doctor(&Project::empty(), &["--endpoint", &endpoint], &[("OPENAI_API_KEY", key)]);
    report.assert_line("endpoint", "error", &["the API key was rejected", "OPENAI_API_KEY"]);
    assert!(!report.0.stdout.contains(key));
    let echo = endpoint.replace("/v1", "/echo/v1");
    let report = doctor(&Project::empty(), &["--endpoint", &echo], &[("OPENAI_API_KEY", key)]);
    report.assert_line("model", "ok", &["[redacted]"]);
    assert!(!report.0.stdout.contains(key));
    let report = doctor(&Project::empty(), &["--endpoint", &endpoint], &[("OPENAI_API_KEY", "sk-right\n")]);
    report.assert_line("key", "ok", &["OPENAI_API_KEY is set"]);
    let secret = endpoint.replace("//", "//user:hunter2@") + "?api-key=hunter3";
    let report = doctor(&Project::empty(), &["--endpoint", &secret], &[("OPENAI_API_KEY", "sk-right")]);
    assert!(!report.0.stdout.contains("hunter"), "{report:?}");
}

#[test]
fn a_user_in_the_endpoint_replaces_the_key() {
    let server = Server::pages(|request: &Received| {
        let is_right = request.header("authorization") == Some("Basic dXNlcjpodW50ZXIy");
        if is_right { models(&["m"]) } else { Answer::whole(401, &[], "{}") }
    });
    let with = |user: &str| {
        let endpoint = server.endpoint().replace("//", &format!("//{user}@"));
        doctor(&Project::empty(), &["--endpoint", &endpoint], &[("OPENAI_API_KEY", "sk-right")])
    };
    with("user:hunter2").assert_line("key", "ok", &["the endpoint are sent instead of OPENAI_API_KEY"]);
    let refused = with("user:wrong");
    refused.assert_line(
        "endpoint",
        "error",
        &["the endpoint's user and password were rejected", "correct them"],
    );
    assert!(!refused.of("endpoint")[0].contains("OPENAI_API_KEY"), "{refused:?}");
}

#[test]
fn each_server_is_checked_once_and_each_model_is_searched() {
    let here = Server::pages(|_| models(&["small", "large"]));
    let project = Project::empty();
    project.write("specs/tools.eld", "(defexit :name \"done\" :description \"It is done.\")\n");
    let workers = format!(
        "(defworker :name \"one\" :endpoint \"{0}\" :model \"small\")\n\
         (defworker :name \"two\" :endpoint \"{0}\" :model \"huge\")\n\
         (defworker :name \"free\" :api-key-env \"OTHER_KEY\")\n",
        here.endpoint()
    );
    project.write("specs/workers.eld", workers);
    let elsewhere = ClosedPort::reserve();
    let environment = [("OPENAI_BASE_URL", &*elsewhere.endpoint())];
    let report = doctor(&project, &[], &environment);
    assert_eq!(report.of("endpoint").len(), 2, "{report:?}");
    report.assert_line("endpoint", "ok", &["worker `one`"]);
    report.assert_line("endpoint", "error", &["nothing is listening", "(OPENAI_BASE_URL)"]);
    report.assert_line("model", "ok", &["`small` is available", "worker `one`"]);
    report.assert_line(
        "model",
        "warning",
        &["`huge` (of worker `two`) is not one of the server's 2 models", "small, large"],
    );
    let report = doctor(&project, &["--worker", "one", "--model", "large"], &environment);
    assert_eq!((report.of("endpoint").len(), report.of("model").len()), (1, 1), "{report:?}");
    report.assert_line("model", "ok", &["`large` is available"]);
    let report = doctor(&project, &["--worker", "free", "--endpoint", &here.endpoint()], &environment);
    report.assert_line("key", "ok", &["OTHER_KEY is not set"]);
    report.assert_line("model", "warning", &["no model configured; using the first of 2: `small`"]);
    let ended = project.run(&["doctor", "--worker", "three"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
}

#[test]
fn properties_of_a_llama_cpp_server_are_checked() {
    let llama = |props: Value| {
        Server::pages(move |request| match request.line.as_str() {
            "GET /props" => json_page(&props),
            "GET /v1/models" => json_page(&json!({"data": [{"id": "m.gguf", "owned_by": "llamacpp"}]})),
            _ => Answer::error(404, &[], "File Not Found"),
        })
    };
    let project = Project::new();
    let report = |props: Value, arguments: &[&str]| {
        let server = llama(props);
        doctor(&project, &[&["--endpoint", &*server.endpoint()], arguments].concat(), &[])
    };
    let props = |context: u64, tools: bool| json!({"default_generation_settings": {"n_ctx": context}, "chat_template_caps": {"supports_tools": tools}});
    let good = report(props(32768, true), &["--model", "any"]);
    good.assert_line("dialect", "ok", &["llama.cpp by the owner of its models, llamacpp"]);
    good.assert_line("model", "ok", &["llama.cpp ignores the name and serves m.gguf"]);
    good.assert_line("template", "ok", &["supports tools"]);
    good.assert_line("context", "ok", &["32768 tokens; 3 tools"]);
    report(props(100, true), &[]).assert_line("context", "error", &["larger context"]);
    report(props(300, true), &[]).assert_line("context", "warning", &["leave room"]);
    report(props(32768, false), &[]).assert_line("template", "warning", &["does not support tools"]);
    report(json!({"chat_template": "{{ messages }}"}), &[]).assert_line(
        "template",
        "warning",
        &["does not support tools"],
    );
    let nothing = report(Value::Null, &[]);
    assert!(nothing.of("template").is_empty() && nothing.of("context").is_empty(), "{nothing:?}");
    good.assert_line("endpoint", "ok", &["answers"]);
    // vLLM reports the context in its list of models.
    let vllm = Server::pages(|_| json_page(&json!({"data": [{"id": "m", "max_model_len": 8192}]})));
    doctor(&project, &["--endpoint", &vllm.endpoint()], &[]).assert_line("context", "ok", &["8192 tokens"]);
}

#[test]
fn the_dialect_is_reported_with_its_source() {
    let owned = |owner: &'static str| {
        Server::pages(move |request| match request.line.as_str() {
            "GET /v1/models" => json_page(&json!({"data": [{"id": "m", "owned_by": owner}]})),
            "GET /api/version" if owner == "library" => json_page(&json!({"version": "0.12.6"})),
            "POST /api/show" | "GET /api/ps" => json_page(&Value::Null),
            _ => Answer::error(404, &[], "no such route"),
        })
    };
    let project = Project::empty();
    for (owner, parts) in [
        ("vllm", &["vLLM by the owner of its models, vllm"][..]),
        ("library", &["Ollama by its /api/version"]),
        ("me", &["assumed to be the OpenAI API because no other dialect was detected"]),
    ] {
        let server = owned(owner);
        doctor(&project, &["--endpoint", &server.endpoint()], &[]).assert_line("dialect", "ok", parts);
    }
    let server = owned("me");
    let spec = format!("(defworker :name \"w\" :endpoint \"{}\" :api messages)", server.endpoint());
    project.write("specs/w.eld", spec);
    let assumed = ["assumed to be the Messages API because no other dialect was detected"];
    doctor(&project, &[], &[]).assert_line("dialect", "ok", &assumed);
    // The worker's setting has priority, but a contradiction is reported.
    let server = owned("vllm");
    let worker = |dialect: &str| {
        let spec = format!("(defworker :name \"w\" :endpoint \"{}\" :dialect {dialect})", server.endpoint());
        project.write("specs/w.eld", spec);
        doctor(&project, &[], &[])
    };
    worker("vllm").assert_line("dialect", "ok", &["vLLM as set by `:dialect`"]);
    worker("ollama").assert_line(
        "dialect",
        "warning",
        &["Ollama as set by `:dialect`, but the server reports vLLM", "|remove :dialect"],
    );
}

#[test]
fn control_characters_are_replaced() {
    let server = Server::pages(|_| models(&["m\u{1b}[2J\u{202e}\nerror    fake"]));
    let project = Project::empty();
    project.write(
        "specs/a.eld",
        "(deftool :name \"a\" :description \"Do.\" :allow (:run [\"x\\e[2J\\n\"] :env [\"y\\u202e\"]))\n",
    );
    let ended = project.run(&["doctor", "--endpoint", &server.endpoint()]);
    let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!ended.stdout.contains(harmful), "{:?}", ended.stdout);
    assert!(!ended.stdout.contains("\nerror    fake"), "{}", ended.stdout);
}
