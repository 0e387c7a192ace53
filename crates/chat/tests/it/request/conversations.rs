//! Conversations from other sources, and the conversation of an interrupted request.

use std::sync::Arc;

use deftool_chat::request::{
    BiosV1, FailReason, Failure, INTERRUPTED, RequestOptions, Run, RunConfig, RunStart, Step, SystemMessages,
    normalize_conversation,
};
use deftool_chat::{Api, BodyEncoder, BodyFallback, BodyForm, ChatRequest, Message, MessageToolCall};
use deftool_lang::tool::{ToolError, ToolErrorKind};
use deftool_test_support::cpu::assert_linear;
use deftool_test_support::step;
use deftool_test_support::validity::{alternation_problem, first_problem};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::play::{owned, plain, play, reply_with, tools, weather};

fn user(text: &str) -> Message {
    Message::user(text)
}

fn assistant(text: &str) -> Message {
    Message::Assistant { content: text.to_owned(), tool_calls: Vec::new(), received: None }
}

fn calls(text: &str, calls: &[(&str, &str)]) -> Message {
    let tool_calls = calls.iter().map(|(id, arguments)| MessageToolCall::new(*id, "look", *arguments));
    Message::Assistant { content: text.to_owned(), tool_calls: tool_calls.collect(), received: None }
}

/// A reply without text, with an item of this type.
fn with_item(kind: &str) -> Message {
    let received = json!({"source": {"url": "", "model": ""}, "items": [{"type": kind}]});
    let received = serde_json::from_value(received).unwrap();
    Message::Assistant { content: String::new(), tool_calls: Vec::new(), received: Some(Arc::new(received)) }
}

fn result(id: &str, content: &str) -> Message {
    Message::tool(id, content)
}

fn as_json(messages: &[Message]) -> Vec<Value> {
    messages.iter().map(|message| json!(message)).collect()
}

/// Any message, with valid, invalid and repeated ids and arguments.
fn any_message() -> impl Strategy<Value = Message> {
    let id = || prop::sample::select(vec!["aaaaaaaaa", "bbbbbbbbb", "call_0", "", "ccccccccc", "ünï"]);
    let arguments = prop::sample::select(vec![
        "{}",
        r#"{"at": "x"}"#,
        "",
        "[1]",
        "{\"at\": ",
        r#""{\"at\": 1}""#,
        "null",
    ]);
    let text = || prop::sample::select(vec!["", " ", "word", "word\nword"]);
    prop_oneof![
        1 => text().prop_map(|text| Message::System { content: text.to_owned() }),
        4 => text().prop_map(user),
        3 => text().prop_map(assistant),
        4 => (text(), prop::collection::vec((id(), arguments), 0..4)).prop_map(|(text, list)| calls(text, &list)),
        6 => (id(), text()).prop_map(|(id, text)| result(id, text)),
    ]
}

/// Returns the messages that a request would send, without system messages.
fn sent(messages: Vec<Message>, config: RunConfig) -> Vec<Value> {
    let mut run = Run::new(config, RunStart { conversation: messages, ..RunStart::default() });
    let Step::Stream(request) = run.next_step(&tools(), &BiosV1) else { panic!("expected a request") };
    as_json(&owned(&request.messages)).into_iter().filter(|message| message["role"] != "system").collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256 / step(4) as u32))]

    /// The encoder keeps the messages of earlier bodies.
    #[test]
    fn each_body_of_a_growing_conversation_is_that_of_a_new_encoder(
        turns in prop::collection::vec((prop::collection::vec(any_message(), 0..4), 0..3_usize, 0..5_usize), 1..8),
    ) {
        let fallbacks = [None, Some(BodyFallback::CallPairs), Some(BodyFallback::PlainRoles)];
        let mut conversation: Vec<Arc<Message>> = Vec::new();
        let mut encoder = BodyEncoder::default();
        for (number, (more, systems, variant)) in turns.into_iter().enumerate() {
            conversation.extend(more.into_iter().map(Arc::new));
            let system = |part: usize| Arc::new(Message::System { content: format!("{part} of {number}") });
            let messages: Vec<_> =
                (0..systems).map(system).chain(conversation.iter().cloned()).chain([system(systems)]).collect();
            let fallbacks = fallbacks.get(variant).into_iter().flatten().copied().collect::<Vec<_>>().into();
            let api = match variant {
                3 => Api::Responses,
                4 => Api::Messages,
                _ => Api::ChatCompletions,
            };
            let form = BodyForm { api, fallbacks, ..BodyForm::default() };
            let request = ChatRequest { messages, ..ChatRequest::default() };
            let body = encoder.encode(&request, form);
            prop_assert_eq!(&body, &request.encode_body(form));
            prop_assert!(body.to_value().is_object());
        }
    }
}

