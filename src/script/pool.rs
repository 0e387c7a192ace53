//! The idle states of one thread, by script.
//!
//! A state belongs to the `Arc<Script>` it was made for; when the last holder of a script lets go of it (a reload
//! replaced it and its calls have ended), its states are dropped at the next look.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use super::Script;
use super::host::ScriptSink;
use super::vm::Vm;
use crate::tool::ToolError;

/// Most idle states of one script; more calls than this at a time make states that are dropped after them.
const MAX_PER_SCRIPT: usize = 8;
/// Most idle states of a thread, at about half a megabyte each.
const MAX_IDLE: usize = 64;

/// Idle states.
pub(super) struct Pool {
    sink: ScriptSink,
    memory: u64,
    /// By the script's address, which stays taken while the `Weak` is held.
    idle: HashMap<*const Script, (Weak<Script>, Vec<Vm>)>,
    count: usize,
}

impl Pool {
    /// An empty pool whose states log to `sink` and have `memory` bytes unless their script says otherwise.
    pub(super) fn new(sink: ScriptSink, memory: u64) -> Self {
        Self { sink, memory, idle: HashMap::new(), count: 0 }
    }

    /// A state for `script`: an idle one or a new one.
    ///
    /// # Errors
    /// When the script does not compile.
    pub(super) fn take(&mut self, script: &Arc<Script>) -> Result<Vm, ToolError> {
        if let Some((_, states)) = self.idle.get_mut(&Arc::as_ptr(script))
            && let Some(vm) = states.pop()
        {
            self.count -= 1;
            return Ok(vm);
        }
        self.drop_unused();
        Vm::new(script, self.sink.clone(), self.memory)
    }

    /// Keeps a clean state for the next call of `script`, or drops it when there are enough.
    pub(super) fn give_back(&mut self, script: &Arc<Script>, vm: Vm) {
        if self.count >= MAX_IDLE {
            self.drop_unused();
        }
        let (_, states) =
            self.idle.entry(Arc::as_ptr(script)).or_insert_with(|| (Arc::downgrade(script), Vec::new()));
        if states.len() < MAX_PER_SCRIPT && self.count < MAX_IDLE {
            states.push(vm);
            self.count += 1;
        }
    }

    /// Drops the states of scripts that nobody holds any more.
    pub(super) fn drop_unused(&mut self) {
        self.idle.retain(|_, (script, _)| script.strong_count() > 0);
        self.count = self.idle.values().map(|(_, states)| states.len()).sum();
        if self.count >= MAX_IDLE {
            // Too many scripts for too few places: begin again rather than keep the oldest for ever.
            self.idle.clear();
            self.count = 0;
        }
    }
}
