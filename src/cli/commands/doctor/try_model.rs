//! `--try`: whether the model of a worker calls a tool and uses its result. One harmless tool is offered.

use std::sync::{Arc, Mutex, PoisonError};

use deftool_chat::fallback::written_form;
use deftool_chat::request::{Event, FailReason, FailureKind, FinalState, Outcome};
use deftool_engine::PreparedWorker;
use deftool_lang::spec::{Fallback, OnFailure};
use deftool_lang::text::count;
use deftool_lang::tool::{ToolError, ToolErrorKind};
use deftool_record::Session;
use deftool_worker::{
    Observation, Observer, OwnTool, RequestObserver, SubmitRequest, WorkerConfig, own_tools,
};
use serde_json::{Value, json};

use super::DoctorOptions;
use super::line::Line;
use crate::cli::outcome::{CliError, runtime};
use crate::cli::project::engine::{Isolate, ScriptOptions};
use crate::cli::terminal::interrupt::Interrupts;
use crate::cli::terminal::output::{clean, cut};
use crate::cli::worker::options::{RequestOptions, WorkerOptions};
use crate::cli::worker::{Source, close, connect, open, with_spinner};

/// The tool that is offered. Models know it from their training, so that only its use is tested.
const TOOL: &str = "get_weather";
const SPEC: &str = r#"(deftool :name "get_weather" :description "Get the current weather in a given location"
  :args ((:name "location" :type string :description "The city, such as Paris.")
         (:name "unit" :type string :enum ["celsius" "fahrenheit"] :description "The unit of the temperature.")))"#;
const PROMPT: &str = "What is the weather in Paris, in celsius?";
/// The temperature in the result of the tool. No model can know it.
const TEMPERATURE: &str = "17";

/// Maximum length of a text of the model, in characters.
const MAX_SHOWN: usize = 120;

/// Returns the line of `doctor` without `--try`.
pub(super) fn not_tried() -> Line {
    Line::ok(
        "try",
        "no request was sent; `deftool doctor --try` tests with one tool whether the model calls it",
    )
}

/// Sends a prompt with the tool to the model of the worker and returns what was found.
///
/// # Errors
/// If the runtime cannot be started.
pub(super) fn check(options: &DoctorOptions) -> Result<Vec<Line>, CliError> {
    let worker = WorkerOptions {
        worker: options.worker.clone(),
        endpoint: options.endpoint.clone(),
        model: options.model.clone(),
        user_tools: false,
        project: options.project.clone(),
    };
    let request = RequestOptions { system: None, params: Vec::new(), yes: false };
    let scripts = ScriptOptions { isolate: Isolate::Threads, trust: false };
    let opened = match open(&worker, &request, &scripts, Source::Try { is_replay: false }) {
        Ok(opened) => opened,
        Err(error) => return Ok(vec![not_sent(&error)]),
    };
    let runtime = runtime()?;
    Ok(runtime.block_on(async {
        let first = match Trial::run(&worker, &opened, opened.spec.fallback).await {
            Ok(first) => first,
            Err(error) => return vec![not_sent(&error)],
        };
        let may_help = first.call.is_none()
            && first.requests() < MAX_REQUESTS
            && first.outcome.state == FinalState::Completed
            && opened.spec.fallback != Fallback::On;
        let second = if may_help { Trial::run(&worker, &opened, Fallback::On).await.ok() } else { None };
        lines(&opened, &first, second.as_ref())
    }))
}

/// Maximum number of requests to the model.
const MAX_REQUESTS: usize = 2;

fn not_sent(error: &CliError) -> Line {
    Line { advice: None, ..Line::error("try", error.to_string(), "") }
}

/// A prompt with the tool, and the replies.
struct Trial {
    seen: Seen,
    /// The name and the arguments of the call that was read.
    call: Option<(String, Value)>,
    /// The details of requests that were sent again.
    retries: Vec<String>,
    /// The text after the result of the tool.
    answer: String,
    outcome: Arc<Outcome>,
}

/// What an observer saw of a request.
#[derive(Debug, Default, Clone)]
struct Seen {
    /// The size of the context in tokens, if the server reports it.
    context: Option<u64>,
    /// The number of requests that were sent.
    sent: usize,
    replies: Vec<SeenReply>,
}

#[derive(Debug, Default, Clone)]
struct SeenReply {
    /// The number of parts in which it was received.
    parts: usize,
    /// Whether it contains a structured call.
    has_call: bool,
    prompt_tokens: u64,
}

