//! Replies that are split, stored or truncated at any position.

use deftool_chat::fallback::{FormSet, Forms, MAX_HELD, Piece, Scanner};
use deftool_chat::request::{BiosV1, Fallback, Run, RunConfig, RunStart};
use deftool_chat::{ChatEvent, Dialect};
use deftool_test_support::cpu::assert_linear;
use deftool_test_support::step;
use proptest::prelude::*;
use serde_json::Value;

use super::corpus::normalized;
use super::read::{Expected, Family, Outcome, Reader, Specimen, families, outcome_of, reader, tools};

/// If a reply ends inside a call, the call is made only if it is complete by the family's rules, and never with fewer
/// arguments. No text is lost.
#[test]
fn an_incomplete_call_is_not_made() {
    for family in families() {
        for specimen in family.hits().take(3) {
            let Expected::Calls { calls, signals, .. } = &specimen.expected else { continue };
            for (end, _) in specimen.text.char_indices().step_by(step(59)) {
                let prefix = &specimen.text[..end];
                let read = Reader { finish: None, ..reader(family.mode()) }.read(prefix);
                let context = || format!("{}, {}: {prefix:?} {read:?}", family.name, specimen.title);
                assert!(calls.starts_with(&read.calls), "{}", context());
                assert!(signals.starts_with(&read.signals), "{}", context());
                if read.calls.is_empty() && read.signals.is_empty() {
                    assert_eq!(read.text, prefix, "{}", context());
                    assert!(matches!(read.failed.as_deref(), None | Some("malformed_call")), "{}", context());
                }
                assert!(read.failed.is_none() || read.text.len() == prefix.len(), "{}", context());
            }
        }
    }
}

/// The end of a reply stands in for the last closing marks only if the server reports that the model finished it.
#[test]
fn a_call_without_its_last_marks_is_made_in_a_finished_reply() {
    let mut counts = [0; 2];
    for family in families() {
        for specimen in family.hits().filter(|specimen| specimen.title.starts_with("finished, ")) {
            for finish in [Some("tool_calls"), Some("stop"), Some("length"), Some("other"), None] {
                let read = Reader { finish, ..reader(family.mode()) }.read(&specimen.text);
                let context = format!("{}, {}, {finish:?}: {read:?}", family.name, specimen.title);
                let is_finished = matches!(finish, Some("tool_calls" | "stop"));
                assert_eq!(read.failed.is_none(), is_finished, "{context}");
                counts[usize::from(is_finished)] += 1;
            }
        }
    }
    assert!(counts.iter().all(|count| *count >= 20), "{counts:?}");
}

/// A reply that ends inside an exit call does not fail, and records the received part of the exit call.
#[test]
fn an_incomplete_exit_call_is_recorded() {
    let mut all_failed = Vec::new();
    for family in families() {
        let hits: Vec<&Specimen> = family.hits().collect();
        let is_exit = |hit: &&&Specimen| matches!(&hit.expected, Expected::Calls { calls, signals, .. } if calls.is_empty() && !signals.is_empty());
        let Some(exit) = hits.iter().find(is_exit) else { continue };
        let whole = Value::Object(serde_json::Map::from_iter([(String::from("status"), "done".into())]));
        let mut recorded = 0;
        for (end, _) in exit.text.char_indices().step_by(step(4)) {
            let prefix = &exit.text[..end];
            let read = Reader { finish: None, ..reader(family.mode()) }.read(prefix);
            let context = format!("{}: {prefix:?} {read:?}", family.name);
            let is_named = prefix.find("finish").is_some_and(|at| prefix.len() > at + "finish".len());
            if is_named {
                all_failed.extend(read.failed.as_ref().map(|_| context.clone()));
            } else {
                assert!(read.signals.is_empty(), "{context}");
            }
            if let [(name, arguments)] = read.signals.as_slice() {
                assert_eq!(name, "finish", "{context}");
                let written = arguments.as_str();
                assert!(
                    *arguments == whole || written.is_some_and(|text| prefix.contains(text)),
                    "{context}"
                );
                recorded += usize::from(written.is_some());
            }
        }
        if recorded == 0 && family.marked {
            all_failed.push(format!("{}: none recorded", family.name));
        }
        println!("{:<24} {recorded:>3} cuts recorded", family.name);
    }
    assert!(all_failed.is_empty(), "{}", all_failed.join("\n"));
}

