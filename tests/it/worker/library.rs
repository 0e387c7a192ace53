//! The library API: a program opens the worker of a project.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use deftool::OwnTool;
use deftool::project::{PermissionSet, Trust};
use deftool::request::{BiosContext, BiosProvider, FinalState};
use deftool::tool::{ToolError, ToolErrorKind};
use deftool::worker::OpenError;
use deftool_test_support::server::{Answer, Server, Texts};
use serde_json::{Value, json};

use crate::support::project::{Ended, Project, command_in};

fn quickstart() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/quickstart")
}

#[tokio::test]
async fn a_worker_can_be_opened_in_three_lines() {
    let call = [("get_weather", r#"{"location": "Paris", "unit": "celsius"}"#)];
    let server = Server::script([Answer::calls(&call), Answer::text("It is warm.")]);
    let worker = deftool::open(quickstart()).endpoint(server.endpoint()).start().await.unwrap();
    let outcome = worker.ask("What is the weather in Paris?").await.unwrap();
    assert_eq!((outcome.state, outcome.text.as_str()), (FinalState::Completed, "It is warm."));
    assert_eq!(outcome.tool_iterations, 1);
    let result = server.posts()[1].texts("tool");
    assert!(result[0].contains("\"temperature\":21"), "{result:?}");
}

/// An own tool is offered beside the tools of the project, and replaces one of the same name.
#[tokio::test]
async fn a_program_adds_its_own_tools() {
    let form = |name: &str, keys: &str| {
        format!(
            "(deftool :name \"{name}\" :description \"Do it.\" {keys} :args ((:name \"n\" :type integer :description \"A number.\")))"
        )
    };
    let double = OwnTool::new(&form("double", ""), |arguments| async move {
        let number = arguments["n"].as_i64().unwrap();
        if number == 0 {
            Err(ToolError::new(ToolErrorKind::Failure, "nothing"))
        } else {
            Ok(json!(number * 2))
        }
    });
    let weather = OwnTool::new(&form("get_weather", ""), |_| async { Ok(json!("own")) });
    let slow = OwnTool::new(&form("slow", ":timeout \"20ms\""), |_| std::future::pending());
    let tools = [double.unwrap(), weather.unwrap(), slow.unwrap()];
    let calls = [
        (r#"{"n": 21}"#, "double", Ok("42")),
        (r#"{"n": 1}"#, "get_weather", Ok("\"own\"")),
        (r#"{"n": 0}"#, "double", Err("nothing")),
        (r#"{"n": "x"}"#, "double", Err("is not of type")),
        (r#"{"n": 1}"#, "slow", Err("`slow` did not end within 20ms")),
    ];
    for (arguments, name, expected) in calls {
        let server = Server::script([Answer::calls(&[(name, arguments)]), Answer::text("Done.")]);
        let open = deftool::open(quickstart()).endpoint(server.endpoint());
        let worker = tools.iter().fold(open, |open, tool| open.tool(tool.clone())).start().await.unwrap();
        let outcome = worker.ask("Go.").await.unwrap();
        let offered = server.posts()[0].body["tools"].as_array().unwrap().len();
        assert_eq!(offered, 4, "{name}");
        match expected {
            Ok(result) => assert_eq!(server.posts()[1].texts("tool"), [result]),
            Err(message) => {
                let detail = outcome.detail.clone().unwrap_or_default();
                assert!(outcome.state == FinalState::Failed && detail.contains(message), "{detail}");
            }
        }
    }
    for (spec, expected) in [
        ("", "expected one `(deftool …)` form"),
        ("(defexit :name \"x\" :description \"X.\")", "expected one `(deftool …)` form"),
        ("(deftool :name \"x y\" :description \"X.\")", "invalid character ` `"),
    ] {
        let error = OwnTool::new(spec, |_| async { Ok(json!(1)) }).unwrap_err().to_string();
        assert!(error.starts_with("invalid spec of a tool: ") && error.contains(expected), "{error}");
    }
}

#[derive(Debug)]
struct Own;

impl BiosProvider for Own {
    fn bios(&self, context: &BiosContext<'_>) -> String {
        format!("own {}", context.worker)
    }
}

#[tokio::test]
async fn options_override_the_spec() {
    let project =
        Project::with_worker(r#"(defworker :name "w" :endpoint "http://127.0.0.1:1/v1" :model "spec")"#);
    let server = Server::script([Answer::text("hi")]);
    let open = deftool::open(project.path("specs")).worker("w").endpoint(server.endpoint());
    let worker = open.model("mine").api_key("key-of-mine").bios(Own).start().await.unwrap();
    assert_eq!(worker.ask("hello").await.unwrap().text, "hi");
    let post = &server.posts()[0];
    assert_eq!(post.body["model"], "mine");
    assert_eq!(post.body["messages"][0]["content"], "own w");
}

#[tokio::test]
async fn a_worker_with_untrusted_permissions_is_refused() {
    let spec = r#"(defworker :name "w" :server (:command ["no-such-server-program" "{port}"]))"#;
    let project = Project::with_worker(spec);
    let refused = deftool::open(project.path("")).start().await.unwrap_err();
    assert!(matches!(refused, OpenError::NotTrusted { .. }), "{refused}");
    assert!(refused.to_string().contains("no-such-server-program"), "{refused}");
    assert!(refused.to_string().ends_with("grant trust with `OpenWorker::trust`"), "{refused}");
    let little = Trust::Only(std::sync::Arc::new(PermissionSet::default()));
    let refused = deftool::open(project.path("")).trust(little).start().await.unwrap_err();
    assert!(matches!(refused, OpenError::NotTrusted { .. }), "{refused}");
}

#[tokio::test]
async fn open_errors_name_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    let error = deftool::open(folder.path()).start().await.unwrap_err();
    assert!(matches!(error, OpenError::Project(_)), "{error}");
    let two = Project::with_worker(r#"(defworker :name "a") (defworker :name "b")"#);
    let error = deftool::open(two.path("")).start().await.unwrap_err();
    assert!(error.to_string().contains("a, b"), "{error}");
    let error = deftool::open(two.path("")).worker("c").start().await.unwrap_err();
    assert!(error.to_string().contains("unknown worker `c`"), "{error}");
    let error = deftool::open(two.path("")).worker("a").endpoint("nonsense").start().await.unwrap_err();
    assert!(matches!(error, OpenError::Endpoint(_)), "{error}");
}

/// What a worker of the test below is opened from: the folder, its trust and the user's tools.
const OPEN: &str = "DEFTOOL_TEST_OPEN";

/// The library in a process of its own, whose environment is that of the command.
#[tokio::test]
#[ignore = "run by `the_command_and_the_library_open_the_same_worker`"]
async fn a_library_in_a_process_of_its_own() {
    crate::support::process::set_guard();
    let options: Value = serde_json::from_str(&std::env::var(OPEN).unwrap()).unwrap();
    let mut open = deftool::open(options["folder"].as_str().unwrap());
    if options["trust"] == true {
        open = open.trust(Trust::Everything);
    }
    if options["user_tools"] == true {
        open = open.user_tools();
    }
    let worker = open.start().await.unwrap();
    assert_eq!(worker.ask("Hello").await.unwrap().text, "library");
}

/// Each door gets the same tools, model, key and endpoint from a folder, and leaves out the same without trust.
#[cfg(unix)]
#[test]
fn the_command_and_the_library_open_the_same_worker() {
    let tool =
        |name: &str, keys: &str| format!("(deftool :name \"{name}\" :description \"Do it.\" {keys})\n");
    let script = "return function() return 1 end\n";
    let (offer, user, project, outside) =
        (Project::empty(), Project::empty(), Project::empty(), tempfile::tempdir().unwrap());
    offer.write("specs/a.eld", tool("add", ""));
    offer.write("scripts/add.lua", script);
    let server = format!(
        r#"(defmcp :name "remote" :command ["{}" "mcp" "-C" "{}"])"#,
        env!("CARGO_BIN_EXE_deftool"),
        offer.path("").display()
    );
    for (folder, own, more) in [
        (&project, "free", tool("net", ":allow (:net [\"example.org\"])") + &server),
        (&user, "mine", String::new()),
    ] {
        folder.write(&format!("scripts/{own}.lua"), script);
        folder.write("scripts/net.lua", script);
        folder.write("specs/tools.eld", tool(own, "") + &more);
    }
    let (in_project, elsewhere) = (project.path(""), outside.path().to_owned());
    for (folder, trust, user_tools, expected) in [
        (&in_project, false, false, &["free"][..]),
        (&in_project, true, false, &["free", "net", "remote__add"]),
        (&in_project, true, true, &["free", "mine", "net", "remote__add"]),
        (&elsewhere, false, false, &["mine"]),
    ] {
        let server = Server::script([Answer::text("command"), Answer::text("library")]);
        let worker = format!(
            r#"(defworker :name "other" :endpoint "http://127.0.0.1:1/v1")
            (defworker :name "default" :endpoint "{}" :model "m")"#,
            server.endpoint()
        );
        project.write("specs/worker.eld", &worker);
        user.write("specs/worker.eld", &worker);
        let mut arguments = vec!["run", "Hello"];
        arguments.extend(trust.then_some("--trust"));
        arguments.extend(user_tools.then_some("--user-tools"));
        let mut command = command_in(folder, &arguments);
        let ended = Ended::of(command.env("DEFTOOL_CONFIG_DIR", user.path("")).output().unwrap());
        assert_eq!((ended.stdout.as_str(), ended.code), ("command\n", Some(0)), "{}", ended.stderr);
        let test = "worker::library::a_library_in_a_process_of_its_own";
        let mut library = std::process::Command::new(std::env::current_exe().unwrap());
        library.args([test, "--exact", "--ignored"]).env("DEFTOOL_CONFIG_DIR", user.path(""));
        let options = json!({"folder": folder, "trust": trust, "user_tools": user_tools});
        let ended = Ended::of(library.env(OPEN, options.to_string()).output().unwrap());
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
        let posts = server.posts();
        let [command, library] = posts.as_slice() else { panic!("{} requests", posts.len()) };
        // The prompt has the time in minutes, which may differ.
        let without_prompt = |body: &Value| {
            let mut body = body.clone();
            body["messages"].as_array_mut().unwrap().pop();
            body
        };
        assert_eq!(without_prompt(&command.body), without_prompt(&library.body));
        let offered = command.body["tools"].as_array().unwrap().iter();
        let mut offered: Vec<&str> = offered.map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
        offered.sort_unstable();
        assert_eq!(offered, expected, "{folder:?} {trust} {user_tools}");
    }
}

/// Nobody is asked unless the program does it: a call with `:confirm` is refused at once.
#[tokio::test]
async fn calls_that_nobody_can_approve_are_refused() {
    let form = "(deftool :name \"pay\" :description \"Pay.\" :confirm t)";
    let pay = OwnTool::new(form, |_| async { Ok(json!("paid")) }).unwrap();
    let server = Server::script([Answer::calls(&[("pay", "{}")]), Answer::text("Not paid.")]);
    let open = deftool::open(quickstart()).endpoint(server.endpoint());
    let worker = open.tool(pay).start().await.unwrap();
    assert_eq!(worker.ask("Pay.").await.unwrap().text, "Not paid.");
    let result = server.posts()[1].texts("tool");
    assert!(result[0].contains("refused") || result[0].contains("denied"), "{result:?}");
}
