//! Two data sets: quoted calls (`tests/fallback/quoted`), which must stay text, and real calls
//! (`tests/fallback/made`, and the specimens of all families), which must be made.
//!
//! `cargo test --test it -- fallback::quoted --nocapture` prints both counts.

use deftool_chat::request::Fallback;
use deftool_chat::{ChatEvent, Message};
use deftool_test_support::step;

use super::corpus::{cuts, normalized};
use super::read::{Expected, Family, Outcome, Reader, Specimen, families, files_in, outcome_of, reader};

/// Returns a reader for a specimen, with its earlier messages.
fn reader_of(specimen: &Specimen, mode: Fallback) -> Reader {
    let mut reader = reader(mode);
    reader.conversation.extend(specimen.earlier.iter().cloned());
    reader.conversation.push(Message::user("Go on."));
    reader
}

/// Returns the titles of the specimens with a wrong result, for any split and in any of `modes`.
fn wrong<'s>(
    files: &'s [Family],
    modes: &[Fallback],
    is_right: impl Fn(&Specimen, Outcome) -> bool,
) -> Vec<&'s str> {
    let mut wrong = Vec::new();
    for specimen in files.iter().flat_map(|file| &file.specimens) {
        let is_wrong = modes.iter().any(|mode| {
            cuts().any(|cut| !is_right(specimen, reader_of(specimen, *mode).cut(cut).read(&specimen.text)))
        });
        if is_wrong {
            wrong.push(specimen.title.as_str());
        }
    }
    wrong
}

fn report(what: &str, files: &[Family], wrong: &[&str]) {
    let all: usize = files.iter().map(|file| file.specimens.len()).sum();
    println!("{what}: {} of {all} {wrong:#?}", wrong.len());
}

#[test]
fn quoted_calls_stay_text() {
    let files = files_in("quoted");
    assert!(files.iter().map(|file| file.specimens.len()).sum::<usize>() >= 348);
    let wrong = wrong(&files, &[Fallback::Auto, Fallback::On], |specimen, read| {
        assert_eq!(specimen.expected, Expected::Text, "{}", specimen.title);
        read.is_text(&specimen.text)
    });
    report("quoted calls that ran or failed their request", &files, &wrong);
    // By its position alone, a call cannot always be distinguished from a quotation at the end of a reply.
    assert!(wrong.len() * 10 <= files.iter().map(|file| file.specimens.len()).sum());
    let is_wrong = |file: &Family| file.specimens.iter().any(|it| wrong.contains(&it.title.as_str()));
    for kind in ["after", "copies"] {
        assert!(!files.iter().any(|file| file.name == kind && is_wrong(file)), "{kind}");
    }
}

#[test]
fn made_calls_are_kept() {
    let files = files_in("made");
    let as_expected =
        |specimen: &Specimen, read| normalized(read) == normalized(outcome_of(specimen, "", ""));
    let lost = wrong(&files, &[Fallback::Auto, Fallback::On], as_expected);
    report("made calls that were lost", &files, &lost);
    assert!(lost.is_empty());
    let mut families = families();
    for family in &mut families {
        family.specimens.retain(|it| matches!(it.expected, Expected::Calls { .. }));
    }
    let lost = wrong(&families, &[Fallback::On], as_expected);
    report("calls of the families that were lost", &families, &lost);
    assert!(lost.is_empty());
}

/// A stream may be split, and the machine stored, between any two characters.
#[test]
fn every_split_gives_the_same_decision() {
    for specimen in ["quoted", "made"].into_iter().flat_map(files_in).flat_map(|file| file.specimens) {
        let reader = reader_of(&specimen, Fallback::On);
        let whole = reader.read(&specimen.text);
        let stored = Reader { restore: true, ..reader.clone().cut(step(23)) };
        assert_eq!(stored.read(&specimen.text), whole, "{}", specimen.title);
        for (at, _) in specimen.text.char_indices().skip(1).step_by(step(997)) {
            let (one, other) = specimen.text.split_at(at);
            let pieces = [one, other].map(|text| ChatEvent::Text { text: text.to_owned() });
            assert_eq!(reader.read_events(pieces.into_iter()), whole, "{} at {at}", specimen.title);
        }
    }
}