#[test]
fn messages_before_a_result_are_moved_behind_it() {
    let call = calls("", &[("aaaaaaaaa", "{}"), ("bbbbbbbbb", "{}")]);
    let (one, two) = (result("aaaaaaaaa", "1"), result("bbbbbbbbb", "2"));
    let (go, hurry, done) = (user("go"), user("hurry"), assistant("done"));
    let invalid = [&go, &call, &one, &hurry, &assistant(" "), &two, &done].map(Clone::clone);
    let right = [&go, &call, &one, &two, &assistant("[no answer]"), &hurry, &done].map(Clone::clone);
    assert_eq!(normalize_conversation(invalid.to_vec()), right);
}

#[test]
fn many_messages_before_a_result_take_linear_time() {
    let ids: Vec<String> = (0..30_000).map(|number| format!("call_{number}")).collect();
    let pairs: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "{}")).collect();
    let answered = ids.iter().skip(1).map(|id| result(id, "1"));
    let meanwhile = (0..30_000).map(|number| user(&number.to_string()));
    let list: Vec<Message> = [calls("", &pairs)].into_iter().chain(answered).chain(meanwhile).collect();
    let normalized = normalize_conversation(list);
    assert_eq!(normalized.len(), 2 + 30_000 + 1 + 30_000, "a placeholder before and one between");
}

proptest! {
    #[test]
    fn any_list_becomes_valid_and_a_valid_list_is_not_changed(messages in prop::collection::vec(any_message(), 0..24)) {
        let normalized = normalize_conversation(messages.clone());
        prop_assert_eq!(first_problem(&as_json(&normalized)), None, "{:?}", normalized);
        prop_assert_eq!(&normalize_conversation(normalized.clone()), &normalized);
        // All texts of users and models are kept in order.
        let texts = |messages: &[Message]| -> Vec<String> {
            let texts = messages.iter().filter_map(|message| match message {
                Message::User { content, .. } | Message::Assistant { content, .. } | Message::System { content } => Some(content),
                Message::Tool { .. } => None,
            });
            texts.filter(|text| !text.trim().is_empty() && !text.starts_with('[')).cloned().collect()
        };
        prop_assert_eq!(texts(&normalized), texts(&messages));
    }

    #[test]
    fn sent_conversations_are_valid_and_alternate(messages in prop::collection::vec(any_message(), 0..24), pairs: bool) {
        let messages: Vec<Message> =
            messages.into_iter().filter(|message| !matches!(message, Message::System { .. })).collect();
        let config = RunConfig { parallel_tool_calls_supported: !pairs, ..RunConfig::default() };
        let sent = sent(messages, config);
        prop_assert_eq!(first_problem(&sent), None, "{:?}", sent);
        prop_assert_eq!(alternation_problem(&sent), None, "{:?}", sent);
        if pairs {
            let most = sent.iter().filter_map(|message| message["tool_calls"].as_array()).map(Vec::len).max();
            prop_assert!(most.unwrap_or(0) <= 1, "{:?}", sent);
        }
    }
}

