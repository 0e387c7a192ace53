//! Continued conversations: after any end of a request, the next one sends a conversation that every server accepts.
//! Also tests the options of a request.

use deftool_chat::request::{FinalState, OnFailure};
use deftool_chat::{Message, MessageToolCall};
use deftool_lang::tool::{ToolCall, ToolError, ToolErrorKind};
use deftool_test_support::server::{Act, Answer, Server, without_budget};
use deftool_test_support::validity::assert_valid;
use deftool_worker::{SubmitError, SubmitRequest, Worker, WorkerConfig};
use serde_json::{Value, json};

use super::harness::*;

/// The tool `look` fails for `at: "bad"` and never returns for `"never"`.
fn failing_tools() -> std::sync::Arc<deftool_worker::Toolbox> {
    toolbox(FakeTools(|call: ToolCall, _| async move {
        match call.arguments.get("at").and_then(Value::as_str) {
            Some("bad") => Err(ToolError::new(ToolErrorKind::Script, "no luck")),
            Some("never") => std::future::pending().await,
            _ => Ok(json!("seen")),
        }
    }))
}

/// The end of the first request.
enum End {
    Itself,
    Cancel { after_chars: usize },
    CancelInTool,
    Restart { after_chars: usize },
}

/// Runs a request with these answers and this end, then continues its conversation. Returns the state of the first
/// request and the body of the second one.
async fn continued(
    answers: Vec<Answer>,
    end: End,
    change: impl FnOnce(&mut WorkerConfig),
) -> (FinalState, Value) {
    let count = answers.len();
    let server = Server::script(answers.into_iter().chain([Answer::text("Here I am again.")]));
    let mut config = config();
    change(&mut config);
    let worker = Worker::start(config, failing_tools(), http(&server.endpoint(), None));
    let id = worker.submit(SubmitRequest::prompt("First.")).unwrap();
    match end {
        End::Itself => {}
        End::Cancel { after_chars } => {
            wait_for_text(&worker, &id, after_chars).await;
            worker.cancel(&id);
        }
        End::CancelInTool => {
            let mut events = worker.events(&id, 0).unwrap();
            let is_it = |event: &deftool_chat::request::Event| {
                matches!(event, deftool_chat::request::Event::ToolStarted { .. })
            };
            let mut seen = 0;
            while seen < 2 {
                seen += usize::from(is_it(&events.next().await.unwrap()));
            }
            worker.cancel(&id);
        }
        End::Restart { after_chars } => {
            wait_for_text(&worker, &id, after_chars).await;
            worker.restart();
        }
    }
    let first = finish(&worker, &id).await;
    let mut messages = worker.conversation(&id).unwrap();
    messages.push(Message::user("Second."));
    let id = worker.submit(SubmitRequest { messages, ..SubmitRequest::default() }).unwrap();
    assert_eq!(finish(&worker, &id).await.text(), "Here I am again.");
    let last = worker.conversation(&id).unwrap();
    assert!(matches!(last.last(), Some(Message::Assistant { content, .. }) if content == "Here I am again."));
    let posts = server.posts();
    assert_eq!(posts.len(), count + 1);
    for post in &posts {
        assert_valid(&post.body);
    }
    let body = posts.last().unwrap().body.clone();
    let text = body.to_string();
    assert!(text.contains("First.") && text.contains("Second."), "{text}");
    (first.outcome.state, body)
}

/// Returns the messages without those of the system, and without the lines with time and budget.
fn without_system(body: &Value) -> Vec<Value> {
    let messages = body["messages"].as_array().unwrap();
    let messages = messages.iter().filter(|message| message["role"] != "system").cloned();
    messages
        .map(|mut message| {
            let text = message["content"].as_str().map(|text| without_budget(text).to_owned());
            message["content"] = json!(text);
            message
        })
        .collect()
}

const INTERRUPTED: &str = "[this reply was interrupted]";

