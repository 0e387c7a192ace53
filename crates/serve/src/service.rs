//! The services that Restate calls.
// The macros of the SDK generate items without documentation.
#![allow(missing_docs)]

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use deftool_chat::Message;
use deftool_chat::request::{Approval, Signal};
use restate_sdk::context::DurableFuturesUnordered;
use restate_sdk::prelude::*;
use tokio::net::TcpListener;
use tokio::sync::Mutex;

use crate::attempt::Attempt;
use crate::host::{Failure, Host};
use crate::protocol::{ApprovalRequest, EventPage, RequestResult, Submission};

/// Code of the error with which Restate reports that a request was canceled.
const CANCELED: u16 = 409;
/// Code of the error with which Restate reports that a workflow was called before, and of a different submission.
const CONFLICT: u16 = 409;
/// The promise that contains the digest of the submission, from the start of a request.
const SUBMISSION: &str = "submission";
/// The promise that the end of a request resolves.
const END: &str = "end";
/// The key of the id of the invocation in the state of a request.
const INVOCATION: &str = "invocation";
/// The key of the conversation in the state of a conversation.
const MESSAGES: &str = "messages";

/// Serves Restate on a listener until `stop` is ready. Restate continues interrupted requests elsewhere or later.
pub async fn serve(host: Host, listener: TcpListener, stop: impl Future) {
    // Without this option, a small message waits until the last one is acknowledged, up to 40 ms. Connections inherit it
    // from the listener. If it cannot be set, they are only slower.
    let _ = rustix::net::sockopt::set_tcp_nodelay(&listener, true);
    let host = Arc::new(host);
    let endpoint = Endpoint::builder().bind(Request { host }).bind(Conversation).build();
    HttpServer::new(endpoint).serve_with_cancel(listener, stop).await;
}

/// A request. Its key is its id.
struct Request {
    host: Arc<Host>,
}

#[workflow]
impl Request {
    /// Runs the request and waits for its result. The same submission again has the same result.
    #[handler]
    async fn submit(
        &self,
        ctx: SharedWorkflowContext<'_>,
        submission: Json<Submission>,
    ) -> HandlerResult<Json<RequestResult>> {
        let submission = submission.into_inner();
        let digest = submission.digest();
        if ctx.peek_promise::<String>(SUBMISSION).await?.is_none() {
            let (host, worker) = (Arc::clone(&self.host), submission.worker.clone());
            let id = ctx.key().to_owned();
            // Before the workflow begins, so that the client can use the id again.
            ctx.run(|| async move {
                let opened = host.open(worker.as_deref()).await;
                opened.map(drop).map_err(|failure| host.fail(&id, Failure::of_new(failure)))
            })
            .await?;
        }
        let result = ctx.workflow_client::<RequestClient>(ctx.key()).run(Json(submission)).call();
        let invocation = result.invocation_handle().await?;
        match result.await {
            Err(error) if error.code() == CONFLICT => {}
            result => return Ok(result?),
        }
        if ctx.promise::<String>(SUBMISSION).await? != digest {
            return Err(TerminalError::new_with_code(CONFLICT, "a different submission has this id").into());
        }
        Ok(invocation.attach().await?)
    }

