//! Replies of real models (`tests/fallback/*.txt`), as text and as the bytes that a real server streamed (`*.sse`).

use deftool_chat::request::Fallback;
use deftool_chat::{Api, ChatEvent, StreamDecoder, TransportEnd};
use deftool_lang::schema::ToolSet;
use deftool_test_support::step;
use serde_json::{Value, json};

use super::corpus::cuts;
use super::read::{Outcome, Reader, reader, tools};

/// The expected result of a reply under `on`.
struct Case {
    name: &'static str,
    /// The arguments of its one call.
    calls: Option<Value>,
    failed: Option<&'static str>,
    /// The remaining text without trailing blanks. `None`: all text.
    text: Option<&'static str>,
    /// Whether `auto` reads the form, too. Otherwise the reply is text under `auto`.
    marked: bool,
}

fn cases() -> Vec<Case> {
    let weather = || json!({"location": "Paris, France", "unit": "celsius"});
    let paris = || json!({"location": "Paris, France"});
    let hit = |name, arguments, text, marked| Case {
        name,
        calls: Some(arguments),
        failed: None,
        text: Some(text),
        marked,
    };
    let stays = |name, failed, marked| Case { name, calls: None, failed, text: None, marked };
    vec![
        hit("hermes", weather(), "", true),
        hit("mistral_v3", weather(), "", true),
        hit("llama31_json", weather(), "", false),
        hit("llama3_python_tag_call", weather(), "", true),
        hit("functionary_v32", weather(), "", true),
        hit("qwen3_coder_no_open_tag", paris(), "", true),
        hit("deepseek_r1", weather(), "", true),
        hit("deepseek_v32_dsml", paris(), "", true),
        hit("seed_json_object", weather(), "", false),
        hit("seed_json_fenced", weather(), "I will call the tool.", false),
        hit("command_r7b", weather(), "", true),
        hit("gemma_tool_code", weather(), "", true),
        hit("granite", weather(), "", true),
        hit("anthropic_xml", paris(), "", true),
        hit("nemotron", weather(), "", true),
        hit("pythonic_llama4", weather(), "", false),
        hit("xlam_array", weather(), "", false),
        hit("think_then_call", weather(), "<think>\nThe user wants weather.\n</think>", true),
        hit("exit_tool_and_text", json!({"status": "done"}), "The answer is 42.", false),
        // Text follows the call.
        stays("seed_json_line_in_prose", None, false),
        stays("false_positive_docs", None, true),
        stays("truncated_call", Some("malformed_call"), true),
        stays("repeated_line_loop", Some(""), true),
    ]
}

#[test]
fn replies_of_models_are_read() {
    for case in cases() {
        for cut in cuts() {
            for mode in [Fallback::On, Fallback::Auto] {
                let read = Reader { loops: true, ..reader(mode).cut(cut) }.read(&script(case.name));
                assert_as_expected(&case, mode, &read);
            }
        }
    }
}

/// The bytes pass through the same parts as in a worker: decoder, assembly, request machine, one read at a time.
#[test]
fn streamed_replies_give_the_same_result_without_delay() {
    let tools = tools();
    for case in cases() {
        let body = std::fs::read(path(case.name, "sse")).unwrap();
        for mode in [Fallback::On, Fallback::Auto] {
            let reader = Reader { loops: true, ..reader(mode) };
            let shown = shown_after(&reader, &tools, &script(case.name));
            for size in [usize::MAX, 4096, 997, 61, 7, 3, 1].into_iter().step_by(step(3)) {
                let reads: Vec<&[u8]> = body.chunks(size.min(body.len())).collect();
                let read = replay(&reader, &tools, &reads, &shown);
                assert_as_expected(&case, mode, &read);
            }
            // One event in each read.
            let text = std::str::from_utf8(&body).unwrap();
            let reads: Vec<&[u8]> = text.split_inclusive("\n\n").map(str::as_bytes).collect();
            assert!(reads.len() > 10, "{}", case.name);
            assert_as_expected(&case, mode, &replay(&reader, &tools, &reads, &shown));
        }
    }
}

fn assert_as_expected(case: &Case, mode: Fallback, read: &Outcome) {
    let Case { name, calls, failed, text, marked } = case;
    let script = script(name);
    let reads = *marked || mode == Fallback::On;
    let made: Vec<&Value> = read.calls.iter().chain(&read.signals).map(|(_, value)| value).collect();
    let expected: Vec<&Value> = calls.iter().filter(|_| reads).collect();
    assert_eq!(made, expected, "{name}, {mode:?}: {read:?}");
    assert_eq!(read.failed.as_deref(), *failed, "{name}, {mode:?}: {read:?}");
    match text.filter(|_| reads) {
        Some(text) => assert_eq!(read.text.trim_end(), text, "{name}, {mode:?}"),
        // Text after a detected loop is omitted.
        None if *failed == Some("") => assert!(script.starts_with(&read.text), "{name}: {read:?}"),
        None => assert_eq!(read.text, script, "{name}, {mode:?}"),
    }
    assert!(!read.text.is_empty() || *text == Some(""), "{name}");
}

/// Returns the length of the shown text after each number of received bytes.
fn shown_after(reader: &Reader, tools: &ToolSet, script: &str) -> Vec<usize> {
    let mut run = reader.begin(tools);
    let mut shown = vec![0; script.len() + 1];
    for (at, ch) in script.char_indices() {
        run.on_event(ChatEvent::Text { text: ch.to_string() }, tools, 1);
        shown[at + ch.len_utf8()] = run.text().len();
        // The shown text is the received text up to the first held part.
        assert!(script.starts_with(run.text()));
    }
    shown
}

/// Feeds the reads. After each read, the length of the shown text must match `shown`.
fn replay(reader: &Reader, tools: &ToolSet, reads: &[&[u8]], shown: &[usize]) -> Outcome {
    let mut run = reader.begin(tools);
    let mut decoder = StreamDecoder::new(Api::ChatCompletions, [String::from("get_weather")]);
    let mut events = Vec::new();
    let mut came = 0;
    for read in reads {
        decoder.feed(read, &mut events);
        for event in events.drain(..) {
            if let ChatEvent::Text { text } = &event {
                came += text.len();
            }
            run.on_event(event, tools, 1);
        }
        assert_eq!(run.text().len(), shown[came], "after {came} bytes of text");
    }
    decoder.finish(TransportEnd::Clean, &mut events);
    for event in events.drain(..) {
        run.on_event(event, tools, 2);
    }
    Outcome::of(&mut run)
}

fn script(name: &str) -> String {
    std::fs::read_to_string(path(name, "txt")).unwrap()
}

fn path(name: &str, suffix: &str) -> String {
    format!("{}/tests/fallback/{name}.{suffix}", env!("CARGO_MANIFEST_DIR"))
}
