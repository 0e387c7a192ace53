//! The side of deftool: an analyzer in a process of its own.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use deftool_process::Peer;
use serde::de::DeserializeOwned;

use super::model::{Definitions, ScriptUnit, TypeProblem};
use super::protocol::{GREETING, Request};
use super::{Analysed, ScriptAnalyzer};
use crate::error::clean;

/// Time limit for the check of a script. Most take milliseconds.
pub const TYPE_LIMIT: Duration = Duration::from_secs(5);
/// Time limit for the start and for reading the definitions.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Maximum length of a source, in bytes: the time and memory that the analyzer needs grow faster than linearly.
const MAX_SOURCE: usize = 64 << 10;
/// Maximum number of findings per unit.
const MAX_FINDINGS: usize = 20;
/// Maximum length of a message, in characters.
const MAX_MESSAGE: usize = 400;

/// An analyzer in a process of its own, which is started when it is first used. A process that fails or takes too long is
/// killed, and the next use starts another.
pub struct AnalyzerProcess {
    program: PathBuf,
    definitions: Option<Definitions>,
    check_limit: Duration,
    /// The process, which has the definitions.
    peer: Option<Peer>,
}

impl AnalyzerProcess {
    /// Creates an analyzer that runs `program`. `check_limit`: the time limit of a check, usually [`TYPE_LIMIT`].
    pub fn new(program: PathBuf, check_limit: Duration) -> Self {
        Self { program, definitions: None, check_limit, peer: None }
    }

    /// Sends a request about a unit and returns the answer.
    fn ask<A: DeserializeOwned>(
        &mut self,
        unit: &ScriptUnit,
        request: &Request,
        limit: Duration,
    ) -> Analysed<A> {
        if unit.text.len() > MAX_SOURCE {
            return Err(format!("the script is longer than {} KiB", MAX_SOURCE / 1024));
        }
        let mut peer = match self.peer.take() {
            Some(peer) => peer,
            None => self.start()?,
        };
        match peer.ask::<Analysed<A>>(request, limit) {
            Ok(answer) => {
                self.peer = Some(peer);
                answer.map_err(|why| clean(&why, MAX_MESSAGE))
            }
            Err(None) => Err(format!("the analyzer took longer than {limit:?}")),
            Err(Some(error)) => Err(clean(&format!("the analyzer failed: {error}"), MAX_MESSAGE)),
        }
    }

    fn start(&self) -> Analysed<Peer> {
        let failed = |error: Option<io::Error>| {
            let reason = error.map_or_else(|| String::from("timed out"), |error| error.to_string());
            clean(&format!("cannot start the analyzer `{}`: {reason}", self.program.display()), MAX_MESSAGE)
        };
        let mut peer = Peer::start(&self.program, [""; 0]).map_err(|error| failed(Some(error)))?;
        let greeting: String = peer.receive(START_LIMIT).map_err(failed)?;
        if greeting != GREETING {
            return Err(format!("the analyzer `{}` has another version than deftool", self.program.display()));
        }
        if let Some(definitions) = &self.definitions {
            let definitions = Request::Define(definitions.clone());
            let defined: Analysed<()> = peer.ask(&definitions, START_LIMIT).map_err(failed)?;
            defined.map_err(|why| clean(&why, MAX_MESSAGE))?;
        }
        Ok(peer)
    }
}

impl ScriptAnalyzer for AnalyzerProcess {
    /// Stores the definitions. The next process reads them.
    fn define(&mut self, definitions: &Definitions) -> Analysed<()> {
        if self.definitions.as_ref() != Some(definitions) {
            self.definitions = Some(definitions.clone());
            self.peer = None;
        }
        Ok(())
    }

    fn check(&mut self, unit: &ScriptUnit) -> Analysed<Vec<TypeProblem>> {
        let limit = self.check_limit;
        let problems: Vec<TypeProblem> = self.ask(unit, &Request::Check(unit.clone()), limit)?;
        let problems = problems.into_iter().filter(|problem| unit.text_of(&problem.file).is_some());
        let problems = problems.take(MAX_FINDINGS);
        Ok(problems
            .map(|problem| TypeProblem { message: clean(&problem.message, MAX_MESSAGE), ..problem })
            .collect())
    }
}
