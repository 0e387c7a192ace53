//! The requests of a worker: those in a slot, those in the queue, and the finished ones.
//!
//! Pure bookkeeping under the worker's lock. Invariants: a request gets a slot only while the requests in flight and
//! the draining slots together use fewer than all slots; requests get slots in the order in which they were submitted.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::record::{RequestRecord, ResultError};

/// Limits of a registry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Maximum requests in flight.
    pub(crate) slots: usize,
    /// Maximum requests that wait for a slot.
    pub(crate) queue: usize,
    /// Maximum finished requests that are kept.
    pub(crate) keep_results: usize,
}

/// All requests of a worker, and its slots.
#[derive(Debug)]
pub(crate) struct Registry {
    limits: Limits,
    /// Ordered by id, so that iteration is deterministic.
    records: BTreeMap<String, Arc<RequestRecord>>,
    /// Requests without a slot, in submission order.
    waiting: VecDeque<Arc<RequestRecord>>,
    /// Finished requests, oldest first.
    terminal: VecDeque<String>,
    in_flight: usize,
    /// Slots of the server that still process canceled requests.
    draining: usize,
}

impl Registry {
    pub(crate) fn new(limits: Limits) -> Self {
        let (records, waiting, terminal) = Default::default();
        Self { limits, records, waiting, terminal, in_flight: 0, draining: 0 }
    }

    /// Admits a request into a slot or the queue. Its record is notified when it gets a slot. Returns `None` if both
    /// are full.
    pub(crate) fn admit(&mut self, id: String, record: Arc<RequestRecord>) -> Option<()> {
        let is_free = self.waiting.is_empty() && self.has_free_slot();
        if !is_free && self.waiting.len() >= self.limits.queue {
            return None;
        }
        self.records.insert(id, Arc::clone(&record));
        self.waiting.push_back(record);
        self.admit_waiting();
        Some(())
    }

    fn has_free_slot(&self) -> bool {
        self.in_flight + self.draining < self.limits.slots
    }

    /// Assigns free slots to waiting requests.
    fn admit_waiting(&mut self) {
        while self.has_free_slot()
            && let Some(next) = self.waiting.pop_front()
        {
            self.in_flight += 1;
            next.assign_slot();
        }
    }

    /// Releases the slot or the queue position of a finished request, and drops the oldest results. Only the first call
    /// has an effect.
    pub(crate) fn release(&mut self, id: &str, record: &Arc<RequestRecord>) {
        if !record.mark_slot_returned() {
            return;
        }
        match self.waiting.iter().position(|waiting| Arc::ptr_eq(waiting, record)) {
            Some(index) => drop(self.waiting.remove(index)),
            None => self.in_flight = self.in_flight.saturating_sub(1),
        }
        self.keep(id.to_owned());
        self.admit_waiting();
    }

    /// Adds a request that ended in another process.
    pub(crate) fn add_ended(&mut self, id: String, record: &Arc<RequestRecord>) {
        self.records.insert(id.clone(), Arc::clone(record));
        self.keep(id);
    }

    /// Keeps a finished request, and drops the oldest ones.
    fn keep(&mut self, id: String) {
        self.terminal.push_back(id);
        while self.terminal.len() > self.limits.keep_results {
            if let Some(oldest) = self.terminal.pop_front() {
                self.records.remove(&oldest);
            }
        }
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<RequestRecord>> {
        self.records.get(id).cloned()
    }

    /// Removes a finished request.
    pub(crate) fn take(&mut self, id: &str) -> Result<Arc<RequestRecord>, ResultError> {
        let record = self.get(id).ok_or(ResultError::Unknown)?;
        if record.outcome().is_none() {
            return Err(ResultError::NotReady);
        }
        self.records.remove(id);
        self.terminal.retain(|known| known != id);
        Ok(record)
    }

    /// Assigns no more slots, so that no waiting request starts while the others are ended.
    pub(crate) fn close(&mut self) -> Vec<Arc<RequestRecord>> {
        self.limits.slots = 0;
        self.all()
    }

    pub(crate) fn all(&self) -> Vec<Arc<RequestRecord>> {
        self.records.values().cloned().collect()
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn draining(&self) -> usize {
        self.draining
    }

    /// Counts a draining slot.
    pub(crate) fn begin_drain(&mut self) {
        self.draining += 1;
    }

    /// Releases a draining slot.
    pub(crate) fn end_drain(&mut self) {
        self.draining = self.draining.saturating_sub(1);
        self.admit_waiting();
    }
}
