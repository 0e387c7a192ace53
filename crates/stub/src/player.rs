//! The player of a scenario: it selects the answer to a request.
//!
//! A step with a condition is taken whenever its condition matches. Otherwise the steps without a condition are taken
//! in order. A step is taken at most as often as it specifies. If no step is left, the scenario's `default` is used.
//! Without a default the answer is an error.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deftool_chat::Api;
use deftool_lang::text::count;
use serde_json::{Value, json};

use super::answer::Answer;
use super::fault::Fault;
use super::generated::generated_reply;
use super::messages;
use super::model::{AnswerFormat, EmulatedServer};
use super::pages::page;
use super::reply::Reply;
use super::request::{Condition, Received, api_of};
use super::scenario::{Action, Scenario, Step};

/// The maximum size of the cached answers, in bytes. The cache is cleared when it exceeds this size.
const MAX_READY_BYTES: usize = 64 << 20;
/// The answer to a request for an unknown path.
const UNKNOWN_PATH: &str = "unknown path; POST to /v1/chat/completions, /v1/responses or /v1/messages";
/// The maximum number of stored failures.
const MAX_FAILURES: usize = 1_000;

/// The state of a scenario that is being played.
pub(super) struct Player {
    scenario: Scenario,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of times that each step was taken.
    taken: Vec<u64>,
    /// Cached answers by step and format, so that a load test with a thousand streams encodes each reply once.
    ready: HashMap<(usize, AnswerFormat), Arc<Answer>>,
    /// The size of the cached answers, in bytes.
    ready_bytes: usize,
    failures: Vec<String>,
}

impl Player {
    pub(super) fn new(scenario: Scenario) -> Self {
        let taken = vec![0; scenario.steps.len()];
        Self { scenario, state: Mutex::new(State { taken, ..State::default() }) }
    }

    /// Returns the expectations that were not met, and the requests for which there was no step.
    pub(super) fn failures(&self) -> Vec<String> {
        self.state.lock().map(|state| state.failures.clone()).unwrap_or_default()
    }

    /// Returns the answer to a request, and its mismatch with the scenario, if any.
    pub(super) fn answer(&self, request: &Received) -> (Arc<Answer>, Option<String>) {
        let path = request.path();
        let api = api_of(path);
        let refuse = |status, message: &str| {
            (Arc::new(error_answer(api.unwrap_or_default(), status, &format!("stub: {message}"))), None)
        };
        // As in llama.cpp, the health check needs no key.
        if path.trim_end_matches('/') != "/health"
            && let Some(key) = &self.scenario.key
            && sent_key(request, api) != Some(key)
        {
            return refuse(401, "missing or wrong API key");
        }
        match (request.method(), api) {
            ("POST", Some(api)) => match self.reply(request, api) {
                Ok(answer) => (answer, None),
                Err(error) => {
                    let (answer, message) = (error.answer(api), error.message);
                    if let Ok(mut state) = self.state.lock()
                        && state.failures.len() < MAX_FAILURES
                    {
                        state.failures.push(message.clone());
                    }
                    (Arc::new(answer), Some(message))
                }
            },
            (method @ ("GET" | "HEAD" | "POST"), None) => match page(&self.scenario, method, path) {
                Some(answer) => (Arc::new(answer), None),
                None if method == "POST" => refuse(404, UNKNOWN_PATH),
                None => refuse(404, "unknown path; GET /v1/models, /health or a `page` of the scenario"),
            },
            (_, Some(_)) => refuse(405, "method not allowed; use POST"),
            (_, None) => refuse(404, UNKNOWN_PATH),
        }
    }

    fn reply(&self, request: &Received, api: Api) -> Result<Arc<Answer>, RequestError> {
        if !request.body.is_object() {
            return Err(RequestError::new(400, "the request body is not a JSON object"));
        }
        // Local servers accept more.
        if api == Api::Messages
            && self.scenario.server == EmulatedServer::Other
            && let Some(message) = messages::refusal(request)
        {
            return Err(RequestError { status: 400, message, is_of_api: true });
        }
        let by_model = request.body.get("model").and_then(Value::as_str).and_then(Fault::named);
        if self.scenario.fault_by_model
            && let Some(fault) = by_model
        {
            check_api([fault], api)?;
            return Ok(Arc::new(faulty_answer(&[fault], None, request)));
        }
        let mut refused = mismatches(&self.scenario.expected, request);
        let taken = self.take(request);
        let (name, step) = match (&taken, self.scenario.default.as_deref()) {
            (Some((index, step)), _) => (format!("step {}", index + 1), *step),
            (None, Some(step)) => (String::from("default"), step),
            (None, None) => {
                let message = format!(
                    "scenario `{}` has no step left for this request ({} used); add `(default (reply …))` or \
                     `:repeat`",
                    self.scenario.name,
                    count(self.scenario.steps.len(), "step")
                );
                return Err(RequestError::new(500, message));
            }
        };
        refused.extend(mismatches(&step.expected, request));
        if !refused.is_empty() {
            let message = format!("scenario `{}`, {name}: {}", self.scenario.name, refused.join("; "));
            return Err(RequestError::new(400, message));
        }
        check_api(step.action.faults().iter().copied(), api)?;
        let cache_index = taken.map_or(usize::MAX, |(index, _)| index);
        Ok(match &step.action {
            // A reply with faults is not cached: it may contain the current time.
            Action::Reply(reply) if !reply.faults.is_empty() => Arc::new(reply.answer(request)),
            Action::Reply(reply) => self.ready(cache_index, reply, request),
            Action::Fixed(answer) => Arc::new(answer.clone()),
            Action::Faulty { faults, every } => Arc::new(faulty_answer(faults, *every, request)),
        })
    }

