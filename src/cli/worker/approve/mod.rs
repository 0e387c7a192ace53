//! Confirmation prompts for tool calls.
//!
//! Prompts use the terminal itself, because stdin may be a pipe. Without a terminal, calls that require approval are
//! refused, and the model receives the refusal as a result, unless `--yes` allows them. `always` applies to a tool
//! until the project is reloaded, because a reload may change the tool.
//!
//! Not in this module: which calls require approval (`:confirm` in the spec), and the effect of a refusal (the request
//! machine).

mod prompt;

use crate::cli::terminal::input::{LineRead, Terminal};
use deftool_chat::request::Approval;
use deftool_worker::{AlwaysAllowed, Approvals};
use serde_json::Value;

use crate::cli::terminal::output::eprint_line;
use prompt::{Answer, Prompt, parse_answer};

/// Answers approval requests while a command runs.
pub(in crate::cli) struct Approver {
    mode: Mode,
    always: AlwaysAllowed,
    has_noted_refusal: bool,
}

enum Mode {
    Allow,
    Ask(Terminal),
    Refuse,
}

/// A prompt that waits for its answer. Dropping it cancels the prompt.
pub(in crate::cli) struct PendingPrompt {
    pub(in crate::cli) call_id: String,
    prompt: Prompt,
    /// The generation of the project when the user was asked.
    generation: u64,
    reader: LineRead,
}

impl Approver {
    /// Creates an approver. `yes` allows all calls. Otherwise the user is asked, if there is a terminal.
    pub(in crate::cli) fn new(yes: bool) -> Self {
        let mode = if yes { Mode::Allow } else { Terminal::open().map_or(Mode::Refuse, Mode::Ask) };
        Self { mode, always: AlwaysAllowed::default(), has_noted_refusal: false }
    }

    /// Returns how the worker handles approval requests.
    pub(in crate::cli) fn approvals(&self) -> Approvals {
        match self.mode {
            Mode::Allow => Approvals::Allow,
            Mode::Ask(_) => Approvals::Ask,
            Mode::Refuse => Approvals::Refuse,
        }
    }

    /// Clears the `always` answers.
    pub(in crate::cli) fn forget(&mut self) {
        self.always.clear();
    }

    /// Handles a refused call. Without a terminal, the first refused call prints a note.
    pub(in crate::cli) fn note_refusal(&mut self) {
        if matches!(self.mode, Mode::Refuse) && !std::mem::replace(&mut self.has_noted_refusal, true) {
            eprint_line(
                "note: no terminal for confirmation prompts, so calls of tools with :confirm are refused; --yes allows them",
            );
        }
    }

    /// Shows the prompt, or returns the answer if it is known. `generation`: the current generation of the project.
    pub(in crate::cli) fn ask(
        &mut self,
        call_id: &str,
        tool: &str,
        arguments: Option<&Value>,
        generation: u64,
    ) -> Result<PendingPrompt, Approval> {
        let Mode::Ask(terminal) = &self.mode else { return Err(no_terminal()) };
        if self.always.contains(tool, generation) {
            return Err(Approval::Allowed);
        }
        let prompt = Prompt { tool: tool.to_owned(), arguments: arguments.cloned() };
        Self::write_prompt(terminal, &prompt.render(terminal.columns()));
        let reader = terminal.read_line().map_err(|_| no_terminal())?;
        Ok(PendingPrompt { call_id: call_id.to_owned(), prompt, generation, reader })
    }

    /// Handles a line of input. Returns `None` if the prompt is shown again.
    pub(in crate::cli) fn handle_line(
        &mut self,
        pending: &mut PendingPrompt,
        line: Option<&str>,
    ) -> Option<Approval> {
        let Mode::Ask(terminal) = &self.mode else { return Some(no_terminal()) };
        let Some(line) = line else {
            // End the line of the prompt.
            terminal.write("\n");
            return Some(Approval::Refused { reason: String::from("the user gave no answer") });
        };
        match parse_answer(line) {
            Answer::Yes => return Some(Approval::Allowed),
            Answer::Always => {
                self.always.insert(pending.prompt.tool.clone(), pending.generation);
                return Some(Approval::Allowed);
            }
            Answer::No { reason } => return Some(Approval::Refused { reason }),
            Answer::Show => Self::write_prompt(terminal, &pending.prompt.render_whole(terminal.columns())),
            Answer::Unclear => Self::write_prompt(terminal, prompt::HELP),
        }
        match terminal.read_line() {
            Ok(reader) => {
                pending.reader = reader;
                None
            }
            Err(_) => Some(no_terminal()),
        }
    }

    /// Writes a prompt. Input from before does not answer it.
    fn write_prompt(terminal: &Terminal, text: &str) {
        terminal.flush_input();
        terminal.write(text);
    }

    /// Cancels the prompt because the request is over.
    pub(in crate::cli) fn cancel(&self, pending: PendingPrompt) {
        if let Mode::Ask(terminal) = &self.mode {
            terminal.write("\n");
        }
        drop(pending);
    }
}

impl PendingPrompt {
    /// Returns the next line of input, or `None` at the end of the input.
    pub(in crate::cli) async fn line(&mut self) -> Option<String> {
        self.reader.line().await
    }
}

fn no_terminal() -> Approval {
    Approval::Refused { reason: String::from("no user is available to confirm the call") }
}
