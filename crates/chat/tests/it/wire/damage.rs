//! Any split of the bytes produces the same reading, and no bytes cause a panic.

use deftool_chat::{Api, ReplyStatus, Tables, TransportEnd, classify_http_error};
use deftool_test_support::step;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::read::{cases, end, event, read_api, read_pieces};

/// Splits `body` into the pieces that `cuts` describes.
fn cut<'a>(body: &'a [u8], cuts: &'a [usize]) -> impl Iterator<Item = &'a [u8]> + 'a {
    let mut cuts: Vec<usize> = cuts.iter().map(|at| at % (body.len() + 1)).collect();
    cuts.sort_unstable();
    cuts.push(body.len());
    let mut from = 0;
    cuts.into_iter().map(move |to| &body[std::mem::replace(&mut from, to)..to])
}

fn bodies() -> Vec<(Api, Vec<u8>)> {
    cases().into_iter().map(|case| (case.api, case.body)).collect()
}

proptest! {
    // Each case is a complete stream, so a quarter of the usual number of cases is run.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

    #[test]
    fn any_split_produces_the_same_reading(
        case in prop::sample::select(bodies()),
        cuts in prop::collection::vec(any::<usize>(), 0..20),
        is_clean in any::<bool>(),
    ) {
        let (api, case) = case;
        let whole = read_api(api, [&case[..]].into_iter(), end(is_clean), &["get_weather"]);
        let pieces = read_api(api, cut(&case, &cuts), end(is_clean), &["get_weather"]);
        prop_assert_eq!(whole, pieces);
    }

    #[test]
    fn a_damaged_stream_never_panics_and_any_split_produces_the_same_reading(
        case in prop::sample::select(bodies()),
        damage in prop::collection::vec((any::<usize>(), any::<u8>()), 1..8),
        cuts in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        let (api, mut body) = case;
        for (at, byte) in damage {
            let len = body.len().max(1);
            if let Some(target) = body.get_mut(at % len) {
                *target = byte;
            }
        }
        let whole = read_api(api, [&body[..]].into_iter(), TransportEnd::Clean, &[]);
        prop_assert_eq!(whole, read_api(api, cut(&body, &cuts), TransportEnd::Clean, &[]));
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        body in prop::collection::vec(any::<u8>(), 0..300),
        prefix in prop::sample::select(vec!["", "data: ", "{", "[", "data: {\"choices\":[{\"delta\":", "\u{feff}"]),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
        api in prop::sample::select(Api::ALL.to_vec()),
    ) {
        let body = [prefix.as_bytes(), &body].concat();
        let whole = read_api(api, [&body[..]].into_iter(), TransportEnd::Clean, &[]);
        prop_assert_eq!(whole, read_api(api, cut(&body, &cuts), TransportEnd::Clean, &[]));
        let _ = classify_http_error(Tables::default(), 500, &body);
    }

    #[test]
    fn response_events_of_any_type_never_panic(
        values in prop::collection::vec((prop::sample::select(EVENTS.to_vec()), arbitrary_json(), arbitrary_json()), 1..8),
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let frame = |(kind, value, other): &(&str, Value, Value)| {
            let mut members = json!({
                "type": kind, "item_id": other, "output_index": other, "content_index": other, "delta": value,
                "text": value, "arguments": value, "part": value, "item": value, "response": {"output": [value, other]},
            });
            if let (Some(members), Value::Object(more)) = (members.as_object_mut(), value) {
                members.extend(more.clone());
            }
            event(&members)
        };
        let body = values.iter().map(frame).collect::<Vec<_>>().concat();
        let whole = read_api(Api::Responses, [body.as_bytes()].into_iter(), TransportEnd::Clean, &["f"]);
        prop_assert_eq!(whole.reply.lost_frames, 0);
        prop_assert_eq!(whole, read_api(Api::Responses, cut(body.as_bytes(), &cuts), TransportEnd::Clean, &["f"]));
    }

    #[test]
    fn deltas_of_any_type_never_panic(
        values in prop::collection::vec(arbitrary_json(), 1..6),
    ) {
        let frame = |value: &Value| {
            format!("data: {{\"choices\":[{{\"delta\":{value},\"finish_reason\":{value}}}]}}\n\ndata: {value}\n\n")
        };
        let body: Vec<String> = values.iter().map(frame).collect();
        let body = body.concat();
        let reading = read_pieces([body.as_bytes()].into_iter(), TransportEnd::Clean, &["f"]);
        prop_assert_eq!(reading.reply.lost_frames, 0);
    }
}

/// Returns damaged variants of one line of a stream.
const DAMAGES: [fn(&str) -> String; 5] = [
    |line| line.chars().take(line.chars().count() / 2).collect(),
    |line| line[..line.len() - 1].to_owned(),
    |line| line.replacen("data", "dat", 1),
    |line| line.replacen("data:", "", 1),
    |line| line.replacen('{', "", 1),
];

/// A damaged event is counted as lost. No call is mistaken for another call.
#[test]
fn a_damaged_event_is_counted_if_it_changes_a_call() {
    let mut counts = [0_usize; 3];
    for case in cases().into_iter().step_by(step(4)) {
        let Ok(body) = String::from_utf8(case.body) else { continue };
        let read = |body: &str| {
            read_api(case.api, [body.as_bytes()].into_iter(), TransportEnd::Clean, &["get_weather"])
        };
        let whole = read(&body).reply;
        if whole.calls.is_empty() || whole.status != ReplyStatus::Complete {
            continue;
        }
        for (at, line) in body.lines().enumerate().filter(|(_, line)| line.starts_with("data: {")) {
            for damage in DAMAGES {
                let damaged: Vec<String> = body
                    .lines()
                    .enumerate()
                    .map(|(number, line)| if number == at { damage(line) } else { line.to_owned() })
                    .collect();
                let reply = read(&(damaged.join("\n") + "\n\n")).reply;
                let is_same = reply.calls == whole.calls;
                let is_safe = reply.status != ReplyStatus::Complete || reply.lost_frames > 0;
                assert!(is_same || is_safe, "{} line {at}: {line:?}\n{reply:?}", case.name);
                counts[if is_same {
                    0
                } else if reply.lost_frames > 0 {
                    1
                } else {
                    2
                }] += 1;
            }
        }
    }
    let [same, lost, other] = counts;
    println!(
        "{} damaged streams: {same} with the same calls, {lost} with a lost event, {other} not complete",
        same + lost + other
    );
    assert!(lost > 1_000 / step(10), "{counts:?}");
}

const EVENTS: [&str; 20] = [
    "",
    "error",
    "message",
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "response.created",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.reasoning_text.delta",
    "response.reasoning_summary_text.delta",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.completed",
    "response.incomplete",
];

/// JSON with the member names that the decoder reads, and values of any type.
fn arbitrary_json() -> impl Strategy<Value = Value> {
    let names = vec![
        "choices",
        "delta",
        "content",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "index",
        "id",
        "error",
        "usage",
        "type",
        "text",
        "thinking",
        "reasoning",
        "function_call",
        "finish_reason",
        "message",
        "prompt_tokens",
        "call_id",
        "output",
        "status",
        "summary",
        "content_block",
        "input",
        "partial_json",
        "signature",
        "stop_reason",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![
            "",
            "f",
            "{\"a\":1}",
            "{",
            "\"{}\"",
            "é\u{2028}",
            "thinking",
            "stop",
            "message",
            "function_call",
            "reasoning",
            "incomplete",
            "tool_use"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(names.clone()), inner), 0..5).prop_map(|members| {
                members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            }),
        ]
    })
}
