//! Turns of callers: limits the calls that run at the same time, so that the calls of one session do not delay those of
//! another.
//!
//! Each caller has its own queue, and free turns go to the callers one after the other. A caller never has more turns than
//! are free: alone it may use half of them, the next caller half of the rest, and so on. A caller without a turn gets one
//! even if none is free, so it does not wait for a call of another caller to end.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Number of turns that callers share.
const SHARED_TURNS: usize = 64;

/// Maximum number of turns: one for each connection that is admitted. Not more than the number of scripts that can run at
/// the same time (`MAX_THREADS` of `deftool-script`): behind the turns, calls wait in one queue.
const MAX_TURNS: usize = 256;

/// A caller: a session, or a client without one.
pub(crate) type CallerId = Arc<str>;

/// The turns of all callers of a server.
#[derive(Default)]
pub(crate) struct Turns(Mutex<State>);

#[derive(Default)]
struct State {
    /// The number of turns of each caller that has any.
    running: HashMap<CallerId, usize>,
    /// The waiting calls of each caller that has any. The caller that is first gets the next turn.
    waiting: VecDeque<(CallerId, VecDeque<oneshot::Sender<()>>)>,
}

/// The turn of a call, which ends when it is dropped.
pub(crate) struct Turn {
    turns: Arc<Turns>,
    caller: CallerId,
    granted: oneshot::Receiver<()>,
    is_granted: bool,
}

impl Turns {
    /// Waits for a turn of `caller`.
    pub(crate) async fn take(self: &Arc<Self>, caller: CallerId) -> Turn {
        let (sender, granted) = oneshot::channel();
        self.lock().add(&caller, sender);
        let mut turn = Turn { turns: Arc::clone(self), caller, granted, is_granted: false };
        // The sender is dropped only after the receiver.
        turn.is_granted = (&mut turn.granted).await.is_ok();
        turn
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.turns.lock();
        // A call that was canceled while it waited may just have got its turn.
        self.granted.close();
        if self.is_granted || self.granted.try_recv().is_ok() {
            state.release(&self.caller);
        } else {
            state.remove_canceled(&self.caller);
        }
    }
}

impl State {
    fn add(&mut self, caller: &CallerId, call: oneshot::Sender<()>) {
        match self.waiting.iter_mut().find(|(known, _)| known == caller) {
            Some((_, calls)) => calls.push_back(call),
            None => self.waiting.push_back((Arc::clone(caller), VecDeque::from([call]))),
        }
        self.grant();
    }

    fn release(&mut self, caller: &CallerId) {
        if let Some(turns) = self.running.get_mut(caller) {
            *turns -= 1;
            if *turns == 0 {
                self.running.remove(caller);
            }
        }
        self.grant();
    }

    fn remove_canceled(&mut self, caller: &CallerId) {
        self.waiting.retain_mut(|(known, calls)| {
            if known == caller {
                calls.retain(|call| !call.is_closed());
            }
            !calls.is_empty()
        });
    }

    /// Gives the free turns to the waiting calls.
    fn grant(&mut self) {
        while let Some(at) = self.waiting.iter().position(|(caller, _)| self.may_run(caller)) {
            let Some((caller, mut calls)) = self.waiting.remove(at) else { return };
            let call = calls.pop_front();
            if !calls.is_empty() {
                self.waiting.push_back((Arc::clone(&caller), calls));
            }
            // Sending fails if the call was canceled.
            if call.is_some_and(|call| call.send(()).is_ok()) {
                *self.running.entry(caller).or_default() += 1;
            }
        }
    }

    fn may_run(&self, caller: &CallerId) -> bool {
        let all = self.running.values().sum::<usize>();
        match self.running.get(caller) {
            Some(turns) => *turns < SHARED_TURNS.saturating_sub(all),
            None => all < MAX_TURNS,
        }
    }
}
