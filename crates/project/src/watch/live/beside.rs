//! The user's own project beside another one. Both are reloaded.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use deftool_process::lock;

use super::{LiveProject, MAX_HISTORY};
use crate::generation::Generation;

/// The user's own project beside another one.
#[derive(Debug)]
pub(super) struct Beside {
    user: Arc<LiveProject>,
    /// The latest generations, oldest first.
    joined: Mutex<VecDeque<Joined>>,
}

/// A generation with the tools of both projects.
#[derive(Debug)]
struct Joined {
    /// The numbers of the generations that it was made from.
    from: [u64; 2],
    number: u64,
    /// `None`: an earlier one.
    generation: Option<Arc<Generation>>,
}

impl Beside {
    pub(super) fn new(user: Arc<LiveProject>) -> Self {
        Self { user, joined: Mutex::default() }
    }

    pub(super) fn user(&self) -> &Arc<LiveProject> {
        &self.user
    }

    /// Returns the generation with the tools of both projects. `own` returns the latest one of the other project.
    pub(super) fn current(&self, own: impl Fn() -> Arc<Generation>) -> Arc<Generation> {
        // Read both under the lock, so that the numbers only increase.
        let mut joined = lock(&self.joined);
        let (own, user) = (own(), self.user.current());
        let from = [own.number, user.number];
        if let Some(Joined { generation: Some(current), .. }) = joined.back().filter(|last| last.from == from)
        {
            return Arc::clone(current);
        }
        let current = Arc::new(own.beside(user));
        if let Some(last) = joined.back_mut() {
            last.generation = None;
        }
        if joined.len() >= MAX_HISTORY {
            joined.pop_front();
        }
        let generation = Some(Arc::clone(&current));
        joined.push_back(Joined { from, number: current.number, generation });
        current
    }

    /// Describes the changes after `generation`. `own` describes those of the other project.
    pub(super) fn changes_since(&self, generation: u64, own: impl Fn(u64) -> String) -> String {
        let joined = lock(&self.joined);
        let Some(before) = joined.iter().find(|joined| joined.number >= generation) else {
            return String::new();
        };
        let [own_before, user_before] = before.from;
        let changes = [own(own_before), self.user.changes_since(user_before)];
        changes.into_iter().filter(|changes| !changes.is_empty()).collect::<Vec<_>>().join("; then ")
    }
}
