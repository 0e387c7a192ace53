//! The replies that an evaluation needs: each ask, by each model, with each version of the tools, in each run.

use std::sync::Arc;

use deftool_chat::request::{BiosContext, BiosPart};
use deftool_chat::{Api, Message, MessageToolCall};
use deftool_lang::schema::ToolSet;
use deftool_lang::spec::{Ask, ExpectedReply, Fallback};
use deftool_lang::text::digest;
use deftool_lang::tool::{CallContext, ToolCall, ToolError, ToolErrorKind, ToolOutput, ToolRunner, Toolbox};
use deftool_worker::{SubmitRequest, WorkerConfig};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

/// The beginning of the job name of a recorded reply.
const JOB: &str = "eval";

/// A version of the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Version {
    /// The tools of the project.
    Current,
    /// The tools of `--baseline`.
    Baseline,
}

/// A reply that the evaluation needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trial {
    /// Index of the ask.
    pub(super) ask: usize,
    /// Index of the model.
    pub(super) model: usize,
    pub(super) version: Version,
    /// The run, from 1. It is the seed.
    pub(super) run: u32,
    /// The name under which the reply is recorded: it changes with everything that the model receives.
    pub(super) job: String,
}

/// What the asks are sent with.
pub(super) struct Offer {
    /// The name of the model.
    pub(super) model: String,
    pub(super) tools: Toolbox,
    /// Whether only the tools of the ask are offered.
    pub(super) is_alone: bool,
    pub(super) config: WorkerConfig,
}

impl Offer {
    /// Returns the tools of an offer that executes nothing. The tools are those of this moment.
    pub(super) fn without_runner(tools: ToolSet) -> Toolbox {
        Toolbox { generation: 0, tools, runner: Arc::new(NoRunner) }
    }

    /// Returns the request of an ask in a run.
    pub(super) fn request(&self, ask: &Ask, run: u32) -> SubmitRequest {
        let mut params = Map::new();
        // The other APIs have no seed.
        if self.config.api == Api::ChatCompletions && !self.config.run.params.contains_key("seed") {
            params.insert(String::from("seed"), Value::from(run));
        }
        SubmitRequest {
            messages: conversation(ask),
            params,
            tools: self.is_alone.then(|| named(ask)).flatten(),
            one_reply: true,
            job_name: self.job(ask, run),
            ..SubmitRequest::default()
        }
    }

    /// Returns the tools that are offered with an ask.
    pub(super) fn offered(&self, ask: &Ask) -> ToolSet {
        match named(ask).filter(|_| self.is_alone) {
            Some(names) => self.tools.tools.only(&names),
            None => self.tools.tools.clone(),
        }
    }

    /// Returns the name of a recorded reply: the run, and a digest of what the model receives, without times.
    pub(super) fn job(&self, ask: &Ask, run: u32) -> String {
        let config = &self.config.run;
        let tools = self.offered(ask);
        let bios = self.config.bios.bios(&BiosContext {
            part: BiosPart::Head,
            worker: &config.worker,
            local_time: "",
            zone: "",
            budget_left: config.tool_budget,
            budget_unit: config.budget_unit,
            call_convention: config.fallback == Fallback::On,
            tools: &tools,
            exit_tools_only: false,
        });
        let received = (
            (conversation(ask), tools.definitions(|_| true)),
            (&config.system, bios, config.system_messages, config.bios_budget, config.tool_budget),
            (&self.model, &config.params, config.fallback, run),
        );
        let received = serde_json::to_string(&received).unwrap_or_default();
        format!("{JOB}/{run}/{}", digest([received]))
    }
}

/// Returns the run of a recorded reply; `None`: not a reply of an evaluation.
pub(super) fn run_of(job: &str) -> Option<u32> {
    let (name, rest) = job.split_once('/')?;
    let (run, _) = rest.split_once('/')?;
    (name == JOB).then(|| run.parse().ok()).flatten()
}

/// Returns the messages that are sent: the prompt, and the calls of the history with their results.
fn conversation(ask: &Ask) -> Vec<Message> {
    let mut messages = vec![Message::user(&ask.prompt.value)];
    for (past, number) in ask.history.iter().zip(1..) {
        let id = format!("call{number:05}");
        let call = MessageToolCall::new(&id, &past.tool.value, past.arguments.to_value().to_string());
        let assistant = Message::Assistant { content: String::new(), tool_calls: vec![call], received: None };
        messages.extend([assistant, Message::tool(id, past.result.to_value().to_string())]);
    }
    messages
}

/// Returns the tools that an ask names; `None`: it names none, so all are offered.
fn named(ask: &Ask) -> Option<Vec<String>> {
    let mut names: Vec<String> = tools_of(ask).into_iter().map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    Some(names).filter(|names| !names.is_empty())
}

/// Returns the tools that an ask names.
pub(super) fn tools_of(ask: &Ask) -> Vec<&str> {
    let unwanted = match &ask.expected {
        ExpectedReply::NoCallOf(tool) => Some(tool.as_str()),
        ExpectedReply::NoCall | ExpectedReply::Calls { .. } => None,
    };
    let expected = ask.calls().iter().map(|call| call.tool.value.as_str());
    let past = ask.history.iter().map(|past| past.tool.value.as_str());
    unwanted.into_iter().chain(expected).chain(past).collect()
}

/// Runs nothing. A request of one reply calls no tool, so this is never used.
struct NoRunner;

impl ToolRunner for NoRunner {
    fn run(&self, _: ToolCall, _: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        let error = ToolError::new(ToolErrorKind::Permission, "an evaluation runs no tool");
        std::future::ready(Err(error)).boxed()
    }
}
