//! `deftool chat`: a conversation of several turns with the project's tools, in a session that is kept.
//!
//! A message is submitted with the conversation so far, and what the worker says of the conversation afterwards is what the next one
//! goes on from: it is valid whatever the end was. stdout has the model's words, or with `--json` the events; everything
//! else is said on stderr.

mod command;
mod hidden;
mod input;
mod keeper;
mod markdown;
mod place;
mod session;
mod talk;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::approve::Approver;
use super::args::ChatOptions;
use super::output::{clean, say};
use super::secrets::secrets;
use super::worker::{self, Chosen, Interrupts, api_key, close, connect};
use super::{CliError, Exit, locate};
use crate::project::find_root;
use crate::text::count;
use crate::worker::{ANY_MODEL, ToolSource, WorkerConfig};
use command::{Said, parse};
use hidden::Hidden;
use input::{Input, Typed};
use keeper::Keeper;
use session::{Line, Session, SessionError, SessionFile};
use talk::{Next, Talk};

pub(super) fn run(options: &ChatOptions) -> Result<Exit, CliError> {
    let Chosen { spec, tools, config } = worker::choose(&options.worker, &options.scripts, None)?;
    let place = locate(options.worker.project.as_deref())?;
    let root = find_root(&place.folder)?;
    let key = api_key(&spec);
    let hidden = Arc::new(Hidden::new(key.as_deref(), secrets(&[], tools.project().current().tools())?));
    // Before a server is asked anything: a session that cannot be read ends it here.
    let resumed = options.resume.as_deref().map(|name| resume(name, &root, &hidden)).transpose()?;
    let resumed_from = resumed.as_ref().map(|(file, _)| file.path().to_owned());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(CliError::Runtime)?;
    let exit = runtime.block_on(async {
        let mut interrupts = Interrupts::listen().map_err(CliError::Runtime)?;
        let approver = Approver::settle(options.request.yes);
        let config = WorkerConfig { approvals: approver.approvals(), ..config };
        let source = tools.clone();
        let worker = tokio::select! {
            worker = connect(&options.worker, &spec, config, source, false) => worker?,
            () = interrupts.next() => return Ok(Exit::Interrupted),
        };
        let model = worker.model().to_owned();
        let first = Line::Chat {
            version: session::VERSION,
            created_at_ms: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_millis() as u64),
            project: root.display().to_string(),
            worker: spec.name.value.clone(),
            model: model.clone(),
        };
        let mut session = Session { system: options.request.system.clone(), ..Session::default() };
        let keeper = match resumed {
            Some((file, found)) => {
                let system = session.system.take();
                session = found;
                let mut keeper = Keeper::open(file, hidden);
                if system.is_some() {
                    session.system.clone_from(&system);
                    keeper.setting(Line::System { text: system });
                }
                keeper
            }
            None if options.no_save => Keeper::off(hidden),
            None => begin(&root, first.clone(), &session, hidden),
        };
        let history = if options.no_save { None } else { history() };
        let input = Input::open(history).map_err(CliError::Runtime)?;
        let told = tools.current().generation;
        let mut talk = Talk {
            worker,
            tools,
            json: options.json,
            is_interactive: input.is_terminal,
            approver,
            interrupts,
            session,
            keeper,
            root,
            first,
            told,
            told_error: None,
            worker_model: match model.as_str() {
                "" => String::from("the server's first model"),
                ANY_MODEL if options.worker.model.is_none() && spec.model.is_none() => {
                    format!("no known model (`{ANY_MODEL}` is asked for)")
                }
                name => name.to_owned(),
            },
            any_failed: false,
        };
        if input.is_terminal {
            let tools = count(talk.tools.current().tools.iter().count(), "tool");
            say(&format!("{} and {tools}; /help lists the commands", clean(talk.model())));
        }
        if let Some(path) = resumed_from {
            talk.tell_resumed(&path);
        }
        let exit = converse(&mut talk, input, options.message.clone()).await;
        close(&talk.worker, &mut talk.interrupts).await;
        exit
    });
    // What a stopped script left behind, and a thread that waits for a line, are not waited for.
    runtime.shutdown_timeout(Duration::from_millis(100));
    exit
}

