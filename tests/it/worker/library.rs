//! The library API: a program opens the worker of a project.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use deftool::project::{PermissionSet, Trust};
use deftool::request::{BiosContext, BiosProvider, FinalState};
use deftool::tool::{ToolError, ToolErrorKind};
use deftool::worker::OpenError;
use deftool::{OwnTool, Worker};
use deftool_test_support::server::{Answer, Server, Texts};
use serde_json::json;

use crate::support::project::Project;

fn quickstart() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/quickstart")
}

#[tokio::test]
async fn a_worker_can_be_opened_in_three_lines() {
    let call = [("get_weather", r#"{"location": "Paris", "unit": "celsius"}"#)];
    let server = Server::script([Answer::calls(&call), Answer::text("It is warm.")]);
    let worker = Worker::open(quickstart()).endpoint(server.endpoint()).start().await.unwrap();
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
        let open = Worker::open(quickstart()).endpoint(server.endpoint());
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
    let open = Worker::open(project.path("specs")).worker("w").endpoint(server.endpoint());
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
    let refused = Worker::open(project.path("")).start().await.unwrap_err();
    assert!(matches!(refused, OpenError::NotTrusted { .. }), "{refused}");
    assert!(refused.to_string().contains("no-such-server-program"), "{refused}");
    let little = Trust::Only(std::sync::Arc::new(PermissionSet::default()));
    let refused = Worker::open(project.path("")).trust(little).start().await.unwrap_err();
    assert!(matches!(refused, OpenError::NotTrusted { .. }), "{refused}");
}

#[tokio::test]
async fn open_errors_name_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    let error = Worker::open(folder.path()).start().await.unwrap_err();
    assert!(matches!(error, OpenError::Project(_)), "{error}");
    let two = Project::with_worker(r#"(defworker :name "a") (defworker :name "b")"#);
    let error = Worker::open(two.path("")).start().await.unwrap_err();
    assert!(error.to_string().contains("a, b"), "{error}");
    let error = Worker::open(two.path("")).worker("c").start().await.unwrap_err();
    assert!(error.to_string().contains("unknown worker `c`"), "{error}");
    let error = Worker::open(two.path("")).worker("a").endpoint("nonsense").start().await.unwrap_err();
    assert!(matches!(error, OpenError::Endpoint(_)), "{error}");
}
