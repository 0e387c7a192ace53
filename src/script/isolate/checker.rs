//! Scripts compiled for their contracts in a child process: what a project's load asks of each, where the engine is not
//! to read strangers' sources itself.
//!
//! One child at a time, which is asked about one source after the other and killed when it takes too long over one. Only
//! the contract comes back, never bytecode: what runs a script compiles it itself.

use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::{Mutex, OnceLock};

use super::ProcessOptions;
use super::peer::Peer;
use super::protocol::{GREETING, Octets, Order, Word, invalid};
use crate::script::compile::{COMPILE_LIMIT, late};
use crate::script::control::lock;
use crate::script::error::clean;
use crate::script::{Contract, LoadProblem};

/// The last argument of the child, which tells it apart in lists of processes.
const COMPILER: &str = "compiler";

static CHECKER: OnceLock<Checker> = OnceLock::new();

/// Has this process compile no scripts itself: what [`check_script`](crate::script::check_script) and the loads of
/// projects know of a script then comes from children that `program` names, as for
/// [`Isolation::Processes`](super::Isolation::Processes). The first name stands.
pub fn check_in_processes(program: ProcessOptions) {
    let _ = CHECKER.set(Checker { program, child: Mutex::new(None) });
}

/// What compiles in place of this process, if anything does.
pub(in crate::script) fn checker() -> Option<&'static Checker> {
    CHECKER.get()
}

/// The child, and how it is started.
pub(in crate::script) struct Checker {
    program: ProcessOptions,
    child: Mutex<Option<Peer>>,
}

impl Checker {
    /// The contract of `source`, which messages call `file`.
    pub(in crate::script) fn check(&self, file: &str, source: &[u8]) -> Result<Contract, LoadProblem> {
        let mut child = lock(&self.child);
        // One that fails is not kept, and so killed: also where it gives a source up, which it still works on.
        let answer = match child.take() {
            Some(peer) => Ok(peer),
            None => self.start(),
        };
        let answer = answer.and_then(|mut peer| {
            let order = Order::Check(file.to_owned(), Octets::of(source));
            match peer.ask::<Word>(&order, COMPILE_LIMIT)? {
                Word::Checked(contract) => {
                    *child = Some(peer).filter(|_| contract != Err(late(file)));
                    Ok(contract)
                }
                _ => Err(Some(invalid(String::from("a message out of turn")))),
            }
        });
        answer.unwrap_or_else(|error| {
            let Some(error) = error else { return Err(late(file)) };
            let why = clean(&error.to_string(), 200);
            let message = format!("the process that compiles scripts failed: {why}");
            Err(LoadProblem { file: file.to_owned(), line: None, message })
        })
    }

    fn start(&self) -> Result<Peer, Option<io::Error>> {
        let ProcessOptions { program, arguments } = &self.program;
        let arguments = arguments.iter().map(OsString::as_os_str).chain([OsStr::new(COMPILER)]);
        let mut peer = Peer::start(program, arguments).map_err(Some)?;
        match peer.hear::<Word>(super::child::START_LIMIT)? {
            Word::Ready(greeting) if greeting == GREETING => Ok(peer),
            _ => Err(Some(invalid(String::from("it is no script host of this version")))),
        }
    }
}
