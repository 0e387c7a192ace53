//! Prints a table of hits and refusals by family.

use std::fmt::Write;

use deftool_chat::request::Fallback;
use deftool_test_support::step;

use super::corpus::normalized;
use super::read::{Expected, Reader, families, outcome_of, reader};
use super::refusals::{copies, is_refused, places, shown};

#[test]
fn table() {
    let mut table = String::from(
        "| family | read under | hits | failures | text | refused: shown or in reasoning | refused: copied | refused: off, auto |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    let mut whole = [0; 12];
    for family in families().into_iter().step_by(step(19)) {
        let mut counts = [0; 12];
        let mut count = |at: usize, good: bool| {
            counts[at] += usize::from(good);
            counts[at + 1] += 1;
        };
        for specimen in &family.specimens {
            let read = reader(family.mode()).cut(3).read(&specimen.text);
            let at = match specimen.expected {
                Expected::Calls { .. } => 0,
                Expected::Fails(_) => 2,
                Expected::Text => 4,
            };
            count(at, normalized(read) == normalized(outcome_of(specimen, "", "")));
            count(10, reader(Fallback::Off).read(&specimen.text).is_text(&specimen.text));
            if !family.marked {
                count(10, reader(Fallback::Auto).read(&specimen.text).is_text(&specimen.text));
            }
        }
        for specimen in shown(&family) {
            for (place, text) in places(specimen, &family) {
                count(6, is_refused(&family, specimen, place, &text));
            }
            for (_, conversation) in copies(&specimen.text) {
                let reader = Reader { conversation, ..reader(family.mode()) };
                count(8, reader.read(&specimen.text).is_text(&specimen.text));
            }
        }
        let row: Vec<String> = counts.chunks(2).map(|pair| format!("{} of {}", pair[0], pair[1])).collect();
        let mode = if family.marked { "auto, on" } else { "on" };
        writeln!(table, "| {} | {mode} | {} |", family.name, row.join(" | ")).unwrap();
        for (sum, count) in whole.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    let row: Vec<String> = whole.chunks(2).map(|pair| format!("{} of {}", pair[0], pair[1])).collect();
    writeln!(table, "| all | | {} |", row.join(" | ")).unwrap();
    println!("{table}");
    assert!(whole.chunks(2).all(|pair| pair[0] == pair[1]), "{table}");
}
