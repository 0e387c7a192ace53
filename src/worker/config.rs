//! What a worker is configured with.

use super::calls::Approvals;
use super::endpoint::Endpoint;
use crate::request::RunConfig;
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
    /// Terminal results kept until released.
    pub keep_results: usize,
    /// Whether the server is a llama.cpp.
    pub llama_cpp: bool,
    /// What is done where a call needs a person's approval.
    pub approvals: Approvals,
}

impl WorkerConfig {
    /// Takes what its endpoint told of itself.
    pub fn take_endpoint(&mut self, endpoint: Endpoint) {
        self.run.model = endpoint.model;
        self.run.parallel_tool_calls_supported = endpoint.parallel_tool_calls;
        self.llama_cpp = endpoint.llama_cpp;
    }

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
            keep_results: spec.keep_results,
            llama_cpp: false,
            approvals: Approvals::default(),
        }
    }
}
