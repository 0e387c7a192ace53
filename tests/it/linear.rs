//! Time that grows with what is read, however hostile it is: each text takes a load four times as long where it is four times as
//! long, with room for a busy machine. What grows with the square takes sixteen times as long.

use std::fs;
use std::time::Duration;

use deftool::project::{load_specs, resolve_inputs};

use crate::support::cpu::CpuClock;

/// What a load of `text` takes of this thread, as the file `name`.
fn time_of(name: &str, text: &str) -> Duration {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(name), text).unwrap();
    let inputs = resolve_inputs(&[name.into()], folder.path()).unwrap();
    let clock = CpuClock::start();
    let load = load_specs(&inputs, folder.path()).unwrap();
    let took = clock.elapsed();
    // Every text here has something wrong with it, so that all of it was looked at.
    assert!(!load.findings.is_empty(), "{:?}", text.get(..80));
    took
}

/// Holds the time of `text(many)` against that of four times as many.
fn is_linear(name: &str, many: usize, text: impl Fn(usize) -> String) {
    let (one, four) = (text(many), text(4 * many));
    let (mut first, mut second) = (time_of(name, &one), time_of(name, &four));
    // Other work on the same processor slows down one run or another, not the quickest of some; what is shorter is noise.
    let is_over = |first: Duration, second: Duration| second > first.max(Duration::from_millis(20)) * 8;
    for _ in 0..5 {
        if !is_over(first, second) {
            return;
        }
        (first, second) = (first.min(time_of(name, &one)), second.min(time_of(name, &four)));
    }
    assert!(!is_over(first, second), "{:?}: {first:?}, and {second:?} for four times as many", one.get(..80));
}

/// A tool with one argument that has these keywords.
fn argument(keywords: &str) -> String {
    format!(
        "(deftool :name \"a\" :description \"Do a.\" :args ((:name \"x\" :description \"An x.\" {keywords})))\n"
    )
}

#[test]
fn names_of_characters_that_nothing_ends() {
    is_linear("a.eld", 60_000, |many| format!("(a \"{}\")", "\\N{".repeat(many)));
}

#[test]
fn characters_whose_names_nothing_ends() {
    is_linear("a.eld", 60_000, |many| format!("(a {})", "?\\N{ ".repeat(many)));
}

#[test]
fn values_held_against_types() {
    is_linear("a.eld", 2_000, |many| {
        argument(&format!(":type [{}] :enum [{}]", "\"string\" ".repeat(many), "1 ".repeat(many)))
    });
}

#[test]
fn words_held_against_types() {
    is_linear("a.eld", 4_000, |many| {
        argument(&format!(":type [{} string] :enum [{}]", "integer ".repeat(many), "v ".repeat(many)))
    });
}

#[test]
fn merges_in_strings_with_one_end() {
    is_linear("a.eld", 3_000, |many| format!("{}>>>>>>> b\n", "<<<<<<< a\n\"\n=======\n\"\n".repeat(many)));
}

#[test]
fn merges_in_strings_with_one_middle() {
    is_linear("a.eld", 3_000, |many| {
        format!("{}=======\n>>>>>>> b\n", "<<<<<<< a\n\"\n||||||| c\n\"\n".repeat(many))
    });
}

#[test]
fn quotes_on_one_line() {
    is_linear("a.eld", 40_000, |many| format!("({})", ":description '".repeat(many)));
}

#[test]
fn comments_about_one_key() {
    is_linear("a.eld", 1_200, |many| {
        let allows = ";; deftool: allow(missing-description)\n".repeat(many);
        format!("(deftool :name \"a\"\n{allows}:type\n{}1)\n", "; Between the two.\n".repeat(2 * many))
    });
}

#[test]
fn forms_left_out_among_tools() {
    is_linear("a.eld", 12_000, |many| {
        format!("{}{}", ";; deftool: skip\n(a)\n".repeat(many), "(deftool :name \"a\")\n".repeat(many / 4))
    });
}

/// A tool that is asked about under these conditions, with one argument that has these keywords.
fn asked_about(keywords: &str, conditions: &str) -> String {
    format!(
        "(deftool :name \"a\" :description \"Do a.\" :confirm (:when {conditions})\n\
         :args ((:name \"x\" :description \"An x.\" {keywords})))\n"
    )
}

/// So many words that differ, each with `mark` around it.
fn words(many: usize, mark: &str) -> String {
    (0..many).map(|index| format!("{mark}{index}{mark} ")).collect::<Vec<_>>().concat()
}

#[test]
fn values_asked_about_among_many() {
    is_linear("a.eld", 1_000, |many| {
        let keywords = format!(":type integer :enum [{}]", words(many, ""));
        asked_about(&keywords, &format!("(:x [-1 {}])", words(many, "")))
    });
}

#[test]
fn patterns_asked_about_among_many() {
    is_linear("a.eld", 500, |many| {
        let keywords = format!(":type string :enum [{}]", words(many, "\""));
        asked_about(&keywords, &format!("(:x [{}])", "\"z\" ".repeat(many)))
    });
}

#[test]
fn conditions_on_many_members() {
    is_linear("a.eld", 4_000, |many| {
        let members: Vec<_> = (0..many).map(|index| format!(":m{index} (:type string) ")).collect();
        let conditions: Vec<_> = (0..many).rev().map(|index| format!("(:x (:m{index} 1)) ")).collect();
        asked_about(&format!(":type object :properties ({})", members.concat()), &conditions.concat())
    });
}
