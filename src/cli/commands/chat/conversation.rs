//! A running chat: sends messages and executes commands.

use std::fmt::Write;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use deftool_chat::Message;
use deftool_chat::request::{Event, FailReason, Failure, FinalState, Outcome, normalize_conversation};
use deftool_lang::spec::{Confirm, ToolKind};
use deftool_lang::text::{count, one_line};
use deftool_process::files::create_new_private;
use deftool_project::permission_requests;
use deftool_record::Recorder;
use deftool_record::session::{Line, Session, SessionFile};
use deftool_worker::{ProjectTools, SubmitRequest, ToolSource, Worker};

use super::command::{Command, HELP};
use super::markdown::markdown;
use crate::cli::terminal::interrupt::Interrupts;
use crate::cli::terminal::output::{clean, cut, eprint_error, eprint_line, stdout_failed};
use crate::cli::worker::approve::Approver;
use crate::cli::worker::session::{SessionWriter, is_markdown, resume_error, session_path};
use crate::cli::worker::show::print_event_json;
use crate::cli::worker::{
    FollowResult, Follower, Printed, eprint_errors, eprint_matching_findings, eprint_omitted_tools, trace,
};

/// Time limit of `/reload`.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum length of a message preview, in characters.
const MAX_ECHO: usize = 60;

/// A running chat.
pub(super) struct Conversation {
    pub(super) worker: Worker,
    pub(super) tools: Arc<ProjectTools>,
    pub(super) json: bool,
    /// Whether a user types at a terminal.
    pub(super) is_interactive: bool,
    pub(super) approver: Approver,
    pub(super) interrupts: Interrupts,
    pub(super) session: Session,
    pub(super) writer: SessionWriter,
    pub(super) recorder: Option<Arc<Recorder>>,
    pub(super) root: PathBuf,
    /// The first line of the session file.
    pub(super) first: Line,
    /// The last generation that was reported to the user.
    pub(super) reported_generation: u64,
    /// The last load error that was reported to the user.
    pub(super) reported_error: Option<String>,
    /// The model of requests that do not specify a model, or a description of it.
    pub(super) worker_model: String,
    pub(super) any_failed: bool,
}

/// The next step of the chat after an input.
pub(super) enum Next {
    Continue,
    Quit,
    Interrupted,
}

impl Conversation {
    /// Sends a message and prints the reply.
    pub(super) async fn send(&mut self, text: String) -> Next {
        // Report changes that were saved since the prompt, because the request uses them.
        self.report_changes();
        self.session.messages.push(Message::user(text));
        self.session.messages = normalize_conversation(std::mem::take(&mut self.session.messages));
        self.writer.messages(&self.session.messages);
        let submit = SubmitRequest {
            messages: self.session.messages.clone(),
            system_prompt: self.session.system.clone(),
            model: self.session.model.clone().filter(|name| !name.is_empty()),
            trace: trace::caller(),
            recorder: self.recorder.clone(),
            ..SubmitRequest::default()
        };
        let Self { worker, json, approver, interrupts, writer, reported_generation, .. } = self;
        let mut follower = Follower { worker, printed: Printed::of(*json), approver, interrupts };
        let followed = follower
            .follow(submit, |id, event| match event {
                // The previous turn is complete.
                Event::TurnStarted { turn, .. } if *turn > 1 => {
                    writer.messages(&worker.conversation(id).unwrap_or_default());
                }
                // The follower prints this event.
                Event::Reloaded { generation, .. } => *reported_generation = *generation,
                event => writer.event(event),
            })
            .await;
        match followed {
            Ok(FollowResult::Ended { id, outcome }) => {
                if let Some(messages) = self.worker.conversation(&id) {
                    self.session.messages = messages;
                }
                self.writer.messages(&self.session.messages);
                let _ = self.worker.take_result(&id);
                self.any_failed |= outcome.state == FinalState::Failed;
                if stdout_failed() {
                    return Next::Interrupted;
                }
                // Without a terminal, a canceled reply also cancels the remaining messages.
                if outcome.state == FinalState::Canceled && !self.is_interactive {
                    return Next::Interrupted;
                }
            }
            Ok(FollowResult::Abandoned) => {
                self.writer.flush();
                return Next::Interrupted;
            }
            // Handled like a canceled reply.
            Ok(FollowResult::NotSubmitted) if self.is_interactive => {}
            Ok(FollowResult::NotSubmitted) => return Next::Interrupted,
            Err(error) => {
                self.writer.flush();
                eprint_error(&error.to_string());
                self.any_failed = true;
            }
        }
        Next::Continue
    }

