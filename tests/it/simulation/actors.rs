//! Who acts in a world: the server, the tools and their source, those who submit, read, answer and give up.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use deftool::chat::Api;
use deftool::request::{Approval, Event};
use deftool::tool::{CallContext, ToolCall, ToolError, ToolErrorKind, ToolRunner};
use deftool::worker::{Incoming, Look, Outgoing, Page, ToolSource, Toolbox, Transport, TransportError};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::dice::Dice;
use super::face::Refusal;
use super::faults::Fault;
use super::plan::{Approver, Cancel};
use super::script::{Head, Script, Tail};
use super::told::Told;
use super::tools::{DeedEnd, Generation};
use super::world::World;

/// The server.
pub(super) struct Server(pub(super) Arc<World>);

/// An exchange that the worker has not let go.
struct Open {
    world: Arc<World>,
    number: usize,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.world.exchange_ends(self.number);
    }
}

/// A part of a body on its way.
enum Piece {
    Wait(Duration),
    /// Bytes, and how many frames end in them.
    Bytes(Vec<u8>, usize),
}

impl Transport for Server {
    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<Incoming, TransportError>> {
        async move { self.answer(outgoing).await }.boxed()
    }

    fn look(&self, page: Page) -> BoxFuture<'_, Look> {
        async move {
            let (after, look) = self.0.begin_look(page);
            if !after.is_zero() {
                sleep(after).await;
            }
            self.0.end_look(page, &look);
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
        let open = Open { world: Arc::clone(&self.0), number };
        match script.head_after {
            Some(Duration::ZERO) => {}
            Some(after) => sleep(after).await,
            None => std::future::pending().await,
        }
        let message = String::from("as the script says");
        if matches!(script.head, Head::Refused | Head::Unreachable | Head::Broken) {
            self.0.connection_fails(number);
        }
        let (status, retry_after) = match script.head {
            Head::Panics => resume_unwind(Box::new("a bug of the transport's")),
            Head::Refused => return Err(TransportError::Connect { message, refused: true }),
            Head::Unreachable => return Err(TransportError::Connect { message, refused: false }),
            Head::Broken => return Err(TransportError::Broken { message }),
            Head::Ok => (200, None),
            Head::Status { status, retry_after } => (status, retry_after),
        };
        self.0.head_comes(number);
        let mut dice = Dice::of(self.0.plan.seed, "cuts", &[number as u64, cut_seed]);
        let loses = self.0.fault == Some(Fault::LoseBytes);
        let pieces = cut(&mut dice, &script, loses);
        let body = stream::unfold((pieces, script.tail, open), move |(mut pieces, tail, open)| {
            let world = Arc::clone(&open.world);
            async move {
                loop {
                    match pieces.pop_front() {
                        Some(Piece::Wait(time)) => sleep(time).await,
                        Some(Piece::Bytes(bytes, frames)) => {
                            world.bytes_come(number, bytes.len(), frames);
                            return Some((Ok(bytes), (pieces, tail, open)));
                        }
                        None if tail == Tail::Silence => std::future::pending().await,
                        None => {
                            world.body_ends(number);
                            let message = String::from("the connection broke");
                            let broken = TransportError::Broken { message };
                            let left = (pieces, Tail::End, open);
                            return (tail == Tail::Break).then_some((Err(broken), left));
                        }
                    }
                }
            }
        });
        let location = (status == 302).then(|| String::from("http://elsewhere/v1/chat/completions"));
        Ok(Incoming { status, retry_after, location, body: body.boxed() })
    }
}

/// Frames as reads: cut anywhere, several together; no read spans a pause.
fn cut(dice: &mut Dice, script: &Script, loses: bool) -> VecDeque<Piece> {
    let mut pieces = VecDeque::new();
    let mut frames = script.frames.iter().peekable();
    let mut lost = false;
    while let Some(first) = frames.next() {
        if !first.before.is_zero() {
            pieces.push_back(Piece::Wait(first.before));
        }
        let mut lump = Vec::new();
        let mut ends = Vec::new();
        let mut add = |frame: &super::script::Frame| {
            if loses && !lost && frame.text > 0 {
                lost = true;
            } else {
                lump.extend_from_slice(&frame.bytes);
            }
            // A line ends at CR: the LF after the last one brings nothing.
            let needless = usize::from(frame.bytes.ends_with(b"\r\n\r\n"));
            ends.push(lump.len().saturating_sub(needless));
        };
        add(first);
        while let Some(next) = frames.next_if(|next| next.before.is_zero()) {
            add(next);
        }
        let (mut from, mut told) = (0, 0);
        let most = *dice.pick(&[7, 100, 10_000]);
        let most = most.max(lump.len() / 20 + 1);
        loop {
            let to = (from + dice.below(1..most + 1)).min(lump.len());
            let whole = if to == lump.len() { ends.len() } else { ends.partition_point(|end| *end <= to) };
            pieces.push_back(Piece::Bytes(lump[from..to].to_vec(), whole - told));
            (from, told) = (to, whole);
            if to == lump.len() {
                break;
            }
        }
    }
    pieces
}

/// Where the worker gets its tools.
pub(super) struct Source(pub(super) Arc<World>);

impl ToolSource for Source {
    fn current(&self) -> Toolbox {
        let generation = self.0.current();
        Toolbox {
            generation: generation.number,
            tools: generation.set.clone(),
            runner: Arc::new(Runner { world: Arc::clone(&self.0), generation }),
        }
    }
}

/// Runs the tools of one generation.
struct Runner {
    world: Arc<World>,
    generation: Arc<Generation>,
}

/// Says so when a call is given up.
struct Running {
    world: Arc<World>,
    job: String,
    call: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.world.end_call(&self.job, &self.call, None);
    }
}