impl Trial {
    /// Sends the prompt. With `fallback`, a first call ends the request: its result is not sent.
    async fn run(
        options: &WorkerOptions,
        opened: &PreparedWorker,
        fallback: Fallback,
    ) -> Result<Self, CliError> {
        let watch = Watch::default();
        let PreparedWorker { spec, root, config, .. } = opened;
        let mut config = WorkerConfig { observer: Some(Arc::new(watch.clone())), ..config.clone() };
        // The second reply is the last one.
        config.run.tool_budget = 1;
        config.run.on_tool_error = OnFailure::Fail;
        let is_second = config.run.fallback != fallback;
        config.run.fallback = fallback;
        let tool = OwnTool::new(SPEC, move |_| async move {
            if is_second {
                return Err(ToolError::new(ToolErrorKind::Script, "the call was read"));
            }
            Ok(json!({"location": "Paris", "temperature": 17, "unit": "celsius"}))
        });
        let tools = own_tools(vec![tool.map_err(|error| CliError::Usage(error.to_string()))?]);
        let mut interrupts = Interrupts::listen().map_err(CliError::Runtime)?;
        let worker = connect(options, (spec, root), config, Arc::new(tools), true).await?;
        let usage = |error: String| CliError::Usage(error);
        let mut stream =
            worker.stream(SubmitRequest::prompt(PROMPT)).map_err(|error| usage(error.to_string()))?;
        let (mut call, mut retries, mut answer) = (None, Vec::new(), String::new());
        let follow = async {
            while let Some(event) = stream.next().await {
                match &*event {
                    Event::ToolCall { name, arguments, .. } => {
                        call.get_or_insert((name.clone(), Value::clone(arguments)));
                    }
                    Event::Retry { detail, .. } => {
                        retries.push(clean(detail));
                        // A server that is busy is not asked again.
                        if !is_changed(detail) {
                            break;
                        }
                    }
                    Event::ToolFinished { .. } => answer.clear(),
                    Event::Text { text } => answer += text,
                    _ => {}
                }
            }
        };
        tokio::select! {
            () = with_spinner("waiting for the model", follow) => {}
            () = interrupts.next() => {}
        }
        let outcome = stream.outcome();
        close(&worker, &mut interrupts).await;
        let outcome = outcome.map_err(|_| {
            usage(retries.last().map_or_else(
                || String::from("interrupted"),
                |why| format!("the server did not answer: {why}"),
            ))
        });
        let seen = watch.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Self { seen, call, retries, answer, outcome: outcome? })
    }

    /// Returns the number of requests, without those that were sent again.
    fn requests(&self) -> usize {
        self.seen.sent.saturating_sub(self.retries.len())
    }

    /// Whether the call was structured.
    fn is_structured(&self) -> bool {
        self.seen.replies.first().is_some_and(|reply| reply.has_call)
    }

    /// Returns the form in which the model wrote a call as text.
    fn form(&self) -> Option<&'static str> {
        let text = self.outcome.raw_text();
        let answer = self.answer.as_str();
        written_form(if self.call.is_some() { text.strip_suffix(answer).unwrap_or(text) } else { text }, TOOL)
    }
}

/// Stores what is seen of one request.
#[derive(Debug, Default, Clone)]
struct Watch(Arc<Mutex<Seen>>);