    /// Executes a slash command.
    pub(super) async fn command(&mut self, command: Command) -> Next {
        match command {
            Command::Help => eprint_line(HELP),
            Command::Tools => {
                self.report_changes();
                eprint_line(&self.describe_tools());
                self.report_errors();
            }
            Command::Reload => self.reload(),
            Command::Save(None) => match self.writer.path() {
                Some(path) => eprint_line(&format!("stored in {}", clean(&path.display().to_string()))),
                None if self.writer.is_disabled() => {
                    eprint_line("this session is not stored; use /save FILE to save a copy");
                }
                None => eprint_line("the session is stored when the first message is sent"),
            },
            Command::Save(Some(path)) => self.save(&path),
            Command::Load(path) => self.load(&path),
            Command::Clear => {
                self.session.messages.clear();
                self.writer.messages(&[]);
                eprint_line("conversation cleared");
            }
            Command::System(None) => match &self.session.system {
                Some(text) => eprint_line(&clean(text)),
                None => eprint_line("no additional system message"),
            },
            Command::System(Some(text)) => {
                self.session.system = Some(text).filter(|text| !text.is_empty());
                self.writer.setting(Line::System { text: self.session.system.clone() });
            }
            Command::Model(None) => eprint_line(&clean(self.model())),
            Command::Model(Some(name)) => {
                let name = if name.is_empty() { self.worker.model() } else { name };
                self.session.model = Some(name.clone());
                self.writer.setting(Line::Model { name });
            }
            Command::Undo => match self.remove_last() {
                Some(text) => eprint_line(&format!("removed: {}", echo(&text))),
                None => self.report_error("no message to remove"),
            },
            Command::Retry => match self.remove_last() {
                Some(text) => {
                    eprint_line(&format!("retrying: {}", echo(&text)));
                    return self.send(text).await;
                }
                None => self.report_error("no message to retry"),
            },
            Command::Quit => return Next::Quit,
        }
        Next::Continue
    }

    /// Reports the state of the session that was resumed from `path`.
    pub(super) fn report_resumed(&self, path: &Path) {
        let messages = count(self.session.messages.len(), "message");
        eprint_line(&clean(&format!("{}: {messages}", path.display())));
        match self.session.messages.last() {
            Some(Message::User { content, .. }) => {
                eprint_line(&format!(
                    "the last message has no reply; use /retry to send it again: {}",
                    echo(content)
                ));
            }
            Some(Message::Assistant { content, .. }) if !content.is_empty() => {
                eprint_line(&format!("last reply: {}", echo(content)));
            }
            Some(Message::System { .. } | Message::Assistant { .. } | Message::Tool { .. }) | None => {}
        }
    }

    /// Removes the last user message and everything after it, and returns the message.
    fn remove_last(&mut self) -> Option<String> {
        let messages = &mut self.session.messages;
        let at = messages.iter().rposition(|message| matches!(message, Message::User { .. }))?;
        let Some(Message::User { content, .. }) = messages.drain(at..).next() else { return None };
        self.writer.messages(&self.session.messages);
        Some(content)
    }

    /// Returns the model of the next request, or a description of it.
    pub(super) fn model(&self) -> &str {
        self.session.model.as_deref().filter(|name| !name.is_empty()).unwrap_or(&self.worker_model)
    }

    /// Reloads the project and reports the changes.
    fn reload(&mut self) {
        self.tools.project().refresh(RELOAD_TIMEOUT);
        if !self.report_changes() {
            match &self.reported_error {
                Some(error) => eprint_error(&format!("{error}; the tools are unchanged")),
                None => eprint_line(&format!("no changes; generation {}", self.reported_generation)),
            }
            self.report_errors();
        }
    }

    /// Reports changes since the last report. Returns false if there are none.
    pub(super) fn report_changes(&mut self) -> bool {
        let error = self.tools.project().error();
        let is_new = error != self.reported_error;
        self.reported_error.clone_from(&error);
        if let (true, Some(error)) = (is_new, error) {
            eprint_error(&format!("{error}; the tools are unchanged"));
            return true;
        }
        let current = self.tools.project().current();
        let before = std::mem::replace(&mut self.reported_generation, current.number);
        if before == current.number {
            return false;
        }
        let changes = self.tools.changes_since(before);
        eprint_line(&format!("generation {}: {}", current.number, clean(&changes)));
        // The changes already contain the first error.
        eprint_matching_findings(&current, |finding| !changes.contains(finding));
        true
    }

