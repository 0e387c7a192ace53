//! The requests of the simulation, in process and on Restate: both must have the same events and the same results.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use deftool_chat::Message;
use deftool_serve::{Host, OpenFailure, RestateJournal, Submission, serve};
use deftool_test_support::step;
use deftool_worker::{SubmitRequest, Worker};
use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{Engine, merged, without_times};
use crate::simulation::scenario::{CaseRun, Scenario};

/// The seeds of a full run.
const SEEDS: u64 = 400;
/// Seeds with rare situations: a call fails the request while an earlier call waits for an approval, and a later one
/// runs or waits.
const RARE: [u64; 2] = [871, 2506];
/// Scenarios that run at the same time.
const THREADS: usize = 8;
/// The longest request. Delays before retries are real on Restate.
const LONGEST: Duration = Duration::from_secs(5);

/// What must occur in the compared requests, each with the least number in ten seeds.
const SITUATIONS: [(&str, usize); 9] = [
    ("compared", 20),
    ("rejected", 1),
    ("tool_finished", 20),
    ("approval", 2),
    ("signal", 1),
    ("retry", 2),
    ("resumed", 1),
    ("completed", 10),
    ("failed", 5),
];

/// The results of the comparison.
#[derive(Default)]
struct Report {
    counts: BTreeMap<String, usize>,
    differences: Vec<String>,
}

impl Report {
    fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }
}

/// Serves the workers of the scenarios, whose names are their seeds.
fn start_workers(engine: &Engine, scenarios: &[Arc<Scenario>]) {
    let scenarios: HashMap<String, Arc<Scenario>> =
        scenarios.iter().map(|scenario| (scenario.seed().to_string(), Arc::clone(scenario))).collect();
    let journal = Arc::new(RestateJournal::default());
    let stored = Arc::clone(&journal);
    let workers: Mutex<HashMap<String, Worker>> = Mutex::default();
    let open_worker = move |name: Option<&str>| {
        let name = name.unwrap_or_default();
        let opened = scenarios.get(name).map(|scenario| {
            let mut workers = workers.lock().unwrap();
            let worker = workers.entry(name.to_owned());
            worker.or_insert_with(|| scenario.start_worker(Some(Arc::clone(&stored) as Arc<_>))).clone()
        });
        std::future::ready(opened.ok_or_else(|| OpenFailure::Unknown(name.to_owned()))).boxed()
    };
    let host = Host::new(Box::new(open_worker), journal, |_| {});
    let runtime = &engine.client.runtime;
    let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", engine.worker))).unwrap();
    runtime.spawn(serve(host, listener, std::future::pending::<()>()));
    engine.register();
}

/// Runs a request on Restate. Returns its events and its result, or the reason for its rejection.
fn run(
    engine: &Engine,
    scenario: &Scenario,
    number: usize,
    request: SubmitRequest,
) -> Result<(Vec<Value>, Value), Value> {
    let SubmitRequest { messages, system_prompt: system, model, params, tools, job_name, .. } = request;
    let worker = Some(scenario.seed().to_string());
    let submission = Submission { worker, prompt: None, messages, system, model, params, tools, job_name };
    let id = scenario.request_id(number);
    engine.submit(&id, &json!(submission));
    let approval = json!(scenario.approval(number));
    let events =
        engine.follow(&id, |request| engine.answer(request["awakeable"].as_str().unwrap(), &approval));
    let path = format!("restate/workflow/Request/{id}/attach");
    match engine.send(engine.ingress, &path, None).unwrap() {
        (200, result) => Ok((events, result)),
        (400, mut error) => Err(error["message"].take()),
        (status, error) => panic!("{id}: {status}: {error}"),
    }
}

/// Compares the requests of a scenario, in their order: the server variants that one requires apply to the next ones.
fn compare(engine: &Engine, scenario: &Scenario, expected: Vec<CaseRun>, report: &Mutex<Report>) {
    let mut conversations: Vec<Option<Vec<Message>>> = Vec::new();
    let mut is_quick = true;
    for (number, CaseRun { result: expected, elapsed }) in expected.into_iter().enumerate() {
        is_quick = is_quick && elapsed <= LONGEST;
        if !is_quick {
            report.lock().unwrap().count("skipped");
            continue;
        }
        let found = run(engine, scenario, number, scenario.request(number, &conversations));
        let conversation = found.as_ref().ok().map(|(_, result)| result["messages"].clone());
        conversations.push(conversation.map(|messages| serde_json::from_value(messages).unwrap()));
        let mut report = report.lock().unwrap();
        report.count("compared");
        let (expected, found) = match (expected, found) {
            (Ok((events, messages)), Ok((found, result))) => {
                for event in &found {
                    report.count(event["type"].as_str().unwrap());
                }
                report.count(result["outcome"]["state"].as_str().unwrap());
                let mut outcome = events.last().unwrap().clone();
                outcome.as_object_mut().unwrap().shift_remove("type");
                let result_expected = json!({"outcome": outcome, "messages": messages});
                (lines(events, result_expected), lines(found, result))
            }
            (Err(error), Err(found)) => {
                report.count("rejected");
                (vec![error.to_string()], vec![found.as_str().unwrap().to_owned()])
            }
            (expected, found) => (vec![format!("{:?}", expected.err())], vec![format!("{:?}", found.err())]),
        };
        if expected != found {
            let same = expected.iter().zip(&found).take_while(|(expected, found)| expected == found).count();
            let rest =
                |lines: &[String]| lines.iter().skip(same).take(3).cloned().collect::<Vec<_>>().join("\n  ");
            report.differences.push(format!(
                "{} after {same} equal lines:\nin process\n  {}\non Restate\n  {}",
                scenario.request_id(number),
                rest(&expected),
                rest(&found)
            ));
        }
    }
}

/// Returns what must be equal, in lines. A request that only waited for an approval continues with `resumed`.
fn lines(events: Vec<Value>, result: Value) -> Vec<String> {
    let is_pause = |event: &Value| event["type"] == "resumed" && event["superseded"] == "";
    let mut events = merged(without_times(events));
    events.retain(|event| !is_pause(event));
    // Then the open questions are asked again.
    let mut asked = HashSet::new();
    let is_question = |event: &Value| event["type"] == "approval" && event["answer"].is_null();
    events.retain(|event| !is_question(event) || asked.insert(event.to_string()));
    events.extend(without_times(vec![result]));
    events.iter().map(Value::to_string).collect()
}

#[test]
fn scenarios_are_equal_in_process_and_on_restate() {
    let Some(engine) = Engine::start() else { return };
    let started = Instant::now();
    let seeds = (0..SEEDS).step_by(step(10)).chain(RARE);
    let scenarios: Vec<Arc<Scenario>> = seeds.map(|seed| Arc::new(Scenario::of_seed(seed))).collect();
    start_workers(&engine, &scenarios);
    let (next, report) = (AtomicUsize::new(0), Mutex::<Report>::default());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(scenario) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
                    compare(&engine, scenario, scenario.run_in_process(), &report);
                }
            });
        }
    });
    let Report { counts, differences } = report.into_inner().unwrap();
    println!("{} seeds in {:?}: {counts:?}", scenarios.len(), started.elapsed());
    assert!(
        differences.is_empty(),
        "{} requests differ:\n{}",
        differences.len(),
        differences.iter().take(5).cloned().collect::<Vec<_>>().join("\n")
    );
    for (situation, least) in SITUATIONS {
        let count = counts.get(situation).copied().unwrap_or_default();
        assert!(count >= least * scenarios.len() / 10, "{situation}: {count}");
    }
}
