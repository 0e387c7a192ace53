//! `deftool chat`: a conversation of several turns with the project's tools, stored as a session.
//!
//! Each message is submitted with the conversation so far. The worker returns the new conversation, which is valid even
//! if the request failed. stdout receives the model's text or, with `--json`, the events; all other messages go to
//! stderr.

mod command;
mod conversation;
mod input;
mod list;
mod markdown;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use deftool_engine::{PreparedWorker, join};
use deftool_lang::text::count;
use deftool_process::files::create_private_folder;
use deftool_project::find_root;
use deftool_record::Redaction;
use deftool_record::session::{Line, Session, SessionFile};
use deftool_worker::{ANY_MODEL, ToolSource, WorkerConfig};

use crate::cli::options::{EventFormat, FormatOptions};
use crate::cli::outcome::{CliError, Exit};
use crate::cli::project::engine::ScriptOptions;
use crate::cli::terminal::interrupt::Interrupts;
use crate::cli::terminal::output::{clean, eprint_line};
use crate::cli::worker;
use crate::cli::worker::approve::Approver;
use crate::cli::worker::options::{RequestOptions, WorkerOptions};
use crate::cli::worker::secrets;
use crate::cli::worker::session::{
    SessionWriter, begin, history_file, named_session, new_name, parse_session_name, resume_error,
    session_file_name, session_path,
};
use crate::cli::worker::{Source, api_key, close, connect, connect_servers, recordings};
use command::{InputLine, parse};
use conversation::{Conversation, Next};
use input::{Input, InputEvent};

#[derive(Debug, Args)]
#[command(after_help = "\
Sessions are stored in the state folder of the user ($XDG_STATE_HOME/deftool/sessions). /help lists the commands of a \
chat.

Examples:
  deftool chat
  deftool chat --resume
  deftool chat --session release-notes
  deftool chat --list
  deftool chat --no-save \"What does this project do?\"")]
pub(in crate::cli) struct ChatOptions {
    /// First message [default: prompt for it]
    pub(in crate::cli) message: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) worker: WorkerOptions,
    #[command(flatten)]
    pub(in crate::cli) request: RequestOptions,
    /// Resume a session: its file, its name, or `last` for the newest of this project
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "last", conflicts_with = "no_save")]
    pub(in crate::cli) resume: Option<PathBuf>,
    /// Start a session with this name, or resume it if the project has it
    #[arg(long, value_name = "NAME", value_parser = parse_session_name, conflicts_with_all = ["no_save", "resume"])]
    pub(in crate::cli) session: Option<String>,
    /// List the sessions of all projects, last change first
    #[arg(long, conflicts_with_all = ["message", "no_save", "record", "resume", "session"])]
    pub(in crate::cli) list: bool,
    /// Record requests and replies to FILE, and create missing folders
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) record: Option<PathBuf>,
    /// Do not store the session
    #[arg(long)]
    pub(in crate::cli) no_save: bool,
    #[command(flatten)]
    pub(in crate::cli) format: FormatOptions<EventFormat>,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

pub(in crate::cli) fn run(options: &ChatOptions) -> Result<Exit, CliError> {
    if options.list {
        return Ok(list::run(options.format.is_json()));
    }
    let dirs = options.worker.project.dirs()?;
    // Outside of a project, the sessions belong to the folder.
    let root = find_root(&dirs.project).unwrap_or(dirs.project);
    let named = options.session.as_deref().and_then(|name| named_session(&root, name));
    let resumed = options.resume.clone().or(named.filter(|path| path.exists()));
    let resumed_from = resumed.map(|name| session_path(&name, &root, None));
    // The errors of the project are reported before those of the session.
    let chosen = resumed_from.as_ref().and_then(|path| SessionFile::read(path.as_ref().ok()?).ok()?.worker);
    let source = chosen.as_deref().map_or(Source::CommandLine, |worker| Source::Session { worker });
    let PreparedWorker { spec, root: worker_root, tools, config, servers, .. } =
        worker::open(&options.worker, &options.request, &options.scripts, source)?.reporting_errors();
    let key = api_key(&spec);
    let secrets = secrets(&[], &tools.project().current())?;
    let redaction = Arc::new(Redaction::new(key.as_deref(), secrets.clone()));
    // Read the session before connecting to a server, so that its errors are reported first.
    let resumed_from = resumed_from.transpose()?;
    let resumed = resumed_from.as_deref().map(|path| resume(path, &redaction)).transpose()?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(CliError::Runtime)?;
    let exit = runtime.block_on(async {
        let mut interrupts = Interrupts::listen().map_err(CliError::Runtime)?;
        let approver = Approver::new(options.request.yes);
        let config = WorkerConfig { approvals: approver.approvals(), ..config };
        let remote = tokio::select! {
            connected = connect_servers(&servers) => connected?,
            () = interrupts.next() => return Ok(Exit::Interrupted),
        };
        let source = join(tools.clone(), remote.as_ref());
        let worker = tokio::select! {
            worker = connect(&options.worker, (&spec, &worker_root), config, source, false) => worker?,
            () = interrupts.next() => return Ok(Exit::Interrupted),
        };
        let create = |path| recordings::create(path, key.as_deref(), secrets);
        let recorder = options.record.as_deref().map(create).transpose()?;
        let model = worker.model();
        let first = Line::header(&root, &spec.name.value, &model);
        let (session, writer) = match resumed {
            Some((file, session)) => {
                let session = session.continued_by(&spec.name.value);
                go_on(session, SessionWriter::open(file, redaction), options)
            }
            None => begin_session(options, &root, first.clone(), redaction),
        };
        let history = if options.no_save { None } else { history() };
        let input = Input::open(history).map_err(CliError::Runtime)?;
        let reported_generation = tools.current().generation;
        let mut chat = Conversation {
            worker,
            tools,
            json: options.format.is_json(),
            is_interactive: input.is_terminal,
            approver,
            interrupts,
            session,
            writer,
            recorder: recorder.clone(),
            root,
            first,
            reported_generation,
            reported_error: None,
            worker_model: describe_model(&model, options.worker.model.is_some() || spec.model.is_some()),
            any_failed: false,
        };
        if input.is_terminal {
            let tools = count(chat.tools.current().tools.iter().count(), "tool");
            eprint_line(&format!("{} and {tools}; /help lists the commands", clean(chat.model())));
        }
        if let Some(path) = resumed_from {
            chat.report_resumed(&path);
        }
        let exit = converse(&mut chat, input, options.message.clone()).await;
        close(&chat.worker, &mut chat.interrupts).await;
        if let Some(remote) = remote {
            remote.close().await;
        }
        let exit = exit?;
        Ok(recorder.map_or(exit, |recorder| recordings::close(&recorder, exit)))
    });
    // Do not wait for the remaining work of a stopped script or for the input thread.
    runtime.shutdown_timeout(Duration::from_millis(100));
    exit
}

