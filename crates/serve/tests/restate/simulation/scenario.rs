//! The requests of a simulation without everything that depends on time: no delays, silence, cancels, reloads and
//! restarts. So they have the same events wherever they run.
//!
//! The answers of the server and the tools depend on what they receive, not on the order in which they receive it.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use deftool_chat::request::{Approval, Event};
use deftool_chat::{Api, Message};
use deftool_lang::spec::Timers;
use deftool_lang::tool::{CallContext, ToolCall, ToolError, ToolErrorKind, ToolOutput, ToolRunner};
use deftool_record::Journal;
use deftool_worker::{
    Approvals, Incoming, Origin, Outgoing, SubmitError, SubmitRequest, ToolSource, Toolbox, Transport,
    TransportError, Worker, WorkerConfig,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::time::Instant;

use super::answer::{Progress, answer};
use super::dice::Dice;
use super::plan::{Approver, Plan};
use super::script::{ExchangeContext, Head, Script, Tail};
use super::submission::{PriorConversation, RequestOptions};
use super::tools::{Generation, ToolBehavior, ToolEnd};

/// A time limit that nothing reaches.
const LIMIT: Duration = Duration::from_secs(600);

/// The requests of one seed, with their server and their tools. They run one after the other.
pub(crate) struct Scenario {
    plan: Plan,
    generation: Generation,
}

/// The result of a request in this process.
pub(crate) struct CaseRun {
    /// The events as JSON and the conversation.
    pub(crate) result: Result<(Vec<Value>, Vec<Message>), SubmitError>,
    /// The time that it waited.
    pub(crate) elapsed: Duration,
}

impl Scenario {
    pub(crate) fn of_seed(seed: u64) -> Self {
        Self { plan: Plan::of_seed(seed), generation: Generation::new(seed, 0) }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.plan.seed
    }

    /// Starts the worker of the requests.
    pub(crate) fn start_worker(self: &Arc<Self>, journal: Option<Arc<dyn Journal>>) -> Worker {
        let config = self.plan.config.clone();
        let timers = Timers {
            headers: Some(LIMIT),
            stall: LIMIT,
            first_token: Some(LIMIT),
            tool: LIMIT,
            total: None,
            ..config.timers
        };
        let config = WorkerConfig {
            timers,
            slots: 8,
            queue: 256,
            keep_results: 1000,
            approvals: Approvals::Ask,
            journal,
            ..config
        };
        let source: Arc<dyn ToolSource> = Arc::new(Source(Arc::clone(self)));
        Worker::start(config, source, Arc::new(Server(Arc::clone(self))))
    }

    pub(crate) fn request_id(&self, number: usize) -> String {
        format!("s{}_{number}", self.plan.seed)
    }

    /// Returns a request. `before`: the conversations of the requests before it; `None`: it was rejected.
    pub(crate) fn request(&self, number: usize, before: &[Option<Vec<Message>>]) -> SubmitRequest {
        let case = &self.plan.cases[number];
        let before = match case.past {
            PriorConversation::AfterCase(before_it) => before[before_it].clone(),
            PriorConversation::Empty | PriorConversation::Call | PriorConversation::Invalid(_) => None,
        };
        let RequestOptions { system_prompt, model, params, tools } = case.options.clone();
        SubmitRequest {
            messages: case.past.messages(number, before),
            system_prompt,
            model,
            params,
            tools,
            job_name: format!("case {number}"),
            ..SubmitRequest::default()
        }
    }

    /// Returns the answer to the approval requests of a request.
    pub(crate) fn approval(&self, number: usize) -> Approval {
        match self.plan.cases[number].approver {
            Approver::Allows | Approver::Late => Approval::Allowed,
            Approver::Refuses | Approver::Never => Approval::Refused { reason: String::from("rather not") },
        }
    }

    /// Runs the requests in this process, under paused time.
    pub(crate) fn run_in_process(self: &Arc<Self>) -> Vec<CaseRun> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let worker = self.start_worker(None);
            let (mut runs, mut conversations) = (Vec::new(), Vec::new());
            for number in 0..self.plan.cases.len() {
                let started = Instant::now();
                let origin = Some(Origin::now(self.request_id(number)));
                let request = SubmitRequest { origin, ..self.request(number, &conversations) };
                let result = match worker.submit(request) {
                    Ok(id) => Ok(self.follow(&worker, &id, number).await),
                    Err(error) => Err(error),
                };
                conversations.push(result.as_ref().ok().map(|(_, conversation)| conversation.clone()));
                runs.push(CaseRun { result, elapsed: started.elapsed() });
            }
            runs
        })
    }

    /// Reads a request to its end, and answers its approval requests.
    async fn follow(&self, worker: &Worker, id: &str, number: usize) -> (Vec<Value>, Vec<Message>) {
        let (mut reader, mut events) = (worker.events(id, 0).unwrap(), Vec::new());
        while let Some(event) = reader.next().await {
            if let Event::Approval { id: call, answer: None, .. } = &*event {
                // Has no effect if another call has failed the request.
                worker.approve(id, call, self.approval(number));
            }
            events.push(serde_json::to_value(&*event).unwrap());
        }
        (events, worker.conversation(id).unwrap())
    }
}

