//! Deterministic simulation of the worker under paused time: server, tools, users, reloads and restarts, all generated
//! from one seed.
//!
//! `DEFTOOL_SIM=SEED` simulates one run and prints its trace. `DEFTOOL_SIM_CASES=N` limits it to the first N requests.
//! `DEFTOOL_SIM_SEEDS=A..B` simulates these seeds instead of the default 1,500 of a full run and 125 of a reduced one.
//!
//! | file | content |
//! |---|---|
//! | `plan` | the plan of a run, generated before it starts |
//! | `script`, `reply`, `pages`, `tools` | behavior of the server and the tools |
//! | `stream`, `wire` | formats of the APIs: replies, request bodies |
//! | `submission` | options and prior conversation of a request |
//! | `refusals` | refused request features, and the body fallbacks that must follow |
//! | `answer` | sends a script as the answer of the server |
//! | `actors`, `sim` | the actors; every step of the simulation, by actor, with the checks after it |
//! | `facade` | the worker's API as the actors use it |
//! | `invariants`, `tracker`, `sent`, `oracle`, `ledger` | the invariants and their checks |
//! | `replay` | replay of the recording of a run |
//! | `faults`, `coverage` | tests that every check can fail, and that every situation occurs |

mod actors;
mod answer;
mod coverage;
mod dice;
mod facade;
mod faults;
mod invariants;
mod ledger;
mod oracle;
mod pages;
mod plan;
mod refusals;
mod replay;
mod reply;
mod script;
mod sent;
mod sim;
mod stream;
mod submission;
mod tools;
mod tracker;
pub(super) mod wire;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deftool_test_support::is_full;
use deftool_worker::{ToolSource, Transport};
use tokio::task::JoinSet;

use actors::{Server, Source, at_times, poll_readiness, run_case};
use dice::Dice;
use facade::WorkerFacade;
use faults::Fault;
use invariants::{Invariant, Violation};
use plan::Plan;
use replay::check_replay;
use sim::Simulation;

/// The seeds of a full run, in which every situation occurs.
const SEEDS: Range<u64> = 0..1_500;

/// The number of seeds of a reduced run.
const REDUCED: u64 = 125;

/// Options of a simulated run.
#[derive(Debug, Clone, Copy, Default)]
struct Options {
    fault: Option<Fault>,
    traces: bool,
    /// The maximum number of requests.
    cases: Option<usize>,
}

/// The result of a simulated run.
#[derive(Debug)]
struct RunResult {
    violation: Option<Violation>,
    trace: Vec<String>,
    features: BTreeMap<String, usize>,
}

fn simulate(seed: u64, options: Options) -> RunResult {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(run(seed, options))
}