#[test]
fn invalid_conversations_are_normalized() {
    let interrupted =
        r#"{"error":{"kind":"canceled","message":"this call was interrupted; it has no result"}}"#;
    for (messages, expected) in [
        // A call without a result, before the next user message and at the end.
        (
            vec![user("a"), calls("", &[("aaaaaaaaa", "{}")]), user("b")],
            vec![
                user("a"),
                calls("", &[("aaaaaaaaa", "{}")]),
                result("aaaaaaaaa", interrupted),
                assistant("[no answer]"),
                user("b"),
            ],
        ),
        (
            vec![user("a"), calls("", &[("aaaaaaaaa", "{}"), ("bbbbbbbbb", "{}")]), result("bbbbbbbbb", "1")],
            vec![
                user("a"),
                calls("", &[("aaaaaaaaa", "{}"), ("bbbbbbbbb", "{}")]),
                result("aaaaaaaaa", interrupted),
                result("bbbbbbbbb", "1"),
            ],
        ),
        // Results in a different order than their calls: some templates match them by position.
        (
            vec![
                user("a"),
                calls("", &[("aaaaaaaaa", "{}"), ("bbbbbbbbb", "{}"), ("ccccccccc", "{}")]),
                result("ccccccccc", "3"),
                result("aaaaaaaaa", "1"),
                result("bbbbbbbbb", "2"),
            ],
            vec![
                user("a"),
                calls("", &[("aaaaaaaaa", "{}"), ("bbbbbbbbb", "{}"), ("ccccccccc", "{}")]),
                result("aaaaaaaaa", "1"),
                result("bbbbbbbbb", "2"),
                result("ccccccccc", "3"),
            ],
        ),
        // A result without a call is tool output and must not become a user message.
        (vec![user("a"), result("aaaaaaaaa", "obey me")], vec![user("a")]),
        // A second result for a call.
        (
            vec![
                user("a"),
                calls("", &[("aaaaaaaaa", "{}")]),
                result("aaaaaaaaa", "1"),
                result("aaaaaaaaa", "2"),
            ],
            vec![user("a"), calls("", &[("aaaaaaaaa", "{}")]), result("aaaaaaaaa", "1")],
        ),
        // Arguments that servers reject permanently, and arguments that are only encoded twice.
        (
            vec![user("a"), calls("", &[("aaaaaaaaa", "{\"at\": ")]), result("aaaaaaaaa", "1")],
            vec![user("a"), calls("", &[("aaaaaaaaa", "{}")]), result("aaaaaaaaa", "1")],
        ),
        (
            vec![user("a"), calls("", &[("aaaaaaaaa", r#""{\"at\":1}""#)]), result("aaaaaaaaa", "1")],
            vec![user("a"), calls("", &[("aaaaaaaaa", r#"{"at":1}"#)]), result("aaaaaaaaa", "1")],
        ),
        (vec![assistant("I begin.")], vec![user("[no message]"), assistant("I begin.")]),
        (vec![user("a"), assistant(" ")], vec![user("a")]),
        // Reasoning alone is no reply. A call of the server's own tools is one: what follows belongs to it.
        (vec![user("a"), with_item("thinking"), assistant("b")], vec![user("a"), assistant("b")]),
        (
            vec![user("a"), with_item("server_tool_use"), assistant("b")],
            vec![user("a"), with_item("server_tool_use"), assistant("b")],
        ),
    ] {
        assert_eq!(normalize_conversation(messages.clone()), expected, "{messages:?}");
    }
}

#[test]
fn a_hostile_conversation_takes_linear_time() {
    assert_linear("equal ids", 10_000, |count| {
        let mut messages = vec![user("a"), calls("", &vec![("call_0", "["); count])];
        messages.extend((0..2 * count).map(|_| result("call_0", "1")));
        assert_eq!(normalize_conversation(messages).len(), 2 + count);
    });
}

#[test]
fn the_text_of_a_canceled_reply_is_kept_and_marked_as_interrupted() {
    for fails in [false, true] {
        let mut run = play().start();
        let tools = tools();
        run.next_step(&tools, &BiosV1);
        run.on_event(deftool_chat::ChatEvent::Text { text: String::from("The answer is ") }, &tools, 1);
        if fails {
            run.fail(Failure::new(FailReason::ServerDied, "", "gone"), 2);
        } else {
            run.cancel(2);
        }
        let last = plain(run.conversation()).pop();
        assert_eq!(last, Some(assistant(&format!("The answer is\n\n{INTERRUPTED}"))));
    }
    // Before the first text, nothing is added to the conversation.
    let mut run = play().start();
    run.next_step(&tools(), &BiosV1);
    run.cancel(1);
    assert!(matches!(owned(run.conversation())[..], [Message::User { .. }]));
}

#[test]
fn calls_before_a_failure_are_kept_with_their_results() {
    let failing = play().answering(|nth, _| match nth {
        1 => Ok(json!("first")),
        _ => Err(ToolError::new(ToolErrorKind::Script, "no luck")),
    });
    let three =
        reply_with("I look.").call("look", json!({})).call("get_weather", weather()).call("look", json!({}));
    let played = failing.run(&[three]);
    assert_eq!(played.outcome.fail_reason, Some(FailReason::ToolExecutionError));
    let history = as_json(&played.conversation);
    assert_eq!(first_problem(&history), None);
    let results: Vec<Value> = history
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| serde_json::from_str(message["content"].as_str().unwrap()).unwrap())
        .collect();
    assert_eq!(results[0], json!("first"));
    assert_eq!(results[1]["error"]["message"], "get_weather: no luck");
    assert_eq!(results[2]["error"]["kind"], "canceled");
    assert_eq!(history[history.len() - 4]["content"], "I look.");
}

#[test]
fn invalid_arguments_are_never_stored() {
    let invalid = reply_with("Let me see.").call("get_weather", json!({"location": 5}));
    let played = play().run(&[invalid]);
    assert_eq!(played.outcome.fail_reason, Some(FailReason::ToolParseError));
    let history = as_json(&played.conversation);
    assert!(history.iter().all(|message| message.get("tool_calls").is_none()), "{history:?}");
    assert_eq!(history.last().unwrap()["content"], format!("Let me see.\n\n{INTERRUPTED}"));
}

#[test]
fn request_options_are_combined_with_the_workers() {
    for (system_messages, expected) in [
        (SystemMessages::Separate, vec!["The worker's.", "The request's."]),
        (SystemMessages::Combined, vec!["The worker's.\n\nThe request's."]),
    ] {
        let config = RunConfig {
            system: Some(String::from("The worker's.")),
            system_messages,
            model: String::from("theirs"),
            params: json!({"seed": 1, "temperature": 0}).as_object().cloned().unwrap(),
            ..RunConfig::default()
        };
        let options = RequestOptions {
            model: Some(String::from("mine")),
            system_prompt: Some(String::from("The request's.")),
            params: json!({"temperature": 1, "top_p": 0.5}).as_object().cloned().unwrap(),
            ..RequestOptions::default()
        };
        let start = RunStart { conversation: vec![user("a")], options, ..RunStart::default() };
        let mut run = Run::new(config, start);
        let Step::Stream(request) = run.next_step(&tools(), &BiosV1) else { panic!() };
        let systems: Vec<String> = request
            .messages
            .iter()
            .filter_map(|message| match &**message {
                Message::System { content } => Some(content.clone()),
                Message::User { .. } | Message::Assistant { .. } | Message::Tool { .. } => None,
            })
            .collect();
        let whole = systems.join("\n\n");
        assert!(expected.iter().all(|text| whole.contains(text)), "{systems:?}");
        assert!(whole.ends_with("The request's."), "the request's is the last: {systems:?}");
        assert_eq!(json!(request.params), json!({"seed": 1, "temperature": 1, "top_p": 0.5}));
        assert_eq!(request.model, "mine");
        assert_eq!(
            owned(run.conversation()),
            [user("a")],
            "the system prompt is not part of the conversation"
        );
    }
}
