//! deftool: a toolchain and runtime for tools that language models call.
//!
//! A tool spec is a plist s-expression. deftool checks it and compiles it to the JSON Schema of each API. A worker loop
//! connects to an OpenAI-compatible server, validates the model's arguments against the schema and runs the tool as a
//! sandboxed Luau script.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let worker = deftool::open("path/to/project").start().await?;
//! let outcome = worker.ask("What is the weather in Paris?").await?;
//! println!("{}", outcome.text);
//! # Ok(())
//! # }
//! ```
//!
//! `ask` fails only if the request is not accepted; [`Outcome::state`] tells how the request ended. [`OwnTool`] adds a
//! tool in Rust. Implement [`Transport`] for a custom model backend, and [`BiosProvider`] for custom system messages.
//! `default-features = false` excludes the command line.
//!
//! | module | contents |
//! |---|---|
//! | [`worker`] | the worker loop: requests, events, approvals, own tools, managed servers, recordings |
//! | [`request`] | the state machine of a request, without IO |
//! | [`chat`] | messages, events and the decoding of replies |
//! | [`project`] | loading of projects, permissions |
//! | [`spec`], [`schema`] | tool specs, their findings, the JSON Schema of each API, validation |
//! | [`script`] | the limits and the isolation of scripts |
//! | [`process`] | guards of programs and servers |
//! | [`tool`] | calls of tools, their errors, and the trait that runs them |
//! | [`stub`] | a model server for tests |

pub use deftool_chat::request::{BiosProvider, Event, Outcome};
pub use deftool_engine::open;
pub use deftool_worker::{OwnTool, SubmitRequest, Transport, Worker};

pub mod worker;

/// The state machine of a request: it makes every decision of the tool loop, without IO. It can be serialised.
///
/// ```
/// use deftool::chat::{Api, Message, StreamDecoder, TransportEnd};
/// use deftool::request::{BiosV1, FinalState, Run, RunConfig, RunStart, Step};
/// use deftool::schema::ToolSet;
///
/// let tools = ToolSet::default();
/// let conversation = vec![Message::user("Hello")];
/// let mut run = Run::new(RunConfig::default(), RunStart { conversation, ..RunStart::default() });
/// assert!(matches!(run.next_step(&tools, &BiosV1::default()), Step::Stream(_)));
///
/// // Send the request. These are the bytes of the answer.
/// let answer = b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi.\"},\"finish_reason\":\"stop\"}]}\n\n";
/// let (mut decoder, mut events) = (StreamDecoder::new(Api::ChatCompletions, []), Vec::new());
/// decoder.feed(answer, &mut events);
/// decoder.finish(TransportEnd::Clean, &mut events);
/// for event in events {
///     run.on_event(event, &tools, 20);
/// }
/// assert_eq!(run.next_step(&tools, &BiosV1::default()), Step::Finished);
/// let outcome = run.outcome().unwrap();
/// assert_eq!((outcome.state, outcome.text.as_str()), (FinalState::Completed, "Hi."));
/// ```
///
/// A [`BiosProvider`] writes the first system message, and the last one with the lines that change:
///
/// ```
/// use deftool::request::{BiosContext, BiosPart, BiosProvider};
///
/// #[derive(Debug)]
/// struct Terse;
///
/// impl BiosProvider for Terse {
///     fn bios(&self, context: &BiosContext<'_>) -> String {
///         let head = String::from("Answer in one word.");
///         let tail = format!("{} calls are left.", context.budget_left);
///         match context.part {
///             BiosPart::Whole => head + " " + &tail,
///             BiosPart::Head => head,
///             BiosPart::Tail => tail,
///         }
///     }
/// }
/// ```
///
/// A configuration, and the parts of an outcome:
///
/// ```
/// use deftool::request::{
///     BiosBudget, BudgetUnit, FailReason, Fallback, FinishReason, OnFailure, Outcome, PendingCall, RequestState,
///     RequestStatus, RunConfig, Signal, StringResults,
/// };
///
/// let config = RunConfig {
///     tool_budget: 5,
///     budget_unit: BudgetUnit::Call,
///     fallback: Fallback::Off,
///     on_invalid_arguments: OnFailure::Report,
///     bios_budget: BiosBudget::Tail,
///     string_results: StringResults::Raw,
///     ..RunConfig::default()
/// };
/// assert_eq!(config.on_tool_error, OnFailure::Fail);
///
/// fn describe(outcome: &Outcome) -> String {
///     match (outcome.finish_reason, outcome.fail_reason) {
///         (FinishReason::Failed, Some(FailReason::ToolExecutionError)) => String::from("a tool failed"),
///         (FinishReason::MaxTokens, _) => format!("{} …", outcome.text),
///         _ => match outcome.signals.as_slice() {
///             [Signal { tool_name, arguments, .. }, ..] => format!("{tool_name} {arguments}"),
///             [] => outcome.text.clone(),
///         },
///     }
/// }
///
/// fn is_busy(status: &RequestStatus) -> bool {
///     matches!(status.state, RequestState::Running | RequestState::ToolRunning)
/// }
///
/// fn needs_user(calls: &[PendingCall]) -> bool {
///     calls.iter().any(|call| call.needs_approval)
/// }
/// ```
pub mod request {
    pub use deftool_chat::request::{
        Approval, BiosBudget, BiosContext, BiosPart, BiosProvider, BiosV1, BudgetUnit, Event, FailReason,
        Failure, FailureKind, Fallback, FinalState, FinishReason, OnFailure, Outcome, PendingCall,
        RequestState, RequestStatus, Run, RunConfig, RunStart, Signal, Step, StringResults,
        normalize_conversation,
    };
}