    /// Reports the errors of the project and the omitted tools.
    fn report_errors(&self) {
        let current = self.tools.project().current();
        eprint_omitted_tools(&current);
        eprint_errors(&current);
    }

    /// Describes each tool on one or more lines.
    fn describe_tools(&self) -> String {
        let generation = self.tools.project().current();
        let offered = self.tools.current().tools;
        let mut text = String::new();
        for entry in offered.iter() {
            let Some(loaded) = generation.tool(&entry.name) else { continue };
            let tool = &loaded.tool;
            let _ = write!(text, "{}", clean(&entry.name));
            if generation.changes.kept.contains(&entry.name) {
                text.push_str(" (broken now, last good version kept)");
            }
            if tool.kind == ToolKind::Exit {
                text.push_str(" (exit tool)");
            }
            match &tool.confirm {
                Confirm::Never => {}
                Confirm::Always => text.push_str(" (confirms every call)"),
                Confirm::When(conditions) => {
                    let _ = write!(text, " (confirms calls under {})", count(conditions.len(), "condition"));
                }
            }
            let description = one_line(tool.description.value.clone());
            let _ = write!(text, ": {}", cut(&clean(&description), 200));
            for required in permission_requests(&generation.load, [loaded]) {
                let _ = write!(text, "\n    permissions: {}", clean(&required.grants.to_string()));
            }
            text.push('\n');
        }
        if text.is_empty() {
            return String::from("no tools");
        }
        text.pop();
        text
    }

    /// Saves a copy of the session.
    fn save(&mut self, path: &Path) {
        let shown = clean(&path.display().to_string());
        let exists = || format!("{shown} already exists; choose another name");
        let written =
            if is_markdown(path) {
                let title = self.root.file_name().map(|name| name.to_string_lossy().into_owned());
                let text = markdown(&self.session, &format!("Chat in {}", title.unwrap_or_default()));
                write_new(path, &self.writer.redaction().text(&text)).map_err(|error| match error.kind() {
                    ErrorKind::AlreadyExists => exists(),
                    _ => format!("{shown}: {error}"),
                })
            } else {
                let lines = std::iter::once(self.first.clone()).chain(self.session.settings()).collect();
                let copied = SessionFile::create(path, lines, self.writer.redaction())
                    .and_then(|mut file| file.write_messages(&self.session.messages));
                copied.map_err(|error| {
                    if error.is_io(ErrorKind::AlreadyExists) { exists() } else { error.to_string() }
                })
            };
        match written {
            Ok(()) => eprint_line(&format!("saved to {shown}")),
            Err(error) => self.report_error(&error),
        }
    }

    /// Resumes another session.
    fn load(&mut self, name: &Path) {
        let current = self.writer.path().and_then(|path| path.canonicalize().ok());
        let path = match session_path(name, &self.root, current.as_deref()) {
            Ok(path) => path,
            Err(error) => return self.report_error(&error.to_string()),
        };
        if current.is_some() && path.canonicalize().ok() == current {
            return eprint_line("this session is already open");
        }
        match self.writer.load(&path) {
            Ok(session) => {
                let Line::Chat { worker, .. } = &self.first else { return };
                self.session = session.continued_by(worker);
                self.report_resumed(&path);
            }
            Err(error) => self.report_error(&resume_error(&path, &error).to_string()),
        }
    }

    /// Reports a message that cannot be sent. With `--json`, also prints a `finished` event.
    pub(super) fn reject_message(&mut self, reason: &str) {
        self.report_error(reason);
        if self.json {
            let failure = Failure::new(FailReason::UnknownError, "", reason);
            print_event_json(&Event::Finished(Arc::new(Outcome::without_reply(Some(failure)))));
        }
    }

    pub(super) fn report_error(&mut self, reason: &str) {
        eprint_error(reason);
        self.any_failed = true;
    }
}

/// Writes a new file.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = create_new_private(path, std::fs::File::options().write(true))?;
    std::io::Write::write_all(&mut file, text.as_bytes())
}

/// Returns a one-line preview of a message.
fn echo(text: &str) -> String {
    cut(&clean(&one_line(text.to_owned())), MAX_ECHO)
}
