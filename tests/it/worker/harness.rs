//! The test harness: a worker with two normal tools and an exit tool, and fake tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deftool_chat::request::{BiosV1, Event, FailReason, FinalState, Outcome, RunConfig};
use deftool_chat::{Api, Capabilities, Dialect, Dialects};
use deftool_lang::schema::{ToolEntry, ToolKind, ToolSet};
use deftool_lang::spec::Timers;
use deftool_lang::tool::{CallContext, ToolCall, ToolError, ToolOutput, ToolRunner};
use deftool_test_support::server::{Answer, Server, call, delta, finish as end, usage};
use deftool_worker::{Approvals, HttpTransport, SubmitRequest, Toolbox, Transport, Worker, WorkerConfig};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

/// Returns the default configuration. No test waits for its limits unless it sets them.
pub(crate) fn config() -> WorkerConfig {
    WorkerConfig {
        run: RunConfig { model: String::from("scripted"), ..RunConfig::default() },
        timers: Timers::default(),
        slots: 1,
        queue: 0,
        keep_results: 10,
        api: Api::ChatCompletions,
        key_variable: String::from("OPENAI_API_KEY"),
        dialect: None,
        dialects: Dialects::default(),
        suggests_rows: false,
        server: Capabilities::of(Dialect::default()),
        bios: Arc::new(BiosV1),
        approvals: Approvals::default(),
        journal: None,
        observer: None,
    }
}

pub(crate) fn with_timers(change: impl FnOnce(&mut Timers)) -> WorkerConfig {
    let mut config = config();
    change(&mut config.timers);
    config
}

/// Returns the default configuration for an API.
pub(crate) fn over(api: Api) -> WorkerConfig {
    WorkerConfig { api, ..config() }
}

/// Returns the path of an API.
pub(crate) fn api_path(api: Api) -> &'static str {
    match api {
        Api::ChatCompletions => "/v1/chat/completions",
        Api::Responses => "/v1/responses",
        Api::Messages => "/v1/messages",
    }
}

/// Returns a complete reply with text and calls.
pub(crate) fn turn(api: Api, text: &str, calls: &[(&str, &str)]) -> Answer {
    let reason = if calls.is_empty() { "stop" } else { "tool_calls" };
    let calls = calls.iter().enumerate().map(|(index, (name, arguments))| call(index, name, arguments));
    let chunks: Vec<Value> =
        [delta(text)].into_iter().chain(calls).chain([end(reason), usage(10, 5)]).collect();
    Answer::reply(api, &chunks)
}

/// A tool runner that calls a function.
pub(crate) struct FakeTools<F>(pub(crate) F);

impl<F, R> ToolRunner for FakeTools<F>
where
    F: Fn(ToolCall, CallContext) -> R + Send + Sync,
    R: Future<Output = Result<Value, ToolError>> + Send + 'static,
{
    fn run(&self, call: ToolCall, context: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        let ended = (self.0)(call, context);
        async { ended.await.map(Into::into) }.boxed()
    }
}

/// Returns the normal tools `look` and `slow` (with a limit of 50 ms) and the exit tool `done`.
pub(crate) fn tools() -> ToolSet {
    let entry = |kind, name: &str, timeout| {
        let parameters = json!({
            "type": "object", "properties": {"at": {"type": "string"}}, "additionalProperties": false
        });
        let function = json!({"name": name, "description": name, "parameters": parameters});
        Arc::new(ToolEntry::new(kind, json!({"type": "function", "function": function}), timeout).unwrap())
    };
    ToolSet::new([
        entry(ToolKind::Normal, "look", None),
        entry(ToolKind::Normal, "slow", Some(Duration::from_millis(50))),
        entry(ToolKind::Exit, "done", None),
    ])
}

pub(crate) fn toolbox(runner: impl ToolRunner + 'static) -> Arc<Toolbox> {
    Arc::new(Toolbox { generation: 1, tools: tools(), runner: Arc::new(runner) })
}

/// Returns tools that return their arguments.
pub(crate) fn echo() -> Arc<Toolbox> {
    toolbox(FakeTools(|call: ToolCall, _| async move { Ok(json!({"seen": call.arguments})) }))
}

