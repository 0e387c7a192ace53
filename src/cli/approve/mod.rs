//! Asking a person whether a call may be made.
//!
//! Asked is who sits at the terminal, on the terminal itself: stdin may be a pipe. Where nobody does, such calls are refused,
//! which the model is told as a result, unless `--yes` allows them. `always` holds for a tool until the project is loaded
//! anew: what a reload made of the tool is asked about again.
//!
//! Deliberately absent: which calls are asked about (`:confirm` of the spec) and what becomes of a refusal (the request
//! machine).

mod question;
mod terminal;

use std::collections::HashSet;

use serde_json::Value;

use super::output::say;
use crate::request::Approval;
use crate::worker::Approvals;
use question::{Answer, Question, parse_answer};
use terminal::{Reading, Terminal};

/// What is done where a call needs approval, for as long as a command runs.
pub(in crate::cli) struct Approver {
    mode: Mode,
    always: Always,
    told: bool,
}

/// Tools whose calls are allowed without another question, as they are in one generation of the project. What is loaded
/// while a request begins is told by no event, so that every question looks at the generation itself.
#[derive(Default)]
struct Always {
    generation: u64,
    tools: HashSet<String>,
}

impl Always {
    fn holds(&mut self, tool: &str, generation: u64) -> bool {
        if std::mem::replace(&mut self.generation, generation) != generation {
            self.tools.clear();
        }
        self.tools.contains(tool)
    }
}

enum Mode {
    Allow,
    Ask(Terminal),
    Refuse,
}

/// A question that waits for its answer. Dropped, it is taken back.
pub(in crate::cli) struct Asked {
    pub(in crate::cli) call_id: String,
    question: Question,
    reading: Reading,
}

impl Approver {
    /// `--yes` allows everything; else somebody is asked, if somebody is there.
    pub(in crate::cli) fn settle(yes: bool) -> Self {
        let mode = if yes { Mode::Allow } else { Terminal::open().map_or(Mode::Refuse, Mode::Ask) };
        Self { mode, always: Always::default(), told: false }
    }

    /// What the worker does by itself.
    pub(in crate::cli) fn approvals(&self) -> Approvals {
        match self.mode {
            Mode::Allow => Approvals::Allow,
            Mode::Ask(_) => Approvals::Ask,
            Mode::Refuse => Approvals::Refuse,
        }
    }

    /// What `always` allowed is asked about again.
    pub(in crate::cli) fn forget(&mut self) {
        self.always.tools.clear();
    }

    /// A call was refused. The first time that this is for want of somebody to ask, it is said.
    pub(in crate::cli) fn note_refusal(&mut self) {
        if matches!(self.mode, Mode::Refuse) && !std::mem::replace(&mut self.told, true) {
            say(
                "note: nobody is here to be asked, so calls of tools with :confirm are refused; --yes allows them",
            );
        }
    }

    /// Puts the question; or the answer, where it is known. `generation`: that of the project now.
    pub(in crate::cli) fn ask(
        &mut self,
        call_id: &str,
        tool: &str,
        arguments: Option<&Value>,
        generation: u64,
    ) -> Result<Asked, Approval> {
        let Mode::Ask(terminal) = &self.mode else { return Err(nobody()) };
        if self.always.holds(tool, generation) {
            return Err(Approval::Allowed);
        }
        let question = Question { tool: tool.to_owned(), arguments: arguments.cloned() };
        terminal.flush_input();
        terminal.write(&question.render(terminal.columns()));
        let reading = terminal.read_line().map_err(|_| nobody())?;
        Ok(Asked { call_id: call_id.to_owned(), question, reading })
    }

    /// What was answered; `None`: it is asked again.
    pub(in crate::cli) fn take(&mut self, asked: &mut Asked, line: Option<&str>) -> Option<Approval> {
        let Mode::Ask(terminal) = &self.mode else { return Some(nobody()) };
        let Some(line) = line else {
            // What is said next begins a line.
            terminal.write("\n");
            return Some(Approval::Refused { reason: String::from("the user gave no answer") });
        };
        match parse_answer(line) {
            Answer::Yes => return Some(Approval::Allowed),
            Answer::Always => {
                self.always.tools.insert(asked.question.tool.clone());
                return Some(Approval::Allowed);
            }
            Answer::No { reason } => return Some(Approval::Refused { reason }),
            Answer::Show => terminal.write(&asked.question.render_whole(terminal.columns())),
            Answer::Unclear => terminal.write(question::HELP),
        }
        match terminal.read_line() {
            Ok(reading) => {
                asked.reading = reading;
                None
            }
            Err(_) => Some(nobody()),
        }
    }

    /// The question is taken back: the request is over.
    pub(in crate::cli) fn take_back(&self, asked: Asked) {
        if let Mode::Ask(terminal) = &self.mode {
            terminal.write("\n");
        }
        drop(asked);
    }
}

impl Asked {
    /// The next line that is typed; `None`: its end came before.
    pub(in crate::cli) async fn line(&mut self) -> Option<String> {
        self.reading.line().await
    }
}

fn nobody() -> Approval {
    Approval::Refused { reason: String::from("nobody can be asked") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn always_ends_with_the_generation() {
        let mut always = Always::default();
        assert!(!always.holds("drop", 1));
        always.tools.insert(String::from("drop"));
        assert!(always.holds("drop", 1) && !always.holds("other", 1));
        assert!(!always.holds("drop", 2));
        assert!(!always.holds("drop", 1), "one that comes back is asked about, too");
    }
}
