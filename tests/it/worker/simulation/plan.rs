//! The plan of a run: the worker's configuration, the requests and their times, and other actions.

use std::sync::Arc;
use std::time::Duration;

use deftool_chat::request::{BiosV1, BudgetUnit, Fallback, OnFailure, RunConfig, SystemMessages};
use deftool_chat::{Api, Capabilities, Dialect, Dialects};
use deftool_lang::spec::{BiosBudget, Timers};
use deftool_worker::{Approvals, WorkerConfig};
use serde_json::json;

use super::dice::Dice;
use super::submission::{PriorConversation, RequestOptions};

/// Everything that is decided before the run starts.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    /// Few errors occur, so that requests make progress.
    pub(super) calm: bool,
    pub(super) config: WorkerConfig,
    /// Whether the run is recorded and replayed.
    pub(super) is_recorded: bool,
    pub(super) cases: Vec<CasePlan>,
    /// The times of tool reloads.
    pub(super) reloads: Vec<Duration>,
    pub(super) restarts: Vec<Duration>,
    pub(super) stop: Option<Duration>,
    /// The times of readiness checks.
    pub(super) readiness_checks: Vec<Duration>,
    /// The times at which a result is taken, available or not.
    pub(super) take_times: Vec<Duration>,
}

/// The plan of a request.
#[derive(Debug)]
pub(super) struct CasePlan {
    pub(super) number: usize,
    pub(super) at: Duration,
    /// The number of repeated submits while no slot is free.
    pub(super) patience: usize,
    pub(super) cancel: Option<Cancel>,
    pub(super) approver: Approver,
    /// Additional readers: the first event, and the number of events after which they stop.
    pub(super) readers: Vec<(usize, usize)>,
    pub(super) past: PriorConversation,
    pub(super) options: RequestOptions,
    /// Whether a task waits for the outcome.
    pub(super) waits: bool,
    /// Whether the request is canceled when its first reader is dropped.
    pub(super) streams: bool,
}

/// The time of a cancel.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cancel {
    /// This long after the submit.
    After(Duration),
    /// At the nth event.
    AtEvent(usize),
}

/// The behavior of the user who is asked for an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Approver {
    Allows,
    Refuses,
    /// Allows or refuses after a delay.
    Late,
    /// Does not answer, and cancels the request after a delay.
    Never,
}

impl Plan {
    pub(super) fn of_seed(seed: u64) -> Self {
        let mut dice = Dice::of(seed, "plan", &[]);
        let calm = dice.chance(50);
        let is_response = Dice::of(seed, "api", &[]).chance(25);
        let is_message = Dice::of(seed, "messages api", &[]).chance(25);
        let api = match (is_response, is_message) {
            (true, _) => Api::Responses,
            (false, true) => Api::Messages,
            (false, false) => Api::ChatCompletions,
        };
        let mut config = config(&mut dice, calm, api);
        if api == Api::Messages {
            // This API has one system text, at the start, and a token limit in every request.
            config.run.system_messages = SystemMessages::Combined;
            config.run.params.retain(|name, _| !name.starts_with("max_"));
            if config.run.bios_budget == BiosBudget::Tail {
                config.run.bios_budget = BiosBudget::Result;
            }
        }
        let count = dice.below(1..7);
        let span = *dice.pick(&[10, 300, 5_000, 60_000]);
        let cases = (0..count).map(|number| case(seed, number, span)).collect();
        let mut times = |chance: u32, most: usize| -> Vec<Duration> {
            let count = if dice.chance(chance) { dice.below(1..most + 1) } else { 0 };
            let mut times: Vec<Duration> = (0..count).map(|_| dice.ms(0..span * 4)).collect();
            times.sort();
            times
        };
        let reloads = times(50, 6);
        Self {
            is_recorded: calm && reloads.is_empty() && seed.is_multiple_of(2),
            reloads,
            restarts: times(25, 2),
            stop: times(8, 1).pop(),
            take_times: times(40, 4),
            readiness_checks: times(15, 4),
            seed,
            calm,
            config,
            cases,
        }
    }
}

fn case(seed: u64, number: usize, span: u64) -> CasePlan {
    let mut dice = Dice::of(seed, "case", &[number as u64]);
    let cancel = match dice.below(0..10) {
        0 => Some(Cancel::After(dice.ms(0..50))),
        1 => Some(Cancel::After(dice.ms(0..span * 2))),
        2 => Some(Cancel::AtEvent(dice.below(1..30))),
        _ => None,
    };
    let readers = if dice.chance(30) { dice.below(1..4) } else { 0 };
    CasePlan {
        number,
        at: dice.ms(0..span),
        patience: dice.below(0..12),
        cancel,
        approver: dice.weighted(&[
            (5, Approver::Allows),
            (2, Approver::Refuses),
            (2, Approver::Late),
            (1, Approver::Never),
        ]),
        readers: (0..readers).map(|_| (dice.below(0..40), dice.below(1..60))).collect(),
        past: match dice.below(0..20) {
            0..3 => PriorConversation::Call,
            3..7 => PriorConversation::Invalid(dice.number()),
            7..11 if number > 0 => PriorConversation::AfterCase(dice.below(0..number)),
            _ => PriorConversation::Empty,
        },
        options: RequestOptions::draw(&mut dice),
        waits: dice.chance(20),
        streams: Dice::of(seed, "streams", &[number as u64]).chance(30),
    }
}

