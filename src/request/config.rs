//! What a request is configured with and started from.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::budget::BudgetUnit;
use super::repetition::{RepetitionThreshold, default_thresholds};
use crate::chat::Message;

/// How the system messages are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemMessages {
    /// The BIOS and the caller's, each its own.
    #[default]
    Separate,
    /// One message at the head, for templates that take one. Wins over [`BiosBudget::Tail`].
    Combined,
}

/// Whether calls written as text are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fallback {
    /// Forms that the model marks.
    #[default]
    Auto,
    /// Every form; the BIOS teaches the convention.
    On,
    /// None.
    Off,
}

/// What a call that cannot be made, or fails, does to the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The request fails.
    #[default]
    Fail,
    /// The model gets the error as the tool's result, for one unit of the budget.
    Report,
}

/// Where the BIOS line that changes stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BiosBudget {
    /// In the BIOS message.
    #[default]
    Head,
    /// In a last system message, so that the head stays as it was and a local server keeps its prompt cache.
    Tail,
}

/// A request's configuration, from its worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunConfig {
    /// The worker's name.
    pub worker: String,
    /// The model's name.
    pub model: String,
    /// The caller's system message.
    pub system: Option<String>,
    /// How system messages are sent.
    pub system_messages: SystemMessages,
    /// Units of the tool budget.
    pub tool_budget: u32,
    /// What a unit pays for.
    pub budget_unit: BudgetUnit,
    /// Whether calls written as text are looked for.
    pub fallback: Fallback,
    /// What arguments that are not valid do.
    pub on_invalid_arguments: OnError,
    /// What a failed tool does.
    pub on_tool_error: OnError,
    /// Whether a spent budget gives the model one last turn with exit tools only.
    pub final_turn: bool,
    /// Where the BIOS line that changes stands.
    pub bios_budget: BiosBudget,
    /// Further members of every request body.
    pub params: Map<String, Value>,
    /// When lines that repeat fail the request; empty: never.
    pub repetition: Vec<RepetitionThreshold>,
    /// Whether the model's template takes several calls in one assistant message; if not, the history holds
    /// pairs of call and result.
    pub parallel_tool_calls_supported: bool,
}

impl Default for RunConfig {
    fn default() -> Self {
        Self {
            worker: String::from("default"),
            model: String::new(),
            system: None,
            system_messages: SystemMessages::default(),
            tool_budget: 8,
            budget_unit: BudgetUnit::default(),
            fallback: Fallback::default(),
            on_invalid_arguments: OnError::default(),
            on_tool_error: OnError::default(),
            final_turn: false,
            bios_budget: BiosBudget::default(),
            params: Map::new(),
            repetition: default_thresholds(),
            parallel_tool_calls_supported: true,
        }
    }
}

/// What a request starts from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunStart {
    /// The request's id.
    pub request_id: String,
    /// The job's name as its submitter gave it, or empty.
    pub job_name: String,
    /// The conversation so far, its last message the one to answer; a prompt is one user message.
    pub conversation: Vec<Message>,
    /// When it was submitted, Unix time in milliseconds.
    pub submitted_at_ms: u64,
    /// The zone's name at submit, as in `Europe/Paris`.
    pub zone: String,
    /// The local time at submit, as the BIOS tells it.
    pub local_time: String,
    /// Where the ids of calls come from.
    pub id_seed: u64,
}
