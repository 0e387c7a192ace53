//! Worker forms.

use std::time::Duration;

use serde_json::{Map, Value};

use super::Lowerer;
use super::plist::Entry;
use crate::spec::rules;
use crate::spec::units::parse_duration;
use crate::spec::{BiosBudget, BudgetUnit, Fallback, OnFailure, SystemMessages, WorkerSpec};
use crate::syntax::{Datum, DatumKind, Number};
use crate::text::{Span, Spanned};

const WORKER_KEYS: [&str; 31] = [
    "name",
    "endpoint",
    "model",
    "api-key-env",
    "dialect",
    "slots",
    "tools",
    "exit-tools",
    "tool-budget",
    "budget-unit",
    "fallback",
    "params",
    "system",
    "system-messages",
    "bios",
    "bios-budget",
    "on-invalid-arguments",
    "on-tool-error",
    "final-turn",
    "parallel",
    "connect",
    "headers",
    "stall",
    "first-token",
    "token-stall",
    "tool",
    "total",
    "keep-results",
    "server",
    "description",
    "category",
];

/// Members of a request body that `:params` cannot set.
const RESERVED_PARAMS: [&str; 5] = ["messages", "model", "stream", "stream_options", "tools"];

impl Lowerer {
    /// The worker that a form's plist is; `None` when it has no usable name.
    pub(super) fn lower_worker(&mut self, span: Span, items: Vec<Datum>) -> Option<WorkerSpec> {
        let entries = self.read_plist(items, &WORKER_KEYS);
        let mut worker = WorkerSpec::named("");
        worker.source = Some(self.source);
        worker.span = span;
        for entry in entries {
            self.lower_worker_key(&mut worker, entry);
        }
        if worker.name.value.is_empty() {
            let head = Span::new(span.start as usize, span.start as usize + 1);
            self.tell(&rules::MISSING_NAME, head, String::from("a worker needs a `:name`"));
            return None;
        }
        worker.valid = !self.has_error();
        Some(worker)
    }

    fn lower_worker_key(&mut self, worker: &mut WorkerSpec, entry: Entry) {
        let Entry { key, key_span, value } = entry;
        let span = value.span;
        match key.as_str() {
            "name" => {
                if let Some(name) = self.take_string("name", value) {
                    self.check_name(&name, span);
                    worker.name = Spanned::new(name, span);
                }
            }
            "endpoint" => {
                let is_url = |text: &str| {
                    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
                    host.is_some_and(|host| !host.is_empty()).then(|| text.to_owned())
                };
                worker.endpoint =
                    self.take_parsed("endpoint", value, "a URL such as \"http://127.0.0.1:8080/v1\"", is_url);
            }
            "model" => worker.model = self.take_string("model", value),
            "api-key-env" => {
                if let Some(name) = self.take_string("api-key-env", value) {
                    if is_variable(&name) {
                        worker.api_key_env = name;
                    } else {
                        // What stands there may be a key: it is not repeated.
                        let message =
                            String::from("`:api-key-env` takes the name of an environment variable");
                        let finding = self.finding(&rules::WRONG_VALUE, span, message);
                        self.findings.push(
                            finding.note("a key does not belong in a file; export it and name the variable"),
                        );
                    }
                }
            }
            "system" => worker.system = self.take_string("system", value),
            "slots" => {
                if let Some(count) = self.take_count("slots", &value, 1) {
                    worker.slots = count as usize;
                }
            }
            "tool-budget" => {
                if let Some(count) = self.take_count("tool-budget", &value, 0) {
                    worker.tool_budget = count;
                }
            }
            "keep-results" => {
                if let Some(count) = self.take_count("keep-results", &value, 1) {
                    worker.keep_results = count as usize;
                }
            }
            "tools" => worker.tools = self.take_strings("tools", value),
            "exit-tools" => worker.exit_tools = self.take_strings("exit-tools", value),
            "params" => worker.params = self.lower_params(value),
            "final-turn" => worker.final_turn = self.take_flag("final-turn", &value),
            "budget-unit" => {
                let units = [("iteration", BudgetUnit::Iteration), ("call", BudgetUnit::Call)];
                self.take_word(&mut worker.budget_unit, &key, value, &units);
            }
            "fallback" => {
                let modes = [("auto", Fallback::Auto), ("on", Fallback::On), ("off", Fallback::Off)];
                self.take_word(&mut worker.fallback, &key, value, &modes);
            }
            "system-messages" => {
                let modes = [("separate", SystemMessages::Separate), ("combined", SystemMessages::Combined)];
                self.take_word(&mut worker.system_messages, &key, value, &modes);
            }
            "bios-budget" => {
                let places = [("head", BiosBudget::Head), ("tail", BiosBudget::Tail)];
                self.take_word(&mut worker.bios_budget, &key, value, &places);
            }
            "on-invalid-arguments" | "on-tool-error" => {
                let modes = [("fail", OnFailure::Fail), ("report", OnFailure::Report)];
                let place = if key == "on-tool-error" {
                    &mut worker.on_tool_error
                } else {
                    &mut worker.on_invalid_arguments
                };
                self.take_word(place, &key, value, &modes);
            }
            "connect" | "headers" | "stall" | "first-token" | "token-stall" | "tool" | "total" => {
                self.lower_timer(worker, &key, value);
            }
            "dialect" | "bios" | "parallel" | "server" => {
                let message = format!("`:{key}` is not there yet; it has no effect");
                self.tell(&rules::UNKNOWN_WORKER_KEY, key_span, message);
            }
            "description" | "category" => {}
            _ => {
                let entry = Entry { key, key_span, value };
                self.tell_unknown_key(&rules::UNKNOWN_WORKER_KEY, &entry, "a worker", &WORKER_KEYS);
            }
        }
    }