/// Returns the coverage names of a configuration.
pub(super) fn features(config: &WorkerConfig) -> Vec<String> {
    let WorkerConfig { run, timers, slots, queue, keep_results, api, server, approvals, .. } = config;
    vec![
        format!("config: budget of {} by {:?}", run.tool_budget, run.budget_unit),
        format!("config: fallback {:?}", run.fallback),
        format!("config: invalid arguments {:?}", run.on_invalid_arguments),
        format!("config: tool error {:?}", run.on_tool_error),
        format!("config: final turn {}", run.final_turn),
        format!("config: parallel {}", run.parallel),
        format!("config: system messages {:?}, {:?}", run.system_messages, run.bios_budget),
        format!("config: several calls a message {}", run.parallel_tool_calls_supported),
        format!("config: {slots} slots"),
        format!("config: a queue of {queue}"),
        format!("config: {keep_results} results kept"),
        format!("config: dialect {:?}", server.dialect),
        format!("config: {api:?}"),
        format!("config: approvals {approvals:?}"),
        format!("config: total {:?}", timers.total),
        format!("config: stall {:?}", timers.stall),
    ]
}

fn config(dice: &mut Dice, calm: bool, api: Api) -> WorkerConfig {
    let on_failure = |dice: &mut Dice| if dice.chance(50) { OnFailure::Fail } else { OnFailure::Report };
    let mut params = json!({});
    if dice.chance(40) {
        params = json!({"temperature": 0});
        params[*dice.pick(&["max_tokens", "max_completion_tokens"])] = json!(100);
    }
    if dice.chance(30) {
        let named = json!({"type": "function", "function": {"name": "look"}});
        params["tool_choice"] = dice.pick(&[json!("auto"), json!("required"), named]).clone();
    }
    if dice.chance(15) {
        params["parallel_tool_calls"] = json!(true);
    }
    let run = RunConfig {
        worker: String::from("w"),
        model: String::from("scripted"),
        system: dice.chance(40).then(|| String::from("Be brief.")),
        system_messages: *dice.pick(&[SystemMessages::Separate, SystemMessages::Combined]),
        tool_budget: dice.weighted(&[(1, 0), (2, 1), (2, 2), (2, 3), (if calm { 12 } else { 3 }, 8)]),
        budget_unit: *dice.pick(&[BudgetUnit::Iteration, BudgetUnit::Call]),
        fallback: dice.weighted(&[(3, Fallback::Auto), (3, Fallback::On), (1, Fallback::Off)]),
        on_invalid_arguments: on_failure(dice),
        on_tool_error: on_failure(dice),
        final_turn: dice.chance(30),
        parallel: dice.chance(50),
        bios_budget: *dice.pick(&[BiosBudget::Result, BiosBudget::Head, BiosBudget::Tail]),
        params: params.as_object().cloned().unwrap(),
        parallel_tool_calls_supported: dice.chance(80),
        ..RunConfig::default()
    };
    let mut limit = |usual: u64, short: &[u64]| {
        let ms = if calm || dice.chance(60) { usual } else { *dice.pick(short) };
        Duration::from_millis(ms)
    };
    let timers = Timers {
        headers: Some(limit(30_000, &[200, 2_000])),
        first_token: Some(limit(600_000, &[1_000, 10_000])),
        stall: limit(300_000, &[300, 4_000]),
        tool: limit(30_000, &[100, 1_500]),
        ..Timers::default()
    };
    let total = dice
        .chance(if calm { 5 } else { 25 })
        .then(|| Duration::from_millis(*dice.pick(&[50, 700, 5_000, 100_000])));
    WorkerConfig {
        run,
        timers: Timers { total, ..timers },
        slots: dice.below(1..6),
        queue: dice.weighted(&[(4, 0), (1, 1), (1, 3)]),
        keep_results: dice.weighted(&[(1, 0), (1, 1), (1, 2), (3, 1000)]),
        api,
        key_variable: String::from("OPENAI_API_KEY"),
        dialect: None,
        dialects: Dialects::default(),
        suggests_rows: false,
        server: Capabilities {
            parallel_calls: *dice.pick(&[None, Some(true), Some(false)]),
            slots_page: *dice.pick(&[None, None, Some(true), Some(false)]),
            ..Capabilities::of(if dice.chance(40) { Dialect::named("llama-cpp") } else { Dialect::default() })
        },
        bios: Arc::new(BiosV1),
        approvals: dice.weighted(&[(4, Approvals::Ask), (1, Approvals::Allow), (1, Approvals::Refuse)]),
        journal: None,
        observer: None,
    }
}
