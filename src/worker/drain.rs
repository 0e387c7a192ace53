//! Slots of a server that still work on a prompt whose client has gone.
//!
//! llama.cpp finishes a prompt before it looks whether anybody waits for it (25 s were measured for 7,000 tokens),
//! and a request that is sent meanwhile waits behind it. So an exchange that is given up before its first token costs
//! the worker a slot until `/slots` shows an idle one for it, a minute at most; where there is no such page, five
//! seconds. During generation a slot is free at once.
//!
//! Every [`Exchange`] that is dropped open drains, however it came to that; every drain ends with its task, however
//! that ends.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::drive::Drive;
use super::handle::Shared;
use super::probe::busy_slots;
use super::record::{Record, lock};
use super::transport::{Look, Page};
use crate::chat::Feature;

/// No slot is kept back for longer.
const MAX_DRAIN: Duration = Duration::from_secs(60);
/// As long, where the server does not show its slots.
const BLIND_DRAIN: Duration = Duration::from_secs(5);
/// Between two looks; it grows.
const FIRST_STEP: Duration = Duration::from_millis(100);
const LAST_STEP: Duration = Duration::from_secs(1);

/// A request that the server may be working on.
pub(super) struct Exchange {
    open: Option<(Arc<Shared>, Arc<Record>)>,
}

impl Exchange {
    /// A request is about to be sent.
    pub(super) fn begin(task: &Drive) -> Self {
        let keeps_slot = task.server.lacks(Feature::FreeOnDisconnect);
        let is_open = keeps_slot && !task.clock.is_recorded();
        Self { open: is_open.then(|| (Arc::clone(&task.shared), Arc::clone(&task.record))) }
    }

    /// The server answered with a token or an error, or is gone: a disconnect costs nothing from now on.
    pub(super) fn settle(&mut self) {
        self.open = None;
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let Some((shared, record)) = self.open.take() else { return };
        // Without a runtime there is nobody left to submit to.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        lock(&shared.registry).begin_drain();
        let held = Held(Arc::downgrade(&shared));
        runtime.spawn(async move {
            // Until then the request counts twice.
            while !record.gave_back() {
                tokio::time::sleep(FIRST_STEP).await;
            }
            drop(record);
            drain(held).await;
        });
    }
}

/// A slot that is kept back.
struct Held(Weak<Shared>);

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            lock(&shared.registry).end_drain();
            shared.drained.notify_waiters();
        }
    }
}

async fn drain(held: Held) {
    let began = Instant::now();
    let mut step = FIRST_STEP;
    loop {
        let Some(shared) = held.0.upgrade() else { return };
        let look = async {
            if shared.present_config().server.slots_page == Some(false) {
                return Look::Missing;
            }
            shared.transport.look(Page::Slots).await
        };
        let Some(look) = shared.stopped.run_until_cancelled(look).await else { return };
        let limit = match &look {
            Look::Seen(200, slots) if has_idle_slot(slots, &shared) => return,
            Look::Seen(200, Value::Array(_)) | Look::Silent => MAX_DRAIN,
            Look::Seen(..) | Look::Missing => BLIND_DRAIN,
        };
        let rest = limit.saturating_sub(began.elapsed());
        if rest.is_zero() {
            // Only who can see the slot knows that it is still busy.
            if limit == MAX_DRAIN {
                shared.tell_stall();
            }
            return;
        }
        let stopped = shared.stopped.clone();
        drop(shared);
        if stopped.run_until_cancelled(tokio::time::sleep(step.min(rest))).await.is_none() {
            return;
        }
        step = (step * 2).min(LAST_STEP);
    }
}

/// Whether one more request would find an idle slot, besides those that the worker takes anyway.
fn has_idle_slot(slots: &Value, shared: &Shared) -> bool {
    let (Some(slots), Some(busy)) = (slots.as_array(), busy_slots(slots)) else { return false };
    let idle = slots.len() - busy;
    let registry = lock(&shared.registry);
    let used = registry.in_flight() + registry.draining();
    let wanted = shared.config.slots.saturating_sub(used) + 1;
    // A worker may have more slots than its server: those wait there, and were never idle.
    idle >= wanted.min(slots.len().saturating_sub(registry.in_flight())).max(1)
}
