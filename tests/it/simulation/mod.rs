//! The whole worker in scripted worlds under paused time: server, tools, people, reloads, restarts, all out of one seed.
//!
//! `DEFTOOL_SIM=SEED` plays one world and prints its trace (`DEFTOOL_SIM_CASES=N`: only its first N requests);
//! `DEFTOOL_SIM_SEEDS=a..b` plays others than the usual thousand.
//!
//! | file | holds |
//! |---|---|
//! | `plan` | what is decided before a world begins |
//! | `script`, `reply`, `pages`, `tools` | what the server says, what the tools do |
//! | `completions`, `responses`, `wire` | how the two APIs put it |
//! | `again` | its recording, played again |
//! | `own` | what a request brings along |
//! | `swaps` | what it refuses, and what must be sent then |
//! | `actors`, `world` | who acts; every step, by who takes it, and what is looked at after it |
//! | `face` | the worker as all of them see it |
//! | `laws`, `told`, `sent`, `oracle`, `ledger` | what must hold |
//! | `faults`, `coverage` | that each law can fail; that what may happen does |

mod actors;
mod again;
mod completions;
mod coverage;
mod dice;
mod face;
mod faults;
mod laws;
mod ledger;
mod oracle;
mod own;
mod pages;
mod plan;
mod reply;
mod responses;
mod script;
mod sent;
mod swaps;
mod told;
mod tools;
mod wire;
mod world;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deftool::worker::{ToolSource, Transport};
use tokio::task::JoinSet;

use actors::{Server, Source, ask, at_times, live};
use again::play_again;
use dice::Dice;
use face::Face;
use faults::Fault;
use laws::{Broken, Law};
use plan::Plan;
use world::World;

/// The usual worlds.
const SEEDS: Range<u64> = 0..1_000;

/// How a world is played.
#[derive(Debug, Clone, Copy, Default)]
struct Options {
    fault: Option<Fault>,
    traces: bool,
    /// Only so many requests.
    cases: Option<usize>,
}

/// A world that was played.
#[derive(Debug)]
struct Played {
    broken: Option<Broken>,
    trace: Vec<String>,
    features: BTreeMap<String, usize>,
}

fn play(seed: u64, options: Options) -> Played {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(run(seed, options))
}

async fn run(seed: u64, options: Options) -> Played {
    let mut plan = Plan::of_seed(seed);
    plan.cases.truncate(options.cases.unwrap_or(usize::MAX));
    let config = plan.config.clone();
    let world = World::new(plan, options.fault, options.traces);
    let source: Arc<dyn ToolSource> = Arc::new(Source(Arc::clone(&world)));
    let transport: Arc<dyn Transport> = Arc::new(Server(Arc::clone(&world)));
    for feature in plan::features(&config) {
        world.count(&feature);
    }
    world.set_face(Some(Face::start(config, source, transport, options.fault)));

    let mut others = JoinSet::new();
    let plan = &world.plan;
    others.spawn(at_times(Arc::clone(&world), plan.reloads.clone(), |world, _| world.reload()));
    others.spawn(at_times(Arc::clone(&world), plan.restarts.clone(), |world, _| world.restart()));
    others.spawn(at_times(Arc::clone(&world), plan.stop.into_iter().collect(), |world, _| world.stop()));
    others.spawn(at_times(Arc::clone(&world), plan.takers.clone(), |world, nth| {
        let mut dice = Dice::of(world.plan.seed, "takers", &[nth as u64]);
        world.take(dice.below(0..world.plan.cases.len()));
    }));
    others.spawn(ask(Arc::clone(&world)));
    let mut lives = JoinSet::new();
    for number in 0..plan.cases.len() {
        lives.spawn(live(Arc::clone(&world), number));
    }
    while world.ledger().broken.is_none() {
        let due = world.next_due();
        let wakes = async {
            match due {
                Some(due) => tokio::time::sleep_until(world.instant(due + Duration::from_millis(1))).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            ended = lives.join_next() => match ended {
                Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
                Some(_) => {}
                None => break,
            },
            () = wakes => world.check_due(),
        }
    }
    finish(&world, lives, others, options.fault).await;
    let tape = world.tape.lock().unwrap().take();
    if let Some(tape) = tape.filter(|_| world.ledger().broken.is_none()) {
        play_again(&world, tape, world.plan.config.clone()).await;
    }
    world.set_face(None);
    let mut ledger = world.ledger();
    Played {
        broken: ledger.broken.clone(),
        trace: ledger.trace.take().unwrap_or_default(),
        features: std::mem::take(&mut ledger.features),
    }
}

/// All is over: nobody is left, and nothing.
async fn finish(world: &World, mut lives: JoinSet<()>, mut others: JoinSet<()>, fault: Option<Fault>) {
    lives.shutdown().await;
    others.shutdown().await;
    if fault == Some(Fault::Linger) {
        tokio::spawn(std::future::pending::<()>());
    }
    // A driver that has told the end is over when it is polled once more.
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    world.observe();
    // What is kept back comes back by itself.
    let limit = Duration::from_secs(70);
    let drained = tokio::time::timeout(limit, world.face().drained()).await.is_ok();
    let draining = world.face().draining();
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    world.observe();
    let left = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let in_flight = world.face().in_flight();
    let mut ledger = world.ledger();
    ledger.hold(Law::Slots, in_flight == 0, || format!("{in_flight} in flight when all is over"));
    ledger.hold(Law::Drains, drained && draining == 0, || format!("{draining} slots drain for ever"));
    ledger.hold(Law::Leaves, left == 0, || format!("{left} tasks are left"));
}

/// What a person needs to see what went wrong.
fn describe(seed: u64, broken: &Broken) -> String {
    let cases = (1..8)
        .find(|cases| play(seed, Options { cases: Some(*cases), ..Options::default() }).broken.is_some());
    let options = Options { traces: true, cases, ..Options::default() };
    let trace = play(seed, options).trace;
    let mut text = format!("seed {seed} breaks {:?}: {}\n", broken.law, broken.how);
    let only = cases.map_or_else(String::new, |cases| format!(" DEFTOOL_SIM_CASES={cases}"));
    let _ = writeln!(
        text,
        "replay: DEFTOOL_SIM={seed}{only} cargo test --test it -- simulation::worlds --nocapture"
    );
    let skipped = trace.len().saturating_sub(200);
    let _ = writeln!(text, "its trace, without the first {skipped} lines:");
    for line in trace.iter().skip(skipped) {
        let _ = writeln!(text, "{}", line.chars().take(600).collect::<String>());
    }
    text
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name}=NUMBER")))
}

