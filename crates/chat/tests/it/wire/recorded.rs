//! The cases in `tests/wire`, as a whole, in pieces and truncated.

use std::fs;

use deftool_chat::{Api, ReplyStatus, ServerErrorKind, Tables, classify_http_error};
use deftool_test_support::step;

use super::read::{assert_as_expected, cases, end, read_api, stems, wire, with_suffix};

#[test]
fn every_case_is_decoded_as_a_whole_and_in_pieces() {
    let cases = cases();
    let mut count_by_status = std::collections::BTreeMap::<&str, usize>::new();
    for case in &cases {
        *count_by_status.entry(&case.expected.status).or_default() += 1;
        // The names of the request's tools improve the decoding, but no case requires them.
        for tools in [&["get_weather", "now"][..], &[]] {
            for length in [usize::MAX, 1, 7, 3].into_iter().step_by(step(2)) {
                let pieces = case.body.chunks(length.min(case.body.len().max(1)));
                let reading = read_api(case.api, pieces, end(case.expected.transport_ok), tools);
                assert_as_expected(case, &reading, &format!("in pieces of {length} with {tools:?}"));
            }
        }
    }
    assert!(cases.len() >= 290, "only {} cases were found", cases.len());
    for (status, at_least) in [
        ("ok", 210),
        ("error:tool_args_truncated", 7),
        ("error:server", 15),
        ("error:incomplete", 7),
        ("error:empty_stream", 7),
    ] {
        let count = count_by_status.get(status).copied().unwrap_or(0);
        assert!(count >= at_least, "{status}: {count}");
    }
}

#[test]
fn small_cases_are_decoded_at_every_split_in_two() {
    for case in cases().iter().filter(|case| case.body.len() < 1000) {
        for at in (0..=case.body.len()).step_by(step(37)) {
            let (head, tail) = case.body.split_at(at);
            let reading = read_api(case.api, [head, tail].into_iter(), end(case.expected.transport_ok), &[]);
            assert_as_expected(case, &reading, &format!("split at {at}"));
        }
    }
}

#[test]
fn a_stream_that_is_cut_off_never_reports_more_than_it_contains() {
    for case in cases().iter().filter(|case| case.body.len() < 2000 && case.expected.status == "ok") {
        // The events of a response are long.
        let stride = if case.api == Api::Responses { 5 } else { 1 };
        for at in (0..case.body.len()).step_by(stride * step(37)) {
            let reading = read_api(case.api, [&case.body[..at]].into_iter(), end(false), &[]);
            assert!(case.expected.text.starts_with(&reading.text), "{} cut at {at}", case.name);
            if reading.reply.status == ReplyStatus::Complete {
                assert_eq!(reading.text, case.expected.text, "{} cut at {at}", case.name);
                assert_eq!(reading.reply.calls.len(), case.expected.calls.len(), "{} cut at {at}", case.name);
            }
        }
    }
}

#[test]
fn recorded_http_errors_are_classified() {
    let root = wire();
    let mut count = 0;
    for stem in stems(&root, ".head") {
        let name = stem.strip_prefix(&root).unwrap().display().to_string();
        let head = fs::read_to_string(with_suffix(&stem, ".head")).unwrap();
        let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
        let error =
            classify_http_error(Tables::default(), status, &fs::read(with_suffix(&stem, ".json")).unwrap());
        let expected = match status {
            401 => ServerErrorKind::Unauthorized,
            503 => ServerErrorKind::Loading,
            400 if name.contains("ctx_overflow") => ServerErrorKind::ContextOverflow,
            500.. => ServerErrorKind::Temporary,
            _ => ServerErrorKind::Http,
        };
        assert_eq!((error.kind, error.code), (expected, Some(status)), "{name}: {error:?}");
        assert!(!error.message.is_empty() && !error.message.starts_with('{'), "{name}: {error:?}");
        count += 1;
    }
    assert!(count >= 18, "only {count} were found");
}
