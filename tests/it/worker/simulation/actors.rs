//! The actors of a simulation: the server, the tools and their source, and the users that submit, read, approve and
//! cancel.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use deftool_chat::Api;
use deftool_chat::request::{Approval, Event};
use deftool_lang::tool::{CallContext, ToolCall, ToolError, ToolErrorKind, ToolOutput, ToolRunner};
use deftool_worker::{
    Incoming, Outgoing, Page, PageResponse, ToolSource, Toolbox, Transport, TransportError,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::answer::{Progress, answer};
use super::dice::Dice;
use super::facade::Rejection;
use super::faults::Fault;
use super::plan::{Approver, Cancel};
use super::sim::Simulation;
use super::tools::{Generation, ToolEnd};
use super::tracker::EventTracker;

/// The server.
pub(super) struct Server(pub(super) Arc<Simulation>);

/// An exchange that the worker has not dropped.
struct OpenExchange {
    sim: Arc<Simulation>,
    number: usize,
}

impl Drop for OpenExchange {
    fn drop(&mut self) {
        self.sim.exchange_ends(self.number);
    }
}

impl Progress for OpenExchange {
    fn on_connection_failure(&self) {
        self.sim.on_connection_failure(self.number);
    }

    fn on_head(&self) {
        self.sim.on_head(self.number);
    }

    fn on_bytes(&self, bytes: usize, frames: usize) {
        self.sim.on_bytes(self.number, bytes, frames);
    }

    fn on_body_end(&self) {
        self.sim.on_body_end(self.number);
    }
}

impl Transport for Server {
    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<Incoming, TransportError>> {
        async move { self.answer(outgoing).await }.boxed()
    }

    fn get_page(&self, page: Page) -> BoxFuture<'_, PageResponse> {
        async move {
            let (after, look) = self.0.begin_page_request(page);
            if !after.is_zero() {
                sleep(after).await;
            }
            self.0.end_page_request(page, &look);
            look
        }
        .boxed()
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), String>> {
        async move {
            let (after, answer) = self.0.begin_probe();
            if !after.is_zero() {
                sleep(after).await;
            }
            self.0.end_probe(&answer);
            answer
        }
        .boxed()
    }

    fn url(&self, _: Api) -> &'static str {
        "http://simulated/v1/chat/completions"
    }
}

impl Server {
    async fn answer(&self, outgoing: Outgoing) -> Result<Incoming, TransportError> {
        let cut_seed = u64::from(outgoing.turn) << 8 | u64::from(outgoing.attempt);
        let (number, script) = self.0.begin_exchange(outgoing);
        let open = OpenExchange { sim: Arc::clone(&self.0), number };
        let dice = Dice::of(self.0.plan.seed, "cuts", &[number as u64, cut_seed]);
        answer(script, dice, self.0.fault == Some(Fault::LoseBytes), open).await
    }
}

/// The tool source of the worker.
pub(super) struct Source(pub(super) Arc<Simulation>);

impl ToolSource for Source {
    fn current(&self) -> Toolbox {
        let generation = self.0.current();
        Toolbox {
            generation: generation.number,
            tools: generation.set.clone(),
            runner: Arc::new(Runner { sim: Arc::clone(&self.0), generation }),
        }
    }
}

/// Runs the tools of one generation.
struct Runner {
    sim: Arc<Simulation>,
    generation: Arc<Generation>,
}

/// A running call. Dropping it reports that the call was abandoned.
struct RunningCall {
    sim: Arc<Simulation>,
    job: String,
    call: String,
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.sim.end_call(&self.job, &self.call, None);
    }
}

impl ToolRunner for Runner {
    fn run(&self, call: ToolCall, context: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        let behavior = self.sim.begin_call(&self.generation, &call, &context);
        if self.sim.fault == Some(Fault::RunTwice) {
            self.sim.begin_call(&self.generation, &call, &context);
        }
        let running = RunningCall { sim: Arc::clone(&self.sim), job: context.job_name, call: call.id };
        let panics = move |running: &RunningCall| -> Result<Value, ToolError> {
            running.sim.end_call(&running.job, &running.call, Some(Err(ToolErrorKind::Internal)));
            resume_unwind(Box::new("a bug of the tool's"))
        };
        if let ToolEnd::PanicsAtOnce = behavior.end {
            let _ = panics(&running);
        }
        async move {
            if !behavior.after.is_zero() {
                sleep(behavior.after).await;
            }
            let result = match behavior.end {
                ToolEnd::Never => std::future::pending().await,
                ToolEnd::PanicsAtOnce | ToolEnd::Panics => panics(&running),
                ToolEnd::Result(_) | ToolEnd::Fails(_) => behavior.result(),
            };
            let end = result.as_ref().map_err(|error| error.kind);
            running.sim.end_call(&running.job, &running.call, Some(end));
            result.map(Into::into)
        }
        .boxed()
    }
}

