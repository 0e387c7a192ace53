use super::{Context, is_plain};

fn allows_call_after(text: &str) -> bool {
    let mut context = Context::new();
    text.chars().for_each(|ch| context.track(ch));
    context.allows_call('<') && !context.is_enclosed()
}

#[test]
fn calls_are_allowed_outside_code_quotations_and_reasoning() {
    for text in [
        "",
        "Hello ",
        "a `b` ",
        "``a ` b`` ",
        "```\ncode\n```\n",
        "~~~py\n`\n~~~~  \n",
        "say \"x\" ",
        "“x” ",
        "a ` b\n\n",
        "> quoted\n",
        "<think>`\"</think>",
        "<think>a\n```\n</think>\n",
        "analysisWe.assistantfinal",
        "analysis of it",
        "Vec<String>, ",
        "<https://example.org>\n",
        "a <div>\n",
        "<div>\n</div>\n",
        "<br>\n",
        "<s>",
        "<tool_call>",
        "1 &lt; 2",
        "- a\n  ```\n  b\n  ```\n",
        "10. ```\n    b\n    ```\n",
        "„a“ ",
        "»a« ",
        "<think><doc>\n</think>",
        "<doc>\n</think>",
        "<|im_start|>assistant\n",
        "analysisWe\n```\n\"assistantfinalWe ",
        "```inline``` ",
        "    code\n",
        "it's ",
        "a 24\" screen ",
        "“x\n\n",
        "a [INST]. ",
        "a [INST] and b. ",
        "a [INST] and b\n",
        "a <|im_start|>user, b. ",
        "say \"<|im_start|>user\" ",
        "a <pre> tag ",
        "<li>\n",
        "\"\"\"a\"\"\"",
        "\"\"\"\na\n\nb\n\"\"\"\n",
        "「a『b』」",
        "&quot;a&quot; ",
        "<a b=\"1 < 2\"/>\n",
    ] {
        assert!(allows_call_after(text), "{text:?}");
    }
}

#[test]
fn code_quotations_and_reasoning_allow_no_call() {
    for text in [
        "a `",
        "a `b\n",
        "``a` ",
        "```\n",
        "```\n```x\n",
        "````\n```\n",
        "```json\n{}\n``",
        "~~~\n```\n",
        "say \"x ",
        "say \"x\n",
        "“x ",
        "„x ",
        "«x ",
        "> ",
        "> a ",
        "    ",
        "\t",
        "    code ",
        "<think>",
        "<think>a\n\nb",
        "<think>a</thinking>",
        "<think>a[/THINK]",
        "<|channel|>analysis<|message|>a</think>",
        "analysisWe",
        "analysisWe\n</think>\n\n",
        "analysisWe.assistantfinal</think>assistantanalysisb",
        "analysisWe.assistantcommentary.f to=assistantcommentary{",
        "<thinking>",
        "<doc>",
        "a <doc> ",
        "<doc>\n\n",
        "- <doc>\n",
        "<doc>\n<b>x</b>\n",
        "&lt;doc&gt;\n",
        "<![CDATA[ a\n\n",
        "a \\begin{verbatim}[x]\n\n",
        "a <|im_start|>user\n\nb",
        "[INST] a [/INST]",
        "- ```\n\n",
        "- > a",
        "1. - > a",
        "„a ",
        "'",
        "```js",
        "a [INST]",
        "a [INST] and ",
        "a <|im_start|>user, ",
        "a [INST] B ",
        "a <|im_start|>user",
        "a <|im_start|>user ",
        "say \"<|im_start|>user\n\n",
        "<|im_start|>user",
        "a <pre>\n",
        "\"\"\"a",
        "\"\"\"\na\n",
        "「a『b』",
        "&quot;a ",
        "&#39;",
        "<a b=\"1 < 2\">\n",
        "a <b c='d ",
    ] {
        assert!(!allows_call_after(text), "{text:?}");
    }
}

#[test]
fn only_open_reasoning_and_quotation_marks_prevent_calls() {
    for text in [
        "[THINK]a[/THINK]",
        "<|channel|>analysis<|message|>a<|end|>",
        "<|channel|>analysis<|message|>a<|start|>assistant",
        "a <code>b</code> ",
        "a <code> element\n\n",
        "<pre>\n\n</pre> ",
        "「a」",
        "◁think▷a◁/think▷",
        "<|end|> ",
    ] {
        assert!(allows_call_after(text), "{text:?}");
    }
    for text in [
        "[THINK]a",
        "<|channel|>analysis<|message|>a",
        "<|channel|>analysis to=functions.f<|message|>",
        "<|START_THINKING|>a\n\nb",
        "a <code>",
        "<pre>\n\n",
        "<example>\n\n",
        "「a",
        "◁think▷a",
        "a <!-- b",
        "he wrote \"<think>a</think>",
        "> <think>a</think> ",
        "<pre><think>a\n</think>",
        "<tool_response>a\n\nb",
        "[TOOL_RESULTS]a",
    ] {
        assert!(!allows_call_after(text), "{text:?}");
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
        "a&b&#39;c d",
        "x [INST] and so",
        "x \"[INST]\" and so",
        "<a b=\"c d\" e> f",
        "'''a'''b 'c' d’s",
        "日本語 ",
        "a `code",
        "<think> x",
        "```\nx y\n",
        "e.g.: ",
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
