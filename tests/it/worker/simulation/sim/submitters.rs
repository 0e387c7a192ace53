//! Actions of submitters: submit, cancel, approve, take results.

use std::collections::BTreeMap;
use std::sync::Arc;

use deftool_chat::Message;
use deftool_chat::request::Approval;
use deftool_worker::{Origin, ResultError};
use serde_json::Value;

use super::super::dice::Dice;
use super::super::facade::{Reader, Rejection, is_over};
use super::super::invariants::Invariant;
use super::super::ledger::{Case, END_GRACE};
use super::super::submission::PriorConversation;
use super::Simulation;

/// Results by the ids of their calls.
type Results = BTreeMap<String, Option<Value>>;

impl Simulation {
    #[allow(clippy::too_many_lines)] // one branch per outcome
    pub(in super::super) fn submit(
        &self,
        number: usize,
        attempt: usize,
    ) -> Result<(String, Reader), Rejection> {
        let facade = self.facade();
        let plan = &self.plan.cases[number];
        let before = match plan.past {
            PriorConversation::AfterCase(before) => {
                self.ledger().cases.get(&before).filter(|case| case.is_over).map(|case| {
                    let results = case.past.iter().chain(&case.executed);
                    (case.id.clone(), results.map(|(id, result)| (id.clone(), result.clone())).collect())
                })
            }
            PriorConversation::Empty | PriorConversation::Call | PriorConversation::Invalid(_) => None,
        };
        let before: Option<(Vec<Message>, Results)> =
            before.and_then(|(id, past)| Some((facade.conversation(&id)?, past)));
        let (before, past) = before.unzip();
        let follows = before.is_some();
        let messages = plan.past.messages(number, before);
        let tools = self.tools.lock().unwrap().0.clone();
        let is_known = plan.options.tools.iter().flatten().all(|name| tools.set.get(name).is_some());
        let is_fit = self.fault.is_some() || (is_known && !plan.options.is_reserved());
        let is_ready = !self.ledger().was_stopped && !self.ledger().is_unready;
        let config = &self.plan.config;
        let is_slot_free = facade.queued() == 0 && facade.in_flight() + facade.draining() < config.slots;
        let free = is_slot_free || facade.queued() < config.queue;
        let mut dice = Dice::of(self.plan.seed, "origin", &[number as u64]);
        let origin = Origin {
            request_id: format!("req_{number}"),
            submitted_at_ms: 1_700_000_000_000 + self.now().as_millis() as u64,
            zone: String::from("Europe/Paris"),
            local_time: String::from("2023-11-14 23:13"),
            id_seed: dice.number(),
        };
        let recorder = self
            .run_recording
            .lock()
            .unwrap()
            .as_ref()
            .map(|run_recording| Arc::clone(&run_recording.recorder));
        self.ledger().in_submit = true;
        let taken = facade.submit(plan, messages, origin, recorder);
        self.ledger().in_submit = false;
        self.trace(|| {
            format!("case {number} is submitted ({attempt}): {:?}", taken.as_ref().map(|(id, _)| id))
        });
        let mut ledger = self.ledger();
        match &taken {
            Ok((id, _)) => {
                ledger.count(if plan.streams { "submit: a stream" } else { "submit: an id" });
                for feature in plan.options.features() {
                    ledger.count(feature);
                }
                match plan.past {
                    PriorConversation::Invalid(_) => ledger.count("prior conversation: invalid"),
                    PriorConversation::Call => ledger.count("prior conversation: a call"),
                    PriorConversation::AfterCase(_) if follows => {
                        ledger.count("prior conversation: of another request");
                    }
                    PriorConversation::AfterCase(_) | PriorConversation::Empty => {
                        ledger.count("prior conversation: none");
                    }
                }
                ledger.check(Invariant::PinnedTools, is_fit, || {
                    String::from("an invalid request was accepted")
                });
                ledger.check(Invariant::Slots, is_ready, || {
                    String::from("a request was accepted while the worker is not ready")
                });
                ledger.check(Invariant::Slots, free, || {
                    String::from("a request was accepted without a free slot")
                });
                let now = self.now();
                let model = plan.options.model.as_ref().unwrap_or(&self.plan.config.run.model);
                let body_fallbacks = ledger.learned.get(model).cloned().unwrap_or_default();
                let past = past.unwrap_or_default();
                let mut case = Case {
                    id: id.clone(),
                    body_fallbacks,
                    past,
                    due: is_slot_free.then_some((now, "the first turn")),
                    ..Case::default()
                };
                if let Some(total) = self.plan.config.timers.total {
                    case.must_end(now + total + END_GRACE, "the end by :total");
                }
                ledger.cases.insert(number, case);
            }
            Err(Rejection::NoSlot) => {
                ledger.count("submit: no slot");
                ledger.check(Invariant::Slots, !free, || {
                    String::from("a request was rejected despite a free slot")
                });
            }
            Err(Rejection::NotReady) => {
                ledger.count("submit: not ready");
                ledger.check(Invariant::Slots, !is_ready, || {
                    String::from("the worker is ready but rejects a request as not ready")
                });
            }
            Err(Rejection::UnknownTool) => {
                ledger.count("submit: unknown tool");
                let holds = !is_known || self.fault.is_some();
                ledger.check(Invariant::PinnedTools, holds, || {
                    String::from("a known tool was rejected as unknown")
                });
            }
            Err(Rejection::ReservedParam) => {
                ledger.count("submit: reserved parameter");
                ledger.check(Invariant::PinnedTools, plan.options.is_reserved(), || {
                    String::from("a parameter was rejected as reserved")
                });
            }
            Err(Rejection::Other(why)) => ledger.check(Invariant::Slots, false, || why.clone()),
        }
        drop(ledger);
        self.observe();
        taken
    }

