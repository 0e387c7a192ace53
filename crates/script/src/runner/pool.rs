//! The idle Lua states of one thread, by script.
//!
//! A state belongs to the `Arc<Script>` it was created for. When the last reference to a script is dropped (a reload
//! replaced it and its calls have ended), its states are dropped at the next cleanup.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use deftool_lang::tool::ToolError;

use crate::events::ScriptSink;
use crate::script::Script;
use crate::vm::Vm;

/// Maximum number of idle states per script. Further simultaneous calls create states that are dropped afterwards.
const MAX_PER_SCRIPT: usize = 8;
/// Maximum number of idle states per thread, about half a megabyte each.
const MAX_IDLE: usize = 64;

/// Idle states.
pub(crate) struct Pool {
    sink: ScriptSink,
    memory: u64,
    /// By the script's address, which is not reused while the `Weak` exists.
    idle: HashMap<*const Script, (Weak<Script>, Vec<Vm>)>,
    count: usize,
}

impl Pool {
    /// Creates an empty pool. Its states log to `sink` and have a limit of `memory` bytes if their script sets none.
    pub(crate) fn new(sink: ScriptSink, memory: u64) -> Self {
        Self { sink, memory, idle: HashMap::new(), count: 0 }
    }

    /// Returns an idle or new state for `script`.
    ///
    /// # Errors
    /// When the script does not compile.
    pub(crate) fn take(&mut self, script: &Arc<Script>) -> Result<Vm, ToolError> {
        if let Some((_, states)) = self.idle.get_mut(&Arc::as_ptr(script))
            && let Some(vm) = states.pop()
        {
            self.count -= 1;
            return Ok(vm);
        }
        self.drop_unused();
        Vm::new(script, self.sink.clone(), self.memory)
    }

    /// Keeps a clean state for the next call of `script`, or drops it if the pool is full.
    pub(crate) fn give_back(&mut self, script: &Arc<Script>, vm: Vm) {
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

    /// Drops the states of scripts that no longer exist.
    pub(crate) fn drop_unused(&mut self) {
        self.idle.retain(|_, (script, _)| script.strong_count() > 0);
        self.count = self.idle.values().map(|(_, states)| states.len()).sum();
        if self.count >= MAX_IDLE {
            // More scripts than slots: start over, so that the oldest states do not block the slots.
            self.idle.clear();
            self.count = 0;
        }
    }
}
