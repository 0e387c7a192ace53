//! The conversation, its messages sent and its commands done.

use std::fmt::Write;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::command::{Command, HELP};
use super::keeper::Keeper;
use super::markdown::markdown;
use super::place::is_markdown;
use super::session::{Line, Session, SessionError, SessionFile};
use crate::chat::Message;
use crate::cli::approve::Approver;
use crate::cli::output::{clean, cut, say, say_error, stdout_failed};
use crate::cli::show::show_json;
use crate::cli::worker::{Followed, Follower, Interrupts, tell_errors, tell_findings, tell_left_out};
use crate::project::wishes;
use crate::request::{Event, FailReason, Failure, FinalState, Outcome, valid_conversation};
use crate::spec::{Confirm, ToolKind};
use crate::text::{count, one_line};
use crate::worker::{ProjectTools, SubmitRequest, ToolSource, Worker};

/// How long a look for changes may take.
const RELOAD_PATIENCE: Duration = Duration::from_secs(5);

/// How much of a message is repeated to its author, in characters.
const MAX_ECHO: usize = 60;

pub(super) struct Talk {
    pub(super) worker: Worker,
    pub(super) tools: Arc<ProjectTools>,
    pub(super) json: bool,
    /// Whether somebody types, and sees what becomes of it.
    pub(super) is_interactive: bool,
    pub(super) approver: Approver,
    pub(super) interrupts: Interrupts,
    pub(super) session: Session,
    pub(super) keeper: Keeper,
    pub(super) root: PathBuf,
    /// The first line of a session of this chat.
    pub(super) first: Line,
    /// The generation that the user knows of.
    pub(super) told: u64,
    /// Why the project could not be loaded, as the user knows it.
    pub(super) told_error: Option<String>,
    /// What requests ask for that name no model, as far as it is known.
    pub(super) worker_model: String,
    pub(super) any_failed: bool,
}

/// What comes after.
pub(super) enum Next {
    Go,
    Leave,
    Interrupted,
}

impl Talk {
    /// Sends a message and shows the reply.
    pub(super) async fn send(&mut self, text: String) -> Next {
        // What was saved since the prompt is what the message is sent with.
        self.tell_changes();
        self.session.messages.push(Message::User { content: text });
        self.session.messages = valid_conversation(std::mem::take(&mut self.session.messages));
        self.keeper.messages(&self.session.messages);
        let submit = SubmitRequest {
            messages: self.session.messages.clone(),
            system_prompt: self.session.system.clone(),
            model: self.session.model.clone().filter(|name| !name.is_empty()),
            ..SubmitRequest::default()
        };
        let Self { worker, json, approver, interrupts, keeper, told, .. } = self;
        let mut follower = Follower { worker, json: *json, approver, interrupts };
        let followed = follower
            .follow(submit, |id, event| match event {
                // What the turn before it made of the conversation is whole.
                Event::TurnStarted { turn, .. } if *turn > 1 => {
                    keeper.messages(&worker.conversation(id).unwrap_or_default());
                }
                // The follower shows it.
                Event::Reloaded { generation, .. } => *told = *generation,
                event => keeper.event(event),
            })
            .await;
        match followed {
            Ok(Followed::Ended { id, outcome }) => {
                if let Some(messages) = self.worker.conversation(&id) {
                    self.session.messages = messages;
                }
                self.keeper.messages(&self.session.messages);
                let _ = self.worker.take_result(&id);
                self.any_failed |= outcome.state == FinalState::Failed;
                if stdout_failed() {
                    return Next::Interrupted;
                }
                // Who sends lines by a program and ends it means all of them.
                if outcome.state == FinalState::Canceled && !self.is_interactive {
                    return Next::Interrupted;
                }
            }
            Ok(Followed::Left) => {
                self.keeper.flush();
                return Next::Interrupted;
            }
            // As a reply that was canceled.
            Ok(Followed::Unsent) if self.is_interactive => {}
            Ok(Followed::Unsent) => return Next::Interrupted,
            Err(error) => {
                self.keeper.flush();
                say_error(&error.to_string());
                self.any_failed = true;
            }
        }
        Next::Go
    }

