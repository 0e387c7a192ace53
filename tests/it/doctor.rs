//! `deftool doctor`: each thing that can be wrong, made wrong, and what is said of it. The real binary against real folders and
//! a real socket.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::project::{Ended, Project};
use crate::support::server::{Act, Answer, DeadEnd, Received, Server};

/// What was said, by the check that said it.
#[derive(Debug)]
struct Said(Ended, Vec<Value>);

fn doctor(project: &Project, arguments: &[&str], environment: &[(&str, &str)]) -> Said {
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
        assert!(advised || line["level"] == "ok", "what is wrong says what to do: {line}");
    }
    Said(ended, checks)
}

impl Said {
    /// The lines of a check: level, message and advice, as one text each.
    fn of(&self, check: &str) -> Vec<String> {
        let lines = self.1.iter().filter(|line| line["check"] == check);
        let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
        lines
            .map(|line| [text(line, "level"), text(line, "message"), text(line, "advice")].join("|"))
            .collect()
    }

    /// Asserts that one of the lines of `check` has this level and holds these parts.
    fn says(&self, check: &str, level: &str, parts: &[&str]) {
        let lines = self.of(check);
        let fits = |line: &String| line.starts_with(level) && parts.iter().all(|part| line.contains(part));
        assert!(lines.iter().any(fits), "{check}: expected {level} with {parts:?}, found {lines:#?}");
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
fn a_sound_set_up_is_told_in_one_screen() {
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
    assert!(ended.stdout.contains("ok       model       `scripted`, the server's only one"), "{lines:?}");
    assert!(server.posts().is_empty(), "no model is asked");
}

#[test]
fn no_script_runs_and_nothing_is_left_behind() {
    let project = Project::empty();
    project.write("specs/a.eld", "(deftool :name \"a\" :description \"Do it.\")\n");
    project.write("scripts/a.lua", "error('it ran')\nreturn function() end\n");
    let state = tempfile::tempdir().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let environment =
        [("XDG_STATE_HOME", state.path().to_str().unwrap()), ("TMPDIR", temporary.path().to_str().unwrap())];
    let said = doctor(&project, &["--endpoint", &DeadEnd::new().endpoint()], &environment);
    assert!(!said.0.stdout.contains("it ran"));
    said.says("state", "ok", &["is not there yet"]);
    for folder in [state.path(), temporary.path()] {
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
    }
    assert_eq!(fs::read_dir(project.path(".")).unwrap().count(), 2);
}

#[test]
fn without_a_project_the_rest_is_looked_at_all_the_same() {
    let project = Project::empty();
    let server = Server::script([]);
    let said = doctor(&project, &["--endpoint", &server.endpoint()], &[]);
    said.says("project", "warning", &["none: ", "`deftool init`"]);
    said.says("endpoint", "ok", &["--endpoint", "answers"]);
    assert_eq!(said.of("watching").len(), 1);
}

#[test]
fn the_project_is_summed_up_and_check_is_pointed_to() {
    let project = Project::new();
    project.write(
        "specs/wrong.eld",
        "(deftool :name \"two words\")\n(deftool :name \"lost\" :description \"d\")\n",
    );
    let server = Server::script([]);
    let said = doctor(&project, &["--endpoint", &server.endpoint()], &[]);
    said.says("findings", "error", &["2 errors, 1 warning", "`deftool check`"]);
    said.says("scripts", "error", &["missing or broken: lost"]);
    project.write("specs/wrong.eld", "(defexit :name \"quiet\")\n");
    let said = doctor(&project, &["--endpoint", &server.endpoint()], &[]);
    said.says("findings", "warning", &["1 warning"]);
    said.says("scripts", "ok", &["2 scripts"]);
    fs::remove_dir_all(project.path("specs")).unwrap();
    project.write("specs/none.txt", "");
    doctor(&project, &["--endpoint", &server.endpoint()], &[]).says(
        "project",
        "warning",
        &["no tool", "deftool new"],
    );
}

#[test]
fn what_tools_may_use_is_held_against_what_is_there() {
    let project = Project::empty();
    let allow = "(:run [\"sh\" \"no-such-program\"] :env [\"DOCTOR_SET\" \"DOCTOR_UNSET\"] \
                 :read [\"notes\" \"gone\"] :write [\"out\" \"blocked/out\"])";
    project.write("specs/a.eld", format!("(deftool :name \"a\" :description \"Do it.\" :allow {allow})\n"));
    project.write("scripts/a.lua", "return function() end\n");
    project.write("notes/x.md", "");
    // A file where a folder would have to be made.
    project.write("blocked", "");
    let state = tempfile::tempdir().unwrap();
    let environment = [("DOCTOR_SET", "s3cret-value"), ("XDG_STATE_HOME", state.path().to_str().unwrap())];
    let endpoint = DeadEnd::new().endpoint();
    let said = doctor(&project, &["--endpoint", &endpoint], &environment);
    let listed = |check: &str| said.of(check).concat();
    said.says("programs", "warning", &["not found in PATH: no-such-program"]);
    said.says("variables", "warning", &["not set: DOCTOR_UNSET"]);
    assert!(!listed("variables").contains("DOCTOR_SET"));
    assert!(!said.0.stdout.contains("s3cret"), "the values of variables are nobody's business");
    said.says("paths", "warning", &["gone is not there", "|make them"]);
    assert!(!listed("paths").contains("notes") && !listed("paths").contains(" out "), "{}", listed("paths"));
    said.says(
        "trust",
        "warning",
        &["not granted: a wants", ":run [\"no-such-program\" \"sh\"]", "`deftool trust grant`"],
    );
    let granted = project.command(&["trust", "grant"]).env("XDG_STATE_HOME", state.path()).output().unwrap();
    assert!(granted.status.success());
    let said = doctor(&project, &["--endpoint", &endpoint], &environment);
    said.says("trust", "ok", &["granted: 1 tool"]);
    said.says("state", "ok", &["1 project trusted"]);
}

#[cfg(unix)]
#[test]
fn a_state_folder_that_is_none_is_told() {
    use std::os::unix::fs::PermissionsExt;

    let project = Project::new();
    let endpoint = DeadEnd::new().endpoint();
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().join("deftool");
    let check = |state: &str| {
        doctor(&project, &["--endpoint", &endpoint], &[("XDG_STATE_HOME", state), ("HOME", "")])
    };
    check("").says("state", "warning", &["neither XDG_STATE_HOME nor HOME"]);
    let at = state.path().to_str().unwrap();
    fs::write(&folder, "").unwrap();
    check(at).says("state", "error", &["is no folder"]);
    fs::remove_file(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    check(at).says("state", "error", &["may be written by others", "chmod 700"]);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    check(at).says("state", "ok", &["0 projects trusted"]);
    fs::write(folder.join("trust.json"), "{").unwrap();
    fs::set_permissions(folder.join("trust.json"), fs::Permissions::from_mode(0o600)).unwrap();
    check(at).says("state", "warning", &["damaged"]);
}

#[test]
fn a_worker_that_is_none_is_told_with_those_that_are_there() {
    let several = Project::with_worker(r#"(defworker :name "a") (defworker :name "b" :slots "many")"#);
    for (project, name, expected) in [
        (&several, "c", "no worker called `c`; there are: a, b"),
        (&several, "b", "the worker `b` has errors; see `deftool check`"),
        (&Project::new(), "c", "no worker called `c`; the project has none"),
        (&Project::empty(), "c", "no worker called `c`; there is no project here"),
    ] {
        let ended = project.run(&["doctor", "--worker", name]);
        assert_eq!((ended.code, ended.stderr), (Some(2), format!("error: {expected}\n")));
    }
}

/// Each way in which an endpoint is wrong has its own word.
#[test]
fn a_server_that_cannot_be_used_is_explained() {
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
            &["answers 401: it wants an API key", "OPENAI_API_KEY"][..],
        ),
        (page(403, "application/json", "{}"), "/v1", &["answers 403: it wants an API key"]),
        (page(404, "text/plain", "gone"), "/v1", &["answers 404", "mostly ends in /v1"]),
        (deeper, "", &["/models is not there, and http://", "/v1/models is", "end the endpoint in /v1"]),
        (page(200, "text/html; charset=utf-8", "<!doctype html>"), "/v1", &["a web page"]),
        (page(200, "application/json", "{\"models\": []}"), "/v1", &["JSON of another shape"]),
        (page(200, "application/json", "{\"data\": 1}"), "/v1", &["JSON of another shape"]),
        (page(200, "application/json", "{"), "/v1", &["no JSON"]),
        (page(200, "application/json", ""), "/v1", &["nothing, not"]),
        (
            page(503, "application/json", "{\"error\": {\"message\": \"Loading\\u001b[2J\"}}"),
            "/v1",
            &["answers 503 (Loading\\u{1b}[2J)"],
        ),
        (moved, "/v1", &["answers 308 and sends to https://api.example/v1/models"]),
        (cut, "/v1", &["no answer from http://"]),
    ] {
        let server = Server::pages(pages);
        let endpoint = server.endpoint().replace("/v1", path);
        let said = doctor(&Project::empty(), &["--endpoint", &endpoint], &[]);
        said.says("endpoint", "error", parts);
        assert!(said.of("model").is_empty(), "what follows from it is not told again");
    }
}

#[test]
fn a_server_that_is_not_there_is_explained() {
    let endpoint = |url: &str| doctor(&Project::empty(), &["--endpoint", url], &[]);
    endpoint(&DeadEnd::new().endpoint()).says("endpoint", "error", &["nobody listens at http://127.0.0.1:"]);
    endpoint("127.0.0.1:8080").says("endpoint", "error", &["is no", "URL"]);
    endpoint("ftp://127.0.0.1/v1").says("endpoint", "error", &["is no HTTP URL"]);
    // A label of more than 63 characters is asked of nobody.
    let nowhere = format!("http://{}.invalid/v1", "a".repeat(64));
    endpoint(&nowhere).says("endpoint", "error", &["the host of http://", "is not found"]);
    let silent = Server::pages(|_| Answer::silent());
    endpoint(&silent.endpoint()).says("endpoint", "error", &["does not answer within 3 s"]);
    let endless = Server::pages(|_| Answer::head(200, &[]).then(Act::Wait(Duration::from_secs(60))));
    endpoint(&endless.endpoint()).says("endpoint", "error", &["does not answer within 3 s"]);
    // Not TLS, or, on a machine without certificates, no TLS at all.
    let plain = Server::script([]).endpoint().replace("http:", "https:");
    let said = endpoint(&plain);
    assert!(said.of("endpoint")[0].starts_with("error|"), "{said:?}");
}

#[test]
fn the_key_is_told_of_and_never_told() {
    let key = "sk-very-secret-indeed";
    let answers = |request: &Received| {
        if request.header("authorization") == Some("Bearer sk-right") {
            return models(&["m"]);
        }
        // An echo of what was sent.
        let sent = request.header("authorization").unwrap_or_default().to_owned();
        let echo = format!("{{\"data\": [{{\"id\": \"{sent}\"}}], \"error\": {{\"message\": \"{sent}\"}}}}");
        Answer::whole(if request.line.contains("echo") { 200 } else { 401 }, &[], &echo)
    };
    let server = Server::pages(answers);
    let endpoint = server.endpoint();
    let said = doctor(&Project::empty(), &["--endpoint", &endpoint], &[("OPENAI_API_KEY", key)]);
    said.says("endpoint", "error", &["the API key is refused", "OPENAI_API_KEY"]);
    assert!(!said.0.stdout.contains(key));
    let echo = endpoint.replace("/v1", "/echo/v1");
    let said = doctor(&Project::empty(), &["--endpoint", &echo], &[("OPENAI_API_KEY", key)]);
    said.says("model", "ok", &["[redacted]"]);
    assert!(!said.0.stdout.contains(key));
    let said = doctor(&Project::empty(), &["--endpoint", &endpoint], &[("OPENAI_API_KEY", "sk-right\n")]);
    said.says("key", "ok", &["OPENAI_API_KEY is set"]);
    let secret = endpoint.replace("//", "//user:hunter2@") + "?api-key=hunter3";
    let said = doctor(&Project::empty(), &["--endpoint", &secret], &[("OPENAI_API_KEY", "sk-right")]);
    assert!(!said.0.stdout.contains("hunter"), "{said:?}");
}

#[test]
fn a_user_of_the_endpoint_is_told_of_in_place_of_the_key() {
    let server = Server::pages(|request: &Received| {
        let is_right = request.header("authorization") == Some("Basic dXNlcjpodW50ZXIy");
        if is_right { models(&["m"]) } else { Answer::whole(401, &[], "{}") }
    });
    let with = |user: &str| {
        let endpoint = server.endpoint().replace("//", &format!("//{user}@"));
        doctor(&Project::empty(), &["--endpoint", &endpoint], &[("OPENAI_API_KEY", "sk-right")])
    };
    with("user:hunter2").says("key", "ok", &["user and password are sent, and OPENAI_API_KEY is not"]);
    let refused = with("user:wrong");
    refused.says("endpoint", "error", &["the endpoint's user and password are refused", "correct them"]);
    assert!(!refused.of("endpoint")[0].contains("OPENAI_API_KEY"), "{refused:?}");
}

#[test]
fn each_workers_server_is_asked_once_and_its_model_looked_for() {
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
    let elsewhere = DeadEnd::new();
    let environment = [("OPENAI_BASE_URL", &*elsewhere.endpoint())];
    let said = doctor(&project, &[], &environment);
    assert_eq!(said.of("endpoint").len(), 2, "{said:?}");
    said.says("endpoint", "ok", &["worker `one`"]);
    said.says("endpoint", "error", &["nobody listens", "(OPENAI_BASE_URL)"]);
    said.says("model", "ok", &["`small` is there", "worker `one`"]);
    said.says(
        "model",
        "warning",
        &["`huge` (of worker `two`) is not among the server's 2 models", "small, large"],
    );
    let said = doctor(&project, &["--worker", "one", "--model", "large"], &environment);
    assert_eq!((said.of("endpoint").len(), said.of("model").len()), (1, 1), "{said:?}");
    said.says("model", "ok", &["`large` is there"]);
    let said = doctor(&project, &["--worker", "free", "--endpoint", &here.endpoint()], &environment);
    said.says("key", "ok", &["OTHER_KEY is not set"]);
    said.says("model", "warning", &["none named, so the first of 2 is taken: `small`"]);
    let ended = project.run(&["doctor", "--worker", "three"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
}

#[test]
fn what_a_llama_cpp_server_says_of_itself_is_weighed() {
    let llama = |props: Value| {
        Server::pages(move |request| match request.line.as_str() {
            "GET /props" => json_page(&props),
            "GET /v1/models" => json_page(&json!({"data": [{"id": "m.gguf", "owned_by": "llamacpp"}]})),
            _ => Answer::error(404, &[], "File Not Found"),
        })
    };
    let project = Project::new();
    let said = |props: Value, arguments: &[&str]| {
        let server = llama(props);
        doctor(&project, &[&["--endpoint", &*server.endpoint()], arguments].concat(), &[])
    };
    let props = |context: u64, tools: bool| json!({"default_generation_settings": {"n_ctx": context}, "chat_template_caps": {"supports_tools": tools}});
    let good = said(props(32768, true), &["--model", "any"]);
    good.says("dialect", "ok", &["llama.cpp by the owner of its models, llamacpp"]);
    good.says("model", "ok", &["llama.cpp serves what it has: m.gguf"]);
    good.says("template", "ok", &["takes tools"]);
    good.says("context", "ok", &["32768 tokens; 3 tools"]);
    said(props(100, true), &[]).says("context", "error", &["larger context"]);
    said(props(300, true), &[]).says("context", "warning", &["leaves room"]);
    said(props(32768, false), &[]).says("template", "warning", &["no place for tools"]);
    said(json!({"chat_template": "{{ messages }}"}), &[]).says(
        "template",
        "warning",
        &["no place for tools"],
    );
    let nothing = said(Value::Null, &[]);
    assert!(nothing.of("template").is_empty() && nothing.of("context").is_empty(), "{nothing:?}");
    good.says("endpoint", "ok", &["answers"]);
    // As vLLM lists it.
    let vllm = Server::pages(|_| json_page(&json!({"data": [{"id": "m", "max_model_len": 8192}]})));
    doctor(&project, &["--endpoint", &vllm.endpoint()], &[]).says("context", "ok", &["8192 tokens"]);
}

#[test]
fn the_dialect_is_named_with_what_it_was_found_by() {
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
        ("me", &["taken for the OpenAI API since nothing tells it apart"]),
    ] {
        let server = owned(owner);
        doctor(&project, &["--endpoint", &server.endpoint()], &[]).says("dialect", "ok", parts);
    }
    // What the worker says is believed, and doubted aloud.
    let server = owned("vllm");
    let worker = |dialect: &str| {
        let spec = format!("(defworker :name \"w\" :endpoint \"{}\" :dialect {dialect})", server.endpoint());
        project.write("specs/w.eld", spec);
        doctor(&project, &[], &[])
    };
    worker("vllm").says("dialect", "ok", &["vLLM as :dialect says"]);
    worker("ollama").says(
        "dialect",
        "warning",
        &["Ollama as :dialect says, and the server says otherwise: vLLM", "|leave :dialect out"],
    );
}

#[test]
fn what_others_say_is_printed_clean() {
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

/// No package is told of where no Emacs is, and none is started where one is.
#[cfg(unix)]
#[test]
fn an_editor_is_looked_for_and_not_started() {
    use std::os::unix::fs::PermissionsExt;

    let project = Project::empty();
    let home = tempfile::tempdir().unwrap();
    let bin = home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let endpoint = DeadEnd::new().endpoint();
    let path = bin.to_str().unwrap().to_owned();
    let environment = [("PATH", path.as_str()), ("HOME", home.path().to_str().unwrap())];
    let check = || doctor(&project, &["--endpoint", &endpoint], &environment);
    assert!(check().of("editor").is_empty());
    let ran = home.path().join("ran");
    fs::write(bin.join("emacs"), format!("#!/bin/sh\n: > {}\n", ran.display())).unwrap();
    assert!(check().of("editor").is_empty(), "a file that cannot be run is no program");
    fs::set_permissions(bin.join("emacs"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(home.path().join(".emacs.d/elpa/gptel-magit-0.1")).unwrap();
    assert!(!check().of("editor")[0].contains("Emacs with gptel"));
    fs::create_dir_all(home.path().join(".emacs.d/elpa/gptel-20260101.7")).unwrap();
    check().says("editor", "ok", &["Emacs with gptel"]);
    assert!(!ran.exists());
}
