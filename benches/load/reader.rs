//! Reads replies with the whole worker, or with reqwest only for comparison.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deftool_chat::request::{Event, RunConfig};
use deftool_record::Session;
use deftool_worker::{
    HttpTransport, Observation, Observer, Origin, RequestObserver, RequestStream, SubmitRequest, Worker,
    WorkerConfig,
};
use serde_json::json;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::server::Server;
use crate::tools::toolbox;

/// How replies are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// With reqwest only.
    Bare,
    /// With `Worker::stream`.
    Stream,
    /// With an observer, in the task of the request.
    Observer,
}

impl Way {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bare => "reqwest",
            Self::Stream => "stream",
            Self::Observer => "observer",
        }
    }
}

/// Receives the pieces of a reply: text, or raw bytes without the worker.
pub(crate) trait Consumer: Send + 'static {
    fn see(&mut self, piece: &[u8]);
}

/// Sends prompts and reads the replies.
#[derive(Clone)]
pub(crate) enum Reader {
    Worker(Worker),
    Observed(Worker, Arc<Observers>),
    Bare { client: reqwest::Client, url: String },
}

impl Reader {
    pub(crate) fn new(server: &Server, slots: usize, way: Way) -> Self {
        match way {
            Way::Bare => {
                // The same options as in the worker.
                let builder = deftool_script::client_builder().no_proxy().tls_certs_only(std::iter::empty());
                let url = format!("{}/chat/completions", server.endpoint);
                Self::Bare { client: builder.build().unwrap(), url }
            }
            Way::Stream => Self::Worker(worker(server, slots)),
            Way::Observer => {
                let observers = Arc::<Observers>::default();
                let observer: Arc<dyn Observer> = Arc::<Observers>::clone(&observers);
                Self::Observed(start(server, slots, Some(observer)), observers)
            }
        }
    }

    /// Sends `prompt`. Only a stream sends it before the reply is read.
    pub(crate) fn ask(&self, prompt: &str) -> Reading {
        match self {
            Self::Worker(worker) => {
                let events = worker.stream(SubmitRequest::prompt(prompt)).unwrap();
                let cancel = Cancel::Request(worker.clone(), events.id().to_owned());
                Reading { source: Source::Events(events), cancel }
            }
            Self::Observed(worker, observers) => {
                let id = format!("{:016x}", fastrand::u64(..));
                let cancel = Cancel::Request(worker.clone(), id.clone());
                let origin = Some(Origin::now(id));
                let request = Box::new(SubmitRequest { origin, ..SubmitRequest::prompt(prompt) });
                Reading { source: Source::Observed(worker.clone(), Arc::clone(observers), request), cancel }
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
    Observed(Worker, Arc<Observers>, Box<SubmitRequest>),
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
    /// Reads the reply to its end and passes every piece to `consumer`.
    pub(crate) async fn read<C: Consumer>(self, mut consumer: C) -> C {
        match self.source {
            Source::Events(mut events) => {
                while let Some(event) = events.next().await {
                    if let Event::Text { text } = &*event {
                        consumer.see(text.as_bytes());
                    }
                }
                consumer
            }
            Source::Observed(worker, observers, request) => {
                let (end, ended) = oneshot::channel();
                let id = request.origin.as_ref().unwrap().request_id.clone();
                observers.0.lock().unwrap().insert(id, Box::new(InTask(Some((consumer, end)))));
                worker.submit(*request).unwrap();
                ended.await.unwrap()
            }
            Source::Request(request, token) => {
                let read = async {
                    let mut response = request.send().await.unwrap();
                    while let Some(bytes) = response.chunk().await.unwrap() {
                        consumer.see(&bytes);
                    }
                };
                token.run_until_cancelled(read).await;
                consumer
            }
        }
    }
}

/// The observers of requests that have not begun, by id.
#[derive(Default)]
pub(crate) struct Observers(Mutex<HashMap<String, Box<dyn RequestObserver>>>);

impl std::fmt::Debug for Observers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Observers")
    }
}

impl Observer for Observers {
    fn begin(&self, request: &Session) -> Box<dyn RequestObserver> {
        self.0.lock().unwrap().remove(&request.request_id).unwrap()
    }
}

/// Passes the text of a reply to a consumer, and returns the consumer at the end.
struct InTask<C>(Option<(C, oneshot::Sender<C>)>);

impl<C: Consumer> RequestObserver for InTask<C> {
    fn observe(&mut self, _: u64, observation: Observation<'_>) {
        let Observation::Event(event) = observation else { return };
        match event {
            Event::Text { text } => self.0.as_mut().unwrap().0.see(text.as_bytes()),
            Event::Finished(_) => {
                let (consumer, end) = self.0.take().unwrap();
                assert!(end.send(consumer).is_ok());
            }
            _ => {}
        }
    }
}

/// Opens a worker with one tool and `slots` slots. With many streams it keeps few results, so that only the memory of
/// streams is measured.
pub(crate) fn worker(server: &Server, slots: usize) -> Worker {
    start(server, slots, None)
}

fn start(server: &Server, slots: usize, observer: Option<Arc<dyn Observer>>) -> Worker {
    let default = WorkerConfig::default();
    let config = WorkerConfig {
        slots,
        observer,
        keep_results: if slots > 1 { 10 } else { default.keep_results },
        run: RunConfig { model: String::from("stub"), ..RunConfig::default() },
        ..default
    };
    let transport = HttpTransport::new(&server.endpoint, None, Duration::from_secs(3)).unwrap();
    Worker::start(config, toolbox(), Arc::new(transport))
}
