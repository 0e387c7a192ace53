//! A parallel map over all CPU cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Minimum number of items per thread.
const WORTH_A_THREAD: usize = 16;

/// Applies `work` to every item and returns the results in order. Idle threads take the next item, so that one large
/// file does not delay the others.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(items.len() / WORTH_A_THREAD).max(1);
    if threads == 1 {
        return items.iter().enumerate().map(|(index, item)| work(index, item)).collect();
    }
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return done };
            done.push((index, work(index, item)));
        }
    };
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(take)).collect();
        let mut done = take();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