/// Returns the number of a request in its id.
fn number_in(request_id: &str) -> u64 {
    request_id.rsplit('_').next().and_then(|number| number.parse().ok()).expect("the number of a case")
}

/// The server.
struct Server(Arc<Scenario>);

/// No observer of the answers.
struct NoProgress;

impl Progress for NoProgress {}

impl Transport for Server {
    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<Incoming, TransportError>> {
        let Outgoing { request_id, turn, attempt, api, body, .. } = outgoing;
        let Plan { seed, calm, cases, .. } = &self.0.plan;
        let number = number_in(&request_id);
        let body = body.to_value();
        let tools = cases[number as usize].options.tools.as_ref();
        let some = tools.map(|names| self.0.generation.only(names));
        let context = ExchangeContext {
            generation: some.as_ref().unwrap_or(&self.0.generation),
            body: &body.to_string(),
            streams: body["stream"] == true,
            attempt,
            stall: LIMIT,
            calm: *calm,
            api,
        };
        let numbers = [number, u64::from(turn), u64::from(attempt)];
        let script = Script::write(&mut Dice::of(*seed, "script", &numbers), &context);
        let dice = Dice::of(*seed, "cuts", &numbers);
        async move { answer(without_delays(script), dice, false, NoProgress).await }.boxed()
    }

    fn url(&self, _: Api) -> &'static str {
        "http://simulated/v1/chat/completions"
    }
}

/// Removes delays. A part that never arrives becomes a broken connection.
fn without_delays(script: Script) -> Script {
    let Script { head_after, mut head, mut frames, mut tail, .. } = script;
    if head_after.is_none() {
        head = Head::Broken;
    }
    if let Head::Status { retry_after: Some(after), .. } = &mut head {
        *after = Duration::ZERO;
    }
    for frame in &mut frames {
        frame.before = Duration::ZERO;
    }
    if tail == Tail::Silence {
        tail = Tail::Break;
    }
    Script { head_after: Some(Duration::ZERO), head, frames, tail, ..script }
}

/// The tool source of the worker. The tools are never reloaded.
struct Source(Arc<Scenario>);

impl ToolSource for Source {
    fn current(&self) -> Toolbox {
        let Generation { number, set } = &self.0.generation;
        Toolbox { generation: *number, tools: set.clone(), runner: Arc::new(Runner { seed: self.0.seed() }) }
    }
}

/// Runs the tools.
struct Runner {
    seed: u64,
}

impl ToolRunner for Runner {
    fn run(&self, call: ToolCall, context: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        let mut numbers = vec![number_in(&context.request_id)];
        numbers.extend(format!("{} {}", call.name, call.arguments).bytes().map(u64::from));
        let (behavior, _) = ToolBehavior::of(&mut Dice::of(self.seed, "deed", &numbers), LIMIT);
        if let ToolEnd::PanicsAtOnce = behavior.end {
            resume_unwind(Box::new("a bug of the tool's"));
        }
        async move {
            let ended = match behavior.end {
                ToolEnd::Never => Err(ToolError::new(ToolErrorKind::Failure, "no result")),
                ToolEnd::PanicsAtOnce | ToolEnd::Panics => resume_unwind(Box::new("a bug of the tool's")),
                ToolEnd::Result(_) | ToolEnd::Fails(_) => behavior.result(),
            };
            ended.map(Into::into)
        }
        .boxed()
    }
}
