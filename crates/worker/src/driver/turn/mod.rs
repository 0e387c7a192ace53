//! One model turn: sends the request and reads the reply, under all timers.
//!
//! | file | |
//! |---|---|
//! | `state` | the state of a turn |
//! | `attempts` | retries and request variants |
//! | `send` | sends one request |
//! | `reply` | reads the response |
//! | `managed` | waits for a managed server, and handles its loss |
//! | `timers` | the deadlines of a stream, and the limit of delays |
//! | `failure` | error messages |

mod attempts;
mod failure;
mod managed;
mod reply;
mod send;
mod state;
mod timers;

use deftool_chat::request::Run;
use deftool_chat::{BodyEncoder, BodyForm, ChatRequest};
use tokio::time::Instant;

use super::task::RequestTask;
use attempts::FIRST_DELAY;
use deftool_lang::tool::Toolbox;
use state::{ReplyEnd, Turn};

/// Sends `request` and passes the reply to `run`, until the reply or the request ends.
pub(super) async fn stream(
    task: &RequestTask,
    run: &mut Run,
    toolbox: &Toolbox,
    request: &ChatRequest,
    form: &mut BodyForm,
    encoder: &mut BodyEncoder,
    total: Option<Instant>,
) {
    let (loading_since, delay) = (None, FIRST_DELAY);
    let api = form.effective_api();
    let mut turn = Turn { task, run, toolbox, total, api, attempt: 1, retries: 0, loading_since, delay };
    // An error needs no handling: the machine has already recorded the end of the request.
    while let Ok(accepted) = turn.run(request, form, encoder).await
        && let Ok(ReplyEnd::Overloaded(error)) = turn.read_reply(accepted, request, *form).await
        && turn.retry_overloaded(&error).await.is_ok()
    {}
}
