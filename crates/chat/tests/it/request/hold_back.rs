//! Text that is held back while it may be a call.

use deftool_chat::ChatEvent;
use deftool_chat::request::{BiosV1, FailReason, FinalState};
use deftool_test_support::cpu::assert_linear;
use deftool_test_support::step;
use serde_json::json;

use super::play::{play, reply_with, tools, user, weather};
use super::text::on;

// Text that is held back during streaming.

#[test]
fn only_ambiguous_text_is_held_back() {
    for (text, shown) in [
        ("Hello <", "Hello "),
        ("Hello <tool_ca", "Hello "),
        ("Hello <b", "Hello <b"),
        ("Hello <tool_call>\n", "Hello "),
        ("Hello <tool_call> a", "Hello "),
        ("Hello <tool_call> a b", "Hello "),
        ("Hello <tool_call> a b c", "Hello <tool_call> a b c"),
        (
            "Hello <tool_call>{\"name\": \"look\"}</tool_call> i",
            "Hello <tool_call>{\"name\": \"look\"}</tool_call> i",
        ),
        ("Hello.\n[TOOL_", "Hello.\n"),
        ("Hello [TOOL_S", "Hello [TOOL_S"),
        ("Hello\n[li", "Hello\n"),
        ("Hello\n[link]", "Hello\n[link"),
        ("Hello\n[link] ", "Hello\n[link] "),
        ("`<tool_call>", "`"),
        ("`<tool_call>` is", "`<tool_call>` is"),
        ("a\n{\"to", "a\n"),
        ("a\n{\"total", "a\n{\"total"),
        ("a\n{\"tool\": \"lo", "a\n"),
        ("a\n{\"tool\": lo", "a\n{\"tool\": l"),
        ("a {\"tool\": \"lo", "a {\"tool\": \"lo"),
        ("a\n```", "a\n"),
        ("a\n```js", "a\n"),
        ("a\n```jsx", "a\n```jsx"),
        ("a\n```json\n", "a\n"),
        ("a\n```json\n{\"x", "a\n```json\n{\"x"),
        ("a `code", "a `code"),
        ("a\n``", "a\n"),
        ("a\n``x", "a\n``x"),
        ("{\"tool\": \"look\", \"arguments\": {}}", ""),
        ("{\"tool\": \"look\", \"arguments\": {}} x", "{\"tool\": \"look\", \"arguments\": {}} x"),
    ] {
        let tools = tools();
        let mut run = play().with(on).start();
        run.next_step(&tools, &BiosV1);
        for ch in text.chars() {
            run.on_event(ChatEvent::Text { text: ch.to_string() }, &tools, 1);
        }
        assert_eq!(run.text(), shown, "{text:?}");
        run.cancel(2);
        assert_eq!(run.text(), text);
    }
}

#[test]
fn at_most_64_kib_are_held_back() {
    let tools = tools();
    let long = "x".repeat(200 * 1024 / step(2));
    for text in [
        format!("<tool_call>{{\"name\": \"look\", \"arguments\": {{\"x\": \"{long}\"}}}}</tool_call>"),
        format!("{{\"tool\": \"look\", \"arguments\": {{\"x\": \"{long}\"}}}}\n"),
        format!("<tool_call>{}", " ".repeat(200 * 1024)),
        format!(
            "<tool_call>{{\"name\": \"look\"}}</tool_call>{long}<tool_call>{{\"name\": \"look\"}}</tool_call>"
        ),
    ] {
        let mut run = play().with(on).start();
        run.next_step(&tools, &BiosV1);
        let mut fed = 0;
        let (start, end) = text.as_bytes().split_at(64 * 1024 - 100);
        // Character by character near the limit.
        let (middle, end) = end.split_at(300);
        for piece in [start].into_iter().chain(middle.chunks(1)).chain(end.chunks(1000)) {
            fed += piece.len();
            let piece = String::from_utf8(piece.to_vec()).unwrap();
            run.on_event(ChatEvent::Text { text: piece }, &tools, 1);
            assert!(fed - run.text().len() <= 64 * 1024, "{fed} {}", run.text().len());
        }
    }
    let far = format!("<tool_call>{{\"name\": \"look\"}}</tool_call>{long}");
    for size in [1 << 20, 1].into_iter().step_by(step(2)) {
        let played = play().run(&[reply_with(&far).cut(size)]);
        assert!(played.executed().is_empty(), "text follows the call");
        assert_eq!(played.outcome.text, far);
        let kept = play().run(&[reply_with(&far).cut(size).call("get_weather", weather()), reply_with("")]);
        assert_eq!(kept.outcome.text.len(), far.len(), "text must not be lost if it is not a call");
    }
}

