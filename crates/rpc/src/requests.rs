//! The methods about requests to a model: `submit`, `events`, `result` and `cancel`.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use deftool_chat::Message;
use deftool_chat::request::Event;
use deftool_jsonrpc::{Error, Notification, code};
use deftool_lang::tool::{AttachmentData, AttachmentStore, TraceContext};
use deftool_worker::{EventStream, SubmitRequest, Worker, WorkerState};
use tokio_util::sync::CancellationToken;

use crate::protocol::{
    Empty, EventParams, EventsParams, EventsResult, RequestId, RequestResult, ResultParams, SubmitParams,
};
use crate::session::Session;

/// Size from which the ready events of a request are sent, in bytes.
const MAX_BATCH: usize = 32 << 10;

/// The events of a reply follow each other fast if there is less time between them. The tasks that are ready then run
/// first: they receive more events, which are sent together.
const FAST: Duration = Duration::from_millis(1);

impl Session {
    pub(crate) async fn submit(&self, params: SubmitParams) -> Result<RequestId, Error> {
        let chosen = (self.host.choose_worker)(&self.host.project.current(), params.worker.as_deref());
        let chosen = chosen.map_err(|message| Error::new(code::INVALID_PARAMS, message))?;
        let invalid = |message: &str| Error::new(code::INVALID_PARAMS, message);
        let failed = |message: String| Error::new(code::REQUEST_FAILED, message);
        let mut messages = match (params.prompt, params.messages) {
            (Some(prompt), None) => vec![(self.host.read_files)(prompt, &params.files).map_err(failed)?],
            (None, Some(_)) if !params.files.is_empty() => return Err(invalid("`files` requires `prompt`")),
            (None, Some(messages)) => messages,
            _ => return Err(invalid("expected either `prompt` or `messages`")),
        };
        self.restore_attachments(&mut messages, &params.attachments);
        let (worker, continue_request) = self.workers.get(chosen, &self.host).await.map_err(failed)?;
        let request = SubmitRequest {
            messages,
            system_prompt: params.system,
            model: params.model,
            params: params.params,
            tools: params.tools,
            job_name: params.job_name.unwrap_or_default(),
            trace: TraceContext::parse(
                params.traceparent.as_deref().unwrap_or_default(),
                params.tracestate.as_deref().unwrap_or_default(),
            ),
            ..SubmitRequest::default()
        };
        let continued = match continue_request {
            _ if !params.resume => None,
            None => return Err(invalid("`resume` requires the option `--journal` of the server")),
            Some(continue_request) => {
                // An error is reported when the request continues.
                if worker.state() == WorkerState::Running {
                    let _ = worker.ready().await;
                }
                continue_request(&request).map_err(failed)?
            }
        };
        let (request_id, past) = match continued {
            Some(continued) => continued,
            None => {
                let submitted = worker.submit_when_ready(request).await;
                (submitted.map_err(|error| failed(error.to_string()))?, 0)
            }
        };
        if let Some(events) = worker.events(&request_id, past) {
            self.spawn(ask_for_approvals(self.clone(), worker, request_id.clone(), events));
        }
        Ok(RequestId { request_id })
    }

    /// Restores the bytes of the images and audio of a conversation.
    fn restore_attachments(&self, messages: &mut [Message], sent: &[AttachmentData]) {
        if messages.iter().all(|message| message.attachments().is_empty()) {
            return;
        }
        let mut store = AttachmentStore::default();
        for data in sent {
            store.add(data);
        }
        self.workers.store_attachments(&mut store);
        store.restore(messages.iter_mut().flat_map(Message::attachments_mut));
    }

    pub(crate) async fn events(&self, params: EventsParams) -> Result<EventsResult, Error> {
        let EventsParams { request_id, from } = params;
        let worker = self.worker_of(&request_id)?;
        let mut events = worker.events(&request_id, from).ok_or_else(|| unknown_request(&request_id))?;
        let (mut index, mut batch, mut last) = (from, Vec::new(), None::<Instant>);
        while let Some(first) = events.next().await {
            let now = Instant::now();
            if last.replace(now).is_some_and(|last| now.duration_since(last) < FAST) {
                tokio::task::yield_now().await;
            }
            let mut next = Some(first);
            while let Some(event) = next {
                if let Event::ToolFinished { .. } = &*event {
                    // The log lines of the call are sent after the earlier events, and before this one.
                    self.client.send_batch(&mut batch).await;
                    self.flush_script_events().await;
                }
                let params = EventParams { request_id: request_id.clone(), index, event };
                self.client.append(&mut batch, &Notification { method: "event", params });
                index += 1;
                next = if batch.len() < MAX_BATCH { events.try_next() } else { None };
            }
            self.client.send_batch(&mut batch).await;
            // The events of a request that has ended are always ready.
            tokio::task::consume_budget().await;
        }
        Ok(EventsResult { count: index })
    }

    pub(crate) async fn result(&self, params: ResultParams) -> Result<RequestResult, Error> {
        let id = &params.request_id;
        let worker = self.worker_of(id)?;
        let unknown = || unknown_request(id);
        let outcome = worker.wait(id).await.map_err(|_| unknown())?;
        self.client.room().await;
        let messages = worker.conversation(id).ok_or_else(unknown)?;
        let attachments = messages.iter().flat_map(Message::attachments).filter(|_| params.attachments);
        let attachments = AttachmentData::unwritten(&mut HashSet::new(), attachments);
        Ok(RequestResult { outcome: (*outcome).clone(), messages, attachments })
    }

    pub(crate) fn cancel(&self, params: RequestId) -> Result<Empty, Error> {
        self.worker_of(&params.request_id)?.cancel(&params.request_id);
        Ok(Empty {})
    }

    fn worker_of(&self, request_id: &str) -> Result<Worker, Error> {
        self.workers.of_request(request_id).ok_or_else(|| unknown_request(request_id))
    }
}

fn unknown_request(id: &str) -> Error {
    let message =
        format!("unknown request `{id}`; a worker keeps the results of its last requests, see :keep-results");
    Error::new(code::INVALID_PARAMS, message)
}

/// Asks the client for each approval that a request needs, until it ends.
async fn ask_for_approvals(session: Session, worker: Worker, request_id: String, mut events: EventStream) {
    let ended = CancellationToken::new();
    let _ended = ended.clone().drop_guard();
    while let Some(event) = events.next_step().await {
        let Event::Approval { id, name, arguments, answer: None } = &*event else { continue };
        let (call_id, tool, arguments) = (id.clone(), name.clone(), arguments.clone().unwrap_or_default());
        let (asking, worker, request_id) = (session.clone(), worker.clone(), request_id.clone());
        let ended = ended.clone();
        session.spawn(async move {
            let answer = asking.approve(request_id.clone(), call_id.clone(), tool, arguments);
            if let Some(answer) = ended.run_until_cancelled(answer).await {
                worker.approve(&request_id, &call_id, answer);
            }
        });
    }
}