impl Watch {
    fn edit(&self, edit: impl FnOnce(&mut Seen)) {
        edit(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Observer for Watch {
    fn begin(&self, request: &Session) -> Box<dyn RequestObserver> {
        self.edit(|seen| seen.context = request.server.context);
        Box::new(WatchedRequest { watch: self.clone(), parts: 0 })
    }
}

/// Counts the parts of the reply that is being received.
struct WatchedRequest {
    watch: Watch,
    parts: usize,
}

impl RequestObserver for WatchedRequest {
    fn observe(&mut self, _: u64, observation: Observation<'_>) {
        match observation {
            Observation::Sent { .. } => self.watch.edit(|seen| seen.sent += 1),
            Observation::Chunk => self.parts += 1,
            Observation::Replied { reply, .. } => {
                let seen_reply = SeenReply {
                    parts: std::mem::take(&mut self.parts),
                    has_call: !reply.calls.is_empty(),
                    prompt_tokens: reply.usage.map_or(0, |usage| usage.prompt_tokens),
                };
                self.watch.edit(|seen| seen.replies.push(seen_reply));
            }
            _ => {}
        }
    }
}

/// Returns the lines about a trial. `second`: the same prompt with `:fallback on`.
fn lines(opened: &PreparedWorker, first: &Trial, second: Option<&Trial>) -> Vec<Line> {
    let name = &opened.spec.name.value;
    let requests = first.requests() + second.map_or(0, Trial::requests);
    let mut lines = vec![Line::ok(
        "try",
        format!("{} with the tool `{TOOL}` to the model of worker `{name}`", count(requests, "request")),
    )];
    lines.extend(first.retries.iter().map(|detail| retry_line(detail, opened)));
    lines.extend(call_lines(first, second));
    if first.call.is_some() {
        lines.push(result_line(first));
    }
    let seen = || first.seen.replies.iter().chain(second.iter().flat_map(|second| &second.seen.replies));
    lines.extend(seen().map(|reply| reply.parts).max().map(streaming_line));
    let tokens = seen().map(|reply| reply.prompt_tokens).max().unwrap_or_default();
    lines.extend(first.seen.context.map(|context| {
        let used =
            if tokens > 0 { format!("; this prompt with one tool uses {tokens}") } else { String::new() };
        Line::ok("context", format!("{context} tokens{used}"))
    }));
    lines
}

/// Whether a request was sent again with another body, because the server refused the first one.
fn is_changed(detail: &str) -> bool {
    detail.starts_with("sent again ")
}

/// Returns the line of a request that was sent again.
fn retry_line(detail: &str, opened: &PreparedWorker) -> Line {
    let member = detail.strip_prefix("sent again without ").and_then(|rest| rest.split_once(':'));
    let advice = match member {
        Some((member, _)) if opened.spec.params.contains_key(member) => {
            format!("remove `:{}` from the worker's :params", member.replace('_', "-"))
        }
        _ => String::from("none required: later requests of the worker begin with the accepted form"),
    };
    Line::warning("request", cut(detail, MAX_SHOWN), advice)
}

/// Returns the lines about the call.
fn call_lines(first: &Trial, second: Option<&Trial>) -> Vec<Line> {
    let outcome = &first.outcome;
    let shown = || cut(&clean(&outcome.raw_text().trim().replace('\n', " ")), MAX_SHOWN);
    if let Some((name, _)) = first.call.as_ref().filter(|(name, _)| name != TOOL) {
        let message = format!("of an unknown tool: `{}`", clean(name));
        return vec![Line::error(
            "call",
            message,
            "use a model that calls only the tools that it is offered",
        )];
    }
    if let Some((_, arguments)) = &first.call {
        let how = match first.form().filter(|_| !first.is_structured()) {
            Some(form) => format!("written as text in the form {form}, and read"),
            None => String::from("structured"),
        };
        return vec![Line::ok("call", how), arguments_line(arguments)];
    }
    if outcome.state != FinalState::Completed {
        let reason = outcome.fail_reason.unwrap_or(FailReason::UnknownError);
        let kind_of = outcome.kind.as_deref().unwrap_or(reason.as_str());
        let detail = outcome.detail.as_deref().unwrap_or("the request ended");
        let advice = if kind_of == FailureKind::InvalidArguments.as_str() {
            "`:on-invalid-arguments report` in the worker lets the model correct such a call"
        } else {
            "correct this, then try again"
        };
        return vec![Line::error(
            "call",
            cut(&clean(&format!("{kind_of}: {detail}")), MAX_SHOWN * 2),
            advice,
        )];
    }
    let what = match first.form() {
        Some(form) => format!("written as text in the form {form}, and not read: `{}`", shown()),
        None if outcome.raw_text().trim().is_empty() => String::from("none, and no text"),
        None => format!("none; the model wrote `{}`", shown()),
    };
    match second.and_then(|second| Some((second, &second.call.as_ref()?.1))) {
        Some((second, arguments)) => {
            let how = match second.form().filter(|_| !second.is_structured()) {
                Some(form) => format!("in the form {form}"),
                None => String::from("structured"),
            };
            let advice = format!("add `:fallback on` to the worker: with it, the call was read, {how}");
            vec![Line::warning("call", what, advice), arguments_line(arguments)]
        }
        None => {
            let also = if second.is_some() { "; also with `:fallback on`" } else { "" };
            let advice = "use a model that supports tool calls, or another chat template in the server";
            vec![Line::error("call", format!("{what}{also}"), advice)]
        }
    }
}

fn arguments_line(arguments: &Value) -> Line {
    let shown = cut(&clean(&arguments.to_string()), MAX_SHOWN);
    let has_place = arguments["location"].as_str().is_some_and(|place| place.contains("Paris"));
    if has_place && arguments["unit"] == "celsius" {
        Line::ok("arguments", shown)
    } else {
        let message = format!("{shown} for the prompt: {PROMPT}");
        Line::warning("arguments", message, "use a larger model, if its arguments must be exact")
    }
}

/// Returns the line about the reply after the result.
fn result_line(first: &Trial) -> Line {
    let outcome = &first.outcome;
    if first.seen.replies.len() < MAX_REQUESTS {
        let detail = outcome.detail.as_deref().unwrap_or("the request ended");
        return Line::error(
            "result",
            format!("no reply after it: {}", clean(detail)),
            "correct this, then try again",
        );
    }
    let text = first.answer.trim().replace('\n', " ");
    if text.contains(TEMPERATURE) {
        Line::ok("result", format!("used: {}", cut(&clean(&text), MAX_SHOWN)))
    } else {
        let shown = if text.is_empty() { String::from("no text") } else { cut(&clean(&text), MAX_SHOWN) };
        let message = format!("not used in the reply after it: {shown}");
        Line::warning("result", message, "use a larger model, or a chat template that shows results of tools")
    }
}

fn streaming_line(parts: usize) -> Line {
    if parts > 1 {
        Line::ok("streaming", format!("up to {parts} parts a reply"))
    } else {
        let message = "each reply arrived in one part";
        Line::warning(
            "streaming",
            message,
            "turn off buffering in the proxy or the server, if replies are long",
        )
    }
}
