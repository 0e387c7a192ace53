//! The state that all requests of a worker share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use deftool_chat::BodyFallbacks;
use deftool_chat::request::{Failure, RequestOptions};
use deftool_process::lock;
use reqwest::Url;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::record::RequestRecord;
use super::registry::Registry;
use crate::config::WorkerConfig;
use crate::server::{Condition, Dependents, NotReady, Server, SupervisorCommand, WorkerState};
use crate::transport::{ReplayTransport, Transport, is_on_this_machine};
use deftool_lang::tool::{ToolSource, Toolbox};

/// Default limits for the first token: for a server on the network, as long as the SDKs of vendors wait, and for one on
/// this machine.
const FIRST_TOKEN: Duration = Duration::from_secs(10 * 60);
const FIRST_TOKEN_HERE: Duration = Duration::from_secs(30 * 60);

/// The limits of the stream of a reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamLimits {
    /// From the request to the first token, or since the last progress with the prompt.
    pub(crate) first_token: Duration,
    /// Longest time without data after the first token.
    pub(crate) stall: Duration,
}

/// The configuration, the connections and the requests of a worker.
pub(crate) struct Shared {
    pub(crate) config: WorkerConfig,
    pub(crate) tools: Arc<dyn ToolSource>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) registry: Mutex<Registry>,
    /// Request variants that the server required, by model.
    pub(crate) required_fallbacks: Mutex<HashMap<String, BodyFallbacks>>,
    /// Notified when a draining slot is released.
    pub(crate) drained: Notify,
    pub(crate) replay: Option<Arc<ReplayTransport>>,
    pub(crate) stopped: CancellationToken,
    pub(crate) condition: Arc<watch::Sender<Condition>>,
    /// The managed server, if there is one.
    pub(crate) server: Option<Server>,
}

impl Shared {
    /// Returns the condition of the worker. A stop takes effect immediately.
    pub(crate) fn condition(&self) -> Condition {
        let mut condition = self.condition.borrow().clone();
        if self.stopped.is_cancelled() {
            condition.enter(WorkerState::Stopped, None);
        }
        condition
    }

    /// Returns an error if the worker does not accept requests.
    pub(crate) fn check_ready(&self) -> Result<(), NotReady> {
        let condition = self.condition();
        if condition.state == WorkerState::Ready { Ok(()) } else { Err(condition.not_ready()) }
    }

    /// Returns the configuration with the detected capabilities of a managed server.
    pub(crate) fn current_config(&self) -> WorkerConfig {
        let config = self.config.clone();
        match self.server.as_ref().and_then(|server| server.route().endpoint()) {
            Some(endpoint) => config.at(&endpoint),
            None => config,
        }
    }

    /// Returns the request variants that the server required for a model.
    pub(crate) fn required_fallbacks(&self, model: &str) -> BodyFallbacks {
        lock(&self.required_fallbacks).get(model).copied().unwrap_or_default()
    }

    /// Adds request variants that the server required for a model.
    pub(crate) fn require_fallbacks(&self, model: &str, fallbacks: BodyFallbacks) {
        let mut required = lock(&self.required_fallbacks);
        let known = required.entry(model.to_owned()).or_default();
        *known = known.union(fallbacks);
    }

    /// Returns the newest tools, limited to those that a request with these options may call.
    pub(crate) fn toolbox(&self, options: &RequestOptions) -> Toolbox {
        let mut toolbox = self.tools.current();
        if let Some(names) = &options.tools {
            toolbox.tools = toolbox.tools.only(names);
        }
        toolbox
    }

    /// Returns the limits of the streams of replies. A server on this machine may process a long prompt for longer than
    /// a hosted one, or first load its model.
    pub(crate) fn stream_limits(&self) -> StreamLimits {
        let timers = &self.config.timers;
        let is_here = || {
            let url = Url::parse(self.transport.url(self.config.api));
            self.server.is_some() || url.is_ok_and(|url| is_on_this_machine(&url))
        };
        let default = || if is_here() { FIRST_TOKEN_HERE } else { FIRST_TOKEN };
        StreamLimits { first_token: timers.first_token.unwrap_or_else(default), stall: timers.stall }
    }

    /// Waits until the server is ready. Returns an error if it will not become ready. Returns immediately if the server
    /// is not managed.
    pub(crate) async fn server_ready(&self) -> Result<(), NotReady> {
        if self.server.is_none() {
            return Ok(());
        }
        let mut conditions = self.condition.subscribe();
        loop {
            let condition = conditions.borrow_and_update().clone();
            match condition.state {
                WorkerState::Ready => return Ok(()),
                WorkerState::Failed | WorkerState::Stopped => return Err(condition.not_ready()),
                WorkerState::Running => {}
            }
            if conditions.changed().await.is_err() {
                return Err(condition.not_ready());
            }
        }
    }

    /// Waits until it is known whether the managed server of a broken stream is lost, and returns the loss. `None` if
    /// the server still runs or is not managed.
    pub(crate) async fn server_loss(&self) -> Option<Failure> {
        self.server.as_ref()?.loss().await
    }

    /// Returns the last activity of the server, if exactly one request streams: only then does the activity belong to
    /// that request.
    pub(crate) fn active_for_one_stream(&self) -> Option<Instant> {
        let server = self.server.as_ref()?;
        if self.streaming() == 1 { server.last_active() } else { None }
    }

    /// Reports that a request stalled and was disconnected.
    pub(crate) fn report_stall(&self) {
        if let Some(server) = &self.server {
            server.send(SupervisorCommand::Stalled);
        }
    }

    fn streaming(&self) -> usize {
        lock(&self.registry).all().iter().filter(|record| record.is_streaming()).count()
    }

    /// Calls `stop` for each request with an open stream.
    pub(crate) fn fail_streams(&self, failure: &Failure, stop: fn(&RequestRecord, Failure)) {
        let records = lock(&self.registry).all();
        for record in records.iter().filter(|record| record.is_streaming()) {
            stop(record, failure.clone());
        }
    }

    /// Releases the slot of a request. Called before its end is published: a caller may submit the next request
    /// immediately.
    pub(crate) fn release(&self, id: &str, record: &Arc<RequestRecord>) {
        lock(&self.registry).release(id, record);
    }
}

/// The requests of a worker, if it still exists.
pub(crate) struct WorkerRequests(pub(crate) Weak<Shared>);

impl Dependents for WorkerRequests {
    fn streaming(&self) -> usize {
        self.0.upgrade().map_or(0, |shared| shared.streaming())
    }

    fn fail(&self, failure: &Failure) {
        if let Some(shared) = self.0.upgrade() {
            shared.fail_streams(failure, RequestRecord::lose_server);
        }
    }
}
