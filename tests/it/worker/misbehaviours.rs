//! Every misbehaviour of the stub server against the worker, on a real socket and over each API: how it ends is what
//! `tests/stub/outcomes.txt` and `outcomes_responses.txt` say, a row each. `DEFTOOL_BLESS=1` writes what came out; read the
//! difference before you commit it.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deftool::chat::Api;
use deftool::request::{Event, FinalState, Outcome};
use deftool::schema::{ToolEntry, ToolKind, ToolSet};
use deftool::serve::stub::{Act, GROUPS, Misbehaviour, Scenario, Stub};
use deftool::spec::Timers;
use deftool::tool::ToolCall;
use deftool::worker::{EndpointOptions, SubmitRequest, Toolbox, Worker, WorkerConfig, find_endpoint};
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};

use super::bench::*;

/// How many play at once.
const AT_ONCE: usize = 24;
/// The timer of a row whose end a timer is, the others being as long as ever: longer and longer, since on a machine that is
/// busy elsewhere it may end what would have gone on.
const TRIES: [Duration; 3] = [Duration::from_millis(700), Duration::from_secs(3), Duration::from_secs(12)];
/// Nothing takes longer, on whatever machine.
const PATIENCE: Duration = Duration::from_secs(150);
/// The pace of what trickles or never ends.
const EVERY: Duration = Duration::from_millis(2);

const HEAD: &str = "\
# What the worker makes of each misbehaviour of the stub server (`deftool stub --list`) over API: the first answer
# misbehaves, all later ones are as they should be. Columns:
#   name, how the request ends: its state and finish reason, or reason and kind of the failure
#   requests that the server got: retries, probes, and turns after a tool's result
#   the timer that ends it, `-` if none does
#   calls that ran, as tool and arguments; then signals, where the tool that is called is an exit tool
#   warnings; then the model's reasoning
#   the text, which is kept whatever happens; its start where it is long
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
    };
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/stub").join(name)
}

/// The misbehaviours of an API.
fn of(api: Api) -> impl Iterator<Item = &'static Misbehaviour> {
    Misbehaviour::all().filter(move |way| way.is_of(api))
}

/// The rows by name.
fn written(api: Api) -> BTreeMap<String, Row> {
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
        let count = group.members.iter().filter(|way| way.is_of(api)).count();
        let (lines, after) = rest.split_at(count);
        rest = after;
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

const TIMERS: [&str; 6] = ["-", "headers", "stall", "first-token", "token-stall", "total"];

fn set_timer(timers: &mut Timers, name: &str, limit: Duration) {
    match name {
        "-" => {}
        "headers" => timers.headers = Some(limit),
        "stall" => timers.stall = limit,
        "first-token" => timers.first_token = limit,
        "token-stall" => timers.token_stall = limit,
        "total" => timers.total = Some(limit),
        other => panic!("no timer is called {other}"),
    }
}

/// How a misbehaviour is played.
#[derive(Clone, Copy)]
struct Play {
    way: &'static Misbehaviour,
    api: Api,
    timer: &'static str,
    limit: Duration,
}

/// A worker with tools that note their calls, at a stub that misbehaves once.
async fn start(play: Play, exit_only: bool) -> (Stub, Worker, Arc<Mutex<Vec<ToolCall>>>) {
    let stub = Stub::start(Scenario::misbehaving([play.way], Some(EVERY))).unwrap();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&calls);
    let runner = FakeTools(move |call: ToolCall, _| {
        noted.lock().unwrap().push(call);
        async { Ok(json!({"found": true})) }
    });
    let toolbox = Arc::new(Toolbox { generation: 1, tools: tools(exit_only), runner: Arc::new(runner) });
    let mut config = with_timers(|timers| set_timer(timers, play.timer, play.limit));
    config.api = play.api;
    if play.way.plays_a_server() {
        let options = EndpointOptions { endpoint: Some(stub.endpoint()), ..EndpointOptions::default() };
        config.server = find_endpoint(options).await.unwrap().found.server;
    }
    let worker = Worker::start(config, toolbox, http(&stub.endpoint(), None));
    (stub, worker, calls)
}

