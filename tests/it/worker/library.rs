//! The library API: a program opens the worker of a project.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use deftool::Worker;
use deftool::project::{PermissionSet, Trust};
use deftool::request::{BiosContext, BiosProvider, FinalState};
use deftool::worker::OpenError;
use deftool_test_support::server::{Answer, Server};

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
    let result = server.posts()[1].contents("tool");
    assert!(result[0].contains("\"temperature\":21"), "{result:?}");
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
    let unguarded = Worker::open(project.path("")).trust(Trust::Everything).start().await.unwrap_err();
    assert!(matches!(unguarded, OpenError::NoGuard), "{unguarded}");
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