#[tokio::test]
async fn a_conversation_can_be_continued_after_any_end() {
    let look = |at: &str| ("look", format!("{{\"at\": \"{at}\"}}"));
    let calls = |list: &[(&str, String)]| {
        Answer::calls(&list.iter().map(|(name, arguments)| (*name, arguments.as_str())).collect::<Vec<_>>())
    };
    let unchanged = |_: &mut WorkerConfig| {};
    let half = || Answer::stream().delta("Half an ans").then(Act::Silence);

    let (state, body) = continued(vec![Answer::text("Whole.")], End::Itself, unchanged).await;
    assert_eq!(state, FinalState::Completed);
    assert_eq!(without_system(&body)[1]["content"], "Whole.");

    let (state, body) =
        continued(vec![calls(&[look("a")]), Answer::text("Seen.")], End::Itself, unchanged).await;
    assert_eq!((state, without_system(&body).len()), (FinalState::Completed, 5));

    // Canceled within its text.
    let (state, body) = continued(vec![half()], End::Cancel { after_chars: 5 }, unchanged).await;
    assert_eq!(state, FinalState::Canceled);
    assert_eq!(without_system(&body)[1]["content"], format!("Half an ans\n\n{INTERRUPTED}"));

    // Canceled after a tool result.
    let (state, body) =
        continued(vec![calls(&[look("a")]), half()], End::Cancel { after_chars: 5 }, unchanged).await;
    assert_eq!(state, FinalState::Canceled);
    assert_eq!(without_system(&body)[2]["content"], "\"seen\"");

    // Canceled while the second of three calls runs.
    let three = calls(&[look("a"), look("never"), look("b")]);
    let (state, body) = continued(vec![three], End::CancelInTool, unchanged).await;
    assert_eq!(state, FinalState::Canceled);
    let messages = without_system(&body);
    assert_eq!(messages[2]["content"], "\"seen\"");
    assert!(messages[3]["content"].as_str().unwrap().contains("interrupted"), "{messages:?}");
    assert_eq!(messages[5]["content"], "[no answer]", "between results and the user's next message");

    // The same for a template that supports one call per message.
    let three = calls(&[look("a"), look("never"), look("b")]);
    let pairs = |config: &mut WorkerConfig| config.run.parallel_tool_calls_supported = false;
    let (_, body) = continued(vec![three], End::CancelInTool, pairs).await;
    assert_eq!(without_system(&body).iter().filter(|message| message["role"] == "assistant").count(), 4);

    // A failing tool, a restart, a lost connection, an error, an invalid call.
    let (state, body) = continued(vec![calls(&[look("a"), look("bad")])], End::Itself, unchanged).await;
    assert_eq!(state, FinalState::Failed);
    assert!(without_system(&body)[3]["content"].as_str().unwrap().contains("no luck"));

    let report = |config: &mut WorkerConfig| config.run.on_tool_error = OnFailure::Report;
    let (state, _) =
        continued(vec![calls(&[look("bad")]), Answer::text("So be it.")], End::Itself, report).await;
    assert_eq!(state, FinalState::Completed);

    let (state, _) = continued(vec![half()], End::Restart { after_chars: 5 }, unchanged).await;
    assert_eq!(state, FinalState::Failed);

    let broken = Answer::stream().delta("Half an ans").then(Act::Close);
    let (state, body) = continued(vec![broken], End::Itself, unchanged).await;
    assert_eq!(state, FinalState::Failed);
    assert_eq!(without_system(&body)[1]["content"], format!("Half an ans\n\n{INTERRUPTED}"));

    let (state, body) = continued(vec![Answer::error(400, &[], "no")], End::Itself, unchanged).await;
    assert_eq!(
        (state, without_system(&body).len()),
        (FinalState::Failed, 1),
        "adjacent user messages are joined"
    );

    for wrong in ["{\"at\": 5}", "{\"at\": ", "[]", "{\"nothing\": 1}"] {
        let (state, body) = continued(vec![Answer::calls(&[("look", wrong)])], End::Itself, unchanged).await;
        assert_eq!(state, FinalState::Failed, "{wrong}");
        assert!(!body.to_string().contains("tool_calls"), "refused arguments are never stored: {body}");
        if wrong == "{\"at\": " {
            // Truncated: the request fails in any case.
            continue;
        }
        let report = |config: &mut WorkerConfig| config.run.on_invalid_arguments = OnFailure::Report;
        let answers = vec![Answer::calls(&[("look", wrong)]), Answer::text("I see.")];
        let (state, _) = continued(answers, End::Itself, report).await;
        assert_eq!(state, FinalState::Completed, "{wrong}");
    }

    let only_exit = Answer::calls(&[("done", "{}")]);
    let (state, _) = continued(vec![only_exit], End::Itself, unchanged).await;
    assert_eq!(state, FinalState::Completed);
    let spent = |config: &mut WorkerConfig| config.run.tool_budget = 1;
    let (state, _) = continued(vec![calls(&[look("a")]), calls(&[look("b")])], End::Itself, spent).await;
    assert_eq!(state, FinalState::Failed);
    let slow = Answer::calls(&[("slow", "{\"at\": \"never\"}")]);
    let (state, _) = continued(vec![slow], End::Itself, unchanged).await;
    assert_eq!(state, FinalState::Failed, "the tool exceeded its time limit");
}

