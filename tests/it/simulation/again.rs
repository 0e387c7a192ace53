//! A world's recording, played again: the same requests, the same events.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use deftool::request::Event;
use deftool::tool::{CallContext, ToolCall, ToolError, ToolErrorKind, ToolRunner};
use deftool::worker::{
    Recorder, Recording, ReplayOptions, ReplayTransport, SubmitRequest, Toolbox, Worker, WorkerConfig,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::faults::Fault;
use super::laws::{Broken, Law};
use super::plan::Plan;
use super::tools::Generation;
use super::world::World;

/// Where a world is recorded.
#[derive(Debug)]
pub(super) struct Tape {
    directory: tempfile::TempDir,
    pub(super) recorder: Arc<Recorder>,
}

impl Tape {
    /// For a world whose tools stay as they are: a replay has those of today.
    pub(super) fn of(plan: &Plan, fault: Option<Fault>) -> Option<Self> {
        let is_wanted = fault.is_none_or(|fault| fault == Fault::ForgeReplay);
        if !is_wanted || !plan.is_recorded {
            return None;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let recorder = Recorder::create(&file_in(&directory)).expect("a recording");
        Some(Self { directory, recorder: Arc::new(recorder) })
    }
}

fn file_in(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("world.jsonl")
}

/// Runs nothing: results come from the recording.
struct Nobody;

impl ToolRunner for Nobody {
    fn run(&self, _: ToolCall, _: CallContext) -> BoxFuture<'_, Result<Value, ToolError>> {
        std::future::ready(Err(ToolError::new(ToolErrorKind::Internal, "a replay ran a tool"))).boxed()
    }
}

/// Plays what was recorded and compares.
pub(super) async fn play_again(world: &World, tape: Tape, config: WorkerConfig) {
    let told: Vec<Vec<Arc<Event>>> = world.ledger().cases.values().map(|case| case.events.clone()).collect();
    if told.is_empty() || told.iter().any(|events| is_lost(events)) {
        return;
    }
    tape.recorder.close().expect("it was written");
    let recording = Recording::read(&file_in(&tape.directory)).expect("a recording");
    let options = ReplayOptions { recorded_tools: true, ..ReplayOptions::default() };
    let transport = Arc::new(ReplayTransport::with(recording, options));
    let generation = Generation::new(world.plan.seed, 0);
    let tools = Toolbox { generation: 0, tools: generation.set, runner: Arc::new(Nobody) };
    let worker = Worker::replay(config, Arc::new(tools), Arc::clone(&transport));
    for _ in 0..transport.requests() {
        let replayed = replay_one(&worker, world.fault).await;
        let is_same = replayed.as_ref().is_ok_and(|replayed| told.contains(replayed));
        world.count("a request is replayed");
        world.ledger().hold(Law::Replays, is_same, || format!("a replay tells {replayed:?}"));
    }
    let differences = transport.differences();
    world
        .ledger()
        .hold(Law::Replays, differences.is_empty(), || format!("a replay differs: {differences:?}"));
}

async fn replay_one(worker: &Worker, fault: Option<Fault>) -> Result<Vec<Arc<Event>>, Broken> {
    let broken = |how: String| Broken { law: Law::Replays, how };
    let id = worker.submit(SubmitRequest::default()).map_err(|error| broken(error.to_string()))?;
    let mut reader = worker.events(&id, 0).ok_or_else(|| broken(String::from("it is gone")))?;
    let mut replayed = Vec::new();
    let all = async {
        while let Some(event) = reader.next().await {
            replayed.push(event);
        }
    };
    tokio::time::timeout(Duration::from_secs(3_600), all).await.map_err(|_| broken(format!("{id} hangs")))?;
    if fault == Some(Fault::ForgeReplay) {
        replayed.pop();
    }
    Ok(replayed)
}

/// Of a driver that is lost the recording has no end.
fn is_lost(events: &[Arc<Event>]) -> bool {
    !matches!(events.last().map(|event| &**event), Some(Event::Finished(outcome)) if outcome.kind.as_deref() != Some("internal"))
}
