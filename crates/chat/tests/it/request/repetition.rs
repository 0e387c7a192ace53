//! Repeated lines.

use deftool_chat::request::{FailReason, FinalState, LineDetector, default_thresholds};
use serde_json::json;

use super::play::{ScriptedReply, fixture, play, reply_with};

#[test]
fn repeated_lines_fail_the_request_and_keep_the_output() {
    let script = fixture("repeated_line_loop");
    let line = "I am sorry, I cannot do that.";
    for size in [1, 5, 10_000] {
        let played = play().run(&[reply_with(&script).cut(size)]);
        assert_eq!(played.failure().0, FailReason::RepeatedLineLoop, "{:?}", played.outcome);
        assert_eq!(played.outcome.text.matches(line).count(), 12);
    }
    let endless = format!("{line}\n").repeat(500);
    let one = play().run(&[reply_with(&endless)]);
    let many = play().run(&[reply_with(&endless).cut(3)]);
    assert_eq!(one.outcome, many.outcome);
    // One line per reply: the model describes each call before it.
    let before = format!("{}\n", "I will look at that now. ".repeat(4));
    let replies: Vec<ScriptedReply> =
        (0..8).map(|_| reply_with(&before).call("look", json!({}))).chain([reply_with("done")]).collect();
    assert_eq!(play().run(&replies).outcome.state, FinalState::Completed);
}

/// Returns the number of complete lines after which the detector reports a loop.
fn detected_after(lines: impl IntoIterator<Item = String>) -> Option<usize> {
    let mut detector = LineDetector::new(&default_thresholds());
    lines.into_iter().position(|line| detector.push(&(line + "\n")).is_some()).map(|index| index + 1)
}

fn repeated(lines: &[&str], times: usize) -> Vec<String> {
    lines.iter().map(ToString::to_string).cycle().take(lines.len() * times).collect()
}

#[test]
fn the_threshold_depends_on_the_length_of_the_line() {
    for (chars, occurrences) in [
        (1, 64),
        (3, 64),
        (4, 24),
        (11, 24),
        (12, 12),
        (31, 12),
        (32, 6),
        (39, 6),
        (79, 6),
        (80, 4),
        (5_000, 4),
    ] {
        let line = "é".repeat(chars);
        assert_eq!(detected_after(repeated(&[&line], 100)), Some(occurrences), "{chars}");
    }
}

#[test]
fn the_threshold_of_a_cycle_depends_on_its_total_length() {
    for (lines, occurrences) in [
        (vec!["a", "b"], 64),
        (vec!["aa", "bb"], 24),
        (vec!["aaaaaa", "bbbbbb"], 12),
        (vec!["one line of words", "another line of words"], 6),
        (vec!["1234567890", "2234567890", "3", "4", "5", "6", "7", "8"], 12),
        (
            vec![
                "the first line of a long cycle",
                "the second of them",
                "and a third one, the longest of all",
            ],
            4,
        ),
    ] {
        assert_eq!(detected_after(repeated(&lines, 100)), Some(lines.len() * occurrences), "{lines:?}");
    }
    let nine: Vec<String> = (0..9).map(|n| format!("line number {n} of nine, all different")).collect();
    let nine: Vec<&str> = nine.iter().map(String::as_str).collect();
    assert_eq!(detected_after(repeated(&nine, 20)), None);
}

#[test]
fn benign_repetitions_are_not_reported() {
    for line in ["", "   ", "---", "|---|:--:|", "* * *", "-", "•", "}", "  });", "]", "```", "======"] {
        assert_eq!(detected_after(repeated(&[line], 1_000)), None, "{line:?}");
    }
    assert_eq!(detected_after(repeated(&[&"any line, however long it may be ".repeat(20)], 3)), None);
    let counted = (0..1_000).map(|n| format!("{n}. the same words"));
    assert_eq!(detected_after(counted), None);
}

#[test]
fn trailing_blanks_and_blank_lines_do_not_hide_a_loop() {
    let line = "a line of thirty-nine characters, so so";
    assert_eq!(line.chars().count(), 39);
    let blanks = ["", "  ", "\t", " \r", "     ", "\r"].map(|blank| format!("{line}{blank}"));
    assert_eq!(detected_after(blanks), Some(6));
    assert_eq!(detected_after(repeated(&[line, "", "---"], 10)), Some(16));
    assert_eq!(detected_after(repeated(&[line, " x"], 2).into_iter().chain(repeated(&[line], 5))), None);
}

#[test]
fn the_end_of_the_reply_ends_the_last_line() {
    let line = "a line of more than thirty-two characters";
    let text = [line; 6].join("\n");
    assert_eq!(play().run(&[reply_with(&text)]).failure().0, FailReason::RepeatedLineLoop);
    let text = [line; 5].join("\n");
    assert_eq!(play().run(&[reply_with(&text)]).outcome.fail_reason, None);
}

#[test]
fn thresholds_are_configurable_and_an_empty_list_disables_detection() {
    let text = "again\n".repeat(200);
    assert_eq!(play().with(|config| config.repetition.clear()).run(&[reply_with(&text)]).outcome.text, text);
    let strict = play().with(|config| config.repetition.iter_mut().for_each(|it| it.occurrences = 1));
    assert_eq!(
        strict.run(&[reply_with(&text)]).outcome.text,
        "again\n".repeat(4),
        "never before the fourth repetition"
    );
}

#[test]
fn hostile_lines_take_constant_memory_and_linear_time() {
    let mut detector = LineDetector::new(&default_thresholds());
    let piece = "x".repeat(1 << 16);
    for _ in 0..64 {
        assert!(detector.push(&piece).is_none());
    }
    assert!(serde_json::to_string(&detector).unwrap().len() < 4_096);
}
