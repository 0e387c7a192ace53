//! The worker against every fault of the stub server, on a real socket and over each API. The expected outcomes are in
//! `tests/stub/outcomes.txt`, `outcomes_responses.txt` and `outcomes_messages.txt`, one row per fault. `UPDATE_EXPECT=1` writes the actual
//! outcomes; review the difference before you commit it.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deftool_chat::Api;
use deftool_chat::request::{Event, FinalState, Outcome};
use deftool_lang::schema::{ToolEntry, ToolKind, ToolSet};
use deftool_lang::spec::Timers;
use deftool_lang::tool::ToolCall;
use deftool_stub::{Act, Fault, GROUPS, Scenario, Stub};
use deftool_test_support::{HANG_LIMIT, is_full, step};
use deftool_worker::{EndpointOptions, SubmitRequest, Toolbox, Worker, WorkerConfig, find_endpoint};
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};

use super::harness::*;

/// The number of concurrent runs.
const AT_ONCE: usize = 24;
/// The limits to try for the timer that ends a row. On a busy machine a short limit may end a request too early. The
/// other timers keep their usual limits.
const TRIES: [Duration; 3] = [Duration::from_millis(700), Duration::from_secs(3), Duration::from_secs(12)];
/// The time limit of a request, on any machine.
const PATIENCE: Duration = HANG_LIMIT;
/// The interval of slow and endless answers.
const EVERY: Duration = Duration::from_millis(1);
/// The faults whose processing takes seconds. They are part of the full tests.
const LARGE: [&str; 3] = ["arguments-huge", "calls-too-many", "text-huge"];

const HEAD: &str = "\
# The outcome of the worker for each fault of the stub server (`deftool stub --list`) over API. The first answer has the
# fault, later answers do not. Columns:
#   name; end of the request: state and finish reason, or reason and kind of the failure
#   number of requests to the server: retries, probes, and turns after a tool's result
#   timer that ends the request, `-` for none
#   executed calls, as tool and arguments; then signals, if the called tool is an exit tool
#   number of warnings; then the model's reasoning
#   text; only its start if it is long
";

/// One row, without its timer.
#[derive(Debug, PartialEq)]
struct Row {
    end: String,
    requests: usize,
    timer: String,
    calls: String,
    signals: String,
    warnings: usize,
    reasoning: String,
    text: String,
}

impl Row {
    fn columns(&self, name: &str) -> [String; 9] {
        let Self { end, requests, timer, calls, signals, warnings, reasoning, text } = self;
        let (requests, warnings) = (requests.to_string(), warnings.to_string());
        let [name, end, timer, calls, signals, reasoning, text] =
            [name, end, timer, calls, signals, reasoning, text].map(str::to_owned);
        [name, end, requests, timer, calls, signals, warnings, reasoning, text]
    }
}

fn path(api: Api) -> PathBuf {
    let name = match api {
        Api::ChatCompletions => "outcomes.txt",
        Api::Responses => "outcomes_responses.txt",
        Api::Messages => "outcomes_messages.txt",
    };
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/stub").join(name)
}

/// Returns the faults that exist in an API.
fn of(api: Api) -> impl Iterator<Item = &'static Fault> {
    Fault::all().filter(move |fault| fault.applies_to(api))
}

/// Reads the expected rows, by name.
fn expected_rows(api: Api) -> BTreeMap<String, Row> {
    let page = std::fs::read_to_string(path(api)).unwrap_or_default();
    let lines = page.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let rows = lines.map(|line| {
        let columns: Vec<&str> = line.splitn(9, " | ").map(str::trim).collect();
        let [name, end, requests, timer, calls, signals, warnings, reasoning, text] = columns[..] else {
            panic!("not nine columns: {line}")
        };
        let row = Row {
            end: end.to_owned(),
            requests: requests.parse().unwrap(),
            timer: timer.to_owned(),
            calls: calls.to_owned(),
            signals: signals.to_owned(),
            warnings: warnings.parse().unwrap(),
            reasoning: reasoning.to_owned(),
            text: text.to_owned(),
        };
        (name.to_owned(), row)
    });
    rows.collect()
}