fn seeds() -> Range<u64> {
    let Ok(range) = std::env::var("DEFTOOL_SIM_SEEDS") else { return SEEDS };
    let ends = range.split_once("..").and_then(|(a, b)| Some(a.parse().ok()?..b.parse().ok()?));
    ends.unwrap_or_else(|| panic!("DEFTOOL_SIM_SEEDS=FIRST..END"))
}

#[test]
fn worlds() {
    if let Some(seed) = number("DEFTOOL_SIM") {
        let cases = number("DEFTOOL_SIM_CASES").map(|cases| cases as usize);
        let played = play(seed, Options { traces: true, cases, fault: None });
        played.trace.iter().for_each(|line| println!("{line}"));
        assert_eq!(played.broken, None);
        return;
    }
    let (started, seeds) = (Instant::now(), seeds());
    let mut features: BTreeMap<String, usize> = BTreeMap::new();
    let mut failed: Vec<(u64, Broken)> = Vec::new();
    for seed in seeds.clone() {
        let played = play(seed, Options::default());
        failed.extend(played.broken.map(|broken| (seed, broken)));
        for (feature, count) in played.features {
            *features.entry(feature).or_default() += count;
        }
    }
    if let Some((seed, broken)) = failed.first() {
        for (seed, broken) in failed.iter().take(20) {
            let how: String = broken.how.chars().take(300).collect();
            println!("seed {seed}: {:?}: {how}", broken.law);
        }
        panic!("{} worlds failed; the first:\n{}", failed.len(), describe(*seed, broken));
    }
    println!("{} worlds in {:?}", seeds.end - seeds.start, started.elapsed());
    for (feature, count) in &features {
        println!("{count:>8} {feature}");
    }
    if seeds == SEEDS {
        assert_eq!(coverage::gaps(&features), [""; 0]);
    }
}

#[test]
fn the_same_seed_is_the_same_world() {
    let traced = Options { traces: true, ..Options::default() };
    for seed in SEEDS.start..SEEDS.start + 40 {
        let (first, second) = (play(seed, traced).trace, play(seed, traced).trace);
        assert!(!first.is_empty());
        for (first, second) in first.iter().zip(&second) {
            assert_eq!(first, second, "seed {seed}");
        }
        assert_eq!(first.len(), second.len(), "seed {seed}");
    }
}
