//! `deftool run`: one request through a worker.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use super::approve::Approver;
use super::args::RunOptions;
use super::output::{say, say_error};
use super::worker::{self, Chosen, Follower, Interrupts, api_key, close, connect};
use super::{CliError, Exit};
use crate::worker::{Recorder, Recording, ReplayTransport, SubmitRequest, Worker, WorkerConfig};

pub(super) fn run(options: &RunOptions) -> Result<Exit, CliError> {
    let prompt = read_prompt(options)?;
    let recording = options.replay.as_deref().map(Recording::read).transpose()?;
    let Chosen { spec, tools, config } =
        worker::choose(&options.worker, &options.scripts, recording.is_some())?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(CliError::Runtime)?;
    let exit = runtime.block_on(async {
        let mut submit = prompt.map(SubmitRequest::prompt).unwrap_or_default();
        submit.system_prompt.clone_from(&options.request.system);
        submit.job_name.clone_from(&options.job);
        let mut approver = Approver::settle(options.request.yes);
        let mut interrupts = Interrupts::listen().map_err(CliError::Runtime)?;
        let config = WorkerConfig { approvals: approver.approvals(), ..config };
        let replay =
            recording.map(|recording| Arc::new(ReplayTransport::new(recording, options.replay_lenient)));
        let worker = if let Some(replay) = &replay {
            Worker::replay(config, tools, Arc::clone(replay))
        } else {
            tokio::select! {
                worker = connect(&options.worker, &spec, config, tools) => worker?,
                () = interrupts.next() => return Ok(Exit::Interrupted),
            }
        };
        // Not before there is something to record: an older recording is worth more than an empty one.
        let recorder = options.record.as_deref().map(Recorder::create).transpose()?;
        let recorder = recorder.map(|recorder| Arc::new(recorder.without(api_key(&spec).as_deref())));
        submit.recorder.clone_from(&recorder);
        let json = options.json;
        let mut follower =
            Follower { worker: &worker, json, approver: &mut approver, interrupts: &mut interrupts };
        let followed = follower.follow(submit, |_, _| {}).await;
        close(&worker, &mut interrupts).await;
        let mut exit = followed?.exit();
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
