//! What a request is configured with and started from.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::repetition::{RepetitionThreshold, default_thresholds};
use crate::chat::Message;
use crate::spec::{BiosBudget, BudgetUnit, Fallback, OnFailure, SystemMessages};

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
    pub on_invalid_arguments: OnFailure,
    /// What a failed tool does.
    pub on_tool_error: OnFailure,
    /// Whether a spent budget gives the model one last turn with exit tools only.
    pub final_turn: bool,
    /// Whether the calls of one emission run at the same time.
    pub parallel: bool,
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
            on_invalid_arguments: OnFailure::default(),
            on_tool_error: OnFailure::default(),
            final_turn: false,
            parallel: false,
            bios_budget: BiosBudget::default(),
            params: Map::new(),
            repetition: default_thresholds(),
            parallel_tool_calls_supported: true,
        }
    }
}

/// What a request has of its own, beside its worker's configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestOptions {
    /// The model, instead of the worker's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// A system message beside the worker's, after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Members of the request body; they win over the worker's.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
    /// The tools that may be called, of those that the worker has; `None`: all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

impl RequestOptions {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
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
    /// What it has of its own.
    #[serde(skip_serializing_if = "RequestOptions::is_empty")]
    pub options: RequestOptions,
    /// When it was submitted, Unix time in milliseconds.
    pub submitted_at_ms: u64,
    /// The zone's name at submit, as in `Europe/Paris`.
    pub zone: String,
    /// The local time at submit, as the BIOS tells it.
    pub local_time: String,
    /// Where the ids of calls come from.
    pub id_seed: u64,
}
