//! The configuration and the start of a request.

use deftool_lang::spec::{
    BiosBudget, BudgetUnit, DEFAULT_MAX_RESULT, Fallback, OnFailure, StringResults, SystemMessages,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::repetition::{RepetitionThreshold, default_thresholds};
use crate::dialect::Dialect;
use crate::fallback::{FormSet, Forms};
use crate::{Message, ReplySource};

/// A request's configuration, from its worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunConfig {
    /// The worker's name.
    pub worker: String,
    /// The model's name.
    pub model: String,
    /// The URL of the API, without secrets. Parts of replies that only their server can read go back only there.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// The dialect of the server.
    pub dialect: Dialect,
    /// The worker's system message.
    pub system: Option<String>,
    /// The form in which system messages are sent.
    pub system_messages: SystemMessages,
    /// Units of the tool budget.
    pub tool_budget: u32,
    /// The unit of the budget.
    pub budget_unit: BudgetUnit,
    /// Whether text is searched for calls.
    pub fallback: Fallback,
    /// The forms of calls written as text that the server reports by the model's names and chat template.
    #[serde(skip_serializing_if = "FormSet::is_empty")]
    pub text_forms: FormSet,
    /// Effect of calls that cannot be made: unknown tools, invalid or unreadable arguments, and malformed calls in text.
    pub on_invalid_arguments: OnFailure,
    /// Effect of a failed tool.
    pub on_tool_error: OnFailure,
    /// The form of results that are strings, unless the tool returns text.
    pub string_results: StringResults,
    /// Size of a result for the model, in bytes, unless the tool has its own. Longer results are cut.
    pub max_result: u64,
    /// Whether the model gets one last turn with exit tools only after the budget is exhausted.
    pub final_turn: bool,
    /// Whether the calls of one reply run in parallel.
    pub parallel: bool,
    /// Position of the variable BIOS lines.
    pub bios_budget: BiosBudget,
    /// Additional members of every request body.
    pub params: Map<String, Value>,
    /// Thresholds at which repeated lines fail the request; empty: never.
    pub repetition: Vec<RepetitionThreshold>,
    /// Whether the model's template supports several calls in one assistant message. If not, the history contains pairs
    /// of call and result.
    pub parallel_tool_calls_supported: bool,
}

impl Default for RunConfig {
    fn default() -> Self {
        Self {
            worker: String::from("default"),
            model: String::new(),
            url: String::new(),
            dialect: Dialect::default(),
            system: None,
            system_messages: SystemMessages::default(),
            tool_budget: 8,
            budget_unit: BudgetUnit::default(),
            fallback: Fallback::default(),
            text_forms: FormSet::default(),
            on_invalid_arguments: OnFailure::default(),
            on_tool_error: OnFailure::default(),
            string_results: StringResults::default(),
            max_result: DEFAULT_MAX_RESULT,
            final_turn: false,
            parallel: false,
            bios_budget: BiosBudget::default(),
            params: Map::new(),
            repetition: default_thresholds(),
            parallel_tool_calls_supported: true,
        }
    }
}

impl RunConfig {
    /// Returns the source of replies.
    pub(super) fn source(&self) -> ReplySource {
        ReplySource { url: self.url.clone(), model: self.model.clone() }
    }

    /// Returns the forms of calls written as text that are read.
    pub(super) fn forms(&self) -> Forms {
        self.dialect.forms(&self.model, self.text_forms)
    }

    /// Returns the configuration with the request's own model and parameters.
    #[must_use]
    pub(super) fn with_options(mut self, options: &RequestOptions) -> Self {
        let RequestOptions { model, system_prompt: _, params, tools: _, one_reply } = options.clone();
        self.model = model.unwrap_or(self.model);
        self.params.extend(params);
        if one_reply {
            // Its calls are the result, whatever they are.
            self.on_invalid_arguments = OnFailure::Report;
        }
        self
    }
}

/// Options of a single request, in addition to its worker's configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestOptions {
    /// The model, replacing the worker's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// An additional system message, sent after the worker's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Members of the request body. They override the worker's.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
    /// Names of the worker's tools that may be called; `None`: all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Whether the request ends with the first reply. Its calls are validated and reported, and none is answered.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub one_reply: bool,
}

impl RequestOptions {
    /// Whether no option is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The start of a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunStart {
    /// The request's id.
    pub request_id: String,
    /// The job's name from the submitter, or empty.
    pub job_name: String,
    /// The conversation so far. Its last message is to be answered. A prompt is one user message.
    pub conversation: Vec<Message>,
    /// The request's own options.
    #[serde(skip_serializing_if = "RequestOptions::is_empty")]
    pub options: RequestOptions,
    /// Time of submission, Unix time in milliseconds.
    pub submitted_at_ms: u64,
    /// Name of the time zone at submission, as in `Europe/Paris`.
    pub zone: String,
    /// The local time at submission, as in the BIOS.
    pub local_time: String,
    /// Seed for call ids.
    pub id_seed: u64,
}
