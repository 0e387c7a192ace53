//! A stub model server on a real socket, for chat completions, responses and messages. It plays scenarios and injects faults, so
//! that agents can be tested without a model.
//!
//! In: [`Scenario`]s, written in Rust or as s-expressions ([`read()`], `docs/stub.md`). Out: answers, and the received
//! requests ([`Stub::requests`]). The stub runs on its own thread and runtime, so that tests with a paused clock,
//! blocking tests and other programs can use it. No input can make it panic or exceed its memory limits.
//!
//! Not supported: TLS and HTTP/2.
//!
//! ```
//! use deftool_stub::{Fault, Reply, Scenario, Stub};
//! use serde_json::json;
//!
//! let stub = Stub::start(Scenario::replies([
//!     Reply::new().text("Let me look. ").call("get_weather", &json!({"location": "Paris"})),
//!     Reply::new().text("It is 21 degrees."),
//! ]))?;
//! println!("endpoint: {}", stub.endpoint());
//! assert!(stub.endpoint().ends_with("/v1"));
//! assert_eq!(stub.requests().len(), 0);
//!
//! // Reset the connection in the middle of the first answer.
//! let fault = Fault::named("rst-mid-stream").expect("a known fault");
//! let stub = Stub::start(Scenario::with_faults([fault], None))?;
//! # drop(stub);
//! # Ok::<(), std::io::Error>(())
//! ```

mod answer;
mod completions;
mod encode;
mod fault;
mod faults;
mod generated;
mod http;
mod messages;
mod model;
mod pages;
mod player;
mod read;
mod reply;
mod request;
mod responses;
mod scenario;
mod service;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub use answer::{Act, Answer, call, delta, event, finish, usage};
pub use encode::{encode_events, encode_whole};
pub use fault::Fault;
pub use faults::{GROUPS, Group};
pub use model::Ending;
pub use read::{ScenarioError, load, read};
pub use reply::Reply;
pub use request::{Condition, MAX_BODY, MAX_HEAD, Received};
pub use scenario::{Scenario, Step};

use player::Player;
use service::{Handler, Service};

/// A running stub server. It stops when it is dropped.
pub struct Stub {
    address: SocketAddr,
    service: Arc<Service>,
    player: Option<Arc<Player>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Stub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stub").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Stub {
    /// Plays `scenario` on a free port of this machine.
    ///
    /// # Errors
    /// If no port is free, or the thread cannot be started.
    pub fn start(scenario: Scenario) -> io::Result<Self> {
        Self::start_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), scenario, |_, _, _| {})
    }

    /// Plays `scenario` at `address`. `listener` is called for each request, with the status of the answer (`None` if
    /// it has no status line) and the mismatch between the request and the scenario, if any.
    ///
    /// # Errors
    /// If the address cannot be bound, or the thread cannot be started.
    pub fn start_at(
        address: SocketAddr,
        scenario: Scenario,
        listener: impl Fn(&Received, Option<u16>, Option<&str>) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let player = Arc::new(Player::new(scenario));
        let played = Arc::clone(&player);
        let handler = move |request: &Received| {
            let (answer, mismatch) = played.answer(request);
            listener(request, answer.status(), mismatch.as_deref());
            answer
        };
        Self::run(address, Box::new(handler), Some(player))
    }

    /// Answers every request, with any method, by calling `handler`.
    ///
    /// # Errors
    /// If the address cannot be bound, or the thread cannot be started.
    pub fn answering(
        address: SocketAddr,
        handler: impl Fn(&Received) -> Answer + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::run(address, Box::new(move |request| Arc::new(handler(request))), None)
    }

    fn run(address: SocketAddr, handler: Box<Handler>, player: Option<Arc<Player>>) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let service = Arc::new(Service::new(handler));
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let served = Arc::clone(&service);
        let thread = std::thread::Builder::new().name(String::from("stub")).spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = TcpListener::from_std(listener) else { return };
                tokio::select! {
                    () = http::serve(listener, served) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { address, service, player, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the base URL for clients.
    pub fn endpoint(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the newest requests, at most 10,000 and 64 MiB. Each call of this function parses them again.
    pub fn requests(&self) -> Vec<Received> {
        self.service.requests()
    }

    /// Returns the number of accepted connections.
    pub fn connections(&self) -> usize {
        self.service.with_log(|log| log.connections)
    }

    /// Returns the times at which clients closed the connection in the middle of an answer.
    pub fn disconnects(&self) -> Vec<Instant> {
        self.service.with_log(|log| log.disconnects.clone())
    }

    /// Returns the expectations that were not met, and the requests for which the scenario had no step.
    pub fn failures(&self) -> Vec<String> {
        self.player.as_ref().map(|player| player.failures()).unwrap_or_default()
    }

    /// Waits until `is_met` returns true, for at most `limit`. Returns whether the condition was met.
    pub fn wait_until(&self, limit: Duration, is_met: impl Fn(&Self) -> bool) -> bool {
        let until = Instant::now() + limit;
        loop {
            let seen = self.service.with_log(|log| log.changes);
            if is_met(self) {
                return true;
            }
            if !self.service.wait_for_change(seen, until) {
                return is_met(self);
            }
        }
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
