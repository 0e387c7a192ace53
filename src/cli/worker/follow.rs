//! One request, shown while it runs.

use crate::cli::interrupt::Signals;
use crate::cli::output::stdout_failed;
use crate::cli::show::{Show, show_json};
use crate::cli::{CliError, Exit};
use crate::request::{FinalState, Outcome};
use crate::worker::{SubmitRequest, Worker};

/// Submits and shows what happens, to the end. Ctrl-C cancels; what came is kept.
pub(in crate::cli) async fn follow(
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
pub(in crate::cli) struct Interrupts(tokio::sync::mpsc::Receiver<()>);

impl Interrupts {
    pub(in crate::cli) fn listen() -> std::io::Result<Self> {
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

    pub(in crate::cli) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}
