//! From source to bytecode, in bounded time.
//!
//! The compiler is C++ that nothing interrupts, and its memory is outside of a call's limit. So a source has a limit of
//! length, a long one is compiled without the passes that take quadratic time, and it is waited for only so long. A
//! source is compiled once in a process, by whichever of [`Compiled::contract`] and [`Compiled::bytecode`] comes first.
//!
//! Measured with Luau 0.740 on a machine of two cores, sources of 1 MiB, 50 hostile patterns and 800 random mixtures of
//! them: with optimisation 9 s at most, without 0.9 s. Of the passes, `foldJumps` follows each jump through those that
//! it leads to.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use mlua::chunk::Compiler;

use super::contract::{self, Contract, LoadProblem};
use super::runner::STACK;
use super::{MAX_SOURCE, error};

/// How long a source may take to compile.
pub(super) const COMPILE_LIMIT: Duration = Duration::from_secs(5);
/// Most times that the word `function` may occur in a source: Luau compiles functions in quadratic time.
const MAX_FUNCTIONS: usize = 5_000;
/// Longest source, in bytes, that is compiled with optimisation, and on the thread that asks: 31 ms at most.
const SHORT: usize = 64 << 10;
/// Most compilations that are left to themselves at a time.
const MAX_LEFT: usize = 4;

/// What becomes of one source.
#[derive(Default)]
pub(super) struct Compiled {
    bytecode: OnceLock<Result<Arc<[u8]>, LoadProblem>>,
    contract: OnceLock<Result<Contract, LoadProblem>>,
}

impl Compiled {
    /// The bytecode of `source`, which messages call `file`.
    pub(super) fn bytecode(&self, file: &str, source: &[u8]) -> Result<Arc<[u8]>, LoadProblem> {
        self.bytecode.get_or_init(|| compile(file, source).map(Arc::from)).clone()
    }

    /// What `source` returns and uses. In a process that has its scripts compiled by others, one of them tells.
    pub(super) fn contract(&self, file: &str, source: &[u8]) -> Result<&Contract, &LoadProblem> {
        let check = || {
            #[cfg(unix)]
            if let Some(checker) = super::isolate::checker() {
                return checker.check(file, source);
            }
            self.bytecode(file, source).map(|bytecode| contract::contract_of(&bytecode))
        };
        self.contract.get_or_init(check).as_ref()
    }
}

fn compile(file: &str, source: &[u8]) -> Result<Vec<u8>, LoadProblem> {
    let problem = |line, message: String| LoadProblem { file: file.to_owned(), line, message };
    if source.len() > MAX_SOURCE {
        return Err(problem(None, format!("the script is longer than {} KiB", MAX_SOURCE / 1024)));
    }
    let text = match std::str::from_utf8(source) {
        Ok(text) if text.starts_with(|first: char| first < '\t') => {
            return Err(problem(None, String::from("the file holds bytecode; only source is run")));
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
            None => return Err(late(file)),
        }
    };
    compiled.map_err(|message| {
        let (line, message) = split_line(&message);
        problem(line, error::message(message))
    })
}

/// Compiles `text` with optimisation of this `level`; the compiler's words where it does not.
fn optimized(level: u8, text: &str) -> Result<Vec<u8>, String> {
    let compiler = Compiler::new().set_optimization_level(level).set_debug_level(2);
    compiler.compile(text).map_err(|error| match error {
        mlua::Error::SyntaxError { message, .. } => message,
        other => other.to_string(),
    })
}

/// What is wrong with a source that reached its limit.
pub(super) fn late(file: &str) -> LoadProblem {
    let message = format!("the script takes longer than {} s to compile", COMPILE_LIMIT.as_secs());
    LoadProblem { file: file.to_owned(), line: None, message }
}

/// Compilations that nobody waits for any more.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// The result of `work`, which runs on a thread of its own; `None` when it takes longer than `limit`, and then it is left
/// to itself, or when too many others were.
fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    if LEFT.load(Ordering::Acquire) >= MAX_LEFT {
        return None;
    }
    // Without room for a result: it is received, or its sender knows that nobody does.
    let (sender, receiver) = mpsc::sync_channel(0);
    let thread = std::thread::Builder::new().name(String::from("deftool-compile")).stack_size(STACK);
    let spawned = thread.spawn(move || {
        if sender.send(work()).is_err() {
            LEFT.fetch_sub(1, Ordering::AcqRel);
        }
    });
    spawned.ok()?;
    let result = receiver.recv_timeout(limit).ok();
    if result.is_none() {
        LEFT.fetch_add(1, Ordering::AcqRel);
    }
    result
}

/// `:3: message` or `3: message` → line 3 and the message.
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
    fn work_that_does_not_end_is_left_and_only_so_often() {
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(std::sync::Mutex::new(held));
        let endless = || {
            let held = Arc::clone(&held);
            move || {
                let _ = held.lock().unwrap().recv();
            }
        };
        assert_eq!(within(Duration::from_secs(60), || 7), Some(7));
        for _ in 0..MAX_LEFT {
            assert_eq!(within(Duration::from_millis(1), endless()), None);
        }
        assert_eq!(within(Duration::from_secs(60), || 7), None, "too many are left");
        drop(release);
        while LEFT.load(Ordering::Acquire) > 0 {
            std::thread::yield_now();
        }
        assert_eq!(within(Duration::from_secs(60), || 7), Some(7));
    }
}