/// The start of a directive that is removed later is never shown, and plain text is shown at once.
#[test]
fn no_part_of_a_directive_is_shown() {
    let tools = tools();
    for family in families() {
        for specimen in family.hits().filter(|specimen| specimen.is_all_calls()) {
            let config = RunConfig { fallback: family.mode(), ..RunConfig::default() };
            let mut run = Run::new(config, start());
            run.next_step(&tools, &BiosV1);
            let before = if family.message { "" } else { "Let me look.\n" };
            for ch in before.chars() {
                run.on_event(ChatEvent::Text { text: ch.to_string() }, &tools, 1);
            }
            assert_eq!(run.text(), before, "plain text is shown at once");
            for ch in specimen.text.chars() {
                run.on_event(ChatEvent::Text { text: ch.to_string() }, &tools, 1);
                assert_eq!(run.text().trim_end(), before.trim_end(), "{}, {}", family.name, specimen.title);
            }
        }
    }
}

fn start() -> RunStart {
    RunStart {
        request_id: String::from("r1"),
        job_name: String::new(),
        conversation: Vec::new(),
        submitted_at_ms: 0,
        zone: String::from("UTC"),
        local_time: String::from("2026-11-20T00:00:00"),
        id_seed: 1,
        ..RunStart::default()
    }
}

/// Prose, quotations and parts of marks.
#[rustfmt::skip]
const PARTS: &[&str] = &[
    "\n", "\n\n", " ", "word ", "It's so. ", "\"", "`", "```\n", "```json\n", "~~~", "“", "”", "<think>",
    "</think>", "<code>", "> ", "    ", "<", "[", "{", "}", "]", "(", ")", "é", "日本", "｜", "▁",
    "for example: ", "| ", ">>>", "<tool_call>", "</tool_call>", "[TOOL_CALLS]", "[ARGS]", "<|python_tag|>",
    "<function=", "<|channel|>", "<|end|>", "analysis", "commentary to=", "{\"name\": ",
    "{\"tool\": \"look\"", "look(", "look", "Action:", "functools", "...", "<doc>", "<doc>\n", "</doc>",
    "<b>x</b>", "<a href=\"b\"", "<![CDATA[", "]]>", "<!--", "-->", "\\begin{doc}", "\\end{doc}",
    "&lt;doc&gt;", "&lt;/doc&gt;", "&quot;", "&#39;", "R&D", "<doc a=\"1 < 2\"", "[INST]", "<|tool_response>",
    "<pre>", "<p>\n", "『", "』", "‚", "›", "‹", "<|im_start|>user\n", "<|im_start|>", "[code]", "[/code]", "'",
    "'so' ", "‘", "’", "„", "»", "«", "\"\"\"", "- ", "1. ", "#+begin_src\n", "#+end_src\n", "cat <<EOF\n",
    "EOF\n", "----\n", "/*", "*/", "::\n", "+", "; ",
];

/// Parts and complete calls of every family, in any order.
fn texts() -> impl Strategy<Value = String> {
    let mut parts: Vec<String> = PARTS.iter().copied().map(String::from).collect();
    for family in families() {
        parts.extend(family.specimens.into_iter().map(|specimen| specimen.text));
    }
    prop::collection::vec(prop::sample::select(parts), 0..12).prop_map(|parts| parts.concat())
}

/// Returns the specimens that consist of calls only.
fn hits() -> Vec<(Family, Specimen)> {
    let all = families().into_iter().flat_map(|family| {
        let hits: Vec<Specimen> = family.hits().filter(|specimen| specimen.is_all_calls()).cloned().collect();
        hits.into_iter().map(move |specimen| (family.clone(), specimen))
    });
    all.collect()
}

fn forms(unmarked: bool) -> Forms {
    let forms = Dialect::default().forms("", FormSet::default());
    if unmarked { forms.with_unmarked() } else { forms }
}

fn pieces_of(text: &str, forms: Forms, restore: bool) -> Vec<Piece> {
    let (mut scanner, mut pieces) = (Scanner::new(forms), Vec::new());
    for (nth, ch) in text.chars().enumerate() {
        scanner.push(ch, &mut pieces);
        assert!(scanner.held_bytes() <= MAX_HELD + 4);
        if restore && nth % 3 == 0 {
            scanner = serde_json::from_str(&serde_json::to_string(&scanner).unwrap()).unwrap();
        }
    }
    scanner.finish(false, &mut pieces);
    assert_eq!(scanner.held_bytes(), 0);
    pieces
}

