//! What a worker is configured with.

use std::sync::Arc;

use super::calls::Approvals;
use super::endpoint::Endpoint;
use crate::chat::{Api, Capabilities};
use crate::request::{BiosProvider, BiosV1, RunConfig};
use crate::spec::{Timers, WorkerSpec};

/// How a worker works.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// What each request starts with; the worker's name and model are in it.
    pub run: RunConfig,
    /// Time limits.
    pub timers: Timers,
    /// Requests in flight at once.
    pub slots: usize,
    /// Requests that may wait for a slot; beyond them a submit is refused. None by default.
    pub queue: usize,
    /// Terminal results kept until released.
    pub keep_results: usize,
    /// Which of its interfaces is used.
    pub api: Api,
    /// Whose server it is, and what it told of itself.
    pub server: Capabilities,
    /// Makes the engine's own system message.
    pub bios: Arc<dyn BiosProvider>,
    /// What is done where a call needs a person's approval.
    pub approvals: Approvals,
}

impl WorkerConfig {
    /// What a spec says; model, dialect and template are the endpoint's.
    pub fn of_spec(spec: &WorkerSpec) -> Self {
        let run = RunConfig {
            worker: spec.name.value.clone(),
            model: spec.model.clone().unwrap_or_default(),
            system: spec.system.clone(),
            system_messages: spec.system_messages,
            tool_budget: spec.tool_budget,
            budget_unit: spec.budget_unit,
            fallback: spec.fallback,
            on_invalid_arguments: spec.on_invalid_arguments,
            on_tool_error: spec.on_tool_error,
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
            api: spec.api,
            server: Capabilities::of(spec.dialect.unwrap_or_default()),
            bios: Arc::new(BiosV1),
            approvals: Approvals::default(),
        }
    }

    /// With the model and the server of an endpoint that was found.
    #[must_use]
    pub fn at(mut self, endpoint: &Endpoint) -> Self {
        self.server = endpoint.found.server;
        self.run.model.clone_from(&endpoint.model);
        self.run.parallel_tool_calls_supported = self.server.parallel_calls.unwrap_or(true);
        self
    }
}
