//! The messages of a request: system messages, their templates and roles.

use deftool_chat::Message;
use deftool_chat::request::{
    BiosBudget, BiosContext, BiosProvider, BiosTemplate, BiosV1, Fallback, Step, StringResults,
    SystemMessages,
};
use serde_json::json;

use super::play::{owned, play, reply_with, tools, user, weather};

#[test]
fn system_messages_are_first_and_the_budget_counts_down() {
    let played = play()
        .with(|config| {
            config.system = Some(String::from("Be brief."));
            config.system_messages = SystemMessages::Separate;
        })
        .run(&[reply_with("").call("look", json!({})), reply_with("x")]);
    let [
        Message::System { content: bios },
        Message::System { content: caller },
        Message::User { content: prompt, .. },
    ] = &played.messages(0)[..]
    else {
        panic!()
    };
    assert_eq!(caller, "Be brief.");
    for part in ["bios-v1", "default", "about to finish, call the exit tool", "Exit tools: finish."] {
        assert!(bios.contains(part), "{part}: {bios}");
    }
    assert!(!bios.contains("\"tool\""), "the convention is only included with `on`");
    assert_eq!(played.messages(0)[0], played.messages(1)[0]);
    let lines = |left: u32| {
        format!("Time at submit: 2023-11-14T23:13:20 (Europe/Paris)\nNormal tool iterations left: {left}")
    };
    assert_eq!(*prompt, format!("{}\n\nWhat is the weather?", lines(8)));
    let [.., Message::User { content: again, .. }, Message::Assistant { .. }, Message::Tool { content, .. }] =
        &played.messages(1)[..]
    else {
        panic!()
    };
    assert_eq!(again, prompt, "what was sent stays as it was");
    assert_eq!(*content, format!("{{\"temperature\":18}}\n\n{}", lines(7)));
    assert_eq!(
        played.conversation[0],
        user("What is the weather?"),
        "the lines are not part of the conversation"
    );
}