    fn lower_timer(&mut self, worker: &mut WorkerSpec, key: &str, value: Datum) {
        let Some(duration) = self.take_parsed(key, value, "a duration such as \"30s\"", parse_duration)
        else {
            return;
        };
        let timers = &mut worker.timers;
        let place: &mut Duration = match key {
            "connect" => &mut timers.connect,
            "stall" => &mut timers.stall,
            "first-token" => &mut timers.first_token,
            "token-stall" => &mut timers.token_stall,
            "tool" => &mut timers.tool,
            "headers" => {
                timers.headers = Some(duration);
                return;
            }
            _ => {
                timers.total = Some(duration);
                return;
            }
        };
        *place = duration;
    }

    fn take_count(&mut self, key: &str, value: &Datum, least: u32) -> Option<u32> {
        if let DatumKind::Number(Number::Integer(number)) = value.kind
            && let Ok(count) = u32::try_from(number)
            && (least..=1_000_000).contains(&count)
        {
            return Some(count);
        }
        let expected = format!("an integer from {least} to 1000000");
        match value.kind {
            DatumKind::Number(Number::Integer(number)) => {
                let message = format!("`:{key}` takes {expected}, found {number}");
                self.tell(&rules::WRONG_VALUE, value.span, message);
            }
            _ => self.tell_wrong(key, value, &expected),
        }
        None
    }

    fn take_word<T: Copy>(&mut self, place: &mut T, key: &str, value: Datum, words: &[(&str, T)]) {
        let expected = words.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(" or ");
        let find = |word: &str| words.iter().find(|(known, _)| *known == word).map(|(_, meaning)| *meaning);
        if let Some(meaning) = self.take_parsed(key, value, &expected, find) {
            *place = meaning;
        }
    }

    /// `:max-tokens 100` → `"max_tokens": 100`.
    fn lower_params(&mut self, value: Datum) -> Map<String, Value> {
        let DatumKind::List(items) = value.kind else {
            self.tell_wrong("params", &value, "a plist such as `(:temperature 0)`");
            return Map::new();
        };
        let mut params = Map::new();
        for entry in self.read_plist(items, &[]) {
            let name = entry.key.replace('-', "_");
            if RESERVED_PARAMS.contains(&name.as_str()) {
                let message = format!("`:{}` is set by the engine and cannot stand in `:params`", entry.key);
                self.tell(&rules::RESERVED_PARAM, entry.key_span, message);
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
