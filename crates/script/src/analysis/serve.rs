//! The side of the analyzer.

use std::io::{self, BufRead, Write};

use deftool_process::confine;
use serde::Serialize;

use super::ScriptAnalyzer;
use super::protocol::{GREETING, Request};
use crate::limits::DEFAULT_MEMORY;

/// Makes this process an analyzer, which serves the deftool process that started it until stdin closes.
///
/// # Errors
/// When a message on stdin is invalid, or stdout is closed.
pub fn serve_analyzer(mut analyzer: impl ScriptAnalyzer) -> io::Result<()> {
    confine::begin_session();
    confine::limit_memory(Some(DEFAULT_MEMORY));
    send(&GREETING)?;
    for line in io::stdin().lock().lines() {
        match serde_json::from_str(&line?)? {
            Request::Define(definitions) => send(&analyzer.define(&definitions))?,
            Request::Check(unit) => send(&analyzer.check(&unit))?,
            Request::Complete(unit, at) => send(&analyzer.complete(&unit, at))?,
            Request::Describe(unit, at) => send(&analyzer.describe(&unit, at))?,
            Request::Signatures(unit, at) => send(&analyzer.signatures(&unit, at))?,
            Request::Uses(unit, at) => send(&analyzer.uses(&unit, at))?,
            Request::MemberUses(unit, place) => send(&analyzer.member_uses(&unit, &place))?,
            Request::Outline(unit) => send(&analyzer.outline(&unit))?,
            Request::Inlays(unit) => send(&analyzer.inlays(&unit))?,
            Request::Tokens(unit) => send(&analyzer.tokens(&unit))?,
        }
    }
    Ok(())
}

fn send(answer: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    let mut output = io::stdout().lock();
    output.write_all(&line)?;
    output.flush()
}
