//! The messages of the protocol.
//!
//! The parameters of each method are an object. An unknown member is an error. `docs/schemas/rpc.json` and `docs/schemas/rpc.ts`
//! are generated from these types.

use std::path::PathBuf;
use std::sync::Arc;

use deftool_chat::Message;
use deftool_chat::request::{Event, Outcome};
use deftool_jsonrpc::Id;
use deftool_lang::schema::Repair;
use deftool_lang::tool::AttachmentData;
use deftool_script::LogLevel;
#[cfg(feature = "definitions")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
#[cfg(feature = "definitions")]
use ts_rs::TS;

/// Parameters or a result without members.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
#[serde(deny_unknown_fields)]
pub struct Empty {}

/// The result of `list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
pub struct ListResult {
    /// The folder of the project.
    pub project: String,
    /// The number of the generation. It increases with each reload.
    pub generation: u64,
    /// The tools that can be called, and the exit tools, sorted by name. Tools with errors are left out.
    pub tools: Vec<ToolInfo>,
    /// The names of the workers, also of those of the user. A project without workers has the worker `default`.
    pub workers: Vec<String>,
}

/// A tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
pub struct ToolInfo {
    /// The name.
    pub name: String,
    /// Whether calls are executed.
    pub kind: Kind,
    /// The description.
    pub description: String,
    /// The category, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "definitions", ts(optional))]
    pub category: Option<String>,
    /// The calls that need the user's approval.
    pub confirm: Confirm,
    /// The JSON Schema of the arguments. Its properties are in the order of the spec.
    pub parameters: Value,
    /// The project that the tool comes from.
    pub origin: Origin,
    /// The spec file, relative to the project.
    pub file: String,
    /// The line of the tool in this file. The first line is 1.
    pub line: usize,
}

/// The project that a tool comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The project.
    Project,
    /// The user's own project.
    User,
}

/// Whether calls of a tool are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Executed.
    Normal,
    /// Only recorded, as a signal of the model.
    Exit,
}

/// The calls of a tool that need the user's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
#[serde(rename_all = "snake_case")]
pub enum Confirm {
    /// No calls.
    Never,
    /// All calls.
    Always,
    /// Some calls; see `needs_approval`.
    Sometimes,
}

/// The parameters of `check`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
#[serde(default, deny_unknown_fields)]
pub struct CheckParams {
    /// The target APIs to check for, such as `anthropic`.
    #[cfg_attr(feature = "definitions", ts(as = "Option<_>", optional))]
    pub targets: Vec<String>,
}

/// The parameters of `compile`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
#[serde(default, deny_unknown_fields)]
pub struct CompileParams {
    /// The target API. Default: `openai`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "definitions", ts(optional))]
    pub target: Option<String>,
    /// The names of the tools. Default: all tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "definitions", ts(optional))]
    pub tools: Option<Vec<String>>,
}

/// The result of `compile`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
pub struct CompileResult {
    /// The generation of the tools.
    pub generation: u64,
    /// The tools in the format of the target.
    pub definitions: Value,
}

/// The parameters of `needs_approval`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
#[serde(deny_unknown_fields)]
pub struct NeedsApprovalParams {
    /// The tool.
    pub tool: String,
    /// The arguments.
    #[serde(default)]
    #[cfg_attr(feature = "definitions", ts(as = "Option<_>", optional))]
    pub arguments: Map<String, Value>,
}

/// The result of `needs_approval`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
pub struct NeedsApprovalResult {
    /// Whether the call needs the user's approval.
    pub needs_approval: bool,
}

/// The parameters of `call`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
#[serde(deny_unknown_fields)]
pub struct CallParams {
    /// The tool.
    pub tool: String,
    /// The arguments.
    #[serde(default)]
    #[cfg_attr(feature = "definitions", ts(as = "Option<_>", optional))]
    pub arguments: Map<String, Value>,
    /// Whether the user has approved the call. Otherwise the server sends `approve` if the call needs approval.
    #[serde(default)]
    #[cfg_attr(feature = "definitions", ts(as = "Option<_>", optional))]
    pub approved: bool,
    /// The ID of the call in `log`, `progress` and `approve`. Default: empty.
    #[serde(default)]
    #[cfg_attr(feature = "definitions", ts(as = "Option<_>", optional))]
    pub call_id: String,
    /// The span of the client, as in the HTTP header `traceparent` (W3C Trace Context). An invalid one is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "definitions", ts(optional))]
    pub traceparent: Option<String>,
    /// The data of tracing systems, as in the HTTP header `tracestate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "definitions", ts(optional))]
    pub tracestate: Option<String>,
}

/// The result of `call`. A failed call is an error, with a `ToolError` as `data`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
pub struct CallResult {
    /// The result of the tool.
    pub result: Value,
    /// The result as text: a string without quotes, anything else as JSON.
    pub text: String,
    /// The lossless repairs of the arguments; usually none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<Repair>,
}

