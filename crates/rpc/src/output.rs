//! The output: a buffer that a task writes to the client. Messages that are ready together are written together.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio_util::sync::CancellationToken;

/// Number of waiting bytes at which senders wait. A pipe usually takes as many in one write.
const FULL: usize = 64 << 10;

/// The messages that wait for the client. Messages to a client that is gone are dropped.
#[derive(Debug, Default)]
pub(crate) struct Output {
    state: Mutex<State>,
    /// Notified when the first message waits, and at the end.
    filled: Notify,
    /// Notified when the task has taken the messages.
    taken: Notify,
    /// Held by the sender that waits for room. The others wait for it, so that only one is woken.
    turn: AsyncMutex<()>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<u8>,
    /// Whether more messages are dropped.
    is_closed: bool,
}

impl Output {
    /// Starts the task. The token is canceled when it ends: after [`Output::close`], or when `output` failed.
    pub(crate) fn start(output: impl AsyncWrite + Send + 'static) -> (Arc<Self>, CancellationToken) {
        let (shared, end) = (Arc::<Self>::default(), CancellationToken::new());
        let (of_task, ended) = (Arc::clone(&shared), end.clone().drop_guard());
        tokio::spawn(async move {
            let _ended = ended;
            of_task.write(output).await;
        });
        (shared, end)
    }

    /// Waits until the client has read enough for more messages.
    pub(crate) async fn room(&self) {
        if self.has_room() {
            return;
        }
        let _turn = self.turn.lock().await;
        while !self.has_room() {
            self.taken.notified().await;
        }
    }

    /// Adds complete messages, also without room.
    pub(crate) fn push(&self, messages: &[u8]) {
        let mut state = self.state();
        if state.is_closed {
            return;
        }
        let is_first = state.waiting.is_empty();
        state.waiting.extend_from_slice(messages);
        drop(state);
        if is_first {
            self.filled.notify_one();
        }
    }

    /// Ends the task after it has written the waiting messages.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.filled.notify_one();
        self.taken.notify_one();
    }

    fn has_room(&self) -> bool {
        let state = self.state();
        state.waiting.len() < FULL || state.is_closed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write(&self, output: impl AsyncWrite) {
        let mut output = pin!(output);
        let (mut messages, mut is_last) = (Vec::new(), false);
        while !is_last {
            self.filled.notified().await;
            // The other tasks that are ready add their messages first.
            tokio::task::yield_now().await;
            is_last = self.take(&mut messages);
            if output.write_all(&messages).await.is_err() || output.flush().await.is_err() {
                return self.close();
            }
        }
    }

    /// Moves the waiting messages to `messages`. Returns whether they are the last.
    fn take(&self, messages: &mut Vec<u8>) -> bool {
        messages.clear();
        // The memory of a long message is not kept.
        messages.shrink_to(2 * FULL);
        let mut state = self.state();
        std::mem::swap(&mut state.waiting, messages);
        let is_last = state.is_closed;
        drop(state);
        self.taken.notify_one();
        is_last
    }
}