/// Continues a stored session. A system message of the command line replaces its own.
fn go_on(mut session: Session, mut writer: SessionWriter, options: &ChatOptions) -> (Session, SessionWriter) {
    if let Some(system) = &options.request.system {
        session.system = Some(system.clone());
        writer.setting(Line::System { text: Some(system.clone()) });
    }
    (session, writer)
}

/// Begins a session, and its file if it is saved.
fn begin_session(
    options: &ChatOptions,
    root: &Path,
    first: Line,
    redaction: Arc<Redaction>,
) -> (Session, SessionWriter) {
    let session = Session { system: options.request.system.clone(), ..Session::default() };
    let writer = if options.no_save {
        SessionWriter::disabled(redaction)
    } else {
        let name = options.session.as_deref().map_or_else(new_name, session_file_name);
        begin(root, &name, first, &session, redaction)
    };
    (session, writer)
}

/// Describes the model of a worker. `is_named`: whether the user or the spec names it.
fn describe_model(model: &str, is_named: bool) -> String {
    match model {
        ANY_MODEL if !is_named => format!("unknown model (requests use `{ANY_MODEL}`)"),
        name => name.to_owned(),
    }
}

/// Runs the chat until its end.
async fn converse(
    chat: &mut Conversation,
    mut input: Input,
    mut message: Option<String>,
) -> Result<Exit, CliError> {
    let mut quit_requested = false;
    let exit = loop {
        chat.report_changes();
        let typed = match message.take() {
            Some(message) => InputEvent::Text(message),
            None => {
                // An interrupt just after the end of a reply was intended for the reply.
                chat.interrupts.drain();
                tokio::select! {
                    typed = input.next() => typed,
                    () = chat.interrupts.next() => break Exit::Interrupted,
                }
            }
        };
        let text = match typed {
            InputEvent::Text(text) => text,
            InputEvent::Interrupted { was_empty } => {
                if quit_requested && was_empty {
                    break Exit::Clean;
                }
                quit_requested = was_empty;
                if was_empty {
                    eprint_line("press Ctrl-C again, or Ctrl-D, to quit");
                }
                continue;
            }
            InputEvent::End => break Exit::Clean,
            InputEvent::Invalid(reason) => {
                chat.reject_message(&reason);
                continue;
            }
            InputEvent::Failed(error) => return Err(CliError::Usage(error)),
        };
        quit_requested = false;
        let next = match parse(&text) {
            InputLine::Empty => Next::Continue,
            InputLine::Message(text) => chat.send(text).await,
            InputLine::Command(command) => chat.command(command).await,
            InputLine::Invalid(reason) => {
                eprint_line(&clean(&reason));
                chat.any_failed = true;
                Next::Continue
            }
        };
        match next {
            Next::Continue => {}
            Next::Quit => break Exit::Clean,
            Next::Interrupted => break Exit::Interrupted,
        }
    };
    if input.is_terminal {
        if let Some(path) = chat.writer.path() {
            eprint_line(&format!(
                "session stored in {}; resume it with `deftool chat --resume`",
                clean(&path.display().to_string())
            ));
        }
        return Ok(exit);
    }
    // Without a terminal, report failures in the exit code.
    Ok(if exit == Exit::Clean && chat.any_failed { Exit::Failed } else { exit })
}

/// Opens the session to resume.
fn resume(path: &Path, redaction: &Arc<Redaction>) -> Result<(SessionFile, Session), CliError> {
    SessionFile::resume(path, Arc::clone(redaction)).map_err(|error| resume_error(path, &error))
}

/// Returns the history file and creates its folder.
fn history() -> Option<PathBuf> {
    let file = history_file()?;
    create_private_folder(file.parent()?).ok()?;
    Some(file)
}
