//! Compiles scripts in a child process to determine their contracts, for engines that must not compile untrusted
//! sources in their own process.
//!
//! There is one child at a time. It compiles one source after the other and is killed when a source takes too long. It
//! returns the contract only, never bytecode: the process that runs a script compiles it again. When no source is left,
//! the child is the first one that runs calls, so that a command starts one process instead of two.

use std::sync::{Arc, Mutex, OnceLock};

use deftool_process::frame::Octets;
use deftool_process::{HelperProgram, lock};

use super::child::{Child, Kind};
use super::protocol::Request;
use crate::error::clean;
use crate::io;
use crate::permission::ScriptPermissions;
use crate::script::check_elsewhere;
use crate::script::contract::{Contract, LoadError, compile_timeout};

static CHECKER: OnceLock<Checker> = OnceLock::new();

/// Moves the compilation of scripts for [`check_script`](crate::check_script) and for project loads to child
/// processes that run `program`, as for [`Isolation::Processes`](super::Isolation::Processes). Only the first call has
/// an effect.
pub fn check_in_processes(program: HelperProgram) {
    let checker = CHECKER.get_or_init(|| Checker { program, idle: Mutex::new(None) });
    check_elsewhere(Box::new(move |file, source| checker.check(file, source)));
}

/// Returns the checker that compiles scripts instead of this process, if [`check_in_processes`] was called.
pub(super) fn checker() -> Option<&'static Checker> {
    CHECKER.get()
}

/// The child process and the program that it runs.
pub(super) struct Checker {
    program: HelperProgram,
    /// Locked while the child compiles.
    idle: Mutex<Option<Child>>,
}

impl Checker {
    /// Returns the contract of `source`, which messages name `file`. Blocks the thread.
    fn check(&self, file: &str, source: &[u8]) -> Result<Contract, LoadError> {
        let mut idle = lock(&self.idle);
        let request = Request::Check(file.to_owned(), Octets::of(source));
        let (program, child) = (self.program.clone(), idle.take());
        let answer = io::wait(async move { ask(&program, child, &request).await });
        match answer.unwrap_or_else(|error| Err(error.message)) {
            Ok(Some((contract, child))) => {
                // After a timeout the child is still busy with the source. Dropping the child kills it.
                *idle = Some(child).filter(|_| contract != Err(compile_timeout(file)));
                contract
            }
            Ok(None) => Err(compile_timeout(file)),
            Err(reason) => {
                let message = format!("the process that compiles scripts failed: {}", clean(&reason, 200));
                Err(LoadError { file: file.to_owned(), line: None, message })
            }
        }
    }

    /// Takes the child if it is idle, of `kind` and runs `program`.
    pub(super) fn take(&self, program: &HelperProgram, kind: &Kind) -> Option<Child> {
        self.idle.try_lock().ok()?.take_if(|child| self.program == *program && *child.kind == *kind)
    }
}

/// What a child reports about a source.
type Checked = Result<Contract, LoadError>;

/// Sends `request` to `idle`, or to a new child, and returns the answer, and the child for the next request. Returns
/// `None` when it takes too long.
///
/// # Errors
/// The reason why the child failed.
async fn ask(
    program: &HelperProgram,
    idle: Option<Child>,
    request: &Request,
) -> Result<Option<(Checked, Child)>, String> {
    if let Some(mut child) = idle {
        match child.check(request).await {
            Ok(answer) => return Ok(answer.map(|checked| (checked, child))),
            // The child may have been killed since its last answer, which is not the fault of this source.
            Err(_) => child.kill().await,
        }
    }
    let kind = Arc::new(Kind::of(&ScriptPermissions::default()));
    let mut child = Child::start(program, kind).await.map_err(|error| error.message)?;
    let answer = child.check(request).await.map_err(|error| error.to_string())?;
    Ok(answer.map(|checked| (checked, child)))
}