#[test]
fn hostile_text_takes_linear_time() {
    let tag = "<tool_call>{\"name\": \"look\"}</tool_call>";
    for unit in [
        "<",
        "<tool_call>",
        "<tool_call>{",
        "{\"tool\":\n",
        "{\"tool\": \"",
        "```\n",
        "```json\n{\"tool\": {",
        "`",
        "\"{",
        "<think>",
        "<tool_call>{}</think>",
        tag,
        "{\"tool\": \"x\", \"arguments\": {}}\n",
        "[[[[",
        "[TOOL_CALLS]",
        "[a(b=",
        "[a(b=[\n",
        "<function=look><parameter=q>",
        "functools[",
        ">>>look\n{",
        "Action: look\n",
        "<|",
        "~",
        "\\",
        "<a>",
        "<a>x",
        "<a>\n",
        "</a>",
        "<a><b>x</a>",
        "<a>x<tool_call>{\"name\": \"look\"}</tool_call></a>",
        "<a>\n<tool_call>{\"name\": \"look\"}</tool_call>",
        "<a>x <tool_call>{\"name\": 1}</tool_call></a>",
        "\\begin{a}",
        "&lt;a&gt;",
        "&amp;",
        "<![CDATA[",
        "<|im_start|>",
        "[a]x[/a]",
        "“x\n\n",
        "'a b' ",
        "- ",
    ]
    .into_iter()
    .step_by(step(16))
    {
        assert_linear(unit, 10_000, |size| {
            let text = unit.repeat(size / unit.len());
            let played = play()
                .with(on)
                .with(|config| config.repetition.clear())
                .run(&[reply_with(&text), reply_with("")]);
            assert!(played.outcome.text.len() <= text.len());
        });
    }
}

#[test]
fn without_tools_no_text_is_a_call_or_held_back() {
    let none = deftool_lang::schema::ToolSet::default();
    let mut run = play().with(on).start();
    run.next_step(&none, &BiosV1);
    let text = "<tool_call>{\"name\": \"look\", \"arguments\": {}}</tool_call>";
    run.on_event(ChatEvent::Text { text: text.to_owned() }, &none, 1);
    assert_eq!(run.text(), text);
    run.on_event(ChatEvent::Ended { reply: reply_with("").reply }, &none, 2);
    assert_eq!(run.outcome().unwrap().state, FinalState::Completed);
}

#[test]
fn a_reply_with_too_many_written_calls_ends_at_the_limit() {
    let call =
        |n: usize| format!("<tool_call>{{\"name\": \"look\", \"arguments\": {{\"n\": {n}}}}}</tool_call>\n");
    let exit = "<tool_call>{\"name\": \"finish\", \"arguments\": {}}</tool_call>\n";
    let calls = |count: usize| (0..count).map(call).collect::<String>();
    let conversation = || vec![user(&"{\"name\": \"look\", \"arguments\": ".repeat(8_000 / step(8)))];
    for size in [usize::MAX, 1_000, 7].into_iter().step_by(step(3)) {
        let mut playing = play();
        playing.conversation = conversation();
        let played = playing.run(&[reply_with(&format!("a.\n{exit}{}", calls(3_000 / step(2)))).cut(size)]);
        let detail = "the reply contains more than 1000 tool calls; the rest was not read";
        assert_eq!(played.failure(), (FailReason::UnknownError, "server_error", detail));
        assert_eq!(played.signals(), [("finish", &json!({}))]);
        assert!(played.executed.is_empty());
        assert_eq!(played.outcome.raw_text().trim_end(), format!("a.\n{exit}{}", calls(1_000)).trim_end());
    }
    let played = play()
        .with(|config| config.tool_budget = 2_000)
        .run(&[reply_with(&calls(1_000)), reply_with("done")]);
    assert_eq!(played.executed.len(), 1_000);
    // Data that only looks like calls may have any length.
    let rows: Vec<String> = (0..5_000 / step(2)).map(|n| format!("{{\"name\": \"Ada {n}\"}}\n")).collect();
    let played = play().with(on).run(&[reply_with(&rows.concat())]);
    assert_eq!(
        (played.outcome.state, played.outcome.text.len()),
        (FinalState::Completed, rows.concat().len())
    );
}
