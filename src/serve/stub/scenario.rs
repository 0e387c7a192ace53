//! What a stub is to answer, and the answer that one request gets.
//!
//! Steps without a condition are taken in order, each as often as it says; a step with a condition is taken whenever its
//! condition holds, before those. What comes after the last is the scenario's `default`, or an error that says so.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::answer::Answer;
use super::canned::canned;
use super::condition::Condition;
use super::conversation::api_of;
use super::http::Received;
use super::misbehave::Misbehaviour;
use super::reply::{Form, Reply};
use super::server::{Server, page};
use crate::chat::Api;

/// Bytes of answers that are kept ready, beyond which all are made anew.
const MAX_READY_BYTES: usize = 64 << 20;
/// Failed expectations that are kept.
const MAX_FAILURES: usize = 1_000;

/// What a stub is to answer.
#[derive(Debug, Clone, Default)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// The key that requests must have.
    pub(super) key: Option<String>,
    pub(super) models: Vec<String>,
    /// Whose server it says that it is.
    pub(super) server: Server,
    pub(super) pages: Vec<Page>,
    /// What every request for a reply must be like.
    pub(super) expected: Vec<Condition>,
    pub(super) steps: Vec<Step>,
    pub(super) default: Option<Box<Step>>,
    /// Whether a request whose model is the name of a misbehaviour is answered by it.
    pub(super) obeys_model: bool,
}

/// What a `GET` of a path is answered with.
#[derive(Debug, Clone)]
pub(super) struct Page {
    pub(super) path: String,
    pub(super) answer: Answer,
}

/// One answer and who gets it.
#[derive(Debug, Clone)]
pub struct Step {
    pub(super) action: Action,
    pub(super) when: Option<Condition>,
    pub(super) expected: Vec<Condition>,
    /// How often it is taken; `None`: without end.
    pub(super) times: Option<u64>,
}

/// What a step does.
#[derive(Debug, Clone)]
pub(super) enum Action {
    Reply(Reply),
    /// These bytes, whatever is asked.
    Fixed(Answer),
    /// A reply of the stub's own, bent.
    Misbehave {
        ways: Vec<&'static Misbehaviour>,
        every: Option<Duration>,
    },
}

impl Action {
    fn misbehaviours(&self) -> &[&'static Misbehaviour] {
        match self {
            Self::Reply(reply) => &reply.misbehaviours,
            Self::Misbehave { ways, .. } => ways,
            Self::Fixed(_) => &[],
        }
    }
}

impl Step {
    pub(super) fn once(action: Action) -> Self {
        Self { action, when: None, expected: Vec::new(), times: Some(1) }
    }
}

impl Scenario {
    /// A scenario without steps: every request gets a short text, one whose model is the name of a misbehaviour
    /// that misbehaviour.
    pub fn polite() -> Self {
        let default = Step::once(Action::Misbehave { ways: Vec::new(), every: None });
        Self {
            name: String::from("polite"),
            default: Some(Box::new(default)),
            obeys_model: true,
            ..Self::default()
        }
    }

    /// A scenario of these replies, in order; what comes after the last is an error.
    pub fn replies(replies: impl IntoIterator<Item = Reply>) -> Self {
        let steps = replies.into_iter().map(|reply| Step::once(Action::Reply(reply))).collect();
        Self { name: String::from("replies"), steps, ..Self::default() }
    }

    /// The first requests are answered by these misbehaviours, one each, all that follow as they should be. What trickles
    /// or never ends goes on after `every`, or at a pace of its own. The server is played of the first that is told by
    /// whose server it is.
    pub fn misbehaving(
        ways: impl IntoIterator<Item = &'static Misbehaviour>,
        every: Option<Duration>,
    ) -> Self {
        let ways: Vec<&'static Misbehaviour> = ways.into_iter().collect();
        let server = ways.iter().map(|way| way.server).find(|server| *server != Server::Other);
        let step = |way| Step::once(Action::Misbehave { ways: vec![way], every });
        let steps = ways.into_iter().map(step).collect();
        Self {
            name: String::from("misbehaving"),
            server: server.unwrap_or_default(),
            steps,
            obeys_model: false,
            ..Self::polite()
        }
    }

    /// With what every request for a reply must be like; one that is not is answered with 400.
    #[must_use]
    pub fn expecting(mut self, condition: Condition) -> Self {
        self.expected.push(condition);
        self
    }

    /// With a key that requests must have.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The key that requests must have.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }
}

/// A scenario being played.
pub(super) struct Player {
    scenario: Scenario,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How often each step was taken.
    taken: Vec<u64>,
    /// Answers by step and form: a load of a thousand streams is encoded once.
    ready: HashMap<(usize, Form), Arc<Answer>>,
    /// Bytes of them.
    ready_bytes: usize,
    failures: Vec<String>,
}

impl Player {
    pub(super) fn new(scenario: Scenario) -> Self {
        let taken = vec![0; scenario.steps.len()];
        Self { scenario, state: Mutex::new(State { taken, ..State::default() }) }
    }

    /// The expectations that were not met, and requests for which there was no step.
    pub(super) fn failures(&self) -> Vec<String> {
        self.state.lock().map(|state| state.failures.clone()).unwrap_or_default()
    }

