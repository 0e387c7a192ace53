//! The side of deftool: an analyzer in a process of its own.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use deftool_process::Peer;
use serde::de::DeserializeOwned;

use super::features::{
    Description, Inlay, NameToken, NameUses, OutlineItem, Place, Signatures, Suggestion, Suggestions,
};
use super::model::{Definitions, ScriptUnit, TypeProblem};
use super::protocol::{GREETING, Request};
use super::{Analysed, ScriptAnalyzer};
use crate::error::clean;

/// Time limit for the check of a script. Most take milliseconds.
pub const TYPE_LIMIT: Duration = Duration::from_secs(5);
/// Time limit for a request of an editor, which waits for it.
const FEATURE_LIMIT: Duration = Duration::from_secs(2);
/// Time limit for the start and for reading the definitions.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Maximum length of a source, in bytes: the time and memory that the analyzer needs grow faster than linearly.
const MAX_SOURCE: usize = 64 << 10;
/// Maximum number of findings per unit.
const MAX_FINDINGS: usize = 20;
/// Number of failures in a row after which an editor's analyzer is not started again.
const MAX_FAILURES: u32 = 5;
/// Maximum number of suggestions.
const MAX_SUGGESTIONS: usize = 1_000;
/// Maximum length of a message, in characters.
const MAX_MESSAGE: usize = 400;
/// Maximum length of the text of a declaration, in characters.
const MAX_CODE: usize = 2_000;

/// An analyzer in a process of its own, which is started when it is first used. A process that fails or takes too long is
/// killed, and the next use starts another.
pub struct AnalyzerProcess {
    program: PathBuf,
    definitions: Option<Definitions>,
    check_limit: Duration,
    /// Whether it is used while a script is edited, with many requests about the same script.
    is_of_editor: bool,
    /// The number of failures in a row.
    failures: u32,
    /// The process, which has the definitions.
    peer: Option<Peer>,
}

impl AnalyzerProcess {
    /// Creates an analyzer that runs `program`. `check_limit`: the time limit of a check, usually [`TYPE_LIMIT`].
    pub fn new(program: PathBuf, check_limit: Duration) -> Self {
        Self { program, definitions: None, check_limit, is_of_editor: false, failures: 0, peer: None }
    }

