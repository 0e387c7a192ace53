//! Compiles a source to bytecode within a time limit.
//!
//! The compiler is C++ code that cannot be interrupted, and its memory does not count towards a call's limit. So the
//! length of a source is limited, a long source is compiled without the passes that take quadratic time, and the wait
//! for a compilation is limited. A process compiles a source once, at the first call of [`Compiled::contract`] or
//! [`Compiled::bytecode`].
//!
//! Measured with Luau 0.740 on a machine with two cores, sources of 1 MiB, 50 hostile patterns and 800 random mixtures
//! of them: at most 9 s with optimization, 0.9 s without. The quadratic pass is `foldJumps`, which follows each jump
//! through the jumps that it leads to.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use deftool_process::lock;
use mlua::chunk::Compiler;

use super::contract::{self, Contract, LoadError, Returned, compile_timeout};
use crate::error;
use crate::limits::{COMPILE_LIMIT, MAX_SOURCE, STACK_SIZE};

/// Maximum number of times that the word `function` may occur in a source: compile time is quadratic in the number of
/// functions.
const MAX_FUNCTIONS: usize = 5_000;
/// Maximum length, in bytes, of a source that is compiled with optimization and on the caller's thread, which takes at
/// most 31 ms.
const SHORT: usize = 64 << 10;
/// Maximum number of compilations at a time on threads of their own, abandoned ones included.
const MAX_RUNNING: usize = 4;

/// A function that determines the contract of a source, which messages name by its file.
type Check = Box<dyn Fn(&str, &[u8]) -> Result<Contract, LoadError> + Send + Sync>;

/// Replaces the compilation in this process.
static CHECK: OnceLock<Check> = OnceLock::new();

/// Determines the contracts of sources with `check` instead of compiling them. Only the first call has an effect.
pub(crate) fn check_elsewhere(check: Check) {
    let _ = CHECK.set(check);
}

/// The cached results for one source.
#[derive(Default)]
pub(crate) struct Compiled {
    bytecode: OnceLock<Result<Arc<[u8]>, LoadError>>,
    contract: OnceLock<Result<Contract, LoadError>>,
}

impl Compiled {
    /// Returns the bytecode of `source`, which messages name `file`.
    pub(crate) fn bytecode(&self, file: &str, source: &[u8]) -> Result<Arc<[u8]>, LoadError> {
        self.bytecode.get_or_init(|| compile(file, source).map(Arc::from)).clone()
    }

    /// Returns the contract of `source`. If [`check_in_processes`](crate::check_in_processes) was called, a child
    /// process compiles it.
    pub(crate) fn contract(&self, file: &str, source: &[u8]) -> Result<&Contract, &LoadError> {
        let check = || {
            if let Some(check) = CHECK.get() {
                return check(file, source);
            }
            self.bytecode(file, source).map(|bytecode| contract::contract_of(&bytecode))
        };
        self.contract.get_or_init(check).as_ref()
    }
}

fn compile(file: &str, source: &[u8]) -> Result<Vec<u8>, LoadError> {
    let problem = |line, message: String| LoadError { file: file.to_owned(), line, message };
    if source.len() > MAX_SOURCE {
        return Err(problem(None, format!("the script is longer than {} KiB", MAX_SOURCE / 1024)));
    }
    let text = match std::str::from_utf8(source) {
        Ok(text) if text.starts_with(|first: char| first < '\t') => {
            return Err(problem(None, String::from("the file contains bytecode, expected source text")));
        }
        Ok(text) => text.strip_prefix('\u{FEFF}').unwrap_or(text),
        Err(error) => {
            let before = source.get(..error.valid_up_to()).unwrap_or_default();
            let line = memchr::memchr_iter(b'\n', before).count() + 1;
            return Err(problem(Some(line), String::from("the file is not UTF-8 text")));
        }
    };
    let functions = memchr::memmem::find_iter(text.as_bytes(), "function").take(MAX_FUNCTIONS + 1).count();
    if functions > MAX_FUNCTIONS {
        return Err(problem(None, format!("the script has more than {MAX_FUNCTIONS} functions")));
    }
    let compiled = if text.len() <= SHORT {
        optimized(1, text)
    } else {
        let text = text.to_owned();
        match within(COMPILE_LIMIT, move || optimized(0, &text)) {
            Some(compiled) => compiled,
            None => return Err(compile_timeout(file)),
        }
    };
    compiled.map_err(|message| {
        let (line, message) = split_line(&message);
        problem(line, error::message(message))
    })
}

