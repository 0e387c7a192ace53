//! The worker loop.
//!
//! [`open`](crate::open()) connects to the server of a project. [`Worker::submit`] starts a request, and [`Worker::events`]
//! returns its events. [`Worker::stream`] does both; dropping the stream cancels the request. A program can answer
//! approvals, set permissions and record requests:
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! use deftool::request::Approval;
//! use deftool::worker::{Approvals, Recorder, Redaction, SubmitRequest, Worker};
//! use deftool::{Event, OwnTool};
//! use serde_json::json;
//!
//! let stock = OwnTool::new(
//!     r#"(deftool :name "stock" :description "Return the stock of an article." :confirm t
//!         :args ((:name "article" :type string :description "Its number.")))"#,
//!     |arguments| async move { Ok(json!({"article": arguments["article"], "stock": 12})) },
//! )?;
//! let worker = deftool::open("path/to/project").tool(stock).approvals(Approvals::Ask).queue(10).start().await?;
//!
//! let recorder = Recorder::create(Path::new("session.jsonl"), Redaction::default())?;
//! let mut request = SubmitRequest::prompt("How many of article 7 are left?");
//! request.recorder = Some(Arc::new(recorder));
//! let id = worker.submit(request)?;
//! let mut events = worker.events(&id, 0).ok_or("unknown request")?;
//! while let Some(event) = events.next().await {
//!     match &*event {
//!         Event::Text { text } => print!("{text}"),
//!         Event::Approval { id: call, answer: None, .. } => {
//!             worker.approve(&id, call, Approval::Allowed);
//!         }
//!         _ => {}
//!     }
//! }
//! let outcome = worker.wait(&id).await?;
//! println!("{:?} after {} calls", outcome.state, outcome.tool_iterations);
//! # Ok(())
//! # }
//! ```
//!
//! A program without a project implements [`ToolRunner`](crate::tool::ToolRunner) and, optionally, [`Transport`]:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! use deftool::chat::Api;
//! use deftool::schema::ToolSet;
//! use deftool::tool::{CallContext, ToolCall, ToolError, ToolErrorKind, ToolOutput, ToolRunner};
//! use deftool::worker::{Incoming, Outgoing, Toolbox, Transport, TransportError, Worker, WorkerConfig};
//! use futures_util::future::BoxFuture;
//! use futures_util::{FutureExt, StreamExt, future, stream};
//!
//! /// Answers every request with the same text.
//! struct Canned;
//!
//! impl Transport for Canned {
//!     fn send(&self, request: Outgoing) -> BoxFuture<'_, Result<Incoming, TransportError>> {
//!         let message = &request.body.to_value()["messages"][1]["content"];
//!         assert!(message.as_str().is_some_and(|text| text.ends_with("Hello")));
//!         let text = b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi.\"},\"finish_reason\":\"stop\"}]}\n\n";
//!         let body = stream::iter([Ok(text.to_vec().into())]).boxed();
//!         future::ready(Ok(Incoming::new(200, body))).boxed()
//!     }
//!
//!     fn url(&self, _: Api) -> &str {
//!         "canned"
//!     }
//! }
//!
//! struct NoTools;
//!
//! impl ToolRunner for NoTools {
//!     fn run(&self, call: ToolCall, _: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
//!         future::ready(Err(ToolError::new(ToolErrorKind::Failure, format!("no `{}`", call.name)))).boxed()
//!     }
//! }
//!
//! let tools = Toolbox { generation: 1, tools: ToolSet::default(), runner: Arc::new(NoTools) };
//! let worker = Worker::start(WorkerConfig::default(), Arc::new(tools), Arc::new(Canned));
//! assert_eq!(worker.ask("Hello").await?.text, "Hi.");
//! # Ok(())
//! # }
//! ```
//!
//! Permissions beyond reading the project are granted with a [`TrustSource`]. A worker that starts its own server needs
//! the permission for its command, which [`OpenError::NotTrusted`] names, and a guard, which ends the server with the
//! program:
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use deftool::process::{HelperProgram, serve_guard, set_guard};
//! use deftool::project::{PermissionSet, Trust};
//! use deftool::worker::{NotReady, OpenError, SubmitError, SubmitRequest, Worker, WorkerState};
//!
//! if std::env::args().nth(1).as_deref() == Some("guard") {
//!     return Ok(serve_guard()?);
//! }
//! set_guard(HelperProgram::this_program(["guard"])?);
//! let mut permissions = PermissionSet::default();
//! permissions.server.insert(String::from("llama-server --port {port} -m model.gguf"));
//! permissions.net.insert(String::from("api.example.org"));
//! let opened = deftool::open("path/to/project").trust(Trust::Only(permissions.into())).start().await;
//! let worker = match opened {
//!     Ok(worker) => worker,
//!     Err(OpenError::NotTrusted { missing }) => return Err(format!("it also needs {}", missing.len()).into()),
//!     Err(OpenError::NotReady(NotReady { reason, .. })) => return Err(reason.unwrap_or_default().into()),
//!     Err(other) => return Err(other.into()),
//! };
//! match worker.submit(SubmitRequest::prompt("Hello")) {
//!     Ok(id) => println!("{}", worker.wait(&id).await?.text),
//!     Err(SubmitError::NoSlotAvailable) => println!("{} requests are waiting", worker.status().queued),
//!     Err(other) if worker.state() == WorkerState::Failed => println!("{other}: {:?}", worker.recent_logs(3)),
//!     Err(other) => return Err(other.into()),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The errors of each step, and the state of a worker:
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use deftool::project::{Generation, Trust};
//! use deftool::worker::{
//!     AskError, EventStream, HttpTransport, InvalidSpec, OpenWorker, OwnTool, Recorder, Redaction, RequestStream,
//!     ResultError, Secrets, StoredFileError, SubmitError, SubmitRequest, ToolSource, TrustSource, Worker, WorkerConfig, WorkerStatus,
//! };
//!
//! /// Trusts a project of one tool.
//! struct Small;
//!
//! impl TrustSource for Small {
//!     fn of(&self, generation: &Generation) -> Trust {
//!         if generation.tools().count() == 1 { Trust::Everything } else { Trust::Only(Default::default()) }
//!     }
//! }
//!
//! fn prepared() -> Result<OpenWorker, InvalidSpec> {
//!     let now = OwnTool::new(r#"(deftool :name "now" :description "Return the time.")"#, |_| async { Ok(12.into()) })?;
//!     Ok(deftool::open("path/to/project").trust(Small).tool(now))
//! }
//!
//! fn connected(config: WorkerConfig, tools: Arc<dyn ToolSource>) -> Result<Worker, String> {
//!     let transport = HttpTransport::new("http://localhost:8080/v1", None, Duration::from_secs(5))?;
//!     Ok(Worker::start(config, tools, Arc::new(transport)))
//! }
//!
//! /// Without the API key and the password. `Recorder::close` returns the first write error.
//! fn recorder(key: &str, password: &str) -> Result<Recorder, StoredFileError> {
//!     let mut secrets = Secrets::default();
//!     secrets.add_value(password);
//!     Recorder::create("session.jsonl".as_ref(), Redaction::new(Some(key), secrets))
//! }
//!
//! async fn last_event(worker: &Worker, id: &str) -> Option<String> {
//!     let mut events: EventStream = worker.events(id, 0)?;
//!     let mut last = None;
//!     while let Some(event) = events.next().await {
//!         last = serde_json::to_string(&*event).ok();
//!     }
//!     last
//! }
//!
//! /// Cancels the request after its first event.
//! async fn start(worker: &Worker) -> Result<(), SubmitError> {
//!     let mut reply: RequestStream = worker.stream(SubmitRequest::prompt("Hello"))?;
//!     let first = reply.next().await;
//!     println!("{}: {first:?}", reply.id());
//!     Ok(())
//! }
//!
//! async fn answer(worker: &Worker) -> Result<String, AskError> {
//!     Ok(worker.ask("Hello").await?.text.clone())
//! }
//!
//! fn is_done(worker: &Worker, id: &str) -> bool {
//!     !matches!(worker.result(id), Err(ResultError::NotReady))
//! }
//!
//! fn load(status: &WorkerStatus) -> f64 {
//!     status.in_flight as f64 / status.slots as f64
//! }
//! ```
//!
//! An observer receives the events of all requests with their times, and what they do not contain. `deftool-otel`
//! exports them to OpenTelemetry:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use deftool::Event;
//! use deftool::worker::{Observation, Observer, RequestObserver, Session, Worker};
//!
//! #[derive(Debug)]
//! struct Slow;
//!
//! impl Observer for Slow {
//!     fn begin(&self, _: &Session) -> Box<dyn RequestObserver> {
//!         Box::new(Slow)
//!     }
//! }
//!
//! impl RequestObserver for Slow {
//!     fn observe(&mut self, at_ms: u64, observation: Observation<'_>) {
//!         if let Observation::Event(Event::Finished(_)) = observation {
//!             eprintln!("after {at_ms} ms");
//!         }
//!     }
//! }
//!
//! let open = deftool::open("path/to/project").observer(Arc::new(Slow));
//! ```

pub use deftool_engine::{Notices, OpenError, OpenWorker, ProjectTrust};
pub use deftool_record::{Recorder, Redaction, Secrets, Session, StoredFileError};
pub use deftool_worker::{
    Approvals, AskError, EventStream, HttpTransport, Incoming, InvalidSpec, NotReady, Observation, Observer,
    Outgoing, OwnTool, RequestObserver, RequestStream, ResultError, SubmitError, SubmitRequest, ToolSource,
    Toolbox, Transport, TransportError, TrustSource, Worker, WorkerConfig, WorkerState, WorkerStatus,
};
