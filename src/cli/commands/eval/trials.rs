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
use serde::Serialize;
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
    /// The name of the model; empty if only its server has it, and is not connected.
    pub(super) model: String,
    pub(super) tools: Arc<Toolbox>,
    pub(super) config: WorkerConfig,
    /// Whether only the tools of the ask are offered.
    is_alone: bool,
    /// What a model receives of all tools.
    all: Described,
}

/// What a model receives of tools, as JSON: computed once for all asks with the same tools.
struct Described {
    definitions: String,
    bios: String,
}

impl Offer {
    /// Creates an offer that executes no tool. `is_alone`: only the tools of the ask are offered.
    pub(super) fn new(model: String, tools: ToolSet, is_alone: bool, config: WorkerConfig) -> Self {
        let all = Described::of(&tools, &config);
        let tools = Arc::new(Toolbox { generation: 0, tools, runner: Arc::new(NoRunner) });
        Self { model, tools, config, is_alone, all }
    }

    /// Returns the request of a trial, which sends this ask.
    pub(super) fn request(&self, ask: &Ask, trial: &Trial) -> SubmitRequest {
        let mut params = Map::new();
        // The other APIs have no seed.
        if self.config.api == Api::ChatCompletions && !self.config.run.params.contains_key("seed") {
            params.insert(String::from("seed"), Value::from(trial.run));
        }
        SubmitRequest {
            messages: conversation(ask),
            params,
            tools: self.is_alone.then(|| named(ask)).flatten(),
            one_reply: true,
            job_name: trial.job.clone(),
            ..SubmitRequest::default()
        }
    }

    /// Returns the name of a recorded reply: the run, and a digest of what the model receives, without times.
    pub(super) fn job(&self, ask: &Ask, run: u32) -> String {
        let config = &self.config.run;
        let alone = named(ask).filter(|_| self.is_alone);
        let alone = alone.map(|names| Described::of(&self.tools.tools.only(&names), &self.config));
        let Described { definitions, bios } = alone.as_ref().unwrap_or(&self.all);
        let (conversation, system) = (json(&conversation(ask)), json(&config.system));
        let [messages, shown, budget] =
            [json(&config.system_messages), json(&config.bios_budget), json(&config.tool_budget)];
        let system = format!("[{system},{bios},{messages},{shown},{budget}]");
        let model = json(&(&self.model, &config.params, config.fallback, run));
        let received = format!("[[{conversation},{definitions}],{system},{model}]");
        format!("{JOB}/{run}/{}", digest([received]))
    }
}

impl Described {
    fn of(tools: &ToolSet, config: &WorkerConfig) -> Self {
        let run = &config.run;
        let bios = config.bios.bios(&BiosContext {
            part: BiosPart::Head,
            worker: &run.worker,
            local_time: "",
            zone: "",
            budget_left: run.tool_budget,
            budget_unit: run.budget_unit,
            call_convention: run.fallback == Fallback::On,
            tools,
            exit_tools_only: false,
        });
        Self { definitions: json(&tools.definitions(|_| true)), bios: json(&bios) }
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
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
