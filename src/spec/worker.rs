//! A worker as its spec says it: where the model is, and how the loop runs.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::text::{SourceId, Span, Spanned};

/// What one unit of the tool budget pays for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BudgetUnit {
    /// One emission of the model, however many calls it holds.
    #[default]
    Iteration,
    /// One call.
    Call,
}

/// Which of a server's interfaces requests go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// `POST /v1/chat/completions`.
    #[default]
    ChatCompletions,
    /// `POST /v1/responses`.
    Responses,
}

/// Whose server it is: what it takes, what it tells, what it leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// The API as `OpenAI` describes it; also what is taken of a server that says nothing of itself.
    #[default]
    #[serde(rename = "openai")]
    OpenAi,
    /// llama.cpp's own server.
    LlamaCpp,
    /// vLLM.
    Vllm,
    /// Ollama.
    Ollama,
    /// LM Studio.
    LmStudio,
    /// `OpenRouter`.
    #[serde(rename = "openrouter")]
    OpenRouter,
}

/// A server that the worker starts and watches: `:server (:command ["llama-server" …])`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSpec {
    /// The program and its arguments; `{port}` stands for the port.
    pub command: Vec<String>,
    /// Variables added to its environment.
    pub env: Vec<(String, String)>,
    /// Its folder, relative to the project; `None`: the project.
    pub cwd: Option<String>,
    /// The port it listens on; `None`: a free one is chosen at each start.
    pub port: Option<u16>,
}

/// Whether calls that the model writes as text are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fallback {
    /// Only forms that models mark themselves.
    #[default]
    Auto,
    /// Unmarked JSON too; the BIOS tells the model the convention.
    On,
    /// Never.
    Off,
}

/// What a failed call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// Ends the request.
    #[default]
    Fail,
    /// Is the call's result for the model.
    Report,
}

/// How BIOS and the caller's system prompt are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SystemMessages {
    /// As two messages.
    #[default]
    Separate,
    /// As one, for templates that take one.
    Combined,
}

/// Where the BIOS lines that change from request to request and from turn to turn are sent: the time and the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BiosBudget {
    /// In the first system message.
    Head,
    /// In a last system message, so that a local server keeps its prompt cache.
    #[default]
    Tail,
}

/// The engine's own system message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum BiosSource {
    /// The built-in text.
    #[default]
    BuiltIn,
    /// A file, relative to the project.
    File(Spanned<String>),
    /// None is sent.
    Off,
}

/// The driver's timers. `None`: the default of the situation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timers {
    /// TCP and TLS.
    pub connect: Duration,
    /// Response headers; `None`: 30 s, and 10 min where a request waits for a slot or a model without a word.
    pub headers: Option<Duration>,
    /// Longest time without a byte.
    pub stall: Duration,
    /// Longest time after the headers without token or prompt progress.
    pub first_token: Duration,
    /// Longest time without a token after the first.
    pub token_stall: Duration,
    /// One tool call, unless the tool has its own limit.
    pub tool: Duration,
    /// The whole request.
    pub total: Option<Duration>,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            headers: None,
            stall: Duration::from_secs(120),
            first_token: Duration::from_secs(30 * 60),
            token_stall: Duration::from_secs(120),
            tool: Duration::from_secs(30),
            total: None,
        }
    }
}

/// A worker.
#[derive(Debug, Clone)]
pub struct WorkerSpec {
    /// Which file it stands in; `None` for the implicit worker.
    pub source: Option<SourceId>,
    /// The whole form.
    pub span: Span,
    /// Its name.
    pub name: Spanned<String>,
    /// Base URL, `/v1` included.
    pub endpoint: Option<String>,
    /// The model's name.
    pub model: Option<String>,
    /// Name of the environment variable that holds the key.
    pub api_key_env: String,
    /// Whose server it is; `None`: the server is asked.
    pub dialect: Option<Dialect>,
    /// Which of its interfaces is used.
    pub api: Api,
    /// The server that the worker starts; `None`: somebody else does.
    pub server: Option<ServerSpec>,
    /// Requests in flight at once.
    pub slots: usize,
    /// The normal tools it may use; `None`: all of the project.
    pub tools: Option<Vec<Spanned<String>>>,
    /// The exit tools it may use; `None`: all of the project.
    pub exit_tools: Option<Vec<Spanned<String>>>,
    /// Units of tool budget of one request.
    pub tool_budget: u32,
    /// What a unit pays for.
    pub budget_unit: BudgetUnit,
    /// Whether calls written as text are executed.
    pub fallback: Fallback,
    /// Merged into the request body.
    pub params: Map<String, Value>,
    /// The caller's system prompt.
    pub system: Option<String>,
    /// One system message or two.
    pub system_messages: SystemMessages,
    /// The engine's own system message.
    pub bios: BiosSource,
    /// Where its lines that change are sent.
    pub bios_budget: BiosBudget,
    /// What malformed arguments do.
    pub on_invalid_arguments: OnFailure,
    /// What a failing tool does.
    pub on_tool_error: OnFailure,
    /// Whether a spent budget gives the model one last turn with exit tools only.
    pub final_turn: bool,
    /// Whether the calls of one emission run at the same time.
    pub parallel: bool,
    /// The driver's timers.
    pub timers: Timers,
    /// Terminal results kept until released.
    pub keep_results: usize,
    /// Whether its form has no error.
    pub valid: bool,
}

impl WorkerSpec {
    /// A worker called `name` with every default.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            source: None,
            span: Span::default(),
            name: Spanned::new(name.into(), Span::default()),
            endpoint: None,
            model: None,
            api_key_env: String::from("OPENAI_API_KEY"),
            dialect: None,
            api: Api::default(),
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
            on_invalid_arguments: OnFailure::default(),
            on_tool_error: OnFailure::default(),
            final_turn: false,
            parallel: false,
            timers: Timers::default(),
            keep_results: 1000,
            valid: true,
        }
    }
}
