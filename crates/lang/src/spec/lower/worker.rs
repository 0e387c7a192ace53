//! Worker forms.

use std::time::Duration;

use serde_json::{Map, Value};

use super::lowerer::Lowerer;
use super::plist::{Entry, as_url};
use crate::spec::reference::Plist;
use crate::spec::rules::{
    endpoint_suffix, reserved_param, secret_in_file, timer_over_total, tools_without_budget, useless_key,
    wrong_value,
};
use crate::spec::{BiosSource, WorkerSpec};
use crate::syntax::Datum;
use crate::text::{Span, Spanned};

/// Whether `:params` cannot set this member of a request body.
pub fn is_reserved_param(name: &str) -> bool {
    RESERVED_PARAMS.contains(&name)
}

/// Members of a request body that `:params` cannot set.
const RESERVED_PARAMS: [&str; 9] = [
    "messages",
    "model",
    "stream",
    "stream_options",
    "tools",
    // Responses API: the whole conversation is sent with each request.
    "input",
    "previous_response_id",
    "conversation",
    // Messages API.
    "system",
];

/// A timer as written.
struct Timer {
    key: String,
    span: Span,
    duration: Duration,
}

impl Lowerer {
    /// Lowers the plist of a worker; `None` if it has no usable name.
    pub(super) fn lower_worker(&mut self, span: Span, items: Vec<Datum>) -> Option<WorkerSpec> {
        let entries = self.read_plist(items, Plist::Worker);
        let mut worker = WorkerSpec::named("");
        worker.source = Some(self.source);
        worker.span = span;
        let place_of =
            |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| entry.value.span);
        let (is_named, budget, tools) =
            (place_of("name").is_some(), place_of("tool-budget"), place_of("tools"));
        let (place_of_endpoint, place_of_server) = (place_of("endpoint"), place_of("server"));
        let mut timers = Vec::new();
        for entry in entries {
            self.lower_worker_key(&mut worker, entry, &mut timers);
        }
        if !is_named {
            self.report_missing_name(Plist::Worker, span);
        }
        if worker.name.value.is_empty() {
            return None;
        }
        self.check_timers(&timers);
        if let (Some(budget), Some(tools), 0) = (budget, tools, worker.tool_budget)
            && worker.tools.as_ref().is_some_and(|tools| !tools.is_empty())
        {
            self.findings.push(tools_without_budget::finding(self.at(budget), tools));
        }
        if let (Some(endpoint), Some(server)) = (place_of_endpoint, place_of_server) {
            let finding = useless_key::finding(self.at(endpoint), "endpoint", "together with `:server`");
            self.findings.push(finding.with_label_at(server, "the worker uses this server"));
        }
        worker.valid = !self.is_incomplete();
        Some(worker)
    }

    fn lower_worker_key(&mut self, worker: &mut WorkerSpec, entry: Entry, timers: &mut Vec<Timer>) {
        let Entry { key, key_span, value } = entry;
        let span = value.span;
        match key.as_str() {
            "name" => {
                if let Some(name) = self.take_name(value) {
                    worker.name = Spanned::new(name, span);
                }
            }
            "endpoint" => {
                let expected = "a URL such as \"http://127.0.0.1:8080/v1\"";
                worker.endpoint = self.take_parsed("endpoint", value, expected, as_url);
                if let Some(endpoint) = &worker.endpoint {
                    let finding = secret_in_file::check(self.at(span), endpoint);
                    let finding = finding.or_else(|| endpoint_suffix::check(self.at(span), endpoint));
                    self.findings.extend(finding);
                }
            }
            "model" => worker.model = self.take_string("model", value),
            "api-key-env" => {
                if let Some(name) = self.take_string("api-key-env", value) {
                    if is_variable(&name) {
                        worker.api_key_env = name;
                    } else {
                        self.findings.push(wrong_value::key_variable(self.at(span)));
                    }
                }
            }
            "system" => worker.system = self.take_string("system", value),
            "slots" | "tool-budget" | "keep-results" => self.lower_count(worker, &key, &value),
            "tools" => worker.tools = self.take_strings("tools", value),
            "exit-tools" => worker.exit_tools = self.take_strings("exit-tools", value),
            "params" => worker.params = self.lower_params(value),
            "default" => worker.is_default = self.take_flag("default", &value),
            "final-turn" => worker.final_turn = self.take_flag("final-turn", &value),
            "connect" | "headers" | "stall" | "first-token" | "tool" | "total" => {
                if let Some(duration) = self.lower_timer(worker, &key, value) {
                    timers.push(Timer { key, span, duration });
                }
            }
            "bios" => {
                worker.bios = if value.is_nil() {
                    BiosSource::Off
                } else {
                    self.take_path("bios", value).map_or(BiosSource::BuiltIn, BiosSource::File)
                };
            }
            "parallel" => worker.parallel = self.take_flag("parallel", &value),
            "server" => worker.server = self.lower_server(value),
            "description" | "category" => {}
            "api" => worker.api = self.take_word(Plist::Worker, &key, value),
            "dialect" => worker.dialect = self.take_dialect(value),
            "budget-unit" => {
                worker.budget_unit = self.take_word(Plist::Worker, &key, value).unwrap_or_default();
            }
            "fallback" => worker.fallback = self.take_word(Plist::Worker, &key, value).unwrap_or_default(),
            "system-messages" => {
                worker.system_messages = self.take_word(Plist::Worker, &key, value).unwrap_or_default();
            }
            "bios-budget" => {
                worker.bios_budget = self.take_word(Plist::Worker, &key, value).unwrap_or_default();
            }
            "on-invalid-arguments" => {
                worker.on_invalid_arguments = self.take_word(Plist::Worker, &key, value);
            }
            "on-tool-error" => worker.on_tool_error = self.take_word(Plist::Worker, &key, value),
            "string-results" => {
                worker.string_results = self.take_word(Plist::Worker, &key, value).unwrap_or_default();
            }
            "max-result" => {
                if let Some(size) = self.take_size("max-result", value) {
                    worker.max_result = size;
                }
            }
            _ if secret_in_file::is_secret(&key) => {
                self.findings.push(secret_in_file::finding(self.at(key_span), &key));
            }
            _ => self.report_unknown_key(Plist::Worker, &key, key_span),
        }
    }

    /// Reads the name of a dialect; `None` if it is to be detected.
    fn take_dialect(&mut self, value: Datum) -> Option<Spanned<String>> {
        let span = value.span;
        let name = self.take_dialect_name("dialect", value)?;
        (name != "auto").then(|| Spanned::new(name, span))
    }

    fn lower_count(&mut self, worker: &mut WorkerSpec, key: &str, value: &Datum) {
        let least = u32::from(key != "tool-budget");
        let Some(count) = self.take_count(key, value, least) else { return };
        match key {
            "slots" => worker.slots = count as usize,
            "keep-results" => worker.keep_results = count as usize,
            _ => worker.tool_budget = count,
        }
    }

    fn lower_timer(&mut self, worker: &mut WorkerSpec, key: &str, value: Datum) -> Option<Duration> {
        let duration = self.take_duration(key, value)?;
        let timers = &mut worker.timers;
        let place: &mut Duration = match key {
            "connect" => &mut timers.connect,
            "stall" => &mut timers.stall,
            "tool" => &mut timers.tool,
            "first-token" => timers.first_token.insert(duration),
            "headers" => timers.headers.insert(duration),
            _ => timers.total.insert(duration),
        };
        *place = duration;
        Some(duration)
    }

    /// Reports timers that have no effect because `:total` ends first.
    fn check_timers(&mut self, timers: &[Timer]) {
        let Some(total) = timers.iter().find(|timer| timer.key == "total") else { return };
        for timer in timers.iter().filter(|timer| timer.duration > total.duration) {
            let at = self.at(timer.span);
            let finding =
                timer_over_total::finding(at, &timer.key, timer.duration, (total.duration, total.span));
            self.findings.push(finding);
        }
    }

    fn take_count(&mut self, key: &str, value: &Datum, least: u32) -> Option<u32> {
        let expected = format!("an integer from {least} to 1000000");
        let count = self.take_integer(key, value, &expected, i64::from(least)..=1_000_000)?;
        u32::try_from(count).ok()
    }

    /// Reads `:max-tokens 100` as `"max_tokens": 100`.
    fn lower_params(&mut self, value: Datum) -> Map<String, Value> {
        let items = self.take_plist("params", value, "(:temperature 0)").unwrap_or_default();
        let mut params = Map::new();
        for entry in self.read_members(items) {
            let name = entry.key.replace('-', "_");
            if is_reserved_param(&name) {
                self.findings.push(reserved_param::finding(self.at(entry.key_span), &entry.key));
            } else if secret_in_file::is_secret(&entry.key) {
                self.findings.push(secret_in_file::finding(self.at(entry.key_span), &entry.key));
            } else if let Some(json) = self.json_value(entry.value) {
                params.insert(name, json.to_value());
            }
        }
        params
    }
}

fn is_variable(name: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_ascii_digit())
}