/// Messages, events and the decoding of replies.
///
/// ```
/// use deftool::chat::{Api, ChatEvent, ReplyStatus, StreamDecoder, TransportEnd};
///
/// let (mut decoder, mut events) = (StreamDecoder::new(Api::ChatCompletions, []), Vec::new());
/// decoder.feed(b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi.\"},\"finish_reason\":\"stop\"}]}\n\n", &mut events);
/// decoder.finish(TransportEnd::Clean, &mut events);
/// let [ChatEvent::Text { text }, ChatEvent::Ended { reply }] = &events[..] else { panic!("{events:?}") };
/// assert_eq!((text.as_str(), &reply.status), ("Hi.", &ReplyStatus::Complete));
/// ```
///
/// Describe a reply as text:
///
/// ```
/// use deftool::chat::{
///     ChatRequest, Message, MessageToolCall, RawArguments, RawCall, Reply, ReplyStatus, ServerError, ServerErrorKind,
///     Usage,
/// };
///
/// fn describe(reply: &Reply) -> String {
///     match &reply.status {
///         ReplyStatus::ServerError { error: ServerError { kind: ServerErrorKind::ContextOverflow, .. } } => {
///             String::from("the conversation is too long")
///         }
///         ReplyStatus::ServerError { error } => error.message.clone(),
///         _ => match (reply.calls.as_slice(), &reply.usage) {
///             ([RawCall { name, arguments: RawArguments::Malformed { error, .. }, .. }], _) => format!("{name}: {error}"),
///             (calls, Some(Usage { completion_tokens, .. })) => format!("{} calls, {completion_tokens} tokens", calls.len()),
///             (calls, None) => format!("{} calls", calls.len()),
///         },
///     }
/// }
///
/// fn calls_of(request: &ChatRequest) -> impl Iterator<Item = &MessageToolCall> {
///     request.messages.iter().flat_map(|message| match &**message {
///         Message::Assistant { tool_calls, .. } => tool_calls.as_slice(),
///         _ => &[],
///     })
/// }
/// ```
pub mod chat {
    pub use deftool_chat::{
        Api, Body, ChatEvent, ChatRequest, Message, MessageToolCall, RawArguments, RawCall, Reply,
        ReplyStatus, ServerError, ServerErrorKind, StreamDecoder, TransportEnd, Usage,
    };
}

/// Loading of projects, and the permissions that their scripts and workers request.
///
/// ```
/// use std::path::Path;
///
/// use deftool::project::{Generation, ScriptState, find_root};
///
/// let root = find_root(Path::new("examples/quickstart/specs"))?;
/// let generation = Generation::load(&root, Path::new("."), None)?;
/// assert!(generation.load.findings.is_empty());
/// let weather = generation.tool("get_weather").unwrap();
/// assert!(matches!(weather.script, ScriptState::Ready(_)));
/// # Ok::<(), deftool::project::ProjectError>(())
/// ```
///
/// ```
/// use deftool::project::{Load, LoadedTool, PermissionRequest};
///
/// fn names(load: &Load) -> Vec<&str> {
///     load.valid_tools().map(|LoadedTool { tool, .. }| tool.name.value.as_str()).collect()
/// }
///
/// fn describe(request: &PermissionRequest) -> String {
///     format!("{request}")
/// }
/// ```
pub mod project {
    pub use deftool_project::{
        Generation, Load, LoadedTool, PermissionRequest, PermissionSet, ProjectError, ScriptState, Trust,
        find_root,
    };
}

