//! The reader of scenario files.
//!
//! A scenario file has the syntax of specs (`docs/stub.md`). Nothing is evaluated. Each finding has a location and, for
//! an unknown word, a suggestion. A file with a finding returns no scenario.

mod answer;
mod form;
mod reply;
mod values;

use std::path::Path;

use deftool_lang::spec::is_spec_form;
use deftool_lang::syntax::{Datum, DatumKind};
use deftool_lang::text::Span;

use super::model::EmulatedServer;
use super::scenario::{Action, Scenario, Step};
use answer::{Open, error, page, play, raw};
use form::{Entry, Form, Reader, is_form, word_of};
use reply::reply;
use values::{condition, faults};

pub use form::ScenarioError;

/// The maximum size of a played file, in bytes.
const MAX_PLAYED: u64 = 64 << 20;

/// Reads the scenarios of the file at `path`. File names in `play` are relative to its directory.
///
/// # Errors
/// If the file cannot be read or is invalid.
pub fn load(path: &Path) -> Result<Vec<Scenario>, ScenarioError> {
    let name = path.display().to_string();
    let unreadable = |why: String| ScenarioError { findings: vec![format!("{name}: error: {why}")] };
    if path.is_dir() {
        return Err(unreadable(String::from("is a directory; expected a scenario file")));
    }
    let bytes = std::fs::read(path).map_err(|error| unreadable(format!("cannot be read: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable(String::from("is not UTF-8")))?;
    let directory = path.parent().unwrap_or(Path::new("."));
    read(&name, &text, &|file| read_played(directory, file))
}

/// Reads a file below `directory`. Other files are rejected: the scenario may be untrusted, and every client receives
/// the content.
fn read_played(directory: &Path, file: &str) -> Result<Vec<u8>, String> {
    let reason = |error: std::io::Error| error.to_string();
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let path = directory.join(file).canonicalize().map_err(reason)?;
    if !path.starts_with(directory.canonicalize().map_err(reason)?) {
        return Err(String::from("the file is outside the directory of the scenario"));
    }
    let metadata = std::fs::metadata(&path).map_err(reason)?;
    if !metadata.is_file() {
        return Err(String::from("not a regular file"));
    }
    if metadata.len() > MAX_PLAYED {
        return Err(format!("the file is larger than {} MiB", MAX_PLAYED >> 20));
    }
    std::fs::read(path).map_err(reason)
}

/// Reads the scenarios of `text`. `name` is the file name in messages, and `open` returns the content of a played file.
///
/// # Errors
/// If the text is invalid.
pub fn read(name: &str, text: &str, open: &Open<'_>) -> Result<Vec<Scenario>, ScenarioError> {
    let mut reader = Reader::new(name, text);
    let mut scenarios: Vec<Scenario> = Vec::new();
    let mut after_stray = false;
    for datum in reader.forms() {
        let span = datum.span;
        // Adjacent stray values are reported once.
        let is_stray = !matches!(datum.kind, DatumKind::List(_) | DatumKind::Invalid);
        if std::mem::replace(&mut after_stray, is_stray) && is_stray {
            continue;
        }
        let Some(form) = reader.form(datum, "a scenario such as `(defscenario :name \"weather\" …)`")
        else {
            continue;
        };
        if form.head != "defscenario" {
            if is_spec_form(&form.head) {
                reader.report(form.head_span, spec_form_message(&form.head));
            } else {
                reader.unknown(form.head_span, "form", &form.head, &["defscenario"]);
            }
            continue;
        }
        let scenario = scenario(&mut reader, span, form, open);
        if scenarios.iter().any(|other| other.name == scenario.name) {
            reader.report(span, format!("duplicate scenario `{}`", scenario.name));
        }
        scenarios.push(scenario);
    }
    if scenarios.is_empty() {
        reader.report_if_clean(
            "no scenario in this file; write `(defscenario :name \"weather\" (reply :text \"Hello\"))`",
        );
    }
    reader.finish(scenarios)
}

fn spec_form_message(head: &str) -> String {
    format!(
        "expected `defscenario`, found the spec form `{head}`; write `(defscenario :name \"weather\" (reply :text \
         \"Hello\"))`"
    )
}

const SCENARIO_KEYS: [&str; 5] = [":name", ":key", ":models", ":server", ":description"];
const SCENARIO_FORMS: [&str; 8] = ["reply", "error", "play", "raw", "misbehave", "default", "expect", "page"];
const STEP_FORMS: [&str; 5] = ["reply", "error", "play", "raw", "misbehave"];

fn scenario(reader: &mut Reader<'_>, span: Span, form: Form, open: &Open<'_>) -> Scenario {
    let mut scenario = Scenario::default();
    let mut is_named = false;
    for entry in form.entries {
        match entry {
            Entry::Key { key, span, value } => match key.as_str() {
                ":name" => {
                    is_named = true;
                    scenario.name = reader.string(&key, value).unwrap_or_default();
                }
                ":key" => scenario.key = reader.string(&key, value),
                ":models" => scenario.models = reader.strings(&key, value).unwrap_or_default(),
                ":server" => {
                    let words = [
                        ("llama-cpp", EmulatedServer::LlamaCpp),
                        ("ollama", EmulatedServer::Ollama),
                        ("other", EmulatedServer::Other),
                    ];
                    scenario.server = reader.word(&key, &value, &words).unwrap_or_default();
                }
                ":description" => {}
                _ => reader.unknown(span, "key of a scenario", &key, &SCENARIO_KEYS),
            },
            Entry::Item(datum) => {
                let Some(form) = reader.form(datum, "a step such as `(reply :text \"Hello\")`") else {
                    continue;
                };
                match form.head.as_str() {
                    "expect" => scenario.expected.push(condition(reader, "expect", form.entries)),
                    "page" => scenario.pages.extend(page(reader, form)),
                    "default" => {
                        for entry in form.entries {
                            let Some(form) =
                                reader.only_form(entry, "a step such as `(reply :text \"Hello\")`")
                            else {
                                continue;
                            };
                            scenario.default = step(reader, form, open).map(Box::new);
                        }
                    }
                    head if STEP_FORMS.contains(&head) => scenario.steps.extend(step(reader, form, open)),
                    _ => reader.unknown(form.head_span, "form of a scenario", &form.head, &SCENARIO_FORMS),
                }
            }
        }
    }
    if !is_named {
        reader.report(Span::at(span.start as usize), "missing `:name`");
    }
    scenario
}

fn step(reader: &mut Reader<'_>, form: Form, open: &Open<'_>) -> Option<Step> {
    if !STEP_FORMS.contains(&form.head.as_str()) {
        reader.unknown(form.head_span, "step", &form.head, &STEP_FORMS);
        return None;
    }
    let (mut when, mut expected, mut times, mut rest) = (None, Vec::new(), None, Vec::new());
    for entry in form.entries {
        match entry {
            Entry::Key { key, value, .. } if key == ":when" => {
                let entries = reader.entries(value, "`:when` expects conditions such as `(:last-role tool)`");
                when = Some(condition(reader, ":when", entries.unwrap_or_default()));
            }
            Entry::Key { key, value, .. } if key == ":repeat" => {
                times = Some(if matches!(word_of(&value), Some("t")) {
                    None
                } else {
                    reader.count(&key, &value)
                });
            }
            Entry::Item(datum) if is_form(&datum, "expect") => {
                let form = reader.form(datum, "conditions");
                expected.push(condition(reader, "expect", form.map(|form| form.entries).unwrap_or_default()));
            }
            entry => rest.push(entry),
        }
    }
    let action = match form.head.as_str() {
        "reply" => Action::Reply(reply(reader, rest)),
        "error" => Action::Fixed(error(reader, form.head_span, rest)),
        "play" => Action::Fixed(play(reader, form.head_span, rest, open)),
        "raw" => Action::Fixed(raw(reader, rest)),
        _ => faulty(reader, form.head_span, rest),
    };
    // By default a step is taken once; a step with a condition is taken whenever it matches.
    let times = times.unwrap_or(if when.is_some() { None } else { Some(1) });
    Some(Step { action, when, expected, times })
}

/// `(misbehave index-missing crlf :every "20ms")`
fn faulty(reader: &mut Reader<'_>, span: Span, entries: Vec<Entry>) -> Action {
    let (mut named, mut every) = (Vec::new(), None);
    for entry in entries {
        match entry {
            Entry::Item(datum) => named.push(datum),
            Entry::Key { key, value, .. } if key == ":every" => every = reader.duration(&key, &value),
            Entry::Key { key, span, .. } => {
                reader.unknown(span, "key of misbehave", &key, &[":every", ":when", ":repeat"]);
            }
        }
    }
    if named.is_empty() {
        reader.report(span, "missing fault name; run `deftool stub --list` to list all faults");
    }
    let faults = faults(reader, Datum { span, kind: DatumKind::Vector(named) });
    Action::Faulty { faults, every }
}