/// Returns a tool that never ends, and the number of its dropped calls.
pub(crate) fn endless() -> (Arc<Toolbox>, Arc<AtomicUsize>) {
    struct Dropped(Arc<AtomicUsize>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let runner = FakeTools(move |_, _| {
        let dropped = Dropped(Arc::clone(&counted));
        async move {
            let _dropped = dropped;
            std::future::pending::<Result<Value, ToolError>>().await
        }
    });
    (toolbox(runner), count)
}

pub(crate) fn http(endpoint: &str, key: Option<&str>) -> Arc<dyn Transport> {
    let connect = Duration::from_secs(3);
    Arc::new(HttpTransport::new(endpoint, key.map(str::to_owned), connect).unwrap())
}

pub(crate) fn worker(server: &Server, config: WorkerConfig) -> Worker {
    Worker::start(config, echo(), http(&server.endpoint(), None))
}

/// A finished request.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Arc<Outcome>,
    pub(crate) events: Vec<Event>,
}

impl Ended {
    /// Returns the reason, the kind and the detail of the failure, and the text.
    pub(crate) fn failed(&self) -> (FailReason, &str, &str, &str) {
        let Outcome { state, fail_reason, kind, detail, text, .. } = &*self.outcome;
        assert_ne!(*state, FinalState::Completed, "{self:?}");
        let kind = kind.as_deref().unwrap_or_default();
        (fail_reason.unwrap(), kind, detail.as_deref().unwrap_or_default(), text)
    }

    pub(crate) fn text(&self) -> &str {
        assert_eq!(self.outcome.state, FinalState::Completed, "{:?}", self.outcome);
        &self.outcome.text
    }

    /// Returns the names of the events, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let name = |event: &Event| json!(event)["type"].as_str().unwrap().to_owned();
        self.events.iter().map(name).collect()
    }

    pub(crate) fn warnings(&self) -> Vec<&str> {
        let warnings = self.events.iter().filter_map(|event| match event {
            Event::Warning { message } => Some(message.as_str()),
            _ => None,
        });
        warnings.collect()
    }

    pub(crate) fn retries(&self) -> Vec<(u32, u64, &str)> {
        let retry = |event| match event {
            &Event::Retry { attempt, delay_ms, ref detail } => Some((attempt, delay_ms, detail.as_str())),
            _ => None,
        };
        self.events.iter().filter_map(retry).collect()
    }
}

/// Submits a prompt and waits for the end.
pub(crate) async fn ask(worker: &Worker) -> Ended {
    finish(worker, &worker.submit(SubmitRequest::prompt("hello")).unwrap()).await
}

/// Like [`ask`], with a limit of 24 hours for a paused clock.
pub(crate) async fn ask_for_hours(worker: &Worker) -> Ended {
    let id = worker.submit(SubmitRequest::prompt("hello")).unwrap();
    finish_within(worker, &id, Duration::from_secs(24 * 3600)).await
}

/// Waits for the end of a request and checks the invariants of its events.
pub(crate) async fn finish(worker: &Worker, id: &str) -> Ended {
    // A limit for requests that never end. A busy machine takes a minute for a long text.
    finish_within(worker, id, deftool_test_support::HANG_LIMIT).await
}

pub(crate) async fn finish_within(worker: &Worker, id: &str, limit: Duration) -> Ended {
    let outcome = tokio::time::timeout(limit, worker.wait(id)).await.expect("a request ends").unwrap();
    let mut stream = worker.events(id, 0).unwrap();
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push((*event).clone());
    }
    assert!(matches!(events.first(), Some(Event::Submitted { .. })), "{events:?}");
    assert_eq!(events.last(), Some(&Event::Finished(Arc::clone(&outcome))));
    let text: String = events
        .iter()
        .filter_map(|event| if let Event::Text { text } = event { Some(text.as_str()) } else { None })
        .collect();
    assert_eq!(text, outcome.text, "the text events are the outcome's text");
    Ended { outcome, events }
}

/// Waits until the text of a request has this length.
pub(crate) async fn wait_for_text(worker: &Worker, id: &str, chars: usize) {
    let mut events = worker.events(id, 0).unwrap();
    while worker.request_status(id).unwrap().text_chars < chars {
        events.next().await.expect("the request ended before its text came");
    }
}