/// Compiles `text` with optimization level `level`.
///
/// # Errors
/// The compiler's message.
fn optimized(level: u8, text: &str) -> Result<Vec<u8>, String> {
    let compiler = Compiler::new().set_optimization_level(level).set_debug_level(2);
    compiler.compile(text).map_err(|error| match error {
        mlua::Error::SyntaxError { message, .. } => message,
        other => other.to_string(),
    })
}

/// Returns whether two sources compile to the same code: they may differ in comments and names of local variables.
pub fn is_same_code(one: &str, other: &str) -> bool {
    // Without debug information, the code has no names of local variables and no lines.
    let code = |text: &str| Compiler::new().set_optimization_level(0).set_debug_level(0).compile(text).ok();
    code(one).is_some_and(|one| code(other).is_some_and(|other| one == other))
}

/// Returns whether scripts can be analysed: whether the bytecode of the linked Luau has a supported version. Otherwise
/// the parameters and globals of scripts are unknown, and only syntax errors are found.
pub fn can_analyse_scripts() -> bool {
    optimized(1, "return function(a) end").is_ok_and(|bytecode| {
        let contract = contract::contract_of(&bytecode);
        matches!(contract.returned, Returned::Function { .. })
    })
}

/// The compilations on threads of their own.
struct Running {
    /// The number of all compilations: at most [`MAX_RUNNING`].
    all: usize,
    /// The number of compilations that reached their time limit and have not ended.
    abandoned: usize,
}

static RUNNING: Mutex<Running> = Mutex::new(Running { all: 0, abandoned: 0 });
/// Notified when [`RUNNING`] changes.
static CHANGED: Condvar = Condvar::new();

/// Runs `work` on its own thread, if necessary after another compilation has ended, and returns its result. Returns
/// `None` if `work` panics, if it takes longer than `limit` (its thread is then abandoned), or if the maximum number of
/// threads is already abandoned.
fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let running = lock(&RUNNING);
    let is_full = |running: &mut Running| running.all >= MAX_RUNNING && running.abandoned < MAX_RUNNING;
    let mut running = CHANGED.wait_while(running, is_full).unwrap_or_else(PoisonError::into_inner);
    if running.all >= MAX_RUNNING {
        return None;
    }
    running.all += 1;
    drop(running);
    // Without a buffer, `send` fails if the result is not received.
    let (sender, receiver) = mpsc::sync_channel(0);
    let thread = std::thread::Builder::new().name(String::from("deftool-compile")).stack_size(STACK_SIZE);
    let spawned = thread.spawn(move || {
        let is_abandoned = sender.send(catch_unwind(AssertUnwindSafe(work)).ok()).is_err();
        ended(is_abandoned);
    });
    if spawned.is_err() {
        ended(false);
        return None;
    }
    match receiver.recv_timeout(limit) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => {
            // Counted before the receiver is dropped, because the drop makes the thread's `send` fail.
            lock(&RUNNING).abandoned += 1;
            CHANGED.notify_all();
            None
        }
        Err(RecvTimeoutError::Disconnected) => None,
    }
}

fn ended(is_abandoned: bool) {
    let mut running = lock(&RUNNING);
    running.all -= 1;
    if is_abandoned {
        running.abandoned -= 1;
    }
    drop(running);
    CHANGED.notify_all();
}

/// Splits `:3: message` or `3: message` into line 3 and the message.
fn split_line(message: &str) -> (Option<usize>, &str) {
    let text = message.strip_prefix(':').unwrap_or(message);
    match text.split_once(':') {
        Some((line, rest)) => match line.trim().parse() {
            Ok(line) => (Some(line), rest.trim_start()),
            Err(_) => (None, message),
        },
        None => (None, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_without_end_is_abandoned_and_its_threads_are_limited() {
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let endless = || {
            let held = Arc::clone(&held);
            move || {
                let _ = held.lock().unwrap().recv();
            }
        };
        assert_eq!(within(Duration::from_secs(60), || 7), Some(7));
        assert_eq!(within(Duration::from_secs(60), || -> u8 { panic!("expected by the test") }), None);
        // Of these simultaneous callers, only `MAX_RUNNING` start a thread.
        let callers: Vec<_> = (0..3 * MAX_RUNNING)
            .map(|_| {
                let work = endless();
                std::thread::spawn(move || within(Duration::from_millis(1), work))
            })
            .collect();
        for caller in callers {
            assert_eq!(caller.join().unwrap(), None);
        }
        assert_eq!(lock(&RUNNING).abandoned, MAX_RUNNING);
        assert_eq!(within(Duration::from_secs(60), || 7), None, "too many threads are abandoned");
        drop(release);
        drop(CHANGED.wait_while(lock(&RUNNING), |running| running.all > 0).unwrap());
        assert_eq!(within(Duration::from_secs(60), || 7), Some(7));
    }
}
