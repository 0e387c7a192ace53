//! All requests of a worker: who has a slot, who waits for one, whose results are kept.
//!
//! Pure bookkeeping under the worker's lock. Invariants: no request is let in beyond the slots, those that drain counted; who
//! came first is let in first.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::record::{Record, ResultError};

/// How many of what there may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Requests in flight.
    pub(super) slots: usize,
    /// Requests that wait for a slot.
    pub(super) queue: usize,
    /// Results kept until they are taken.
    pub(super) keep_results: usize,
}

/// All requests of a worker, and its slots.
#[derive(Debug)]
pub(super) struct Registry {
    limits: Limits,
    /// In the order of their ids: what is done to all is done in an order that another run has, too.
    records: BTreeMap<String, Arc<Record>>,
    /// Requests without a slot, in the order in which they came.
    waiting: VecDeque<Arc<Record>>,
    /// Requests that are over, oldest first.
    terminal: VecDeque<String>,
    in_flight: usize,
    /// Slots of the server that work on what nobody waits for.
    draining: usize,
}

impl Registry {
    pub(super) fn new(limits: Limits) -> Self {
        let (records, waiting, terminal) = Default::default();
        Self { limits, records, waiting, terminal, in_flight: 0, draining: 0 }
    }

    /// Takes a request in, at once or into the queue; its record is told when it has its slot. `None`: there is room in neither.
    pub(super) fn admit(&mut self, id: String, record: Arc<Record>) -> Option<()> {
        let is_free = self.waiting.is_empty() && self.has_free_slot();
        if !is_free && self.waiting.len() >= self.limits.queue {
            return None;
        }
        self.records.insert(id, Arc::clone(&record));
        self.waiting.push_back(record);
        self.let_in();
        Some(())
    }

    fn has_free_slot(&self) -> bool {
        self.in_flight + self.draining < self.limits.slots
    }

    /// Gives free slots to those who wait.
    fn let_in(&mut self) {
        while self.has_free_slot()
            && let Some(next) = self.waiting.pop_front()
        {
            self.in_flight += 1;
            next.give_slot();
        }
    }

    /// The request is over: its slot, or its place in the queue, is free, and of the results the oldest go. Only the first
    /// time.
    pub(super) fn release(&mut self, id: &str, record: &Arc<Record>) {
        if !record.gives_back() {
            return;
        }
        match self.waiting.iter().position(|waiting| Arc::ptr_eq(waiting, record)) {
            Some(place) => drop(self.waiting.remove(place)),
            None => self.in_flight = self.in_flight.saturating_sub(1),
        }
        self.terminal.push_back(id.to_owned());
        while self.terminal.len() > self.limits.keep_results {
            if let Some(oldest) = self.terminal.pop_front() {
                self.records.remove(&oldest);
            }
        }
        self.let_in();
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<Record>> {
        self.records.get(id).cloned()
    }

    /// Forgets a request that is over.
    pub(super) fn take(&mut self, id: &str) -> Result<Arc<Record>, ResultError> {
        let record = self.get(id).ok_or(ResultError::Unknown)?;
        if record.outcome().is_none() {
            return Err(ResultError::NotReady);
        }
        self.records.remove(id);
        self.terminal.retain(|known| known != id);
        Ok(record)
    }

    pub(super) fn all(&self) -> Vec<Arc<Record>> {
        self.records.values().cloned().collect()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn draining(&self) -> usize {
        self.draining
    }

    /// A slot of the server has begun to drain.
    pub(super) fn begin_drain(&mut self) {
        self.draining += 1;
    }

    /// And is done, or not waited for any more.
    pub(super) fn end_drain(&mut self) {
        self.draining = self.draining.saturating_sub(1);
        self.let_in();
    }
}