async fn play(play: Play) -> Row {
    let name = play.way.name;
    let (stub, worker, calls) = start(play, false).await;
    let ended = end(&worker).await;
    let outcome = &ended.outcome;
    let calls: Vec<Value> =
        calls.lock().unwrap().iter().map(|call| json!([call.name, call.arguments])).collect();
    let warnings = ended.events.iter().filter(|event| matches!(event, Event::Warning { .. })).count();
    let path = match play.api {
        Api::ChatCompletions => "/v1/chat/completions",
        Api::Responses => "/v1/responses",
    };
    let requests = stub.requests().iter().filter(|request| request.path() == path).count();
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

/// State, or reason and kind.
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

/// JSON without characters that end a line for one reader and not for another.
fn ascii(json: &str) -> String {
    let escape = |c: char| {
        if c.is_ascii() { c.to_string() } else { format!("\\u{:04x}", u32::from(c)) }
    };
    json.chars().map(escape).collect()
}

/// A text, or its start.
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
async fn every_misbehaviour_ends_as_the_table_says() {
    all_end_as_written(Api::ChatCompletions).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_misbehaviour_ends_as_the_table_says_over_responses() {
    all_end_as_written(Api::Responses).await;
}

async fn all_end_as_written(api: Api) {
    let (written, is_blessing) = (&written(api), std::env::var_os("DEFTOOL_BLESS").is_some());
    // A row that is not there yet may have its timer from the other table.
    let known = &self::written(Api::ChatCompletions);
    let timer = |name: &str| {
        let row = written.get(name).or_else(|| known.get(name));
        TIMERS.iter().find(|timer| row.is_some_and(|row| row.timer == **timer)).copied().unwrap_or("-")
    };
    let plays = of(api).map(|way| (way, timer(way.name))).map(|(way, timer)| async move {
        let of_try = |limit| Play { way, api, timer, limit };
        let mut row = play(of_try(TRIES[0])).await;
        for limit in &TRIES[1..] {
            if is_blessing || written.get(way.name) == Some(&row) {
                break;
            }
            row = play(of_try(*limit)).await;
        }
        (way.name.to_owned(), row)
    });
    let rows: Vec<(String, Row)> = stream::iter(plays).buffered(AT_ONCE).collect().await;
    if is_blessing {
        std::fs::write(path(api), page_of(api, &rows)).unwrap();
        return;
    }
    let wrong: Vec<String> = rows
        .iter()
        .filter(|(name, row)| written.get(name) != Some(row))
        .map(|(name, row)| {
            let told =
                written.get(name).map_or_else(|| String::from("no row"), |row| row.columns(name).join(" | "));
            format!("expected {told}\nfound    {}", row.columns(name).join(" | "))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn the_tables_have_a_row_for_every_misbehaviour_and_for_nothing_else() {
    for api in [Api::ChatCompletions, Api::Responses] {
        let names: HashSet<&str> = of(api).map(|way| way.name).collect();
        let written = written(api);
        let rows: HashSet<&str> = written.keys().map(String::as_str).collect();
        assert_eq!(names.difference(&rows).collect::<Vec<_>>(), Vec::<&&str>::new(), "without a row");
        assert_eq!(rows.difference(&names).collect::<Vec<_>>(), Vec::<&&str>::new(), "rows of nothing");
    }
}

/// Wherever an answer stands still and whatever it is, a cancel ends the request and closes the connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_misbehaviour_can_be_canceled_in_the_middle() {
    let seed: u64 = std::env::var("DEFTOOL_SEED").map_or(1, |seed| seed.parse().unwrap());
    let over_responses =
        |way: &Misbehaviour| if way.is_of(Api::Responses) { Api::Responses } else { Api::ChatCompletions };
    let cases = Misbehaviour::all()
        .flat_map(|way| [(way, Api::ChatCompletions, seed), (way, over_responses(way), seed + 1)]);
    let canceled: usize = stream::iter(cases)
        .map(|(way, api, seed)| cancel_in_the_middle(way, api, seed))
        .buffered(AT_ONCE)
        .map(usize::from)
        .fold(0, |sum, one| async move { sum + one })
        .await;
    // The others had ended by what came, as an error does.
    assert!(canceled > Misbehaviour::all().count(), "only {canceled} were canceled");
}

/// Whether it was canceled, or had ended before.
async fn cancel_in_the_middle(way: &'static Misbehaviour, api: Api, seed: u64) -> bool {
    let stands = Arc::new(tokio::sync::Notify::new());
    let told = Arc::clone(&stands);
    let cut_off = Arc::new(Mutex::new(false));
    let noted = Arc::clone(&cut_off);
    let address = "127.0.0.1:0".parse().unwrap();
    let stub = Stub::answering(address, move |request| {
        let answer = way.answer(request, Some(EVERY));
        let mut random = fastrand::Rng::with_seed(seed ^ way.name.len() as u64);
        let cut = random.usize(..answer.acts().len().min(100));
        let answer = answer.cut_after(cut);
        let goes_on = !answer.acts().iter().any(|act| matches!(act, Act::Close | Act::Reset));
        *noted.lock().unwrap() |= goes_on;
        let told = Arc::clone(&told);
        answer.then(Act::Do(Arc::new(move || told.notify_one()))).then(Act::Silence)
    })
    .unwrap();
    let config = WorkerConfig { api, ..config() };
    let worker = Worker::start(config, echo(), http(&stub.endpoint(), None));
    let id = worker.submit(SubmitRequest::prompt("hello")).unwrap();
    // What never ends does not get as far as the place where it would stand still.
    let _ = tokio::time::timeout(Duration::from_millis(500), stands.notified()).await;
    tokio::task::yield_now().await;
    worker.cancel(&id);
    // The invariants of every end are held there: the slot, the text events and the text.
    let ended = finish(&worker, &id).await;
    let context = format!("{} of {api:?} with seed {seed}: {ended:?}", way.name);
    assert_eq!(worker.in_flight(), 0, "{context}");
    let is_canceled = ended.outcome.state == FinalState::Canceled;
    assert!(is_canceled || ended.outcome.fail_reason.is_some() || !ended.text().is_empty(), "{context}");
    if *cut_off.lock().unwrap() {
        let has_left = tokio::task::spawn_blocking(move || {
            stub.wait_until(Duration::from_secs(20), |stub| !stub.departures().is_empty())
        });
        assert!(has_left.await.unwrap(), "the connection stays open: {context}");
    }
    is_canceled
}