#[tokio::test]
async fn an_invalid_conversation_is_normalized_before_it_is_sent() {
    let server = Server::script([Answer::text("Fine.")]);
    let worker = worker(&server, config());
    let orphan = MessageToolCall::new("call_0", "look", "{\"at\": ");
    let messages = vec![
        Message::user("a"),
        Message::tool("nobody", "1"),
        Message::Assistant {
            content: String::new(),
            tool_calls: vec![orphan.clone(), orphan],
            received: None,
        },
        Message::user("b"),
        Message::user("c"),
    ];
    let id = worker.submit(SubmitRequest { messages, ..SubmitRequest::default() }).unwrap();
    assert_eq!(finish(&worker, &id).await.text(), "Fine.");
    let body = &server.posts()[0].body;
    assert_valid(body);
    assert_eq!(without_system(body).len(), 6, "{body:#}");
}

#[tokio::test]
async fn a_request_can_set_its_tools_system_prompt_and_params() {
    let server = Server::script([Answer::calls(&[("slow", "{}")]), Answer::text("Fine.")]);
    let mut config = config();
    config.run.params = json!({"temperature": 0, "seed": 7}).as_object().cloned().unwrap();
    let worker = worker(&server, config);
    let request = SubmitRequest {
        system_prompt: Some(String::from("Be brief.")),
        model: Some(String::from("other")),
        params: json!({"temperature": 1}).as_object().cloned().unwrap(),
        tools: Some(vec![String::from("look")]),
        job_name: String::from("night"),
        ..SubmitRequest::prompt("hello")
    };
    let id = worker.submit(request.clone()).unwrap();
    let ended = finish(&worker, &id).await;
    assert_eq!(ended.failed().1, "unknown_tool", "a tool that was not offered is unknown");
    let body = server.posts()[0].body.clone();
    let names: Vec<&Value> =
        body["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["look"]);
    assert_eq!(
        (&body["temperature"], &body["seed"], &body["model"]),
        (&json!(1), &json!(7), &json!("other"))
    );
    assert!(server.posts()[0].contents("system")[0].ends_with("\n\nBe brief."));
    assert_eq!(json!(ended.events[0])["job_name"], "night");
    assert_eq!(json!(ended.events[0])["model"], "other");

    let unknown = SubmitRequest { tools: Some(vec![String::from("lok")]), ..request.clone() };
    assert_eq!(worker.submit(unknown), Err(SubmitError::UnknownTool(String::from("lok"))));
    for name in ["model", "messages", "tools", "stream", "stream_options"] {
        let params = [(String::from(name), json!(1))].into_iter().collect();
        let refused = worker.submit(SubmitRequest { params, ..request.clone() });
        assert_eq!(refused, Err(SubmitError::ReservedParam(String::from(name))));
    }
    assert_eq!(worker.in_flight(), 0, "a rejected request takes no slot");
}
