//! Each specimen alone, after prose and before prose, for every split.

use deftool_chat::request::Fallback;
use deftool_test_support::step;

use super::read::{Outcome, families, outcome_of, reader};

/// The lengths of the pieces in which a specimen is read.
pub(super) fn cuts() -> impl Iterator<Item = usize> {
    [usize::MAX, 3, 1, 7].into_iter().step_by(step(2))
}

/// Collapses the blanks that remain between calls, and forgets the warnings: neither are compared.
pub(super) fn normalized(outcome: Outcome) -> Outcome {
    let text = outcome.text.split_whitespace().collect::<Vec<_>>().join(" ");
    Outcome { text, warnings: 0, ..outcome }
}

#[test]
fn every_specimen_gives_its_expected_result() {
    let mut wrong = Vec::new();
    for family in families() {
        for specimen in &family.specimens {
            for mode in if family.marked { &[Fallback::Auto, Fallback::On][..] } else { &[Fallback::On] } {
                for cut in cuts() {
                    let read = normalized(reader(*mode).cut(cut).read(&specimen.text));
                    let expected = normalized(outcome_of(specimen, "", ""));
                    let (family, title) = (&family.name, &specimen.title);
                    if read != expected {
                        wrong.push(format!(
                            "{family}, {title}, {mode:?}, cut {cut}: {read:?}, not {expected:?}"
                        ));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn specimens_are_read_at_the_end_of_a_reply() {
    for family in families() {
        for specimen in family.hits().step_by(step(6)) {
            let mut places = vec![
                ("Let me look: it's \"there\".\n", ""),
                ("Ein Satz – mit `code`.\n\n", "\n<|im_end|>\n<|im_start|>user\nSo weit."),
                ("For example:\n\n", "\n<tool_response>\n{}\n</tool_response>\nSo weit."),
            ];
            if family.message {
                places = vec![("", if family.line { "\n<|im_end|>" } else { "<|im_end|>" })];
            } else if family.begins_with_token(specimen) {
                places.push(("I look. ", ""));
                places.push(("I look:", "\n<|im_end|>"));
                places.push(("I look", "\n"));
            } else if !family.line && !specimen.text.starts_with(char::is_alphanumeric) {
                places.push(("<think>So.</think> ", ""));
            }
            for (before, after) in places {
                // Only the end of the reply stands in for a missing mark.
                let after = if specimen.is_open() { "" } else { after };
                for cut in cuts() {
                    let text = format!("{before}{}{after}", specimen.text);
                    let read = reader(family.mode()).cut(cut).read(&text);
                    let expected = outcome_of(specimen, before, after);
                    let (family, title) = (&family.name, &specimen.title);
                    assert_eq!(
                        normalized(read),
                        normalized(expected),
                        "{family}, {title}, cut {cut}: {text}"
                    );
                }
            }
        }
    }
}

/// A form that people also type begins a line.
#[test]
fn typed_forms_after_prose_stay_text() {
    for family in families().into_iter().filter(|family| family.marked) {
        for specimen in family.hits().filter(|specimen| !family.begins_with_token(specimen)).step_by(step(6))
        {
            for before in ["I look. ", "I look:", "I look", "+", "; "] {
                let text = format!("{before}{}", specimen.text);
                let read = reader(Fallback::Auto).read(&text);
                let made = read.calls.len() + read.signals.len();
                assert!(made < specimen.calls(), "{}: {text}: {read:?}", family.name);
            }
        }
    }
}

/// Functionary 3.2: its first mark is in the prompt.
#[test]
fn a_call_without_its_mark_may_precede_one_with_it() {
    for text in ["look\n{\"q\": 1}>>>look\n{\"q\": 2}", "look\n{\"q\": 1}\n>>>look\n{\"q\": 2}"] {
        for cut in cuts() {
            let read = reader(Fallback::On).cut(cut).read(text);
            assert_eq!((read.calls.len(), read.text.as_str()), (2, ""), "{text:?}, cut {cut}: {read:?}");
        }
    }
}

/// A word above a complete call is not the name of another call.
#[test]
fn a_word_above_a_complete_call_is_text() {
    for call in [r#"{"tool": "look", "arguments": {}}"#, r#"{"name": "look", "parameters": {}}"#] {
        for cut in cuts() {
            let read = reader(Fallback::On).cut(cut).read(&format!("Looking\n{call}\n"));
            assert_eq!((read.calls.len(), read.text.trim_end()), (1, "Looking"), "cut {cut}: {read:?}");
        }
    }
}

#[test]
fn off_reads_no_form_and_auto_reads_no_unmarked_form() {
    for family in families() {
        for specimen in &family.specimens {
            assert!(reader(Fallback::Off).read(&specimen.text).is_text(&specimen.text), "{}", family.name);
            if !family.marked {
                let read = reader(Fallback::Auto).cut(3).read(&specimen.text);
                assert!(read.is_text(&specimen.text), "{}, {}: {read:?}", family.name, specimen.title);
            }
        }
    }
}

/// Each family has a file with the standard specimens.
#[test]
fn every_family_has_its_standard_specimens() {
    let families = families();
    assert!(families.len() >= 44, "{}", families.len());
    for family in families {
        for title in [
            "one call",
            "two calls",
            "hostile characters in a string",
            "typed arguments",
            "an exit call",
            "an unknown tool",
        ] {
            assert!(family.specimens.iter().any(|it| it.title == title), "{} lacks {title}", family.name);
        }
    }
}