/// The parameters of `submit`. Exactly one of `prompt` and `messages` is required.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS), ts(optional_fields))]
#[serde(default, deny_unknown_fields)]
pub struct SubmitParams {
    /// The user's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Files that are added to the prompt: text, images or audio. Relative names start at the current folder of the server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "definitions", ts(as = "Option<_>"))]
    pub files: Vec<PathBuf>,
    /// A conversation. The model answers its last message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message>>,
    /// The bytes of images and audio of the messages, found by their SHA-256. Those of requests whose results are kept
    /// need not be sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "definitions", ts(as = "Option<_>"))]
    pub attachments: Vec<AttachmentData>,
    /// The worker. Default: the worker of the command line, or the only worker of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// A system message, in addition to the worker's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The model; overrides the worker's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Members of the request body such as `temperature`; override the worker's `:params`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[cfg_attr(feature = "definitions", ts(as = "Option<_>"))]
    pub params: Map<String, Value>,
    /// The names of the tools that may be called. Default: all tools of the worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// A name for the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    /// Whether a request of the journal with the same content is continued instead. It may have ended. Each is continued
    /// once.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "definitions", ts(as = "Option<_>"))]
    pub resume: bool,
    /// The span of the client, as in the HTTP header `traceparent` (W3C Trace Context). An invalid one is ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The data of tracing systems, as in the HTTP header `tracestate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracestate: Option<String>,
}

/// The result of `submit`, and the parameters of `cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
#[serde(deny_unknown_fields)]
pub struct RequestId {
    /// The ID of the request.
    pub request_id: String,
}

/// The parameters of `result`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
#[serde(deny_unknown_fields)]
pub struct ResultParams {
    /// The ID of the request.
    pub request_id: String,
    /// Whether the result contains the bytes of images and audio.
    #[serde(default)]
    #[cfg_attr(feature = "definitions", ts(as = "Option<_>", optional))]
    pub attachments: bool,
}

/// The parameters of `events`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
#[serde(deny_unknown_fields)]
pub struct EventsParams {
    /// The request.
    pub request_id: String,
    /// The index of the first event to send.
    #[serde(default)]
    #[cfg_attr(feature = "definitions", ts(as = "Option<_>", optional))]
    pub from: usize,
}

/// The result of `events`, sent after the last event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
pub struct EventsResult {
    /// The number of events of the request.
    pub count: usize,
}

/// The result of `result`, sent after the request ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
pub struct RequestResult {
    /// The outcome.
    pub outcome: Outcome,
    /// The conversation, to continue it with another message of the user.
    pub messages: Vec<Message>,
    /// The bytes of images and audio of the messages, once each, if the parameters request them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<AttachmentData>,
}

/// The parameters of the notification `event`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
pub struct EventParams {
    /// The request.
    pub request_id: String,
    /// The index of the event.
    pub index: usize,
    /// The event.
    pub event: Arc<Event>,
}

/// The parameters of the notification `log`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
pub struct LogParams {
    /// The `request_id` of the request, or the `call_id` of the call.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The level.
    pub level: Level,
    /// The line.
    pub text: String,
}

/// The level of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

impl From<LogLevel> for Level {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Debug => Self::Debug,
            LogLevel::Info => Self::Info,
            LogLevel::Warn => Self::Warn,
            LogLevel::Error => Self::Error,
        }
    }
}

/// The parameters of the notification `progress`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
pub struct ProgressParams {
    /// The `request_id` of the request, or the `call_id` of the call.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The completed fraction, from 0 to 1, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "definitions", ts(optional))]
    pub fraction: Option<f64>,
    /// The current activity.
    pub text: String,
}

/// The parameters of the notification `reloaded`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
pub struct ReloadedParams {
    /// The number of the current generation.
    pub generation: u64,
    /// The changes since the last notification, for the user.
    pub changes: String,
    /// The reason why the project cannot be loaded. The current generation is then outdated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "definitions", ts(optional))]
    pub error: Option<String>,
}

/// The parameters of the request `approve`. Its result is an `Approval`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
pub struct ApproveParams {
    /// The `request_id` of the request, or empty for a call of the client.
    pub request_id: String,
    /// The ID of the call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub arguments: Arc<Value>,
    /// The call on one line for the user. Control characters and invisible characters are escaped.
    pub text: String,
}

/// The parameters of the notification `$/cancelRequest`. Both sides send it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(JsonSchema, TS))]
pub struct CancelParams {
    /// The request to cancel.
    pub id: Id,
}

/// The names of the methods of the server.
pub const METHODS: [&str; 10] = [
    "list",
    "check",
    "compile",
    "needs_approval",
    "call",
    "submit",
    "events",
    "result",
    "cancel",
    "shutdown",
];
