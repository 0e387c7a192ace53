//! Reads replies with the whole worker, or with reqwest only for comparison.

use std::sync::Arc;
use std::time::Duration;

use deftool_chat::request::{Event, RunConfig};
use deftool_worker::{HttpTransport, RequestStream, SubmitRequest, Worker, WorkerConfig};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::server::Server;
use crate::tools::toolbox;

/// Sends prompts and reads the replies.
#[derive(Clone)]
pub(crate) enum Reader {
    Worker(Worker),
    Bare { client: reqwest::Client, url: String },
}

impl Reader {
    pub(crate) fn new(server: &Server, slots: usize, is_bare: bool) -> Self {
        if is_bare {
            // The same options as in the worker.
            let builder = deftool_script::client_builder().no_proxy().tls_certs_only(std::iter::empty());
            let url = format!("{}/chat/completions", server.endpoint);
            return Self::Bare { client: builder.build().unwrap(), url };
        }
        Self::Worker(worker(server, slots))
    }

    /// Sends `prompt`. Without the worker, the request is sent when the reply is read.
    pub(crate) fn ask(&self, prompt: &str) -> Reading {
        match self {
            Self::Worker(worker) => {
                let events = worker.stream(SubmitRequest::prompt(prompt)).unwrap();
                let cancel = Cancel::Request(worker.clone(), events.id().to_owned());
                Reading { source: Source::Events(events), cancel }
            }
            Self::Bare { client, url } => {
                let body = json!({"stream": true, "messages": [{"role": "user", "content": prompt}]});
                let request = client.post(url).header("content-type", "application/json");
                let token = CancellationToken::new();
                let source = Source::Request(Box::new(request.body(body.to_string())), token.clone());
                Reading { source, cancel: Cancel::Token(token) }
            }
        }
    }
}

/// A reply in progress.
pub(crate) struct Reading {
    source: Source,
    pub(crate) cancel: Cancel,
}

enum Source {
    Events(RequestStream),
    Request(Box<reqwest::RequestBuilder>, CancellationToken),
}

/// Cancels a reply.
#[derive(Clone)]
pub(crate) enum Cancel {
    Request(Worker, String),
    Token(CancellationToken),
}

impl Cancel {
    pub(crate) fn cancel(&self) {
        match self {
            Self::Request(worker, id) => assert!(worker.cancel(id)),
            Self::Token(token) => token.cancel(),
        }
    }
}

impl Reading {
    /// Reads the reply to its end and passes every piece to `see`: text, or raw bytes without the worker.
    pub(crate) async fn read(self, mut see: impl FnMut(&[u8])) {
        match self.source {
            Source::Events(mut events) => {
                while let Some(event) = events.next().await {
                    if let Event::Text { text } = &*event {
                        see(text.as_bytes());
                    }
                }
            }
            Source::Request(request, token) => {
                let read = async {
                    let mut response = request.send().await.unwrap();
                    while let Some(bytes) = response.chunk().await.unwrap() {
                        see(&bytes);
                    }
                };
                token.run_until_cancelled(read).await;
            }
        }
    }
}

/// Opens a worker with one tool and `slots` slots. With many streams it keeps few results, so that only the memory of
/// streams is measured.
pub(crate) fn worker(server: &Server, slots: usize) -> Worker {
    let default = WorkerConfig::default();
    let config = WorkerConfig {
        slots,
        keep_results: if slots > 1 { 10 } else { default.keep_results },
        run: RunConfig { model: String::from("stub"), ..RunConfig::default() },
        ..default
    };
    let transport = HttpTransport::new(&server.endpoint, None, Duration::from_secs(3)).unwrap();
    Worker::start(config, toolbox(), Arc::new(transport))
}