fn page_of(api: Api, rows: &[(String, Row)]) -> String {
    let lines: Vec<[String; 9]> = rows.iter().map(|(name, row)| row.columns(name)).collect();
    let mut page = HEAD.replace("API", json!(api).as_str().unwrap());
    let mut rest = lines.as_slice();
    for group in &GROUPS {
        let count = group.members.iter().filter(|fault| fault.applies_to(api)).count();
        let (lines, after) = rest.split_at(count);
        rest = after;
        if lines.is_empty() {
            continue;
        }
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..8).map(width).collect();
        writeln!(page, "\n# {}", group.title).unwrap();
        for line in lines {
            for (cell, width) in line.iter().zip(&widths) {
                write!(page, "{cell:<width$} | ").unwrap();
            }
            writeln!(page, "{}", line[8]).unwrap();
        }
    }
    page
}

/// `look` needs `at`, `now` needs nothing; or the exit tool `done` alone, which needs `summary`.
fn tools(exit_only: bool) -> ToolSet {
    let entry = |kind, name: &str, member: Option<&str>| {
        let properties: Value =
            member.map(|name| (name.to_owned(), json!({"type": "string"}))).into_iter().collect();
        let required: Vec<&str> = member.into_iter().collect();
        let parameters = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false
        });
        let function = json!({"name": name, "description": name, "parameters": parameters});
        Arc::new(ToolEntry::new(kind, json!({"type": "function", "function": function}), None).unwrap())
    };
    if exit_only {
        return ToolSet::new([entry(ToolKind::Exit, "done", Some("summary"))]);
    }
    ToolSet::new([entry(ToolKind::Normal, "look", Some("at")), entry(ToolKind::Normal, "now", None)])
}

const TIMERS: [&str; 5] = ["-", "headers", "first-token", "stall", "total"];

fn set_timer(timers: &mut Timers, name: &str, limit: Duration) {
    match name {
        "-" => {}
        "headers" => timers.headers = Some(limit),
        "stall" => timers.stall = limit,
        "first-token" => timers.first_token = Some(limit),
        "total" => timers.total = Some(limit),
        other => panic!("unknown timer `{other}`"),
    }
}

/// A run of one fault.
#[derive(Clone, Copy)]
struct Play {
    fault: &'static Fault,
    api: Api,
    timer: &'static str,
    limit: Duration,
}

/// Starts a worker with tools that record their calls, and a stub with the fault in its first answer.
async fn start(play: Play, exit_only: bool) -> (Stub, Worker, Arc<Mutex<Vec<ToolCall>>>) {
    let stub = Stub::start(Scenario::with_faults([play.fault], Some(EVERY))).unwrap();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&calls);
    let runner = FakeTools(move |call: ToolCall, _| {
        recorded.lock().unwrap().push(call);
        async { Ok(json!({"found": true})) }
    });
    let toolbox = Arc::new(Toolbox { generation: 1, tools: tools(exit_only), runner: Arc::new(runner) });
    let mut config = with_timers(|timers| set_timer(timers, play.timer, play.limit));
    config.api = play.api;
    if play.fault.emulates_server() {
        let options = EndpointOptions { endpoint: Some(stub.endpoint()), ..EndpointOptions::default() };
        config.server = find_endpoint(options).await.unwrap().found.server;
    }
    let worker = Worker::start(config, toolbox, http(&stub.endpoint(), None));
    (stub, worker, calls)
}