    /// Creates an analyzer for an editor, which is not started again after several failures in a row.
    pub fn of_editor(program: PathBuf) -> Self {
        Self { is_of_editor: true, ..Self::new(program, TYPE_LIMIT) }
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
        if self.is_of_editor && self.failures >= MAX_FAILURES {
            return Err(format!(
                "the analyzer failed {MAX_FAILURES} times in a row; restart the language server"
            ));
        }
        self.failures += 1;
        let mut peer = match self.peer.take() {
            Some(peer) => peer,
            None => self.start()?,
        };
        match peer.ask::<Analysed<A>>(request, limit) {
            Ok(answer) => {
                (self.peer, self.failures) = (Some(peer), 0);
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
            return Err(format!(
                "the analyzer `{}` has another version than deftool",
                self.program.display()
            ));
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

    fn complete(&mut self, unit: &ScriptUnit, offset: usize) -> Analysed<Suggestions> {
        let request = Request::Complete(unit.clone(), offset);
        let Suggestions { mut items, in_string } = self.ask(unit, &request, FEATURE_LIMIT)?;
        items.truncate(MAX_SUGGESTIONS);
        let cleaned = |suggestion: Suggestion| Suggestion {
            name: clean(&suggestion.name, MAX_MESSAGE),
            type_text: clean(&suggestion.type_text, MAX_MESSAGE),
            ..suggestion
        };
        Ok(Suggestions { items: items.into_iter().map(cleaned).collect(), in_string })
    }

    fn describe(&mut self, unit: &ScriptUnit, offset: usize) -> Analysed<Option<Description>> {
        let request = Request::Describe(unit.clone(), offset);
        let description: Option<Description> = self.ask(unit, &request, FEATURE_LIMIT)?;
        let description = description.filter(|description| is_span(&unit.text, description.span));
        Ok(description.map(|description| Description {
            code: clean_lines(&description.code),
            definition: description.definition.filter(|place| is_place(unit, place)),
            ..description
        }))
    }

    fn signatures(&mut self, unit: &ScriptUnit, offset: usize) -> Analysed<Option<Signatures>> {
        let request = Request::Signatures(unit.clone(), offset);
        let found: Option<Signatures> = self.ask(unit, &request, FEATURE_LIMIT)?;
        Ok(found.map(|mut found| {
            for label in &mut found.labels {
                let cleaned = clean(&label.text, MAX_CODE);
                // The spans refer to the text as it was sent.
                if cleaned == label.text {
                    label.parameters.retain(|span| is_span(&label.text, *span));
                } else {
                    label.parameters.clear();
                    label.text = cleaned;
                }
            }
            found
        }))
    }

    fn uses(&mut self, unit: &ScriptUnit, offset: usize) -> Analysed<Option<NameUses>> {
        let found: Option<NameUses> = self.ask(unit, &Request::Uses(unit.clone(), offset), FEATURE_LIMIT)?;
        let found = found.filter(|found| is_place(unit, &found.definition));
        Ok(found.map(|mut found| {
            found.uses.retain(|span| unit.text.get(span.0..span.1) == Some(found.name.as_str()));
            found
        }))
    }

    fn member_uses(&mut self, unit: &ScriptUnit, definition: &Place) -> Analysed<Vec<(usize, usize)>> {
        let request = Request::MemberUses(unit.clone(), definition.clone());
        let mut found: Vec<(usize, usize)> = self.ask(unit, &request, FEATURE_LIMIT)?;
        found.retain(|span| is_span(&unit.text, *span));
        Ok(found)
    }

    fn outline(&mut self, unit: &ScriptUnit) -> Analysed<Vec<OutlineItem>> {
        let found: Vec<OutlineItem> = self.ask(unit, &Request::Outline(unit.clone()), FEATURE_LIMIT)?;
        let found = found.into_iter().take(MAX_SUGGESTIONS);
        let found =
            found.filter(|item| is_span(&unit.text, item.span) && is_span(&unit.text, item.name_span));
        Ok(found.map(|item| OutlineItem { name: clean(&item.name, MAX_MESSAGE), ..item }).collect())
    }

    fn inlays(&mut self, unit: &ScriptUnit) -> Analysed<Vec<Inlay>> {
        let found: Vec<Inlay> = self.ask(unit, &Request::Inlays(unit.clone()), FEATURE_LIMIT)?;
        let found = found.into_iter().filter(|inlay| unit.text.is_char_boundary(inlay.offset));
        Ok(found.map(|inlay| Inlay { label: clean(&inlay.label, MAX_MESSAGE), ..inlay }).collect())
    }

    fn tokens(&mut self, unit: &ScriptUnit) -> Analysed<Vec<NameToken>> {
        let mut found: Vec<NameToken> = self.ask(unit, &Request::Tokens(unit.clone()), FEATURE_LIMIT)?;
        let mut end = 0;
        found.retain(|token| {
            let is_next = end <= token.span.0 && is_span(&unit.text, token.span);
            end = if is_next { token.span.1 } else { end };
            is_next
        });
        Ok(found)
    }
}

/// Cleans each line of a text.
fn clean_lines(text: &str) -> String {
    text.lines().map(|line| clean(line, MAX_CODE)).collect::<Vec<_>>().join("\n")
}

/// Returns whether a span is one of `text`.
fn is_span(text: &str, (start, end): (usize, usize)) -> bool {
    text.get(start..end).is_some()
}

/// Returns whether a place is in a file of the unit.
fn is_place(unit: &ScriptUnit, place: &Place) -> bool {
    unit.text_of(&place.file).is_some_and(|text| is_span(text, place.span))
}
