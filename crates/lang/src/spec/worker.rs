//! A worker as defined by its spec: the location of the model and the settings of the request loop.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::text::{SourceId, Span, Spanned};

/// The unit of the tool budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum BudgetUnit {
    /// One reply of the model with any number of calls.
    #[default]
    Iteration,
    /// One call.
    Call,
}

/// The server API that requests use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// `POST /v1/chat/completions`.
    #[default]
    ChatCompletions,
    /// `POST /v1/responses`.
    Responses,
    /// `POST /v1/messages`.
    Messages,
}

impl Api {
    /// All APIs.
    pub const ALL: [Self; 3] = [Self::ChatCompletions, Self::Responses, Self::Messages];

    /// The word in specs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ChatCompletions => "chat-completions",
            Self::Responses => "responses",
            Self::Messages => "messages",
        }
    }
}

/// A server that the worker starts and supervises: `:server (:command ["llama-server" …])`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSpec {
    /// The program and its arguments; `{port}` stands for the port.
    pub command: Vec<String>,
    /// Additional environment variables.
    pub env: Vec<(String, String)>,
    /// Working directory, relative to the project; `None`: the project.
    pub cwd: Option<String>,
    /// The port it listens on; `None`: a free port is chosen at each start.
    pub port: Option<u16>,
}

/// Whether calls that the model writes as text are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fallback {
    /// Only calls in the marked formats of known models.
    #[default]
    Auto,
    /// Unmarked JSON too; the BIOS explains the convention to the model.
    On,
    /// Never.
    Off,
}

/// The effect of a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// The request ends.
    #[default]
    Fail,
    /// The error is returned to the model as the result of the call.
    Report,
}

/// The number of system messages for the BIOS, the caller's system prompt and those of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SystemMessages {
    /// Each as a message of its own, at its place.
    Separate,
    /// As one message at the start: many chat templates reject or drop any other.
    #[default]
    Combined,
}

/// The position of the BIOS lines that change between requests and turns: the time and the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BiosBudget {
    /// In the last message: at the end of a tool's result, or at the start of the user's message. No chat template
    /// rejects it. The message keeps them in later requests, so that a server can reuse its prompt cache.
    #[default]
    Result,
    /// In the first system message.
    Head,
    /// In a last system message.
    Tail,
}

/// Default size of a result for the model, in bytes: about 16,000 tokens.
pub const DEFAULT_MAX_RESULT: u64 = 64 << 10;

/// The form in which the model gets a script's result that is a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StringResults {
    /// As JSON, in quotes, like all other results.
    #[default]
    Json,
    /// As it is.
    Raw,
}

/// The system message of the engine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum BiosSource {
    /// The built-in text.
    #[default]
    BuiltIn,
    /// A file, relative to the project.
    File(Spanned<String>),
    /// No message.
    Off,
}

/// The timeouts of the driver. `None` is the default for the situation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timers {
    /// TCP and TLS connection.
    pub connect: Duration,
    /// Response headers; `None`: only the limit for the first token applies.
    pub headers: Option<Duration>,
    /// First token, from the request or since the last prompt progress; `None`: 10 min, or 30 min for a server on this
    /// machine.
    pub first_token: Option<Duration>,
    /// Longest time without data after the first token.
    pub stall: Duration,
    /// One tool call, unless the tool has its own timeout.
    pub tool: Duration,
    /// The whole request.
    pub total: Option<Duration>,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            headers: None,
            first_token: None,
            stall: Duration::from_secs(5 * 60),
            tool: Duration::from_secs(30),
            total: None,
        }
    }
}

/// A worker as defined by its spec.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools)] // each is a key of its own, except `valid`
pub struct WorkerSpec {
    /// The file that defines it; `None` for the implicit worker.
    pub source: Option<SourceId>,
    /// Span of the whole form.
    pub span: Span,
    /// The name.
    pub name: Spanned<String>,
    /// Whether `:default` is set: it is used where no worker is named.
    pub is_default: bool,
    /// Base URL, including `/v1`.
    pub endpoint: Option<String>,
    /// Name of the model.
    pub model: Option<String>,
    /// Name of the environment variable with the API key.
    pub api_key_env: String,
    /// The server software; `None`: it is detected.
    pub dialect: Option<Spanned<String>>,
    /// The server API to use; `None`: that of the endpoint.
    pub api: Option<Api>,
    /// The server that the worker starts; `None`: an external server.
    pub server: Option<ServerSpec>,
    /// Maximum number of requests at the same time.
    pub slots: usize,
    /// The tools it may use; `None`: all tools of the project.
    pub tools: Option<Vec<Spanned<String>>>,
    /// The exit tools it may use; `None`: all exit tools of the project.
    pub exit_tools: Option<Vec<Spanned<String>>>,
    /// Tool budget of one request, in units.
    pub tool_budget: u32,
    /// The unit of the tool budget.
    pub budget_unit: BudgetUnit,
    /// Whether calls that the model writes as text are executed.
    pub fallback: Fallback,
    /// Additional members of the request body.
    pub params: Map<String, Value>,
    /// The caller's system prompt.
    pub system: Option<String>,
    /// Whether one or two system messages are sent.
    pub system_messages: SystemMessages,
    /// The system message of the engine.
    pub bios: BiosSource,
    /// The position of the BIOS lines that change.
    pub bios_budget: BiosBudget,
    /// The effect of a call that cannot be made; `None`: not set.
    pub on_invalid_arguments: Option<OnFailure>,
    /// The effect of a failing tool; `None`: not set.
    pub on_tool_error: Option<OnFailure>,
    /// The form of results that are strings.
    pub string_results: StringResults,
    /// Size of a result for the model, in bytes, unless the tool has its own.
    pub max_result: u64,
    /// Whether the model gets one last turn, with only the exit tools, after the budget is spent.
    pub final_turn: bool,
    /// Whether the calls of one reply run at the same time.
    pub parallel: bool,
    /// The timeouts of the driver.
    pub timers: Timers,
    /// Number of results kept until released.
    pub keep_results: usize,
    /// Whether the form has no errors.
    pub valid: bool,
}

impl WorkerSpec {
    /// Creates a worker called `name` with default settings.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            source: None,
            span: Span::default(),
            name: Spanned::new(name.into(), Span::default()),
            is_default: false,
            endpoint: None,
            model: None,
            api_key_env: String::from("OPENAI_API_KEY"),
            dialect: None,
            api: None,
            server: None,
            slots: 1,
            tools: None,
            exit_tools: None,
            tool_budget: 8,
            budget_unit: BudgetUnit::default(),
            fallback: Fallback::default(),
            params: Map::new(),
            system: None,
            system_messages: SystemMessages::default(),
            bios: BiosSource::default(),
            bios_budget: BiosBudget::default(),
            on_invalid_arguments: None,
            on_tool_error: None,
            string_results: StringResults::default(),
            max_result: DEFAULT_MAX_RESULT,
            final_turn: false,
            parallel: false,
            timers: Timers::default(),
            keep_results: 1000,
            valid: true,
        }
    }
}