/// Tool specs: their forms, parsed and checked.
///
/// ```
/// use deftool::spec::{FileKind, SourceFile, Sources, apply_fixes, lower, parse};
///
/// let text = "(deftool :name \"count\" :description \"Count the words.\" :args ((:name \"text\" :type strng)))";
/// let mut sources = Sources::new();
/// let id = sources.add(SourceFile::new("count.eld", text));
/// let (tree, mut findings) = parse(id, text);
/// let (definitions, more) = lower(id, text, &tree, FileKind::of_name("count.eld"));
/// findings.extend(more);
/// assert_eq!(definitions.tools[0].name.value, "count");
/// let finding = &findings[0];
/// assert_eq!((finding.rule.code, sources.describe(finding.primary).as_str()), ("DT204", "count.eld:1:83"));
///
/// // A fix is applied completely or not at all.
/// let fixed = apply_fixes(text, findings.iter().filter_map(|finding| finding.fix.as_ref()));
/// assert!(fixed.text.contains(":type string"));
/// ```
///
/// The parts of a tool, and of a finding as an editor shows it:
///
/// ```
/// use deftool::spec::{
///     Argument, Definitions, Diagnostic, Edit, Effect, Fix, Location, Permissions, Rule, Severity, SourceId, Span,
///     Spanned, Timers, Tool, ToolKind, WorkerSpec,
/// };
///
/// fn signature(tool: &Tool) -> String {
///     let Spanned { value: name, .. } = &tool.name;
///     let arguments: Vec<&str> = tool.arguments.iter().map(|Argument { name, .. }| name.value.as_str()).collect();
///     format!("{name}({})", arguments.join(", "))
/// }
///
/// fn is_harmless(tool: &Tool) -> bool {
///     tool.kind == ToolKind::Normal && tool.effect == Effect::Pure && tool.permissions == Permissions::default()
/// }
///
/// fn slowest(definitions: &Definitions) -> Option<&WorkerSpec> {
///     definitions.workers.iter().max_by_key(|WorkerSpec { timers: Timers { tool, .. }, .. }| *tool)
/// }
///
/// fn edits(finding: &Diagnostic) -> Vec<(Location, &str)> {
///     let Location { source, .. }: Location = finding.primary;
///     let at = |source: SourceId, span: Span| Location { source, span };
///     let Some(Fix { edits, is_safe: true, .. }) = &finding.fix else { return Vec::new() };
///     edits.iter().map(|Edit { span, replacement }| (at(source, *span), replacement.as_str())).collect()
/// }
///
/// fn code(finding: &Diagnostic) -> Option<&'static str> {
///     let Rule { code, .. } = finding.rule;
///     (finding.severity == Severity::Error).then_some(*code)
/// }
/// ```
pub mod spec {
    pub use deftool_lang::diagnostic::{Diagnostic, Edit, Fix, Rule, Severity, apply_fixes};
    pub use deftool_lang::spec::{
        Argument, Definitions, Effect, FileKind, Permissions, Timers, Tool, ToolKind, WorkerSpec, lower,
    };
    pub use deftool_lang::syntax::parse;
    pub use deftool_lang::text::{Location, SourceFile, SourceId, Sources, Span, Spanned};
}

/// The JSON Schema of a tool for each API, and the validation of arguments.
///
/// ```
/// use deftool::schema::{Target, ToolSet, compile_tool, emit, limitations};
/// use deftool::spec::{FileKind, SourceFile, Sources, lower, parse};
/// use serde_json::json;
///
/// let text = r#"(deftool :name "count" :description "Count the characters of a text."
///                 :args ((:name "text" :type string :description "The text.")))"#;
/// let id = Sources::new().add(SourceFile::new("count.eld", text));
/// let (definitions, _) = lower(id, text, &parse(id, text).0, FileKind::of_name("count.eld"));
/// let sent = emit(Target::OpenAi, &definitions.tools);
/// assert_eq!(sent[0]["function"]["parameters"]["required"], json!(["text"]));
///
/// let tool = compile_tool(&definitions.tools[0]);
/// assert!(tool.accept(json!({"text": "abc"}).try_into().unwrap()).is_ok());
/// assert!(tool.accept(json!({"text": 3}).try_into().unwrap()).is_err());
/// ```
///
/// ```
/// use deftool::schema::{ArgumentValidator, Arguments, Confirmation, SchemaError, Target, ToolEntry, Violation, limitations};
/// use serde_json::{Value, json};
///
/// let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "pattern": "^a"}}});
/// let validator: Result<ArgumentValidator, SchemaError> = ArgumentValidator::compile("double", &schema);
/// let found: Vec<Violation> = validator?.validate(&json!({"n": "x"})).unwrap_err();
/// assert_eq!(found[0].path, ".n");
///
/// let ignored: Vec<deftool::schema::Limitation> = limitations(Target::Gemini, &schema);
/// assert!(ignored.iter().all(|limitation| limitation.pointer.starts_with('/') || limitation.pointer.is_empty()));
///
/// fn is_asked(tool: &ToolEntry, arguments: &Arguments) -> bool {
///     tool.needs_approval(arguments)
/// }
///
/// assert!(matches!(Confirmation::default(), Confirmation::Never));
/// # Ok::<(), SchemaError>(())
/// ```
pub mod schema {
    pub use deftool_lang::schema::{
        Accepted, ArgumentValidator, Arguments, Confirmation, Limitation, Repair, RepairKind, SchemaError,
        Target, ToolEntry, ToolSet, Violation, check_tool, compile_tool, emit, limitations,
    };
}

