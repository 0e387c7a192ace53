use super::{Allowed, Context, is_plain};

/// Returns which forms a model may begin after `text`.
fn allowed_after(text: &str) -> Allowed {
    let mut context = Context::new();
    text.chars().for_each(|ch| context.track(ch));
    if context.reads_forms('<') { context.allowed() } else { Allowed::default() }
}

#[test]
fn forms_begin_by_their_first_characters() {
    let (everything, token, nothing) =
        (Allowed { line: true, token: true }, Allowed { line: false, token: true }, Allowed::default());
    for (text, allowed) in [
        ("", everything),
        ("a\n", everything),
        ("- ", everything),
        ("12) ", everything),
        ("<s>", everything),
        ("<tool_calls>", everything),
        ("<|im_end|>", everything),
        ("<think>a</think> ", everything),
        ("analysisWe.assistantfinal", everything),
        ("a <div>\n", everything),
        ("<br>\n", everything),
        ("a ` b\n\n", everything),
        ("a [INST] and b\n", everything),
        ("Hello.", token),
        ("Hello. ", token),
        ("Hello", token),
        ("- Hello: ", token),
        ("a `b`. ", token),
        ("say \"x\" ", token),
        ("<p>x</p> ", token),
        ("    ", nothing),
        ("-", nothing),
        ("> ", nothing),
        ("Hello ", nothing),
        ("Hello, ", nothing),
        ("; Hello.", nothing),
        ("a=", nothing),
        ("[1] ", nothing),
        ("10:00 a: ", nothing),
        ("say \"x. ", nothing),
        ("say 'x. ", nothing),
        ("a `b. ", nothing),
        ("a <doc>. ", nothing),
        ("a [INST]. ", nothing),
        ("<doc>\n", nothing),
        ("<p>\n", nothing),
        ("```\n", nothing),
        ("<think>a\n\n", nothing),
        ("<think>a</thinking>", nothing),
        ("analysisWe", nothing),
        ("<|channel|>analysis<|message|>a</think>", nothing),
        ("For example:\n\n", nothing),
        ("“a\n\n", nothing),
        ("\"a:\n\n", nothing),
        ("<!-- a\n", nothing),
        ("<|im_start|>user\n", nothing),
        ("a\n----\n", everything),
        ("\n----\n", nothing),
        ("\n----\n\n", everything),
    ] {
        assert_eq!(allowed_after(text), allowed, "{text:?}");
    }
}

#[test]
fn skipping_a_run_equals_reading_its_characters() {
    for text in [
        "for example, ",
        "it's 24\" wide",
        "Wörter und ",
        "- a list's item",
        "12. ab",
        "<a b> cd <e",
        "<a> b --> c ]]> d",
        "\\begin{a} b",
        "&lt;a> b &am c",
        "x [INST] and so",
        "'''a'''b 'c' d’s",
        "日本語 ",
        "a `code",
        "<think> x",
        "```\nx y\n",
    ] {
        let (mut one, mut other) = (Context::new(), Context::new());
        text.chars().for_each(|ch| one.track(ch));
        let mut rest = text;
        while let Some(ch) = rest.chars().next() {
            let run =
                if other.may_skip() { rest.bytes().take_while(|byte| is_plain(*byte)).count() } else { 0 };
            if run == 0 {
                other.track(ch);
                rest = &rest[ch.len_utf8()..];
            } else {
                other.skip(&rest[..run]);
                rest = &rest[run..];
            }
        }
        assert_eq!(one, other, "{text:?}");
    }
}

#[test]
fn a_lone_closing_think_tag_ends_reasoning() {
    let mut context = Context::new();
    "abc</think>".chars().for_each(|ch| context.track(ch));
    assert!(context.take_reasoning_ended());
    assert!(!context.take_reasoning_ended());
    "<think>abc</think>".chars().for_each(|ch| context.track(ch));
    assert!(!context.take_reasoning_ended());
}
