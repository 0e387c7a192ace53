//! Who submits, cancels, approves, takes results.

use std::collections::BTreeMap;
use std::sync::Arc;

use deftool::chat::Message;
use deftool::request::Approval;
use deftool::worker::{Origin, ResultError};
use serde_json::Value;

use super::super::dice::Dice;
use super::super::face::{Reader, Refusal, is_over};
use super::super::laws::Law;
use super::super::ledger::{Case, LAST_WORD};
use super::super::own::Past;
use super::World;

/// Results by the ids of their calls.
type Results = BTreeMap<String, Option<Value>>;

impl World {
    pub(in super::super) fn submit(
        &self,
        number: usize,
        attempt: usize,
    ) -> Result<(String, Reader), Refusal> {
        let face = self.face();
        let plan = &self.plan.cases[number];
        let before = match plan.past {
            Past::Of(before) => self.ledger().cases.get(&before).filter(|case| case.is_over).map(|case| {
                let results = case.past.iter().chain(&case.executed);
                (case.id.clone(), results.map(|(id, result)| (id.clone(), result.clone())).collect())
            }),
            Past::Nothing | Past::Call | Past::Odd(_) => None,
        };
        let before: Option<(Vec<Message>, Results)> =
            before.and_then(|(id, past)| Some((face.conversation(&id)?, past)));
        let (before, past) = before.unzip();
        let follows = before.is_some();
        let messages = plan.past.messages(number, before);
        let tools = self.tools.lock().unwrap().0.clone();
        let is_known = plan.own.tools.iter().flatten().all(|name| tools.set.get(name).is_some());
        let is_fit = self.fault.is_some() || (is_known && !plan.own.is_reserved());
        let is_ready = !self.ledger().was_stopped && !self.ledger().is_unready;
        let config = &self.plan.config;
        let is_slot_free = face.queued() == 0 && face.in_flight() + face.draining() < config.slots;
        let free = is_slot_free || face.queued() < config.queue;
        let mut dice = Dice::of(self.plan.seed, "origin", &[number as u64]);
        let origin = Origin {
            request_id: format!("req_{number}"),
            submitted_at_ms: 1_700_000_000_000 + self.now().as_millis() as u64,
            zone: String::from("Europe/Paris"),
            local_time: String::from("2023-11-14 23:13"),
            id_seed: dice.number(),
        };
        let recorder = self.tape.lock().unwrap().as_ref().map(|tape| Arc::clone(&tape.recorder));
        self.ledger().in_submit = true;
        let taken = face.submit(plan, messages, origin, recorder);
        self.ledger().in_submit = false;
        self.trace(|| format!("case {number} is submitted ({attempt}): {taken:?}"));
        let mut ledger = self.ledger();
        match &taken {
            Ok(id) => {
                for feature in plan.own.features() {
                    ledger.count(feature);
                }
                match plan.past {
                    Past::Odd(_) => ledger.count("past: pieces"),
                    Past::Call => ledger.count("past: a call"),
                    Past::Of(_) if follows => ledger.count("past: of another request"),
                    Past::Of(_) | Past::Nothing => ledger.count("past: none"),
                }
                ledger.hold(Law::Pinned, is_fit, || String::from("a request was taken that is not fit"));
                ledger.hold(Law::Slots, is_ready, || String::from("a request was taken and nobody is ready"));
                ledger.hold(Law::Slots, free, || String::from("a request was taken and no slot was free"));
                let now = self.now();
                let forms = ledger.learned.clone();
                let past = past.unwrap_or_default();
                let mut case = Case {
                    id: id.clone(),
                    forms,
                    past,
                    due: is_slot_free.then_some((now, "the first turn")),
                    ..Case::default()
                };
                if let Some(total) = self.plan.config.timers.total {
                    case.must_end(now + total + LAST_WORD, "the end by :total");
                }
                ledger.cases.insert(number, case);
            }
            Err(Refusal::NoSlot) => {
                ledger.count("submit: no slot");
                ledger.hold(Law::Slots, !free, || String::from("a slot was free and a request refused"));
            }
            Err(Refusal::NotReady) => {
                ledger.count("submit: not ready");
                ledger.hold(Law::Slots, !is_ready, || {
                    String::from("the worker is ready and says that it is not")
                });
            }
            Err(Refusal::UnknownTool) => {
                ledger.count("submit: unknown tool");
                let holds = !is_known || self.fault.is_some();
                ledger.hold(Law::Pinned, holds, || String::from("a known tool is unknown"));
            }
            Err(Refusal::ReservedParam) => {
                ledger.count("submit: reserved parameter");
                ledger.hold(Law::Pinned, plan.own.is_reserved(), || String::from("a parameter is reserved"));
            }
            Err(Refusal::Odd(why)) => ledger.hold(Law::Slots, false, || why.clone()),
        }
        drop(ledger);
        self.observe();
        let id = taken?;
        let reader = face.events(&id, 0).expect("the request is remembered");
        Ok((id, reader))
    }

    pub(in super::super) fn cancel(&self, number: usize) {
        let mut ledger = self.ledger();
        let Some(case) = ledger.cases.get_mut(&number) else { return };
        let id = case.id.clone();
        let feature = if case.is_over { "cancel: too late" } else { "cancel: in time" };
        if !case.is_over {
            case.canceled = true;
            case.must_end(self.now() + LAST_WORD, "the end by a cancel");
        }
        ledger.count(feature);
        drop(ledger);
        self.trace(|| format!("case {number} is canceled"));
        self.face().cancel(&id);
        self.observe();
    }

    pub(in super::super) fn approve(&self, number: usize, call: &str, answer: Approval) {
        let id = self.ledger().cases[&number].id.clone();
        let face = self.face();
        let is_open = face.status(&id).is_some_and(|status| !is_over(status.state));
        let mut ledger = self.ledger();
        let case = ledger.cases.get_mut(&number).expect("it was submitted");
        let is_asked = case.asked.remove(call) && is_open;
        case.due = Some((self.now(), "what follows an approval"));
        if answer == Approval::Allowed {
            case.allowed.insert(call.to_owned());
        }
        drop(ledger);
        self.trace(|| format!("case {number}: {call} is answered {answer:?}"));
        let odd = face.approve(&id, "nobody's", Approval::Allowed);
        let taken = face.approve(&id, call, answer);
        let again = face.approve(&id, call, Approval::Allowed);
        self.ledger().hold(Law::States, taken == is_asked && !again && !odd, || {
            format!("{id}: an approval of {call} was taken: {taken}, asked: {is_asked}, again: {again}")
        });
        self.observe();
    }

    /// Takes a result, whether it is there or not.
    pub(in super::super) fn take(&self, number: usize) {
        let Some(id) = self.ledger().cases.get(&number).map(|case| case.id.clone()) else { return };
        let face = self.face();
        let status = face.status(&id);
        let taken = face.take_result(&id);
        let after = face.status(&id);
        let mut ledger = self.ledger();
        let agrees = match (&status, &taken) {
            (None, Err(ResultError::Unknown)) => true,
            (Some(status), Err(ResultError::NotReady)) => !is_over(status.state) && after.is_some(),
            (Some(status), Ok(_)) => is_over(status.state) && after.is_none(),
            _ => false,
        };
        ledger.count(if taken.is_ok() { "take: there" } else { "take: not there" });
        ledger.hold(Law::States, agrees || self.fault.is_some(), || {
            format!("{id} was {status:?}, taken {taken:?}, then {after:?}")
        });
        if let (Ok(_), Some(case)) = (&taken, ledger.cases.get_mut(&number)) {
            case.taken = true;
        }
    }
}