    pub(super) async fn command(&mut self, command: Command) -> Next {
        match command {
            Command::Help => say(HELP),
            Command::Tools => {
                self.tell_changes();
                say(&self.describe_tools());
                self.tell_broken();
            }
            Command::Reload => self.reload(),
            Command::Save(None) => match self.keeper.path() {
                Some(path) => say(&format!("kept in {}", clean(&path.display().to_string()))),
                None if self.keeper.is_off() => say("this session is kept nowhere; /save FILE writes a copy"),
                None => say("this session is kept from its first message on"),
            },
            Command::Save(Some(path)) => self.save(&path),
            Command::Load(path) => self.load(&path),
            Command::Clear => {
                self.session.messages.clear();
                self.keeper.messages(&[]);
                say("the conversation is forgotten");
            }
            Command::System(None) => match &self.session.system {
                Some(text) => say(&clean(text)),
                None => say("there is no system message beside the worker's"),
            },
            Command::System(Some(text)) => {
                self.session.system = Some(text).filter(|text| !text.is_empty());
                self.keeper.setting(Line::System { text: self.session.system.clone() });
            }
            Command::Model(None) => say(&clean(self.model())),
            Command::Model(Some(name)) => {
                let name = if name.is_empty() { self.worker.model().to_owned() } else { name };
                self.session.model = Some(name.clone());
                self.keeper.setting(Line::Model { name });
            }
            Command::Undo => match self.take_back() {
                Some(text) => say(&format!("taken back: {}", echo(&text))),
                None => self.refuse("there is no message to take back"),
            },
            Command::Retry => match self.take_back() {
                Some(text) => {
                    say(&format!("once more: {}", echo(&text)));
                    return self.send(text).await;
                }
                None => self.refuse("there is no message to send again"),
            },
            Command::Quit => return Next::Leave,
        }
        Next::Go
    }

    /// `path`: where the session came from.
    pub(super) fn tell_resumed(&self, path: &Path) {
        let messages = count(self.session.messages.len(), "message");
        say(&clean(&format!("{}: {messages}", path.display())));
        match self.session.messages.last() {
            Some(Message::User { content }) => {
                say(&format!("the last one has no reply, /retry sends it again: {}", echo(content)));
            }
            Some(Message::Assistant { content, .. }) if !content.is_empty() => {
                say(&format!("the model said last: {}", echo(content)));
            }
            Some(Message::System { .. } | Message::Assistant { .. } | Message::Tool { .. }) | None => {}
        }
    }

    /// Takes the user's last message and what followed it back.
    fn take_back(&mut self) -> Option<String> {
        let messages = &mut self.session.messages;
        let at = messages.iter().rposition(|message| matches!(message, Message::User { .. }))?;
        let Some(Message::User { content }) = messages.drain(at..).next() else { return None };
        self.keeper.messages(&self.session.messages);
        Some(content)
    }

    /// What requests ask for, as far as it is known.
    pub(super) fn model(&self) -> &str {
        self.session.model.as_deref().filter(|name| !name.is_empty()).unwrap_or(&self.worker_model)
    }

    fn reload(&mut self) {
        self.tools.project().refresh(RELOAD_PATIENCE);
        if !self.tell_changes() {
            match &self.told_error {
                Some(error) => say_error(&format!("{error}; the tools stay as they were")),
                None => say(&format!("nothing changed; generation {}", self.told)),
            }
            self.tell_broken();
        }
    }

