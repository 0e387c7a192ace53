//! Scenarios: the scripted answers and their conditions.

use std::time::Duration;

use super::answer::Answer;
use super::fault::Fault;
use super::model::EmulatedServer;
use super::reply::Reply;
use super::request::Condition;

/// A script of the stub's answers.
#[derive(Debug, Clone, Default)]
pub struct Scenario {
    /// The name.
    pub name: String,
    /// The API key that requests must have.
    pub(super) key: Option<String>,
    pub(super) models: Vec<String>,
    /// The server to emulate.
    pub(super) server: EmulatedServer,
    pub(super) pages: Vec<Page>,
    /// Conditions that every request for a reply must meet.
    pub(super) expected: Vec<Condition>,
    pub(super) steps: Vec<Step>,
    pub(super) default: Option<Box<Step>>,
    /// Whether a request can select a fault by using its name as the model.
    pub(super) fault_by_model: bool,
}

/// The answer to a `GET` of a path.
#[derive(Debug, Clone)]
pub(super) struct Page {
    pub(super) path: String,
    pub(super) answer: Answer,
}

/// An answer and the conditions on the requests that receive it.
#[derive(Debug, Clone)]
pub struct Step {
    pub(super) action: Action,
    pub(super) when: Option<Condition>,
    pub(super) expected: Vec<Condition>,
    /// The number of requests that take this step. `None` is unlimited.
    pub(super) times: Option<u64>,
}

/// The answer of a step.
#[derive(Debug, Clone)]
pub(super) enum Action {
    Reply(Reply),
    /// A fixed answer.
    Fixed(Answer),
    /// A generated reply with faults.
    Faulty {
        faults: Vec<&'static Fault>,
        every: Option<Duration>,
    },
}

impl Action {
    pub(super) fn faults(&self) -> &[&'static Fault] {
        match self {
            Self::Reply(reply) => &reply.faults,
            Self::Faulty { faults, .. } => faults,
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
    /// Returns a scenario without steps: every request gets a short text. If the model is the name of a fault, the
    /// answer has that fault.
    pub fn without_steps() -> Self {
        let default = Step::once(Action::Faulty { faults: Vec::new(), every: None });
        Self {
            name: String::from("without-steps"),
            default: Some(Box::new(default)),
            fault_by_model: true,
            ..Self::default()
        }
    }

    /// Returns a scenario with these replies, in order. Further requests get an error.
    pub fn replies(replies: impl IntoIterator<Item = Reply>) -> Self {
        let steps = replies.into_iter().map(|reply| Step::once(Action::Reply(reply))).collect();
        Self { name: String::from("replies"), steps, ..Self::default() }
    }

    /// Returns a scenario in which the first requests get one fault each, and later requests get no fault. `every` is
    /// the interval for slow and endless answers; each fault has a default. The stub emulates the server of the first
    /// fault that requires one.
    pub fn with_faults(faults: impl IntoIterator<Item = &'static Fault>, every: Option<Duration>) -> Self {
        let faults: Vec<&'static Fault> = faults.into_iter().collect();
        let server = faults.iter().map(|fault| fault.server).find(|server| *server != EmulatedServer::Other);
        let step = |fault| Step::once(Action::Faulty { faults: vec![fault], every });
        let steps = faults.into_iter().map(step).collect();
        Self {
            name: String::from("faults"),
            server: server.unwrap_or_default(),
            steps,
            fault_by_model: false,
            ..Self::without_steps()
        }
    }

    /// Adds a condition that every request for a reply must meet. Other requests are answered with 400.
    #[must_use]
    pub fn expecting(mut self, condition: Condition) -> Self {
        self.expected.push(condition);
        self
    }

    /// Sets the API key that requests must have.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Returns the API key that requests must have.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }
}