    #[handler]
    async fn run(
        &self,
        ctx: WorkflowContext<'_>,
        submission: Json<Submission>,
    ) -> HandlerResult<Json<RequestResult>> {
        ctx.set(INVOCATION, ctx.invocation_id().to_owned());
        let submission = submission.into_inner();
        ctx.resolve_promise(SUBMISSION, submission.digest());
        let attempt = Attempt::new(Arc::clone(&self.host), ctx.key().to_owned(), submission);
        let attempt = Arc::new(Mutex::new(attempt));
        let mut called = BTreeSet::new();
        let (mut cursor, mut page) = (0, EventPage::default());
        loop {
            let running = attempt.lock().await.running_step().await;
            let stepping = Arc::clone(&attempt);
            let step = ctx
                .run(|| async move {
                    match running {
                        Some(step) => step.map(Json),
                        None => stepping.lock().await.next_step().await.map(Json),
                    }
                })
                .await;
            let step = match step {
                Ok(step) => step.into_inner(),
                // The next step contains what this one contained.
                Err(error) if error.code() == CANCELED => {
                    attempt.lock().await.cancel();
                    continue;
                }
                Err(error) => {
                    ctx.resolve_promise(END, ());
                    return Err(error.into());
                }
            };
            for signal in step.signals().filter(|signal| called.insert(signal.tool_name.clone())) {
                ctx.resolve_promise(&signal_key(&signal.tool_name), Json(Some(signal.clone())));
            }
            let end = step.outcome().cloned().map(|outcome| {
                let messages = step.messages.clone().unwrap_or_default();
                RequestResult { outcome, messages }
            });
            page.events.extend(step.events().cloned());
            if let Some(result) = end {
                ctx.resolve_promise(&page_key(cursor), Json(page));
                ctx.resolve_promise(END, ());
                return Ok(Json(result));
            }
            let publishes = step.publishes;
            let waits_for = {
                let mut attempt = attempt.lock().await;
                attempt.add(step);
                attempt.suspend_for_approvals()
            };
            if !publishes && waits_for.is_empty() {
                continue;
            }
            let mut answers = DurableFuturesUnordered::new();
            let mut call_ids = Vec::new();
            for call_id in waits_for {
                let (awakeable, answer) = ctx.awakeable::<Json<Approval>>();
                answers.push(answer);
                page.approvals.push(ApprovalRequest { call_id: call_id.clone(), awakeable });
                call_ids.push(call_id);
            }
            page.next = Some(cursor + 1);
            ctx.resolve_promise(&page_key(cursor), Json(std::mem::take(&mut page)));
            cursor += 1;
            while !answers.is_empty() {
                match answers.next().await {
                    Ok(Some((index, answer))) => {
                        let approval = answer.map_or_else(
                            |error| Approval::Refused { reason: error.message().to_owned() },
                            Json::into_inner,
                        );
                        let call_id = call_ids.get(index).cloned().unwrap_or_default();
                        attempt.lock().await.approve(call_id, approval);
                    }
                    Ok(None) => {}
                    Err(error) if error.code() == CANCELED => {
                        attempt.lock().await.cancel();
                        break;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }

    #[handler]
    async fn events(
        &self,
        ctx: SharedWorkflowContext<'_>,
        cursor: Json<usize>,
    ) -> HandlerResult<Json<EventPage>> {
        let key = page_key(cursor.into_inner());
        // Resolved before the end.
        if let Some(page) = ctx.peek_promise::<Json<EventPage>>(&key).await? {
            return Ok(page);
        }
        let page = restate_sdk::select! {
            page = ctx.promise::<Json<EventPage>>(&key) => page?,
            _ = ctx.promise::<()>(END) => ctx.peek_promise(&key).await?.unwrap_or_default()
        };
        Ok(page)
    }

    #[handler]
    async fn signal(
        &self,
        ctx: SharedWorkflowContext<'_>,
        tool: String,
    ) -> HandlerResult<Json<Option<Signal>>> {
        let key = signal_key(&tool);
        let signal = restate_sdk::select! {
            signal = ctx.promise::<Json<Option<Signal>>>(&key) => signal?,
            _ = ctx.promise::<()>(END) => ctx.peek_promise(&key).await?.unwrap_or_default()
        };
        Ok(signal)
    }

    #[handler]
    async fn cancel(&self, ctx: SharedWorkflowContext<'_>) -> HandlerResult<()> {
        match ctx.get::<String>(INVOCATION).await? {
            Some(invocation) => ctx.invocation_handle(invocation).cancel(),
            None => return Err(TerminalError::new_with_code(404, "unknown request").into()),
        }
        Ok(())
    }
}

/// A conversation, whose requests run one after the other. Its key is its id.
struct Conversation;

#[object]
impl Conversation {
    #[handler]
    async fn send(
        &self,
        ctx: ObjectContext<'_>,
        submission: Json<Submission>,
    ) -> HandlerResult<Json<RequestResult>> {
        let mut submission = submission.into_inner();
        let mut messages = ctx.get::<Json<Vec<Message>>>(MESSAGES).await?.unwrap_or_default().into_inner();
        messages.append(&mut submission.messages);
        submission.messages = messages;
        let id = format!("{}-{:016x}", ctx.key(), ctx.random_seed());
        let result = ctx.workflow_client::<RequestClient>(id).run(Json(submission)).call().await?;
        let result = result.into_inner();
        ctx.set(MESSAGES, Json(result.messages.clone()));
        Ok(Json(result))
    }

    #[handler]
    async fn messages(&self, ctx: SharedObjectContext<'_>) -> HandlerResult<Json<Vec<Message>>> {
        Ok(ctx.get(MESSAGES).await?.unwrap_or_default())
    }
}

/// Returns the promise of a page of events.
fn page_key(cursor: usize) -> String {
    format!("events/{cursor}")
}

/// Returns the promise of the first call of an exit tool.
fn signal_key(tool: &str) -> String {
    format!("signal/{tool}")
}