async fn play(play: Play) -> Row {
    let name = play.fault.name;
    let (stub, worker, calls) = start(play, false).await;
    let ended = end(&worker).await;
    let outcome = &ended.outcome;
    let calls: Vec<Value> =
        calls.lock().unwrap().iter().map(|call| json!([call.name, call.arguments])).collect();
    let warnings = ended.events.iter().filter(|event| matches!(event, Event::Warning { .. })).count();
    let requests = stub.requests().iter().filter(|request| request.path() == api_path(play.api)).count();
    assert_eq!(stub.failures(), [""; 0], "{name}");
    assert_eq!(worker.in_flight(), 0, "{name}: the slot is free");
    let signals = if GROUPS[0].members.iter().any(|member| member.name == name) {
        let (_stub, worker, calls) = start(play, true).await;
        let ended = end(&worker).await;
        assert!(calls.lock().unwrap().is_empty(), "{name}: an exit tool was run");
        let signals = ended.outcome.signals.iter();
        let arguments: Vec<Value> = signals.map(|signal| short(&json!(signal)["arguments"])).collect();
        match arguments.len() {
            0..10 => json!(arguments).to_string(),
            count => format!("{count} of {}", arguments[0]),
        }
    } else {
        String::from("-")
    };
    Row {
        end: end_of(outcome),
        requests,
        timer: play.timer.to_owned(),
        calls: json!(calls).to_string(),
        signals,
        warnings,
        reasoning: outcome
            .reasoning
            .as_ref()
            .map_or_else(|| String::from("-"), |text| json!(text).to_string()),
        text: ascii(&short(&json!(outcome.text)).to_string()),
    }
}

async fn end(worker: &Worker) -> Ended {
    tokio::time::timeout(PATIENCE, ask_for_hours(worker)).await.expect("a request ends")
}

/// Formats the state and finish reason, or the state, reason and kind of a failure.
fn end_of(outcome: &Outcome) -> String {
    let word = |value: Value| value.as_str().unwrap_or_default().to_owned();
    match outcome.fail_reason {
        None => format!("{} {}", word(json!(outcome.state)), word(json!(outcome.finish_reason))),
        Some(reason) => {
            let kind = outcome.kind.as_deref().unwrap_or("-");
            format!("{} {}/{kind}", word(json!(outcome.state)), word(json!(reason)))
        }
    }
}

/// Escapes non-ASCII characters. Some of them are line ends for some readers.
fn ascii(json: &str) -> String {
    let escape = |c: char| {
        if c.is_ascii() { c.to_string() } else { format!("\\u{:04x}", u32::from(c)) }
    };
    json.chars().map(escape).collect()
}