/// Message by message, to the end.
async fn converse(talk: &mut Talk, mut input: Input, mut message: Option<String>) -> Result<Exit, CliError> {
    let mut wants_to_leave = false;
    let exit = loop {
        talk.tell_changes();
        let typed = match message.take() {
            Some(message) => Typed::Text(message),
            None => {
                // One that came when the reply had just ended was meant for it.
                talk.interrupts.drain();
                tokio::select! {
                    typed = input.next() => typed,
                    () = talk.interrupts.next() => break Exit::Interrupted,
                }
            }
        };
        let text = match typed {
            Typed::Text(text) => text,
            Typed::Interrupted { was_empty } => {
                if wants_to_leave && was_empty {
                    break Exit::Clean;
                }
                wants_to_leave = was_empty;
                if was_empty {
                    say("Ctrl-C again, or Ctrl-D, leaves");
                }
                continue;
            }
            Typed::End => break Exit::Clean,
            Typed::Refused(why) => {
                talk.refuse_message(&why);
                continue;
            }
            Typed::Failed(error) => return Err(CliError::Usage(error)),
        };
        wants_to_leave = false;
        let next = match parse(&text) {
            Said::Nothing => Next::Go,
            Said::Message(text) => talk.send(text).await,
            Said::Command(command) => talk.command(command).await,
            Said::Unclear(why) => {
                say(&clean(&why));
                talk.any_failed = true;
                Next::Go
            }
        };
        match next {
            Next::Go => {}
            Next::Leave => break Exit::Clean,
            Next::Interrupted => break Exit::Interrupted,
        }
    };
    if input.is_terminal {
        if let Some(path) = talk.keeper.path() {
            say(&format!("kept in {}; `deftool chat --resume` goes on", clean(&path.display().to_string())));
        }
        return Ok(exit);
    }
    // A script wants to know.
    Ok(if exit == Exit::Clean && talk.any_failed { Exit::Failed } else { exit })
}

/// A session that is kept from its first message on, in the project's folder.
fn begin(root: &Path, first: Line, session: &Session, hidden: Arc<Hidden>) -> Keeper {
    let Some(folder) = place::sessions_folder(root) else {
        say("note: neither XDG_STATE_HOME nor HOME is set, so this session is not kept");
        return Keeper::off(hidden);
    };
    let mut lines = vec![first];
    if session.system.is_some() {
        lines.push(Line::System { text: session.system.clone() });
    }
    lines.extend(session.model.clone().map(|name| Line::Model { name }));
    Keeper::later(folder.join(place::new_name()), lines, hidden)
}

fn resume(name: &Path, root: &Path, hidden: &Arc<Hidden>) -> Result<(SessionFile, Session), CliError> {
    let path = session_path(name, root, None)?;
    SessionFile::resume(&path, Arc::clone(hidden)).map_err(|error| unloadable(&path, error))
}

/// The file that is meant: of that name or, for `last`, that of the project's newest session beside the `current`.
fn session_path(name: &Path, root: &Path, current: Option<&Path>) -> Result<PathBuf, CliError> {
    if name != Path::new("last") {
        return Ok(name.to_owned());
    }
    let newest = place::sessions_folder(root).and_then(|folder| place::newest(&folder, current));
    newest.ok_or_else(|| {
        CliError::Usage(String::from(match current {
            Some(_) => "no other session of this project is kept",
            None => "no session of this project is kept; `deftool chat` begins one",
        }))
    })
}

/// Why the session at `path` cannot be gone on with.
fn unloadable(path: &Path, error: SessionError) -> CliError {
    CliError::Usage(match error {
        SessionError::Malformed { .. } if place::is_markdown(path) => format!(
            "{} is a copy for reading; /save NAME.jsonl writes one that can be loaded, and `last` is the newest session of this project",
            path.display()
        ),
        error => error.to_string(),
    })
}

fn history() -> Option<PathBuf> {
    let file = place::history_file()?;
    place::make_folder(file.parent()?).ok()?;
    Some(file)
}