impl ToolRunner for Runner {
    fn run(&self, call: ToolCall, context: CallContext) -> BoxFuture<'_, Result<Value, ToolError>> {
        let deed = self.world.begin_call(&self.generation, &call, &context);
        if self.world.fault == Some(Fault::RunTwice) {
            self.world.begin_call(&self.generation, &call, &context);
        }
        let running = Running { world: Arc::clone(&self.world), job: context.job_name, call: call.id };
        let panics = move |running: &Running| -> Result<Value, ToolError> {
            running.world.end_call(&running.job, &running.call, Some(Err(ToolErrorKind::Internal)));
            resume_unwind(Box::new("a bug of the tool's"))
        };
        if let DeedEnd::PanicsAtOnce = deed.end {
            let _ = panics(&running);
        }
        async move {
            if !deed.after.is_zero() {
                sleep(deed.after).await;
            }
            let result = match deed.end {
                DeedEnd::Never => std::future::pending().await,
                DeedEnd::PanicsAtOnce | DeedEnd::Panics => panics(&running),
                DeedEnd::Result(_) | DeedEnd::Fails(_) => deed.result(),
            };
            let end = result.as_ref().map_err(|error| error.kind);
            running.world.end_call(&running.job, &running.call, Some(end));
            result
        }
        .boxed()
    }
}

/// Asks now and then whether the worker is ready.
pub(super) async fn ask(world: Arc<World>) {
    for time in &world.plan.askers {
        tokio::time::sleep_until(world.instant(*time)).await;
        let is_ready = world.face().is_ready().await;
        world.hear_ready(is_ready);
    }
}

/// Does something at each of `times`.
pub(super) async fn at_times(world: Arc<World>, times: Vec<Duration>, act: impl Fn(&World, usize)) {
    for (nth, time) in times.into_iter().enumerate() {
        tokio::time::sleep_until(world.instant(time)).await;
        act(&world, nth);
    }
}

/// One request from its submit to its end, with all who have to do with it.
pub(super) async fn live(world: Arc<World>, number: usize) {
    let plan = &world.plan.cases[number];
    let mut dice = Dice::of(world.plan.seed, "life", &[number as u64]);
    tokio::time::sleep_until(world.instant(plan.at)).await;
    let mut tries = 0;
    let (id, mut reader) = loop {
        match world.submit(number, tries) {
            Ok(taken) => break taken,
            Err(Refusal::NoSlot | Refusal::NotReady) if tries < plan.patience => {
                tries += 1;
                sleep(dice.ms(1..20_000)).await;
            }
            Err(_) => return,
        }
    };
    let mut others = JoinSet::new();
    for (offset, patience) in plan.readers.iter().copied() {
        let mut reader = world.face().events(&id, offset).expect("the request is remembered");
        let world = Arc::clone(&world);
        others.spawn(async move {
            let mut got = Vec::new();
            while got.len() < patience
                && let Some(event) = reader.next().await
            {
                got.push(event);
            }
            if got.len() == patience {
                world.count("a reader goes away");
            }
            drop(reader);
            // What came is compared when the first reader has read it, too.
            sleep(Duration::from_millis(1)).await;
            world.compare(number, offset, &got);
        });
    }
    if plan.waits {
        let (world, id) = (Arc::clone(&world), id.clone());
        others.spawn(async move {
            let got = world.face().wait(&id).await;
            sleep(Duration::from_millis(1)).await;
            world.compare_end(number, got);
        });
    }
    if let Some(Cancel::After(time)) = plan.cancel {
        let world = Arc::clone(&world);
        others.spawn(async move {
            sleep(time).await;
            world.cancel(number);
        });
    }
    let mut told = Told::new(world.plan.config.run.tool_budget);
    loop {
        let event = match reader.next_now() {
            Poll::Ready(event) => event,
            Poll::Pending => {
                if world.fault != Some(Fault::EndLate) {
                    world.is_idle(number, &told);
                }
                reader.next().await
            }
        };
        let Some(event) = event else { break };
        world.hear(number, &mut told, Arc::clone(&event));
        if let Some(Cancel::AtEvent(nth)) = plan.cancel
            && nth == told.events
        {
            world.cancel(number);
        }
        if let Event::Approval { id, answer: None, .. } = &*event
            && world.plan.config.approvals == deftool::worker::Approvals::Ask
        {
            others.spawn(decide(Arc::clone(&world), number, id.clone(), dice.number()));
        }
    }
    // Other readers end by themselves; who waits to cancel or to answer may do so after the end, too.
    while let Some(ended) = others.join_next().await {
        ended.unwrap_or_else(|error| resume_unwind(error.into_panic()));
    }
}

/// A person who is asked about a call.
async fn decide(world: Arc<World>, number: usize, call: String, seed: u64) {
    let mut dice = Dice::of(seed, "approver", &[]);
    let refused = || Approval::Refused { reason: String::from("rather not") };
    let (feature, wait, answer) = match world.plan.cases[number].approver {
        Approver::Allows => ("approval: allowed", Duration::ZERO, Some(Approval::Allowed)),
        Approver::Refuses => ("approval: refused", dice.ms(0..50), Some(refused())),
        Approver::Late => {
            let answer = if dice.chance(50) { Approval::Allowed } else { refused() };
            ("approval: late", dice.ms(1_000..90_000), Some(answer))
        }
        Approver::Never => ("approval: never", dice.ms(1_000..90_000), None),
    };
    world.count(feature);
    if !wait.is_zero() {
        sleep(wait).await;
    }
    match answer {
        Some(answer) => world.approve(number, &call, answer),
        None => world.cancel(number),
    }
}
