//! Prompt caches: each body is the previous one with new messages at its end.

use deftool_chat::Dialect;
use deftool_chat::request::{BiosBudget, BudgetUnit, RunConfig, SystemMessages};
use deftool_chat::{Api, Body, BodyEncoder, BodyForm, Capabilities, Message, ReplyStatus};
use serde_json::{Value, json};

use super::play::{Play, Played, ScriptedReply, play, reply_with, user, weather};

/// Each API, with the member of its body that contains the conversation.
const APIS: [(Api, &str); 3] =
    [(Api::ChatCompletions, "messages"), (Api::Responses, "input"), (Api::Messages, "messages")];

/// The part of a body that the next one begins with.
#[derive(Debug, Clone, Copy)]
enum Kept {
    /// The whole conversation.
    All,
    /// The conversation without its last message.
    ButLast,
    /// Not even the first message.
    Nothing,
}

type Change = fn(&mut RunConfig);

const CONFIGS: [(&str, Change, Kept); 8] = [
    ("result", |_| {}, Kept::All),
    ("separate", |config| config.system_messages = SystemMessages::Separate, Kept::All),
    ("pairs", |config| config.parallel_tool_calls_supported = false, Kept::All),
    ("call", |config| config.budget_unit = BudgetUnit::Call, Kept::All),
    ("parallel", |config| config.parallel = true, Kept::All),
    ("cut", |config| config.max_result = 8, Kept::All),
    ("tail", |config| config.bios_budget = BiosBudget::Tail, Kept::ButLast),
    ("head", |config| config.bios_budget = BiosBudget::Head, Kept::Nothing),
];

/// A reply with two calls, and with state that goes back to the server.
fn reasoned() -> ScriptedReply {
    let mut script = reply_with("I look.").call("look", json!({})).call("get_weather", weather());
    let call = |id: &str, name: &str, arguments: Value| json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name, "arguments": arguments.to_string()});
    let opaque = &mut script.reply.opaque;
    opaque.members.insert(String::from("reasoning_content"), json!("I should look."));
    opaque.items = vec![
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}),
        json!({"type": "message", "id": "msg_x", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]}),
        call("call_0", "look", json!({})),
        call("call_1", "get_weather", weather()),
    ];
    script
}

/// Plays two requests of one conversation. `end` is the last reply of the first one.
fn conversation(change: Change, end: ScriptedReply, (restore, journaled): (bool, bool)) -> [Played; 2] {
    let request = |conversation: Vec<Message>, local_time, replies: &[ScriptedReply]| {
        let play = Play { conversation, local_time, restore, journaled, ..play() };
        play.with(change).run(replies)
    };
    let begin = vec![Message::System { content: String::from("Third.") }, user("What is the weather?")];
    let first =
        request(begin, "2023-11-14T23:13:20", &[reasoned(), reply_with("").call("look", json!({})), end]);
    let mut more = first.conversation.clone();
    more.push(user("And tomorrow?"));
    let second = request(more, "2023-11-15T08:00:00", &[reasoned(), reply_with("Rain.")]);
    [first, second]
}

fn bodies(played: &[Played], api: Api) -> Vec<Body> {
    // A local server gets no marks, which move to the last messages.
    let server = Capabilities::of(Dialect::named("llama-cpp"));
    let form = BodyForm { api, server, ..BodyForm::default() };
    let encoded = played.iter().map(|played| {
        let mut encoder = BodyEncoder::default();
        played.requests.iter().map(move |request| encoder.encode(request, form)).collect::<Vec<_>>()
    });
    encoded.flatten().collect()
}

/// Returns how many bytes of a body the next one must begin with: at least, and at most.
fn expected(body: &Body, member: &str, kept: Kept) -> (usize, usize) {
    let text = std::str::from_utf8(body.json()).unwrap();
    let name = format!("\"{member}\":");
    let start = text.find(&name).unwrap() + name.len();
    let end = start + body.conversation_bytes() - 1;
    let value = body.to_value();
    let items = value[member].as_array().unwrap();
    match kept {
        Kept::All => (end, end),
        // Its first bytes name its role, or are those of a message that it is merged with.
        Kept::ButLast => (end - items.last().unwrap().to_string().len(), end - 1),
        // The messages API has the system text before the conversation.
        Kept::Nothing => (0, start + items[0].to_string().len()),
    }
}

fn check(what: &str, bodies: &[Body], member: &str, kept: Kept) {
    assert!(bodies.len() > 4, "{what}");
    for (number, pair) in bodies.windows(2).enumerate() {
        let common =
            pair[0].json().iter().zip(pair[1].json()).take_while(|(one, other)| one == other).count();
        let (least, most) = expected(&pair[0], member, kept);
        assert!(
            (least..=most).contains(&common),
            "{what}, body {number}: {common} of {least} to {most} bytes\n{}\n{}",
            pair[0].to_value(),
            pair[1].to_value()
        );
    }
}

#[test]
fn the_common_prefix_of_two_bodies_ends_where_the_new_messages_begin() {
    for (name, change, kept) in CONFIGS {
        for (api, member) in APIS {
            let played = conversation(change, reply_with("Fine."), (false, false));
            let expected = bodies(&played, api);
            check(&format!("{name}, {api:?}"), &expected, member, kept);
            // A restored request continues with the same bytes.
            for restored in [(true, false), (false, true)] {
                let played = conversation(change, reply_with("Fine."), restored);
                assert_eq!(bodies(&played, api), expected, "{name}, {api:?}, {restored:?}");
            }
        }
    }
}

#[test]
fn an_interrupted_reply_does_not_change_what_was_sent() {
    let broken = || reply_with("It is").status(ReplyStatus::Incomplete { cause: None });
    for (api, member) in APIS {
        let played = conversation(|_| {}, broken(), (false, false));
        check(&format!("{api:?}"), &bodies(&played, api), member, Kept::All);
    }
}

/// A reply that the server paused stays the last message of the next body, and of the conversation.
#[test]
fn a_paused_reply_is_continued_without_new_messages() {
    let block = json!({"type": "server_tool_use", "id": "1", "name": "web_search", "input": {}});
    let paused = || {
        let mut script = reply_with("");
        script.reply.finish_reason = Some(String::from("pause_turn"));
        script.reply.opaque.items = vec![block.clone()];
        script
    };
    for (name, change, kept) in CONFIGS {
        let first = Play { conversation: vec![user("What?")], ..play() }
            .with(change)
            .run(&[paused(), reply_with("Rain.")]);
        let mut more = first.conversation.clone();
        more.push(user("And tomorrow?"));
        let second = Play { conversation: more, ..play() }.with(change).run(&[reply_with("Sun.")]);
        let bodies = bodies(&[first, second], Api::Messages);
        let messages = |body: &Body| body.to_value()["messages"].as_array().unwrap().clone();
        let [before, continued, next] = &bodies[..] else { panic!("{name}") };
        let mut expected = messages(before);
        if matches!(kept, Kept::ButLast) {
            expected[0]["content"].as_array_mut().unwrap().pop();
        }
        expected.push(json!({"role": "assistant", "content": [block]}));
        assert_eq!(messages(continued), expected, "{name}");
        let next = messages(next);
        assert_eq!((&next[0], &next[1]["content"][0]), (&expected[0], &block), "{name}");
    }
}
