//! Draining slots: slots of a server that still process a prompt after the client disconnected.
//!
//! llama.cpp processes a prompt completely before it checks for a disconnect (measured: 25 s for 7,000 tokens), and a
//! request that is sent in the meantime waits. Therefore an exchange that is canceled before its first token keeps its
//! slot of the worker until `/slots` shows an idle slot, for at most one minute. Without that page, it keeps the slot
//! for five seconds. During generation a slot is free immediately.
//!
//! Dropping an open [`Exchange`] starts a drain. Every drain ends with its task.

use std::sync::{Arc, Weak};
use std::time::Duration;

use deftool_chat::Feature;
use deftool_process::lock;
use serde_json::Value;
use tokio::time::Instant;

use super::record::RequestRecord;
use super::shared::Shared;
use super::task::RequestTask;
use crate::transport::{Page, PageResponse, busy_slots};

/// Maximum time that a slot drains.
const MAX_DRAIN: Duration = Duration::from_secs(60);
/// Time that a slot drains if the server does not show its slots.
const BLIND_DRAIN: Duration = Duration::from_secs(5);
/// First and maximum interval between two requests of `/slots`.
const FIRST_STEP: Duration = Duration::from_millis(100);
const LAST_STEP: Duration = Duration::from_secs(1);

/// A request that the server may be processing.
pub(super) struct Exchange {
    open: Option<(Arc<Shared>, Arc<RequestRecord>)>,
}

impl Exchange {
    /// Begins an exchange, before its request is sent.
    pub(super) fn begin(task: &RequestTask) -> Self {
        let keeps_slot = task.server.lacks(Feature::FreeOnDisconnect);
        let is_open = keeps_slot && !task.record.clock.is_recorded();
        Self { open: is_open.then(|| (Arc::clone(&task.shared), Arc::clone(&task.record))) }
    }

    /// Closes the exchange: the server sent a token or an error, or is not running. A later disconnect does not drain a
    /// slot.
    pub(super) fn close(&mut self) {
        self.open = None;
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let Some((shared, record)) = self.open.take() else { return };
        // Without a runtime there is no request that the slot could be kept from.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        lock(&shared.registry).begin_drain();
        let slot = DrainingSlot(Arc::downgrade(&shared));
        runtime.spawn(async move {
            // Until the slot is returned, both the request and the drain count.
            while !record.is_slot_returned() {
                tokio::time::sleep(FIRST_STEP).await;
            }
            drop(record);
            drain(slot).await;
        });
    }
}

/// A draining slot. Released on drop.
struct DrainingSlot(Weak<Shared>);

impl Drop for DrainingSlot {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            lock(&shared.registry).end_drain();
            shared.drained.notify_waiters();
        }
    }
}

async fn drain(slot: DrainingSlot) {
    let began = Instant::now();
    let mut step = FIRST_STEP;
    loop {
        let Some(shared) = slot.0.upgrade() else { return };
        let response = async {
            if shared.current_config().server.slots_page == Some(false) {
                return PageResponse::Unsupported;
            }
            shared.transport.get_page(Page::Slots).await
        };
        let Some(response) = shared.stopped.run_until_cancelled(response).await else { return };
        let limit = match &response {
            PageResponse::Received(200, slots) if has_idle_slot(slots, &shared) => return,
            PageResponse::Received(200, Value::Array(_)) | PageResponse::NoAnswer => MAX_DRAIN,
            PageResponse::Received(..) | PageResponse::Unsupported => BLIND_DRAIN,
        };
        let rest = limit.saturating_sub(began.elapsed());
        if rest.is_zero() {
            // Without `/slots`, it is unknown whether the slot is still busy.
            if limit == MAX_DRAIN {
                shared.report_stall();
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

/// Whether the server has enough idle slots: one for each free slot of the worker, and one for the draining slot.
fn has_idle_slot(slots: &Value, shared: &Shared) -> bool {
    let (Some(slots), Some(busy)) = (slots.as_array(), busy_slots(slots)) else { return false };
    let idle = slots.len() - busy;
    let registry = lock(&shared.registry);
    let used = registry.in_flight() + registry.draining();
    let required = shared.config.slots.saturating_sub(used) + 1;
    // A worker may have more slots than its server. The additional requests wait in the server.
    idle >= required.min(slots.len().saturating_sub(registry.in_flight())).max(1)
}
