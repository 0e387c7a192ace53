//! Compiles scripts in a child process to determine their contracts, for engines that must not compile untrusted
//! sources in their own process.
//!
//! There is one child at a time. It compiles one source after the other and is killed when a source takes too long. It
//! returns the contract only, never bytecode: the process that runs a script compiles it again.

use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::{Mutex, OnceLock};

use deftool_process::frame::{Octets, invalid};
use deftool_process::{HelperProgram, Peer, lock};

use super::protocol::{GREETING, Reply, Request, START_LIMIT};
use crate::error::clean;
use crate::limits::CHILD_COMPILE_LIMIT;
use crate::script::contract::{Contract, LoadError, compile_timeout};

/// The last argument of the child, which identifies it in process lists.
const COMPILER: &str = "compiler";

static CHECKER: OnceLock<Checker> = OnceLock::new();

/// Moves the compilation of scripts for [`check_script`](crate::check_script) and for project loads to child
/// processes that run `program`, as for [`Isolation::Processes`](super::Isolation::Processes). Only the first call has
/// an effect.
pub fn check_in_processes(program: HelperProgram) {
    let _ = CHECKER.set(Checker { program, child: Mutex::new(None) });
}

/// Returns the checker that compiles scripts instead of this process, if [`check_in_processes`] was called.
pub(crate) fn checker() -> Option<&'static Checker> {
    CHECKER.get()
}

/// The child process and the program that it runs.
pub(crate) struct Checker {
    program: HelperProgram,
    child: Mutex<Option<Peer>>,
}

impl Checker {
    /// Returns the contract of `source`, which messages name `file`.
    pub(crate) fn check(&self, file: &str, source: &[u8]) -> Result<Contract, LoadError> {
        let mut child = lock(&self.child);
        let request = Request::Check(file.to_owned(), Octets::of(source));
        let answer = match child.take().map(|peer| ask(peer, &request)) {
            // The child may have been killed since its last answer, which is not the fault of this source.
            None | Some(Err(Some(_))) => self.start().and_then(|peer| ask(peer, &request)),
            Some(answer) => answer,
        };
        match answer {
            Ok((contract, peer)) => {
                // After a timeout the child is still busy with the source. Dropping the peer kills the child.
                *child = Some(peer).filter(|_| contract != Err(compile_timeout(file)));
                contract
            }
            Err(None) => Err(compile_timeout(file)),
            Err(Some(error)) => {
                let reason = clean(&error.to_string(), 200);
                let message = format!("the process that compiles scripts failed: {reason}");
                Err(LoadError { file: file.to_owned(), line: None, message })
            }
        }
    }

    fn start(&self) -> Result<Peer, Option<io::Error>> {
        let HelperProgram { program, arguments } = &self.program;
        let arguments = arguments.iter().map(OsString::as_os_str).chain([OsStr::new(COMPILER)]);
        let mut peer = Peer::start(program, arguments).map_err(Some)?;
        match peer.receive::<Reply>(START_LIMIT)? {
            Reply::Ready(greeting) if greeting == GREETING => Ok(peer),
            _ => Err(Some(invalid(String::from("not a script host of this version")))),
        }
    }
}

/// What a child reports about a source.
type Checked = Result<Contract, LoadError>;

/// Sends `request` to `peer` and returns its answer, and the peer for the next request. A peer that fails is killed.
fn ask(mut peer: Peer, request: &Request) -> Result<(Checked, Peer), Option<io::Error>> {
    match peer.ask::<Reply>(request, CHILD_COMPILE_LIMIT)? {
        Reply::Checked(contract) => Ok((contract, peer)),
        _ => Err(Some(invalid(String::from("unexpected message")))),
    }
}
