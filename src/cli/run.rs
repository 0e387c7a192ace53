//! `deftool run`: one request through a worker.

use std::io::Read;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::args::RunOptions;
use super::interrupt::Signals;
use super::live_tools::LiveTools;
use super::output::{say, say_error, stdout_failed};
use super::show::{Show, show_json};
use super::trust::{ProjectTrust, key_wish};
use super::{CliError, Exit, engine, locate};
use crate::diagnostic::Severity;
use crate::diagnostic::render::render_concise;
use crate::project::{Generation, LiveProject, find_root, wishes};
use crate::request::{FinalState, Outcome};
use crate::spec::WorkerSpec;
use crate::worker::{
    Approvals, EndpointError, EndpointOptions, HttpTransport, Recorder, Recording, ReplayTransport,
    SubmitRequest, Worker, WorkerConfig, find_endpoint,
};

/// Errors of specs beyond this many are only counted: `check` is for them.
const MAX_TOLD: usize = 5;

pub(super) fn run(options: &RunOptions) -> Result<Exit, CliError> {
    let place = locate(options.project.as_deref())?;
    let root = find_root(&place.folder)?;
    let prompt = read_prompt(options)?;
    let recording = options.replay.as_deref().map(Recording::read).transpose()?;
    let project = LiveProject::open(&root, &place.current, None)?;
    let generation = project.current();
    tell_errors(&generation);
    let spec = choose_worker(options, &generation)?;
    let offered = generation.tool_set(&spec);
    let mut wanted =
        wishes(&generation.load, offered.iter().filter_map(|entry| generation.tool(&entry.name)));
    if options.replay.is_none() && api_key(&spec).is_some() {
        wanted.extend(key_wish(&generation.load, &spec, options.endpoint.as_deref()));
    }
    let trust = ProjectTrust::settle(&root, wanted, options.scripts.trust)?;
    let scripts = engine::start(&options.scripts)?;
    let cached = Mutex::default();
    let tools = Arc::new(LiveTools { project, worker: spec.clone(), trust, scripts, cached });
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(CliError::Runtime)?;
    let exit = runtime.block_on(async {
        let mut submit = prompt.map(SubmitRequest::prompt).unwrap_or_default();
        let mut interrupts = Interrupts::listen().map_err(CliError::Runtime)?;
        let config = WorkerConfig { approvals: Approvals::Allow, ..WorkerConfig::of_spec(&spec) };
        let replay =
            recording.map(|recording| Arc::new(ReplayTransport::new(recording, options.replay_lenient)));
        let worker = if let Some(replay) = &replay {
            Worker::replay(config, tools, Arc::clone(replay))
        } else {
            tokio::select! {
                worker = connect(options, &spec, config, tools) => worker?,
                () = interrupts.next() => return Ok(Exit::Interrupted),
            }
        };
        // Not before there is something to record: an older recording is worth more than an empty one.
        let recorder = options.record.as_deref().map(Recorder::create).transpose()?;
        let recorder = recorder.map(|recorder| Arc::new(recorder.without(api_key(&spec).as_deref())));
        submit.recorder.clone_from(&recorder);
        let mut exit = follow(&worker, submit, options.json, &mut interrupts).await?;
        if let Some(Err(error)) = recorder.map(|recorder| recorder.close()) {
            say_error(&format!("{error}; it is not whole"));
            exit = if exit == Exit::Clean { Exit::Failed } else { exit };
        }
        if let Some(replay) = replay {
            tell_differences(&replay, exit);
        }
        Ok(exit)
    });
    // What a stopped script left behind is not waited for.
    runtime.shutdown_timeout(Duration::from_millis(100));
    exit
}

fn read_prompt(options: &RunOptions) -> Result<Option<String>, CliError> {
    let Some(prompt) = &options.prompt else { return Ok(None) };
    let (text, place) = if prompt == "-" {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(|error| CliError::Usage(format!("the prompt on stdin cannot be read: {error}")))?;
        (text, " on stdin")
    } else {
        (prompt.clone(), "")
    };
    if text.trim().is_empty() {
        return Err(CliError::Usage(format!("the prompt{place} is empty")));
    }
    Ok(Some(text))
}

/// A broken tool is left out; the request goes on with the others.
fn tell_errors(generation: &Generation) {
    let load = &generation.load;
    let errors: Vec<_> = load.findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
    for finding in errors.iter().take(MAX_TOLD) {
        say(&render_concise(finding, &load.sources));
    }
    if errors.len() > MAX_TOLD {
        say(&format!("and {} more; see `deftool check`", errors.len() - MAX_TOLD));
    }
}