#[test]
fn a_string_result_is_json_or_the_string_itself() {
    let text = "It is noon.\n\"Really.\"";
    for (strings, result, expected) in [
        (StringResults::Json, json!(text), r#""It is noon.\n\"Really.\"""#),
        (StringResults::Raw, json!(text), text),
        (StringResults::Raw, json!({"at": text}), r#"{"at":"It is noon.\n\"Really.\""}"#),
        (StringResults::Raw, json!(null), "null"),
    ] {
        let mut play = play().with(|config| config.string_results = strings);
        play.answer = Box::new(move |_, _| Ok(result.clone()));
        let played = play.run(&[reply_with("").call("look", json!({})), reply_with("x")]);
        let Some(Message::Tool { content, .. }) = played.history().last() else { panic!("{played:?}") };
        assert_eq!(content, expected, "{strings:?}");
    }
}

#[test]
fn the_variable_lines_are_in_the_last_result_or_user_message() {
    let separate = || play().with(|config| config.system_messages = SystemMessages::Separate);
    let with = |extra: &[Message]| {
        let mut play = separate();
        play.conversation.extend_from_slice(extra);
        let Step::Stream(request) = play.start().next_step(&tools(), &BiosV1) else { panic!() };
        owned(&request.messages)
    };
    let system = Message::System { content: String::from("Third.") };
    let [.., Message::User { content, .. }, last] = &with(std::slice::from_ref(&system))[..] else {
        panic!()
    };
    assert!(content.ends_with("left: 8\n\nWhat is the weather?"), "{content}");
    assert_eq!(*last, system);
    // Without such a message, they are the last message.
    let mut play = separate();
    play.conversation = vec![system];
    let Step::Stream(request) = play.start().next_step(&tools(), &BiosV1) else { panic!() };
    let Some(Message::System { content }) = owned(&request.messages).pop() else { panic!() };
    assert!(content.starts_with("Time at submit: "), "{content}");
}

#[test]
fn a_bios_budget_at_the_tail_is_a_last_system_message() {
    let played = play().with(|config| config.bios_budget = BiosBudget::Tail);
    let Step::Stream(request) = played.start().next_step(&tools(), &BiosV1) else { panic!() };
    let [Message::System { .. }, Message::User { content: prompt, .. }, Message::System { content }] =
        &owned(&request.messages)[..]
    else {
        panic!()
    };
    assert_eq!(prompt, "What is the weather?");
    assert!(content.ends_with("left: 8"), "{content}");
}

#[test]
fn the_call_convention_is_included_with_fallback_on() {
    let played = play().with(|config| config.fallback = Fallback::On).run(&[reply_with("x")]);
    let Message::System { content } = &played.messages(0)[0] else { panic!() };
    assert!(
        content.contains(r#"{"tool": "NAME", "arguments": {…}}"#) && content.contains("get_weather"),
        "{content}"
    );
}

#[test]
fn a_bios_budget_at_the_head_produces_one_message() {
    let played = play().with(|config| config.bios_budget = BiosBudget::Head).run(&[reply_with("x")]);
    let [Message::System { content }, Message::User { .. }] = &played.messages(0)[..] else {
        panic!("{:?}", played.messages(0))
    };
    assert!(content.starts_with("bios-v1\n") && content.ends_with("iterations left: 8"), "{content}");
}

#[test]
fn variable_lines_are_last_and_do_not_change_the_head() {
    let played = play()
        .with(|config| {
            (config.final_turn, config.tool_budget) = (true, 1);
        })
        .run(&[reply_with("").call("look", json!({})), reply_with("x")]);
    assert_eq!(played.messages(0)[0], played.messages(1)[0]);
    let Some(Message::Tool { content, .. }) = played.messages(1).pop() else { panic!() };
    assert!(content.ends_with("\nNormal tool iterations left: 0; answer without them."), "{content}");
}

#[test]
fn combined_system_messages_are_one_message() {
    let mut play = play().with(|config| {
        config.system = Some(String::from("Be brief."));
    });
    play.conversation.insert(0, Message::System { content: String::from("Third.") });
    let played = play.run(&[reply_with("x")]);
    let [Message::System { content }, Message::User { content: prompt, .. }] = &played.messages(0)[..] else {
        panic!()
    };
    assert!(content.starts_with("bios-v1") && content.ends_with("\n\nBe brief.\n\nThird."), "{content}");
    assert!(prompt.contains("left: 8\n\n"), "{prompt}");
}

#[test]
fn a_bios_may_be_empty() {
    #[derive(Debug)]
    struct None;
    impl BiosProvider for None {
        fn bios(&self, _: &BiosContext<'_>) -> String {
            String::new()
        }
    }
    let Step::Stream(request) = play().start().next_step(&tools(), &None) else { panic!() };
    assert_eq!(owned(&request.messages), [user("What is the weather?")]);
}

#[test]
fn templates_without_parallel_calls_get_pairs() {
    let played = play().with(|config| config.parallel_tool_calls_supported = false).run(&[
        reply_with("I look.").call("look", json!({})).call("get_weather", weather()),
        reply_with("x"),
    ]);
    let [
        ..,
        Message::Assistant { content, tool_calls: first, .. },
        Message::Tool { .. },
        Message::Assistant { content: empty, tool_calls: second, .. },
        Message::Tool { .. },
    ] = played.history()
    else {
        panic!("{:?}", played.history())
    };
    assert_eq!((content.as_str(), empty.as_str(), first.len(), second.len()), ("I look.", "", 1, 1));
}

#[test]
fn adjacent_messages_of_one_role_are_merged() {
    let mut play = play();
    play.conversation.insert(0, user("First."));
    let played = play.run(&[reply_with("x")]);
    let [Message::System { .. }, Message::User { content, .. }] = played.history() else { panic!() };
    assert_eq!(content, "First.\n\nWhat is the weather?");
}

#[test]
fn a_bios_is_created_from_a_template() {
    let bios = BiosTemplate {
        text: String::from(
            "I am {worker}, {zone}.\n{budget} left, {exit_tools}.\n{{budget}}, {{call_convention}}.\nBye {x}.\n",
        ),
    };
    let first = |change: fn(&mut deftool_chat::request::RunConfig)| {
        let Step::Stream(request) = play().with(change).start().next_step(&tools(), &bios) else { panic!() };
        owned(&request.messages)
    };
    let system = |content: &str| Message::System { content: content.to_owned() };
    assert_eq!(
        first(|config| config.bios_budget = BiosBudget::Head)[0],
        system("I am default, Europe/Paris.\n8 left, finish.\n{budget}, {call_convention}.\nBye {x}.")
    );
    let tail = first(|_| {});
    // Braces that are not a placeholder: the line is not variable, and the convention is not inserted there.
    assert_eq!(tail[0], system("I am default, Europe/Paris.\n{budget}, {call_convention}.\nBye {x}."));
    assert_eq!(tail[1], user("8 left, finish.\n\nWhat is the weather?"));
    let Message::System { content } = &first(|config| config.fallback = Fallback::On)[0] else { panic!() };
    assert!(content.contains("Bye {x}.\nTo call a tool, "), "{content}");
}