    /// Cancels a request, with `reader` by dropping it.
    pub(in super::super) fn cancel(&self, number: usize, reader: Option<Reader>) {
        let mut ledger = self.ledger();
        let Some(case) = ledger.cases.get_mut(&number) else { return };
        let id = case.id.clone();
        let feature = match (case.is_over, &reader) {
            (true, _) => "cancel: too late",
            (false, None) => "cancel: in time",
            (false, Some(_)) => "cancel: the reader is dropped",
        };
        if !case.is_over {
            case.canceled = true;
            case.must_end(self.now() + END_GRACE, "the end by a cancel");
        }
        ledger.count(feature);
        drop(ledger);
        self.trace(|| format!("case {number} is canceled"));
        match reader {
            Some(reader) => drop(reader),
            None => _ = self.facade().cancel(&id),
        }
        self.observe();
    }

    pub(in super::super) fn approve(&self, number: usize, call: &str, answer: Approval) {
        let id = self.ledger().cases[&number].id.clone();
        let facade = self.facade();
        let is_open = facade.status(&id).is_some_and(|status| !is_over(status.state));
        let mut ledger = self.ledger();
        let case = ledger.cases.get_mut(&number).expect("it was submitted");
        let is_asked = case.awaiting_approval.remove(call) && is_open;
        case.due = Some((self.now(), "the step after an approval"));
        if answer == Approval::Allowed {
            case.allowed.insert(call.to_owned());
        }
        drop(ledger);
        self.trace(|| format!("case {number}: {call} is answered {answer:?}"));
        let odd = facade.approve(&id, "nobody's", Approval::Allowed);
        let taken = facade.approve(&id, call, answer);
        let again = facade.approve(&id, call, Approval::Allowed);
        self.ledger().check(Invariant::Status, taken == is_asked && !again && !odd, || {
            format!(
                "{id}: an approval of {call} was accepted: {taken}, requested: {is_asked}, repeated: {again}"
            )
        });
        self.observe();
    }

    /// Takes a result, available or not.
    pub(in super::super) fn take(&self, number: usize) {
        let Some(id) = self.ledger().cases.get(&number).map(|case| case.id.clone()) else { return };
        let facade = self.facade();
        let status = facade.status(&id);
        let taken = facade.take_result(&id);
        let after = facade.status(&id);
        let mut ledger = self.ledger();
        let agrees = match (&status, &taken) {
            (None, Err(ResultError::Unknown)) => true,
            (Some(status), Err(ResultError::NotReady)) => !is_over(status.state) && after.is_some(),
            (Some(status), Ok(_)) => is_over(status.state) && after.is_none(),
            _ => false,
        };
        ledger.count(if taken.is_ok() { "take: available" } else { "take: not available" });
        ledger.check(Invariant::Status, agrees || self.fault.is_some(), || {
            format!("{id} was {status:?}, taken {taken:?}, then {after:?}")
        });
        if let (Ok(_), Some(case)) = (&taken, ledger.cases.get_mut(&number)) {
            case.taken = true;
        }
    }
}