    /// Says what saves did since that was last said; false: nothing.
    pub(super) fn tell_changes(&mut self) -> bool {
        let error = self.tools.project().error();
        let is_new = error != self.told_error;
        self.told_error.clone_from(&error);
        if let (true, Some(error)) = (is_new, error) {
            say_error(&format!("{error}; the tools stay as they were"));
            return true;
        }
        let current = self.tools.project().current();
        let before = std::mem::replace(&mut self.told, current.number);
        if before == current.number {
            return false;
        }
        let changes = self.tools.changes_since(before);
        say(&format!("generation {}: {}", current.number, clean(&changes)));
        // It names the first error.
        tell_findings(&current, |finding| !changes.contains(finding));
        true
    }

    /// Says what is broken, and what the model does not have for that.
    fn tell_broken(&self) {
        let current = self.tools.project().current();
        tell_left_out(&current);
        tell_errors(&current);
    }

    /// A line or two for each tool.
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
                Confirm::Always => text.push_str(" (asks before each call)"),
                Confirm::When(conditions) => {
                    let _ = write!(text, " (asks under {})", count(conditions.len(), "condition"));
                }
            }
            let description = one_line(tool.description.value.clone());
            let _ = write!(text, ": {}", cut(&clean(&description), 200));
            for wish in wishes(&generation.load, [loaded]) {
                let _ = write!(text, "\n    may use {}", clean(&wish.grants.to_string()));
            }
            text.push('\n');
        }
        if text.is_empty() {
            return String::from("the model has no tools");
        }
        text.pop();
        text
    }

    /// Writes a copy.
    fn save(&mut self, path: &Path) {
        let shown = clean(&path.display().to_string());
        let there = || format!("{shown} is there already; give another name, nothing is written over");
        let written = if is_markdown(path) {
            let title = self.root.file_name().map(|name| name.to_string_lossy().into_owned());
            let text = markdown(&self.session, &format!("A talk in {}", title.unwrap_or_default()));
            write_new(path, &self.keeper.hidden().text(&text)).map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => there(),
                _ => format!("{shown}: {error}"),
            })
        } else {
            let copied = SessionFile::create(path, &self.first, self.keeper.hidden()).and_then(|mut file| {
                let mut settings = Vec::new();
                if self.session.system.is_some() {
                    settings.push(Line::System { text: self.session.system.clone() });
                }
                settings.extend(self.session.model.clone().map(|name| Line::Model { name }));
                file.write(&settings)?;
                file.write_messages(&self.session.messages)
            });
            copied.map_err(|error| match error {
                SessionError::Io { source, .. } if source.kind() == ErrorKind::AlreadyExists => there(),
                error => error.to_string(),
            })
        };
        match written {
            Ok(()) => say(&format!("written to {shown}")),
            Err(error) => self.refuse(&error),
        }
    }

    /// Goes on with another session.
    fn load(&mut self, name: &Path) {
        let current = self.keeper.path().and_then(|path| path.canonicalize().ok());
        let path = match super::session_path(name, &self.root, current.as_deref()) {
            Ok(path) => path,
            Err(error) => return self.refuse(&error.to_string()),
        };
        if current.is_some() && path.canonicalize().ok() == current {
            return say("this is that session");
        }
        match self.keeper.load(&path) {
            Ok(session) => {
                self.session = session;
                self.tell_resumed(&path);
            }
            Err(error) => self.refuse(&super::unloadable(&path, error).to_string()),
        }
    }

    /// A message that cannot be sent, which ends as every message does.
    pub(super) fn refuse_message(&mut self, why: &str) {
        self.refuse(why);
        if self.json {
            let failure = Failure::new(FailReason::UnknownError, "", why);
            show_json(&Event::Finished(Outcome::without_reply(Some(failure))));
        }
    }

    pub(super) fn refuse(&mut self, why: &str) {
        say_error(why);
        self.any_failed = true;
    }
}

/// A file that was not there.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    std::io::Write::write_all(&mut options.open(path)?, text.as_bytes())
}

fn echo(text: &str) -> String {
    cut(&clean(&one_line(text.to_owned())), MAX_ECHO)
}
