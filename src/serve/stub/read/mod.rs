//! Scenario files → [`Scenario`]s.
//!
//! The language is plists as everywhere (`docs/stub.md`); nothing is evaluated. What is wrong is told with its place and,
//! for a word that nobody knows, with the one that was likely meant; a file with a mistake gives no scenario.

mod answer;
mod form;
mod reply;
mod words;

use std::path::Path;

use super::misbehave::Misbehaviour;
use super::scenario::{Action, Scenario, Step};
use super::server::Server;
use crate::spec::is_spec_form;
use crate::syntax::{Datum, DatumKind};
use crate::text::Span;
use answer::{error, page, play, raw};
use form::{Entry, Form, Reader, is_form, word_of};
use reply::reply;
use words::condition;

/// No file that is played is larger, in bytes.
const MAX_PLAYED: u64 = 64 << 20;

/// Gives the content of a file that a scenario plays, or says why not.
type Open<'o> = dyn Fn(&str) -> Result<Vec<u8>, String> + 'o;

/// Scenarios that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", findings.join("\n"))]
pub struct ScenarioError {
    /// A line each, `FILE:LINE:COLUMN: error: …`.
    pub findings: Vec<String>,
}

/// Reads the scenarios of the file at `path`; files that they play are looked for beside it.
///
/// # Errors
/// When the file cannot be read, or something in it is wrong.
pub fn load(path: &Path) -> Result<Vec<Scenario>, ScenarioError> {
    let name = path.display().to_string();
    let unreadable = |why: String| ScenarioError { findings: vec![format!("{name}: error: {why}")] };
    if path.is_dir() {
        return Err(unreadable(String::from("is a folder; name the file of scenarios that lies in it")));
    }
    let bytes = std::fs::read(path).map_err(|error| unreadable(format!("cannot be read: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable(String::from("is not UTF-8")))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    read(&name, &text, &|file| play_from(folder, file))
}

/// A file that lies in `folder`: what a scenario plays goes to whoever asks, and the scenario may be anybody's.
fn play_from(folder: &Path, file: &str) -> Result<Vec<u8>, String> {
    let told = |error: std::io::Error| error.to_string();
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let path = folder.join(file).canonicalize().map_err(told)?;
    if !path.starts_with(folder.canonicalize().map_err(told)?) {
        return Err(String::from("it does not lie beside the scenario, or below"));
    }
    let about = std::fs::metadata(&path).map_err(told)?;
    if !about.is_file() {
        return Err(String::from("it is no regular file"));
    }
    if about.len() > MAX_PLAYED {
        return Err(format!("it is larger than {} MiB", MAX_PLAYED >> 20));
    }
    std::fs::read(path).map_err(told)
}

/// Reads the scenarios of `text`, which messages call `name`; `open` gives the content of a file that they play.
///
/// # Errors
/// When something in it is wrong.
pub fn read(name: &str, text: &str, open: &Open<'_>) -> Result<Vec<Scenario>, ScenarioError> {
    let mut reader = Reader::new(name, text);
    let mut scenarios: Vec<Scenario> = Vec::new();
    let mut after_loose = false;
    for datum in reader.forms() {
        let span = datum.span;
        // Loose values one after the other are one mistake.
        let is_loose = !matches!(datum.kind, DatumKind::List(_) | DatumKind::Invalid);
        if std::mem::replace(&mut after_loose, is_loose) && is_loose {
            continue;
        }
        let Some(form) = reader.form(datum, "a scenario such as `(defscenario :name \"weather\" …)`")
        else {
            continue;
        };
        if form.head != "defscenario" {
            if is_spec_form(&form.head) {
                reader.tell(form.head_span, spec_instead(&form.head));
            } else {
                reader.unknown(form.head_span, "form", &form.head, &["defscenario"]);
            }
            continue;
        }
        let scenario = scenario(&mut reader, span, form, open);
        if scenarios.iter().any(|other| other.name == scenario.name) {
            reader.tell(span, format!("there is a scenario `{}` already", scenario.name));
        }
        scenarios.push(scenario);
    }
    if scenarios.is_empty() {
        reader.tell_if_nothing(
            "there is no scenario; write `(defscenario :name \"weather\" (reply :text \"Hello\"))`",
        );
    }
    reader.finish(scenarios)
}

fn spec_instead(head: &str) -> String {
    format!(
        "`{head}` is a spec, which `deftool check` reads and the agent is given; a file for the stub holds scenarios: \
         write `(defscenario :name \"weather\" (reply :text \"Hello\"))`"
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
                        ("llama-cpp", Server::LlamaCpp),
                        ("ollama", Server::Ollama),
                        ("other", Server::Other),
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
        reader.tell(Span::at(span.start as usize), "a scenario has no :name");
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
                let entries = reader.entries(value, ":when takes conditions such as `(:last-role tool)`");
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
        _ => misbehave(reader, form.head_span, rest),
    };
    // What is said once is said once; a condition may hold again and again.
    let times = times.unwrap_or(if when.is_some() { None } else { Some(1) });
    Some(Step { action, when, expected, times })
}

/// `(misbehave index-missing crlf :every "20ms")`
fn misbehave(reader: &mut Reader<'_>, span: Span, entries: Vec<Entry>) -> Action {
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
        reader.tell(span, "misbehave takes a name; `deftool stub --list` has them all");
    }
    let ways = ways(reader, Datum { span, kind: DatumKind::Vector(named) });
    Action::Misbehave { ways, every }
}

/// One name, or a vector of names.
fn ways(reader: &mut Reader<'_>, value: Datum) -> Vec<&'static Misbehaviour> {
    let items = match value.kind {
        DatumKind::Vector(items) => items,
        _ => vec![value],
    };
    let mut found: Vec<&'static Misbehaviour> = Vec::new();
    for item in items {
        let Some(name) = word_of(&item) else {
            reader.tell(item.span, format!("expected the name of a misbehaviour, found {}", item.describe()));
            continue;
        };
        let Some(way) = Misbehaviour::named(name) else {
            let names: Vec<&str> = Misbehaviour::all().map(|way| way.name).collect();
            reader.unknown(item.span, "misbehaviour", name, &names);
            continue;
        };
        if way.takes_answer() && found.iter().any(|other| other.takes_answer()) {
            reader.tell(item.span, format!("`{name}` takes the whole answer, as another before it does"));
        }
        found.push(way);
    }
    found
}