    /// The answer to a request, and what was wrong with it, if anything.
    pub(super) fn answer(&self, request: &Received) -> (Arc<Answer>, Option<String>) {
        let refuse = |status, message: &str| (Arc::new(refusal(status, message)), None);
        let path = request.path();
        // As with llama.cpp, who asks whether it is well needs no key.
        if path.trim_end_matches('/') != "/health"
            && let Some(key) = &self.scenario.key
            && request.header("authorization").and_then(|value| value.strip_prefix("Bearer ")) != Some(key)
        {
            return refuse(401, "stub: the API key is missing or wrong");
        }
        match (request.method(), api_of(path)) {
            ("POST", Some(api)) => match self.reply(request, api) {
                Ok(answer) => (answer, None),
                Err(Refused { status, message }) => {
                    if let Ok(mut state) = self.state.lock()
                        && state.failures.len() < MAX_FAILURES
                    {
                        state.failures.push(message.clone());
                    }
                    (Arc::new(refusal(status, &format!("stub: {message}"))), Some(message))
                }
            },
            (method @ ("GET" | "HEAD" | "POST"), None) => match page(&self.scenario, method, path) {
                Some(answer) => (Arc::new(answer), None),
                None if method == "POST" => {
                    refuse(404, "stub: nothing is here; POST to /v1/chat/completions or /v1/responses")
                }
                None => refuse(
                    404,
                    "stub: nothing is here; there are /v1/models, /health and what a `page` of the scenario gives",
                ),
            },
            (_, Some(_)) => refuse(405, "stub: replies are asked for by POST"),
            (_, None) => refuse(404, "stub: nothing is here; POST to /v1/chat/completions or /v1/responses"),
        }
    }

    fn reply(&self, request: &Received, api: Api) -> Result<Arc<Answer>, Refused> {
        if !request.body.is_object() {
            return Err(Refused {
                status: 400,
                message: String::from("the request's body is no JSON object"),
            });
        }
        let by_model = request.body.get("model").and_then(Value::as_str).and_then(Misbehaviour::named);
        if self.scenario.obeys_model
            && let Some(way) = by_model
        {
            fit([way], api)?;
            return Ok(Arc::new(misbehaved(&[way], None, request)));
        }
        let mut refused = mismatches(&self.scenario.expected, request);
        let taken = self.take(request);
        let (name, step) = match (&taken, self.scenario.default.as_deref()) {
            (Some((index, step)), _) => (format!("step {}", index + 1), *step),
            (None, Some(step)) => (String::from("default"), step),
            (None, None) => {
                let steps = self.scenario.steps.len();
                let message = format!(
                    "scenario `{}` has no step for this request: {steps} were all there are; say (default (reply …)) \
                     or :repeat",
                    self.scenario.name
                );
                return Err(Refused { status: 500, message });
            }
        };
        refused.extend(mismatches(&step.expected, request));
        if !refused.is_empty() {
            let message = format!("scenario `{}`, {name}: {}", self.scenario.name, refused.join("; "));
            return Err(Refused { status: 400, message });
        }
        fit(step.action.misbehaviours().iter().copied(), api)?;
        let place = taken.map_or(usize::MAX, |(index, _)| index);
        Ok(match &step.action {
            // One that is bent may have the time in it.
            Action::Reply(reply) if !reply.misbehaviours.is_empty() => Arc::new(reply.answer(request)),
            Action::Reply(reply) => self.ready(place, reply, request),
            Action::Fixed(answer) => Arc::new(answer.clone()),
            Action::Misbehave { ways, every } => Arc::new(misbehaved(ways, *every, request)),
        })
    }

    /// The step that a request takes, counted.
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

    fn ready(&self, place: usize, reply: &Reply, request: &Received) -> Arc<Answer> {
        let form = Form::of(request);
        let Ok(mut state) = self.state.lock() else { return Arc::new(reply.answer_in(&form)) };
        if let Some(ready) = state.ready.get(&(place, form.clone())) {
            return Arc::clone(ready);
        }
        let made = Arc::new(reply.answer_in(&form));
        state.ready_bytes += made.size();
        if state.ready_bytes > MAX_READY_BYTES {
            state.ready.clear();
            state.ready_bytes = made.size();
        }
        state.ready.insert((place, form), Arc::clone(&made));
        made
    }
}

/// A request that is answered with an error and counts as a failure.
struct Refused {
    status: u16,
    message: String,
}

fn mismatches(conditions: &[Condition], request: &Received) -> Vec<String> {
    conditions.iter().flat_map(|condition| condition.mismatches(request)).collect()
}

/// Nothing is answered as if it misbehaved that cannot misbehave so.
fn fit(ways: impl IntoIterator<Item = &'static Misbehaviour>, api: Api) -> Result<(), Refused> {
    match ways.into_iter().find(|way| !way.is_of(api)) {
        None => Ok(()),
        Some(Misbehaviour { name, .. }) => Err(Refused {
            status: 400,
            message: format!(
                "`{name}` is of chat completions only, and a response was asked for: POST to /v1/chat/completions, or \
                 take one that `deftool stub --list` shows without that remark"
            ),
        }),
    }
}

fn misbehaved(ways: &[&'static Misbehaviour], every: Option<Duration>, request: &Received) -> Answer {
    let mut reply = canned(ways.iter().map(|way| way.needs), request);
    reply.misbehaviours = ways.to_vec();
    reply.every = every;
    reply.answer(request)
}

impl Misbehaviour {
    /// What a request is answered with in this way: a reply of the stub's own, bent. What trickles or never ends goes on
    /// after `every`, or at a pace of its own.
    pub fn answer(&'static self, request: &Received, every: Option<Duration>) -> Answer {
        match fit([self], api_of(request.path()).unwrap_or_default()) {
            Ok(()) => misbehaved(&[self], every, request),
            Err(Refused { status, message }) => refusal(status, &format!("stub: {message}")),
        }
    }
}

fn refusal(status: u16, message: &str) -> Answer {
    let error = json!({"error": {"message": message, "type": "stub_error", "code": status}});
    Answer::json(status, &error)
}
