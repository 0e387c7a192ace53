//! Replays of recorded runs: the same requests must have the same events.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use deftool_chat::request::Event;
use deftool_lang::tool::{CallContext, ToolCall, ToolError, ToolErrorKind, ToolOutput, ToolRunner};
use deftool_record::{Recorder, Recording, Redaction, ReplayOptions};
use deftool_worker::{ReplayTransport, SubmitRequest, Toolbox, Worker, WorkerConfig};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::faults::Fault;
use super::invariants::{Invariant, Violation};
use super::plan::Plan;
use super::sim::Simulation;
use super::tools::Generation;

/// The recording of a run.
#[derive(Debug)]
pub(super) struct RunRecording {
    directory: tempfile::TempDir,
    pub(super) recorder: Arc<Recorder>,
}

impl RunRecording {
    /// Starts a recording, if the plan asks for one. Such runs have no tool reloads, since a replay uses the current
    /// tools.
    pub(super) fn of(plan: &Plan, fault: Option<Fault>) -> Option<Self> {
        let is_wanted = fault.is_none_or(|fault| fault == Fault::TruncateReplay);
        if !is_wanted || !plan.is_recorded {
            return None;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let recorder = Recorder::create(&file_in(&directory), Redaction::default()).expect("a recording");
        Some(Self { directory, recorder: Arc::new(recorder) })
    }
}

fn file_in(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("run.jsonl")
}

/// A runner that fails. The results come from the recording.
struct NoTools;

impl ToolRunner for NoTools {
    fn run(&self, _: ToolCall, _: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        std::future::ready(Err(ToolError::new(ToolErrorKind::Internal, "a replay ran a tool"))).boxed()
    }
}

/// Replays the recording and compares the events.
pub(super) async fn check_replay(sim: &Simulation, run_recording: RunRecording, config: WorkerConfig) {
    let original: Vec<Vec<Arc<Event>>> =
        sim.ledger().cases.values().map(|case| case.events.clone()).collect();
    if original.is_empty() || original.iter().any(|events| is_lost(events)) {
        return;
    }
    run_recording.recorder.close().expect("it was written");
    let recording = Recording::read(&file_in(&run_recording.directory)).expect("a recording");
    let options = ReplayOptions { recorded_tools: true, ..ReplayOptions::default() };
    let transport = Arc::new(ReplayTransport::with(recording, options));
    let generation = Generation::new(sim.plan.seed, 0);
    let tools = Toolbox { generation: 0, tools: generation.set, runner: Arc::new(NoTools) };
    let worker = Worker::replay(config, Arc::new(tools), Arc::clone(&transport));
    for _ in 0..transport.requests() {
        let replayed = replay_one(&worker, sim.fault).await;
        let is_same = replayed.as_ref().is_ok_and(|replayed| original.contains(replayed));
        sim.count("a request is replayed");
        sim.ledger().check(Invariant::Replay, is_same, || format!("a replay has the events {replayed:?}"));
    }
    let differences = transport.differences();
    sim.ledger()
        .check(Invariant::Replay, differences.is_empty(), || format!("a replay differs: {differences:?}"));
}

async fn replay_one(worker: &Worker, fault: Option<Fault>) -> Result<Vec<Arc<Event>>, Violation> {
    let violation = |how: String| Violation { invariant: Invariant::Replay, how };
    let id = worker.submit(SubmitRequest::default()).map_err(|error| violation(error.to_string()))?;
    let mut reader = worker.events(&id, 0).ok_or_else(|| violation(String::from("unknown request")))?;
    let mut replayed = Vec::new();
    let all = async {
        while let Some(event) = reader.next().await {
            replayed.push(event);
        }
    };
    tokio::time::timeout(Duration::from_secs(3_600), all)
        .await
        .map_err(|_| violation(format!("{id} hangs")))?;
    if fault == Some(Fault::TruncateReplay) {
        replayed.pop();
    }
    Ok(replayed)
}

/// Whether the driver panicked. Its recording has no end.
fn is_lost(events: &[Arc<Event>]) -> bool {
    !matches!(events.last().map(|event| &**event), Some(Event::Finished(outcome)) if outcome.kind.as_deref() != Some("internal"))
}