/// The worker that was named, the only one, or the implicit one.
fn choose_worker(options: &RunOptions, generation: &Generation) -> Result<WorkerSpec, CliError> {
    let load = &generation.load;
    let names =
        || load.workers.iter().map(|worker| worker.name.value.as_str()).collect::<Vec<_>>().join(", ");
    let chosen = match (&options.worker, load.workers.as_slice()) {
        (Some(name), workers) => {
            let found = workers.iter().find(|worker| worker.name.value == *name);
            found.ok_or_else(|| {
                let known = if workers.is_empty() {
                    String::from("the project has none")
                } else {
                    format!("there are: {}", names())
                };
                CliError::Usage(format!("no worker called `{name}`; {known}"))
            })?
        }
        (None, []) => return Ok(WorkerSpec::named("default")),
        (None, [only]) => only,
        (None, _) => {
            return Err(CliError::Usage(format!(
                "the project has several workers ({}); choose one with --worker NAME",
                names()
            )));
        }
    };
    if !chosen.valid {
        let message = format!("the worker `{}` has errors; see `deftool check`", chosen.name.value);
        return Err(CliError::Usage(message));
    }
    Ok(chosen.clone())
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

fn api_key(spec: &WorkerSpec) -> Option<String> {
    environment(&spec.api_key_env).map(|key| key.trim().to_owned())
}

async fn connect(
    options: &RunOptions,
    spec: &WorkerSpec,
    mut config: WorkerConfig,
    tools: Arc<LiveTools>,
) -> Result<Worker, CliError> {
    let key = api_key(spec);
    let configured = options.endpoint.clone().or_else(|| spec.endpoint.clone());
    let endpoint = find_endpoint(EndpointOptions {
        endpoint: configured.or_else(|| environment("OPENAI_BASE_URL")),
        model: options.model.clone().or_else(|| spec.model.clone()),
        key: key.clone(),
        connect: spec.timers.connect,
    })
    .await?;
    let transport =
        HttpTransport::new(&endpoint.base, key, spec.timers.connect).map_err(EndpointError::Invalid)?;
    config.run.model = endpoint.model;
    config.run.parallel_tool_calls_supported = endpoint.parallel_tool_calls;
    config.llama_cpp = endpoint.llama_cpp;
    Ok(Worker::start(config, tools, Arc::new(transport)))
}

/// Submits and shows what happens, to the end. Ctrl-C cancels; what came is kept.
async fn follow(
    worker: &Worker,
    submit: SubmitRequest,
    json: bool,
    interrupts: &mut Interrupts,
) -> Result<Exit, CliError> {
    let id = worker.submit(submit).map_err(|error| CliError::Usage(error.to_string()))?;
    let Some(mut events) = worker.events(&id, 0) else {
        return Err(CliError::Usage(String::from("the request is not remembered")));
    };
    let mut show = Show::new();
    let mut is_canceled = false;
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = interrupts.next() => {
                // Who asks twice does not want to wait for the first.
                if std::mem::replace(&mut is_canceled, true) {
                    return Ok(Exit::Interrupted);
                }
                worker.cancel(&id);
                continue;
            }
        };
        let Some(event) = event else { break };
        if json {
            show_json(&event);
        } else {
            show.event(&event);
        }
        // Nobody reads on, or nothing more can be kept: the model need not go on either.
        if stdout_failed() && !std::mem::replace(&mut is_canceled, true) {
            worker.cancel(&id);
        }
    }
    Ok(worker.result(&id).map_or(Exit::Failed, |outcome| exit_of(&outcome)))
}

fn exit_of(outcome: &Outcome) -> Exit {
    match outcome.state {
        FinalState::Completed => Exit::Clean,
        FinalState::Failed => Exit::Failed,
        FinalState::Canceled => Exit::Interrupted,
    }
}

/// Ctrl-C and its like, from the first moment on: none is lost while something else is waited for.
struct Interrupts(tokio::sync::mpsc::Receiver<()>);

impl Interrupts {
    fn listen() -> std::io::Result<Self> {
        let (heard, receiver) = tokio::sync::mpsc::channel(2);
        let mut signals = Signals::listen()?;
        tokio::spawn(async move {
            loop {
                signals.next().await;
                if heard.send(()).await.is_err() {
                    break;
                }
            }
        });
        Ok(Self(receiver))
    }

    async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// In a strict replay a difference is the request's failure, and told as that.
fn tell_differences(replay: &ReplayTransport, exit: Exit) {
    let differences = replay.differences();
    if !differences.is_empty() && exit == Exit::Clean {
        say("the replay's requests differ from the recorded ones:");
        for line in differences {
            say(&format!("  {line}"));
        }
    }
}