/// Checks at the planned times whether the worker is ready.
pub(super) async fn poll_readiness(sim: Arc<Simulation>) {
    for time in &sim.plan.readiness_checks {
        tokio::time::sleep_until(sim.instant(*time)).await;
        let is_ready = sim.facade().is_ready().await;
        sim.check_ready(is_ready);
    }
}

/// Calls `act` at each of `times`.
pub(super) async fn at_times(sim: Arc<Simulation>, times: Vec<Duration>, act: impl Fn(&Simulation, usize)) {
    for (nth, time) in times.into_iter().enumerate() {
        tokio::time::sleep_until(sim.instant(time)).await;
        act(&sim, nth);
    }
}

/// Runs a case from its submit to its end, with its readers, cancels and approvals.
pub(super) async fn run_case(sim: Arc<Simulation>, number: usize) {
    let plan = &sim.plan.cases[number];
    let mut dice = Dice::of(sim.plan.seed, "life", &[number as u64]);
    tokio::time::sleep_until(sim.instant(plan.at)).await;
    let mut tries = 0;
    let (id, mut reader) = loop {
        match sim.submit(number, tries) {
            Ok(taken) => break taken,
            Err(Rejection::NoSlot | Rejection::NotReady) if tries < plan.patience => {
                tries += 1;
                sleep(dice.ms(1..20_000)).await;
            }
            Err(_) => return,
        }
    };
    let mut others = JoinSet::new();
    for (offset, patience) in plan.readers.iter().copied() {
        let mut reader = sim.facade().events(&id, offset).expect("the request is remembered");
        let sim = Arc::clone(&sim);
        others.spawn(async move {
            let mut got = Vec::new();
            while got.len() < patience
                && let Some(event) = reader.next().await
            {
                got.push(event);
            }
            if got.len() == patience {
                sim.count("a reader stops");
            }
            drop(reader);
            // Compare after the first reader has read the same events.
            sleep(Duration::from_millis(1)).await;
            sim.compare(number, offset, &got);
        });
    }
    if plan.waits {
        let end = sim.facade().wait(&id);
        let sim = Arc::clone(&sim);
        others.spawn(async move {
            let got = end.await;
            sleep(Duration::from_millis(1)).await;
            sim.compare_end(number, got);
        });
    }
    if let Some(Cancel::After(time)) = plan.cancel {
        let sim = Arc::clone(&sim);
        others.spawn(async move {
            sleep(time).await;
            sim.cancel(number, None);
        });
    }
    let mut tracker = EventTracker::new(sim.plan.config.run.tool_budget);
    loop {
        let event = match reader.next_now() {
            Poll::Ready(event) => event,
            Poll::Pending => {
                if sim.fault != Some(Fault::EndLate) {
                    sim.is_idle(number, &tracker);
                }
                reader.next().await
            }
        };
        let Some(event) = event else { break };
        sim.record(number, &mut tracker, Arc::clone(&event));
        if let Some(Cancel::AtEvent(nth)) = plan.cancel
            && nth == tracker.events
        {
            // The other reader reads the end.
            let other = sim.facade().events(&id, tracker.events).filter(|_| plan.streams);
            sim.cancel(number, other.map(|other| std::mem::replace(&mut reader, other)));
        }
        if let Event::Approval { id, answer: None, .. } = &*event
            && sim.plan.config.approvals == deftool_worker::Approvals::Ask
        {
            others.spawn(decide(Arc::clone(&sim), number, id.clone(), dice.number()));
        }
    }
    // Other readers end by themselves. Cancels and approvals may arrive after the end.
    while let Some(ended) = others.join_next().await {
        ended.unwrap_or_else(|error| resume_unwind(error.into_panic()));
    }
}

/// Answers an approval request.
async fn decide(sim: Arc<Simulation>, number: usize, call: String, seed: u64) {
    let mut dice = Dice::of(seed, "approver", &[]);
    let refused = || Approval::Refused { reason: String::from("rather not") };
    let (feature, wait, answer) = match sim.plan.cases[number].approver {
        Approver::Allows => ("approval: allowed", Duration::ZERO, Some(Approval::Allowed)),
        Approver::Refuses => ("approval: refused", dice.ms(0..50), Some(refused())),
        Approver::Late => {
            let answer = if dice.chance(50) { Approval::Allowed } else { refused() };
            ("approval: late", dice.ms(1_000..90_000), Some(answer))
        }
        Approver::Never => ("approval: never", dice.ms(1_000..90_000), None),
    };
    sim.count(feature);
    if !wait.is_zero() {
        sleep(wait).await;
    }
    match answer {
        Some(answer) => sim.approve(number, &call, answer),
        None => sim.cancel(number, None),
    }
}
