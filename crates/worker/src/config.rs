//! The configuration of a worker.

use std::path::Path;
use std::sync::Arc;

use deftool_chat::request::{BiosProvider, BiosTemplate, BiosV1, RunConfig};
use deftool_chat::{Api, Capabilities, Dialect, Dialects};
use deftool_lang::spec::{DialectSpec, Timers, WorkerSpec};
use deftool_project::read_bios;
use deftool_record::Journal;

use crate::endpoint::Endpoint;
use crate::observer::Observer;

/// Handling of calls that require approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Approvals {
    /// Emits an `approval` event and waits for [`crate::Worker::approve`].
    #[default]
    Ask,
    /// Allows the call.
    Allow,
    /// Refuses the call.
    Refuse,
}

/// The configuration of a worker.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// Configuration of each request, including the names of the worker and the model.
    pub run: RunConfig,
    /// Time limits.
    pub timers: Timers,
    /// Maximum concurrent requests.
    pub slots: usize,
    /// Maximum requests that wait for a slot. Default: 0.
    pub queue: usize,
    /// Maximum finished requests that are kept.
    pub keep_results: usize,
    /// The API of the server.
    pub api: Api,
    /// The environment variable of the API key, for errors.
    pub key_variable: String,
    /// The dialect that the spec names; `None`: detected.
    pub dialect: Option<Dialect>,
    /// The dialects that are detected.
    pub dialects: Dialects,
    /// Whether errors without a known meaning suggest a row for them.
    pub suggests_rows: bool,
    /// Capabilities of the server.
    pub server: Capabilities,
    /// Provides deftool's own system message.
    pub bios: Arc<dyn BiosProvider>,
    /// Handling of calls that require approval.
    pub approvals: Approvals,
    /// The journal of all requests, if they must survive the end of this process.
    pub journal: Option<Arc<dyn Journal>>,
    /// Observes all requests. They get spans of their own in the trace of their submitter, or start a trace.
    pub observer: Option<Arc<dyn Observer>>,
}

/// The configuration of a worker without a name and with all keys at their defaults.
impl Default for WorkerConfig {
    fn default() -> Self {
        Self::with_built_in_bios(&WorkerSpec::named(""))
    }
}

impl WorkerConfig {
    /// Creates the configuration of a worker of the project at `root`. `own`: the dialects of the project, which the worker
    /// may name; `of_user`: those of the user, which are detected, too. [`WorkerConfig::at`] adds the model and the
    /// capabilities of the endpoint.
    ///
    /// # Errors
    /// If the file of `:bios` cannot be used, or if there is no such dialect. The message names it.
    pub fn of_project(
        root: &Path,
        spec: &WorkerSpec,
        own: &[DialectSpec],
        of_user: &[DialectSpec],
    ) -> Result<Self, String> {
        let bios: Arc<dyn BiosProvider> = match read_bios(root, spec)? {
            Some(text) => Arc::new(BiosTemplate { text }),
            None => Arc::new(BiosV1),
        };
        let dialects = Dialects::with(of_user);
        let mut config = Self { dialects, bios, ..Self::with_built_in_bios(spec) };
        if let Some(name) = spec.dialect.as_ref().map(|name| name.value.as_str()) {
            let dialect = Dialects::with(&[own, of_user].concat()).named(name);
            let worker = &spec.name.value;
            let dialect = dialect.ok_or_else(|| format!("worker `{worker}`: unknown dialect `{name}`"))?;
            (config.dialect, config.run.dialect) = (Some(dialect), dialect);
            config.server = Capabilities::of(dialect);
        }
        Ok(config)
    }

    /// Creates the configuration from a spec, with the built-in BIOS.
    fn with_built_in_bios(spec: &WorkerSpec) -> Self {
        let run = RunConfig {
            worker: spec.name.value.clone(),
            model: spec.model.clone().unwrap_or_default(),
            system: spec.system.clone(),
            system_messages: spec.system_messages,
            tool_budget: spec.tool_budget,
            budget_unit: spec.budget_unit,
            fallback: spec.fallback,
            on_invalid_arguments: spec.on_invalid_arguments.unwrap_or_default(),
            on_tool_error: spec.on_tool_error.unwrap_or_default(),
            string_results: spec.string_results,
            max_result: spec.max_result,
            final_turn: spec.final_turn,
            parallel: spec.parallel,
            bios_budget: spec.bios_budget,
            params: spec.params.clone(),
            ..RunConfig::default()
        };
        Self {
            run,
            timers: spec.timers.clone(),
            slots: spec.slots,
            queue: 0,
            keep_results: spec.keep_results,
            api: spec.api.unwrap_or_default(),
            key_variable: spec.api_key_env.clone(),
            dialect: None,
            dialects: Dialects::default(),
            suggests_rows: false,
            server: Capabilities::default(),
            bios: Arc::new(BiosV1),
            approvals: Approvals::default(),
            journal: None,
            observer: None,
        }
    }

    /// Returns the configuration with the model and the capabilities of an endpoint.
    #[must_use]
    pub fn at(mut self, endpoint: &Endpoint) -> Self {
        self.server = endpoint.found.server;
        self.run.model.clone_from(&endpoint.model);
        self.run.dialect = self.server.dialect;
        self.run.text_forms = self.server.text_forms;
        self.run.parallel_tool_calls_supported = self.server.parallel_calls.unwrap_or(true);
        self
    }
}