    /// Selects the step for a request and counts it.
    fn take(&self, request: &Received) -> Option<(usize, &Step)> {
        let mut state = self.state.lock().ok()?;
        let is_left = |(index, step): &(usize, &Step)| {
            let taken = state.taken.get(*index).copied().unwrap_or_default();
            step.times.is_none_or(|times| taken < times)
        };
        let mut steps = self.scenario.steps.iter().enumerate().filter(is_left);
        let meets = |step: &Step| step.when.as_ref().is_some_and(|when| when.mismatches(request).is_empty());
        let mut next = None;
        let met = steps.find(|(index, step)| {
            if step.when.is_none() {
                next.get_or_insert(*index);
            }
            meets(step)
        });
        let index = met.map(|(index, _)| index).or(next)?;
        if let Some(taken) = state.taken.get_mut(index) {
            *taken += 1;
        }
        self.scenario.steps.get(index).map(|step| (index, step))
    }

    /// Returns the cached answer of a step, or encodes and caches it.
    fn ready(&self, index: usize, reply: &Reply, request: &Received) -> Arc<Answer> {
        let format = AnswerFormat::of(request);
        let Ok(mut state) = self.state.lock() else { return Arc::new(reply.answer_in(&format)) };
        if let Some(ready) = state.ready.get(&(index, format.clone())) {
            return Arc::clone(ready);
        }
        let answer = Arc::new(reply.answer_in(&format));
        state.ready_bytes += answer.size();
        if state.ready_bytes > MAX_READY_BYTES {
            state.ready.clear();
            state.ready_bytes = answer.size();
        }
        state.ready.insert((index, format), Arc::clone(&answer));
        answer
    }
}

/// A request that is answered with an error and counts as a failure.
struct RequestError {
    status: u16,
    message: String,
    /// Whether the message is one of the real API.
    is_of_api: bool,
}

impl RequestError {
    /// Creates an error of the stub.
    fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), is_of_api: false }
    }

    fn answer(&self, api: Api) -> Answer {
        let Self { status, message, is_of_api } = self;
        if *is_of_api {
            error_answer(api, *status, message)
        } else {
            error_answer(api, *status, &format!("stub: {message}"))
        }
    }
}

/// Returns the API key of a request. Clients of the Messages API send it in a header of its own, or as others do.
fn sent_key(request: &Received, api: Option<Api>) -> Option<&str> {
    let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    match api {
        Some(Api::ChatCompletions | Api::Responses) => bearer,
        Some(Api::Messages) | None => bearer.or_else(|| request.header("x-api-key")),
    }
}

fn mismatches(conditions: &[Condition], request: &Received) -> Vec<String> {
    conditions.iter().flat_map(|condition| condition.mismatches(request)).collect()
}

/// Fails if one of the faults does not exist in `api`.
fn check_api(faults: impl IntoIterator<Item = &'static Fault>, api: Api) -> Result<(), RequestError> {
    let missing = faults.into_iter().find(|fault| !fault.applies_to(api));
    let Some((name, apis)) = missing.and_then(|fault| Some((fault.name, fault.restriction()?))) else {
        return Ok(());
    };
    let advice = "use that API, or choose a fault that `deftool stub --list` shows without this remark";
    Err(RequestError::new(400, format!("fault `{name}` exists in {apis} only; {advice}")))
}

fn faulty_answer(faults: &[&'static Fault], every: Option<Duration>, request: &Received) -> Answer {
    let mut reply = generated_reply(faults.iter().map(|fault| fault.needs), request);
    reply.faults = faults.to_vec();
    reply.every = every;
    reply.answer(request)
}

impl Fault {
    /// Returns the answer to a request: a generated reply with this fault. `every` is the interval for slow and endless
    /// answers; each fault has a default.
    pub fn answer(&'static self, request: &Received, every: Option<Duration>) -> Answer {
        let api = api_of(request.path()).unwrap_or_default();
        match check_api([self], api) {
            Ok(()) => faulty_answer(&[self], every, request),
            Err(error) => error.answer(api),
        }
    }
}

fn error_answer(api: Api, status: u16, message: &str) -> Answer {
    let error = match api {
        Api::Messages => messages::error(status, message),
        Api::ChatCompletions | Api::Responses => {
            json!({"error": {"message": message, "type": "stub_error", "code": status}})
        }
    };
    Answer::json(status, &error)
}