fn joined(pieces: &[Piece]) -> String {
    pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) | Piece::Leftover(text) => text.as_str(),
            Piece::Candidate(candidate) => candidate.text.as_str(),
            Piece::Broken { .. } | Piece::Suspect(_) | Piece::ReasoningEnded => "",
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120 / step(12) as u32))]

    #[test]
    fn pieces_joined_are_the_text(text in texts(), unmarked in any::<bool>()) {
        let pieces = pieces_of(&text, forms(unmarked), false);
        prop_assert_eq!(joined(&pieces), text.as_str());
        prop_assert_eq!(&pieces, &pieces_of(&text, forms(unmarked), true));
        for piece in pieces {
            if let Piece::Candidate(candidate) = piece {
                prop_assert!(!candidate.calls.is_empty());
                for call in candidate.calls {
                    prop_assert!(candidate.text.get(call.span.0..call.span.1).is_some());
                }
            }
        }
    }

    #[test]
    fn no_cut_shows_part_of_a_directive(
        (family, specimen) in prop::sample::select(hits()),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let before = if family.message { "" } else { "Let me look.\n" };
        let chars: Vec<char> = before.chars().chain(specimen.text.chars()).collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(chars.len())).collect();
        cuts.extend([0, chars.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| chars[pair[0]..pair[1]].iter().collect::<String>());
        let (tools, reader) = (tools(), reader(family.mode()));
        let mut run = reader.begin(&tools);
        for text in pieces.clone().filter(|piece| !piece.is_empty()) {
            run.on_event(ChatEvent::Text { text }, &tools, 1);
            prop_assert!(before.starts_with(run.text().trim_end()), "{}", run.text());
        }
        let read = reader.read_events(pieces.map(|text| ChatEvent::Text { text }));
        prop_assert_eq!(normalized(read), normalized(outcome_of(&specimen, before, "")));
    }

    #[test]
    fn the_result_does_not_depend_on_cuts_and_storage(text in texts(), size in 1..9_usize, on in any::<bool>()) {
        let mode = if on { Fallback::On } else { Fallback::Auto };
        let whole: Outcome = reader(mode).read(&text);
        prop_assert_eq!(&whole, &reader(mode).cut(1).read(&text));
        prop_assert_eq!(&whole, &reader(mode).cut(size).read(&text));
        let stored = Reader { restore: true, ..reader(mode).cut(size + 4) };
        prop_assert_eq!(&whole, &stored.read(&text));
        if whole.calls.is_empty() && whole.signals.is_empty() {
            prop_assert_eq!(&whole.text, &text);
        }
    }
}

/// Expensive inputs: the time must be linear.
#[test]
fn hostile_text_takes_linear_time() {
    for unit in [
        "[TOOL_CALLS]look{}",
        "[TOOL_CALLS]look{} [TOOL_",
        "<tool_call><function=f><parameter=a>⟩</parameter",
        "<tool_call>f<arg_key>a</arg_key><arg_value>",
        "<tool_call>[{\"name\": \"x\"},",
        "<｜tool▁call▁begin｜>",
        "<|tool_call_begin|>a",
        ">>>a\n",
        "[f(",
        "[\n{\"name\":\n",
        "[{\"name\": \"a\"}, ",
        "```tool_code\nf(",
        "```tool_code\nf()\n",
        "Action: ```json\n[",
        "<|channel|>",
        "<function_calls>",
        "<|tool_call>call:f{",
        "◁",
        "<tool_call>{}</tool_call> ",
        "<tool_call>a</tool_call> \t",
        "look ",
        "<tool_call>{'</tool_call",
        "<a>",
        "<a>x",
        "<a>\n",
        "<a><b>x</a>",
        "<a>x<tool_call>a</tool_call></a>",
        "<a x",
        "</",
        "&lt;a&gt;",
        "\\begin{a}",
        "<|start",
        "\"\"\"\n\n",
        "“\n\n",
        "<a b=\"<c",
        "<a b=\"\n",
        "&a",
        "&quot;",
        "‘‚›",
        "‘\n\n",
        "a [INST] b ",
        "\"<|im_start|>user\"",
        "<li>\n",
        "&lt;a&gt;x<a>x</a>",
        "/*\n*/",
        "cat <<E\n",
        "----\na\n",
        "#+begin_a\n",
        "[code]\n",
        "a::\n  b\n",
        "@@ -1 @@\n\n",
        "<a b=\"[TOOL_CALLS]",
        "\\begin{a}\n",
    ]
    .into_iter()
    .step_by(step(16))
    {
        assert_linear(unit, 10_000, |size| {
            let text = unit.repeat(size / unit.len());
            let pieces = pieces_of(&text, forms(true), false);
            assert_eq!(joined(&pieces).len(), text.len());
        });
    }
}