async fn run(seed: u64, options: Options) -> RunResult {
    let mut plan = Plan::of_seed(seed);
    plan.cases.truncate(options.cases.unwrap_or(usize::MAX));
    let config = plan.config.clone();
    let sim = Simulation::new(plan, options.fault, options.traces);
    let source: Arc<dyn ToolSource> = Arc::new(Source(Arc::clone(&sim)));
    let transport: Arc<dyn Transport> = Arc::new(Server(Arc::clone(&sim)));
    for feature in plan::features(&config) {
        sim.count(&feature);
    }
    sim.set_facade(Some(WorkerFacade::start(config, source, transport, options.fault)));

    let mut others = JoinSet::new();
    let plan = &sim.plan;
    others.spawn(at_times(Arc::clone(&sim), plan.reloads.clone(), |sim, _| sim.reload()));
    others.spawn(at_times(Arc::clone(&sim), plan.restarts.clone(), |sim, _| sim.restart()));
    others.spawn(at_times(Arc::clone(&sim), plan.stop.into_iter().collect(), |sim, _| sim.stop()));
    others.spawn(at_times(Arc::clone(&sim), plan.take_times.clone(), |sim, nth| {
        let mut dice = Dice::of(sim.plan.seed, "takers", &[nth as u64]);
        sim.take(dice.below(0..sim.plan.cases.len()));
    }));
    others.spawn(poll_readiness(Arc::clone(&sim)));
    let mut case_tasks = JoinSet::new();
    for number in 0..plan.cases.len() {
        case_tasks.spawn(run_case(Arc::clone(&sim), number));
    }
    while sim.ledger().violation.is_none() {
        let due = sim.next_due();
        let wakes = async {
            match due {
                Some(due) => tokio::time::sleep_until(sim.instant(due + Duration::from_millis(1))).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            ended = case_tasks.join_next() => match ended {
                Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
                Some(_) => {}
                None => break,
            },
            () = wakes => sim.check_due(),
        }
    }
    finish(&sim, case_tasks, others, options.fault).await;
    let run_recording = sim.run_recording.lock().unwrap().take();
    if let Some(run_recording) = run_recording.filter(|_| sim.ledger().violation.is_none()) {
        check_replay(&sim, run_recording, sim.plan.config.clone()).await;
    }
    sim.set_facade(None);
    let mut ledger = sim.ledger();
    RunResult {
        violation: ledger.violation.clone(),
        trace: ledger.trace.take().unwrap_or_default(),
        features: std::mem::take(&mut ledger.features),
    }
}

/// Ends a run and checks that no task, request or draining slot is left.
async fn finish(
    sim: &Simulation,
    mut case_tasks: JoinSet<()>,
    mut others: JoinSet<()>,
    fault: Option<Fault>,
) {
    case_tasks.shutdown().await;
    others.shutdown().await;
    if fault == Some(Fault::LeakTask) {
        tokio::spawn(std::future::pending::<()>());
    }
    // A driver that sent its last event ends at its next poll.
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    sim.observe();
    // Draining slots are freed after a time limit.
    let limit = Duration::from_secs(70);
    let drained = tokio::time::timeout(limit, sim.facade().drained()).await.is_ok();
    let draining = sim.facade().draining();
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    sim.observe();
    let left = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let in_flight = sim.facade().in_flight();
    let mut ledger = sim.ledger();
    ledger.check(Invariant::Slots, in_flight == 0, || format!("{in_flight} requests in flight at the end"));
    ledger.check(Invariant::Drains, drained && draining == 0, || format!("{draining} slots drain forever"));
    ledger.check(Invariant::NoTaskLeft, left == 0, || format!("{left} tasks are left"));
}

/// Describes a violation: the seed, the command to reproduce it, and the trace.
fn describe(seed: u64, violation: &Violation) -> String {
    let cases = (1..8).find(|cases| {
        simulate(seed, Options { cases: Some(*cases), ..Options::default() }).violation.is_some()
    });
    let options = Options { traces: true, cases, ..Options::default() };
    let trace = simulate(seed, options).trace;
    let mut text = format!("seed {seed} violates {:?}: {}\n", violation.invariant, violation.how);
    let only = cases.map_or_else(String::new, |cases| format!(" DEFTOOL_SIM_CASES={cases}"));
    let _ = writeln!(
        text,
        "replay: DEFTOOL_SIM={seed}{only} cargo test --test it -- simulation::runs --nocapture"
    );
    let skipped = trace.len().saturating_sub(200);
    let _ = writeln!(text, "trace, without the first {skipped} lines:");
    for line in trace.iter().skip(skipped) {
        let _ = writeln!(text, "{}", line.chars().take(600).collect::<String>());
    }
    text
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name}=NUMBER")))
}

fn seeds() -> Range<u64> {
    let Ok(range) = std::env::var("DEFTOOL_SIM_SEEDS") else {
        return if is_full() { SEEDS } else { SEEDS.start..SEEDS.start + REDUCED };
    };
    let ends = range.split_once("..").and_then(|(a, b)| Some(a.parse().ok()?..b.parse().ok()?));
    ends.unwrap_or_else(|| panic!("DEFTOOL_SIM_SEEDS=FIRST..END"))
}

#[test]
fn runs() {
    if let Some(seed) = number("DEFTOOL_SIM") {
        let cases = number("DEFTOOL_SIM_CASES").map(|cases| cases as usize);
        let played = simulate(seed, Options { traces: true, cases, fault: None });
        played.trace.iter().for_each(|line| println!("{line}"));
        assert_eq!(played.violation, None);
        return;
    }
    let (started, seeds) = (Instant::now(), seeds());
    let mut features: BTreeMap<String, usize> = BTreeMap::new();
    let mut failed: Vec<(u64, Violation)> = Vec::new();
    for seed in seeds.clone() {
        let played = simulate(seed, Options::default());
        failed.extend(played.violation.map(|violation| (seed, violation)));
        for (feature, count) in played.features {
            *features.entry(feature).or_default() += count;
        }
    }
    if let Some((seed, violation)) = failed.first() {
        for (seed, violation) in failed.iter().take(20) {
            let how: String = violation.how.chars().take(300).collect();
            println!("seed {seed}: {:?}: {how}", violation.invariant);
        }
        panic!("{} runs failed; the first:\n{}", failed.len(), describe(*seed, violation));
    }
    println!("{} runs in {:?}", seeds.end - seeds.start, started.elapsed());
    for (feature, count) in &features {
        println!("{count:>8} {feature}");
    }
    if seeds == SEEDS {
        assert_eq!(coverage::gaps(&features), [""; 0]);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let traced = Options { traces: true, ..Options::default() };
    for seed in SEEDS.start..SEEDS.start + 40 {
        let (first, second) = (simulate(seed, traced).trace, simulate(seed, traced).trace);
        assert!(!first.is_empty());
        for (first, second) in first.iter().zip(&second) {
            assert_eq!(first, second, "seed {seed}");
        }
        assert_eq!(first.len(), second.len(), "seed {seed}");
    }
}