/// Truncates long texts.
fn short(value: &Value) -> Value {
    match value {
        Value::String(text) if text.chars().count() > 130 => {
            json!(text.chars().take(40).collect::<String>() + "…")
        }
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), short(value))).collect(),
        other => other.clone(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_has_the_expected_outcome() {
    check_outcomes(Api::ChatCompletions).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_has_the_expected_outcome_over_responses() {
    check_outcomes(Api::Responses).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_has_the_expected_outcome_over_messages() {
    check_outcomes(Api::Messages).await;
}

async fn check_outcomes(api: Api) {
    let (expected, updates_expected) = (&expected_rows(api), std::env::var_os("UPDATE_EXPECT").is_some());
    // A new row takes its timer from the other table.
    let known = &self::expected_rows(Api::ChatCompletions);
    let timer = |name: &str| {
        let row = expected.get(name).or_else(|| known.get(name));
        TIMERS.iter().find(|timer| row.is_some_and(|row| row.timer == **timer)).copied().unwrap_or("-")
    };
    let faults = of(api).filter(|fault| updates_expected || is_full() || !LARGE.contains(&fault.name));
    // Most faults have the same outcome over all APIs.
    let samples = !updates_expected && api != Api::ChatCompletions;
    let step = if samples { step(3) } else { 1 };
    let faults = faults.enumerate().filter(|(number, fault)| number % step == 0 || fault.apis == [api]);
    let plays = faults.map(|(_, fault)| fault).map(|fault| (fault, timer(fault.name))).map(
        |(fault, timer)| async move {
            let of_try = |limit| Play { fault, api, timer, limit };
            let mut row = play(of_try(TRIES[0])).await;
            for limit in &TRIES[1..] {
                if updates_expected || expected.get(fault.name) == Some(&row) {
                    break;
                }
                row = play(of_try(*limit)).await;
            }
            (fault.name.to_owned(), row)
        },
    );
    let rows: Vec<(String, Row)> = stream::iter(plays).buffered(AT_ONCE).collect().await;
    if updates_expected {
        std::fs::write(path(api), page_of(api, &rows)).unwrap();
        return;
    }
    let mismatches: Vec<String> = rows
        .iter()
        .filter(|(name, row)| expected.get(name) != Some(row))
        .map(|(name, row)| {
            let expected = expected
                .get(name)
                .map_or_else(|| String::from("no row"), |row| row.columns(name).join(" | "));
            format!("expected {expected}\nfound    {}", row.columns(name).join(" | "))
        })
        .collect();
    assert!(mismatches.is_empty(), "{}", mismatches.join("\n\n"));
}

#[test]
fn the_tables_have_exactly_one_row_per_fault() {
    for api in Api::ALL {
        let names: HashSet<&str> = of(api).map(|fault| fault.name).collect();
        let expected = expected_rows(api);
        let rows: HashSet<&str> = expected.keys().map(String::as_str).collect();
        assert_eq!(names.difference(&rows).collect::<Vec<_>>(), Vec::<&&str>::new(), "faults without a row");
        assert_eq!(rows.difference(&names).collect::<Vec<_>>(), Vec::<&&str>::new(), "rows without a fault");
    }
}

/// Canceling ends the request and closes the connection at any point of any faulty answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_can_be_canceled_during_every_fault() {
    let seed: u64 = std::env::var("DEFTOOL_SEED").map_or(1, |seed| seed.parse().unwrap());
    // Each fault over each of its APIs, and at least twice.
    let cases = Fault::all().flat_map(|fault| {
        let apis = fault.apis.iter().cycle().take(fault.apis.len().max(2));
        apis.zip(seed..).map(move |(api, seed)| (fault, *api, seed))
    });
    let canceled: usize = stream::iter(cases)
        .map(|(fault, api, seed)| cancel_in_the_middle(fault, api, seed))
        .buffered(AT_ONCE)
        .map(usize::from)
        .fold(0, |sum, one| async move { sum + one })
        .await;
    // The other requests had already ended, for example with an error.
    assert!(canceled > Fault::all().count(), "only {canceled} were canceled");
}

/// Cancels a request after a random part of the answer. Returns whether it was canceled before it ended.
async fn cancel_in_the_middle(fault: &'static Fault, api: Api, seed: u64) -> bool {
    let stopped = Arc::new(tokio::sync::Notify::new());
    let notifier = Arc::clone(&stopped);
    let is_open = Arc::new(Mutex::new(false));
    let stays_open = Arc::clone(&is_open);
    let address = "127.0.0.1:0".parse().unwrap();
    let stub = Stub::answering(address, move |request| {
        let answer = fault.answer(request, Some(EVERY));
        let mut random = fastrand::Rng::with_seed(seed ^ fault.name.len() as u64);
        let cut = random.usize(..answer.acts().len().min(100));
        let answer = answer.cut_after(cut);
        let is_unfinished = !answer.acts().iter().any(|act| matches!(act, Act::Close | Act::Reset));
        *stays_open.lock().unwrap() |= is_unfinished;
        let notifier = Arc::clone(&notifier);
        answer.then(Act::Do(Arc::new(move || notifier.notify_one()))).then(Act::Silence)
    })
    .unwrap();
    let config = WorkerConfig { api, ..config() };
    let worker = Worker::start(config, echo(), http(&stub.endpoint(), None));
    let id = worker.submit(SubmitRequest::prompt("hello")).unwrap();
    // An endless answer never reaches the notification.
    let _ = tokio::time::timeout(Duration::from_millis(500), stopped.notified()).await;
    tokio::task::yield_now().await;
    worker.cancel(&id);
    // `finish` checks the invariants of every end: the slot, the text events and the text.
    let ended = finish(&worker, &id).await;
    let context = format!("{} of {api:?} with seed {seed}: {ended:?}", fault.name);
    assert_eq!(worker.in_flight(), 0, "{context}");
    let is_canceled = ended.outcome.state == FinalState::Canceled;
    assert!(is_canceled || ended.outcome.fail_reason.is_some() || !ended.text().is_empty(), "{context}");
    if *is_open.lock().unwrap() {
        let disconnected = tokio::task::spawn_blocking(move || {
            stub.wait_until(Duration::from_secs(20), |stub| !stub.disconnects().is_empty())
        });
        assert!(disconnected.await.unwrap(), "the connection stays open: {context}");
    }
    is_canceled
}