/// Calls of tools and their errors.
///
/// ```
/// use deftool::tool::{ToolError, ToolErrorKind};
///
/// let error = ToolError::new(ToolErrorKind::Failure, "the article is unknown");
/// assert_eq!(error.to_string(), "error[failure]: the article is unknown");
/// ```
///
/// A request and its calls can belong to a distributed trace:
///
/// ```
/// use deftool::SubmitRequest;
/// use deftool::tool::TraceContext;
///
/// let mut request = SubmitRequest::prompt("How many of article 7 are left?");
/// request.trace = TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "");
/// ```
pub mod tool {
    pub use deftool_lang::tool::{
        Attachment, CallContext, MediaType, ToolCall, ToolError, ToolErrorKind, ToolOutput, ToolRunner,
        TraceContext,
    };
}

/// The child processes of a program.
///
/// Managed servers, and the programs that scripts run, need a guard: a process that ends them with this program, even if
/// it is killed. The guard may run the same executable:
///
/// ```no_run
/// use deftool::process::{HelperProgram, serve_guard, set_guard};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// if std::env::args().nth(1).as_deref() == Some("guard") {
///     return Ok(serve_guard()?);
/// }
/// set_guard(HelperProgram::this_program(["guard"])?);
/// # Ok(())
/// # }
/// ```
pub mod process {
    pub use deftool_process::{HelperProgram, serve_guard, set_guard};
}

/// The limits and the isolation of scripts.
///
/// The program may run scripts in child processes, which run the same executable:
///
/// ```no_run
/// use deftool::Worker;
/// use deftool::process::HelperProgram;
/// use deftool::script::{Isolation, RunnerOptions, serve_isolated};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// if std::env::args().nth(1).as_deref() == Some("script-host") {
///     return Ok(serve_isolated()?);
/// }
/// let program = HelperProgram::this_program([String::from("script-host")])?;
/// let options = RunnerOptions { isolation: Isolation::Processes(program), ..RunnerOptions::default() };
/// let worker = deftool::open("path/to/project").scripts(options).start().await?;
/// # Ok(())
/// # }
/// ```
///
/// Log lines and progress of scripts go to a sink:
///
/// ```
/// use deftool::script::{LogLevel, RunnerOptions, ScriptEvent, ScriptSink};
///
/// let sink = ScriptSink::new(|event| match event {
///     ScriptEvent::Logged { level: LogLevel::Warn | LogLevel::Error, tool, text, .. } => eprintln!("{tool}: {text}"),
///     ScriptEvent::Logged { .. } => {}
///     ScriptEvent::Progressed { tool, text, .. } => eprintln!("{tool} … {text}"),
/// });
/// let options = RunnerOptions { sink, ..RunnerOptions::default() };
/// assert!(options.threads > 0);
/// ```
pub mod script {
    pub use deftool_script::{Isolation, LogLevel, RunnerOptions, ScriptEvent, ScriptSink, serve_isolated};
}

/// A model server for tests.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use deftool::Worker;
/// use deftool::stub::{Reply, Scenario, Stub};
/// use serde_json::json;
///
/// let stub = Stub::start(Scenario::replies([
///     Reply::new().call("get_weather", &json!({"location": "Paris", "unit": "celsius"})),
///     Reply::new().text("It is 21 degrees."),
/// ]))?;
/// let worker = deftool::open("examples/quickstart").endpoint(stub.endpoint()).start().await?;
/// assert_eq!(worker.ask("Is it warm in Paris?").await?.text, "It is 21 degrees.");
/// assert_eq!(stub.failures(), Vec::<String>::new());
/// # Ok(())
/// # }
/// ```
///
/// A scenario may come from a file, and a function may answer each request:
///
/// ```
/// use deftool::stub::{Answer, Received, Scenario, ScenarioError, Stub, load};
///
/// let scenarios: Result<Vec<Scenario>, ScenarioError> = load("examples/quickstart/stub/weather.eld".as_ref());
/// assert!(!scenarios?.is_empty());
///
/// let address = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
/// let stub = Stub::answering(address, |request: &Received| Answer::text(&format!("{} {}", request.method(), request.path())))?;
/// assert_eq!(stub.connections(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod stub {
    pub use deftool_stub::{Answer, Fault, Received, Reply, Scenario, ScenarioError, Step, Stub, load};
}

#[cfg(feature = "cli")]
pub mod cli;
