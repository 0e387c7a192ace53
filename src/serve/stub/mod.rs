//! A server of chat completions and responses on a real socket that plays scenarios and misbehaves as it is told: for
//! tests of agents without a model, and for our own.
//!
//! In: [`Scenario`]s, written in Rust or as s-expressions ([`read`], `docs/stub.md`). Out: answers, and what was asked
//! ([`Stub::requests`]). It runs on a thread and a runtime of its own, so that tests with a paused clock, blocking tests
//! and other programs can all talk to it. Nothing it is sent can make it panic or hold more than it is bounded to.
//!
//! Absent: TLS, HTTP/2, any model.
//!
//! ```
//! use deftool::serve::stub::{Misbehaviour, Reply, Scenario, Stub};
//! use serde_json::json;
//!
//! let stub = Stub::start(Scenario::replies([
//!     Reply::new().text("Let me look. ").call("get_weather", &json!({"location": "Paris"})),
//!     Reply::new().text("It is 21 degrees."),
//! ]))?;
//! println!("an agent is pointed to {}", stub.endpoint());
//! assert!(stub.endpoint().ends_with("/v1"));
//! assert_eq!(stub.requests().len(), 0);
//!
//! // One that breaks off in the middle of its first answer.
//! let rude = Misbehaviour::named("rst-mid-stream").expect("it is in the list");
//! let stub = Stub::start(Scenario::misbehaving([rude], None))?;
//! # drop(stub);
//! # Ok::<(), std::io::Error>(())
//! ```

mod answer;
mod canned;
mod completions;
mod condition;
mod conversation;
mod http;
mod material;
mod misbehave;
mod read;
mod reply;
mod responses;
mod scenario;
mod server;

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub use answer::{Act, Answer, call, delta, event, finish, usage};
pub use condition::Condition;
pub use http::{MAX_BODY, MAX_HEAD, Received};
pub use misbehave::{GROUPS, Group, Misbehaviour};
pub use read::{ScenarioError, load, read};
pub use reply::{Ending, Reply};
pub use scenario::{Scenario, Step};

use scenario::Player;

/// Requests that are kept to be looked at; older ones are forgotten.
const MAX_KEPT: usize = 10_000;
/// Bytes of them.
const MAX_KEPT_BYTES: usize = 64 << 20;

/// Gives the answer to each request.
type Script = dyn Fn(&Received) -> Arc<Answer> + Send + Sync;

/// A running stub. It stops when it is dropped.
pub struct Stub {
    address: SocketAddr,
    shared: Arc<Shared>,
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
    /// When there is no port or no thread to be had.
    pub fn start(scenario: Scenario) -> io::Result<Self> {
        Self::start_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), scenario, |_, _, _| {})
    }

    /// Plays `scenario` at `address`; `listener` is told of each request, the status of its answer
    /// (`None`: it has none) and what was wrong with the request, if anything.
    ///
    /// # Errors
    /// When the address cannot be had, or no thread.
    pub fn start_at(
        address: SocketAddr,
        scenario: Scenario,
        listener: impl Fn(&Received, Option<u16>, Option<&str>) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let player = Arc::new(Player::new(scenario));
        let played = Arc::clone(&player);
        let script = move |request: &Received| {
            let (answer, wrong) = played.answer(request);
            listener(request, answer.status(), wrong.as_deref());
            answer
        };
        Self::run(address, Box::new(script), Some(player))
    }

    /// Answers each request, whatever its method, as `script` says.
    ///
    /// # Errors
    /// When the address cannot be had, or no thread.
    pub fn answering(
        address: SocketAddr,
        script: impl Fn(&Received) -> Answer + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::run(address, Box::new(move |request| Arc::new(script(request))), None)
    }

    fn run(address: SocketAddr, script: Box<Script>, player: Option<Arc<Player>>) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { script, log: Mutex::default(), changed: Condvar::new() });
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let service: Arc<dyn http::Service> = Arc::<Shared>::clone(&shared);
        let thread = std::thread::Builder::new().name(String::from("stub")).spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = TcpListener::from_std(listener) else { return };
                tokio::select! {
                    () = http::serve(listener, service) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { address, shared, player, stop: Some(stop), thread: Some(thread) })
    }

    /// The base URL to give to a client.
    pub fn endpoint(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The requests so far, the newest 10,000 and 64 MiB at most; they are read anew each time.
    pub fn requests(&self) -> Vec<Received> {
        let kept: Vec<Kept> = self.shared.with_log(|log| log.requests.iter().cloned().collect());
        kept.into_iter().filter_map(|Kept { raw, at }| Received::of_raw(raw.to_vec(), at)).collect()
    }

    /// The connections that it took.
    pub fn connections(&self) -> usize {
        self.shared.with_log(|log| log.connections)
    }

    /// When clients closed in the middle of an answer.
    pub fn departures(&self) -> Vec<Instant> {
        self.shared.with_log(|log| log.departures.clone())
    }

    /// The expectations that were not met, and requests for which the scenario had no step.
    pub fn failures(&self) -> Vec<String> {
        self.player.as_ref().map(|player| player.failures()).unwrap_or_default()
    }

    /// Waits until `is_met` says so of what it is like, or for so long; whether it was met.
    pub fn wait_until(&self, limit: Duration, is_met: impl Fn(&Self) -> bool) -> bool {
        let until = Instant::now() + limit;
        loop {
            let Ok(log) = self.shared.log.lock() else { return false };
            let seen = log.changes;
            drop(log);
            if is_met(self) {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            let Ok(log) = self.shared.log.lock() else { return false };
            // Something that happened while nobody waited is looked at again at once.
            let waited = self.shared.changed.wait_timeout_while(log, left, |log| log.changes == seen);
            if waited.map_or(true, |(_log, result)| result.timed_out()) {
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

/// What the server's thread and its owner both hold.
struct Shared {
    script: Box<Script>,
    log: Mutex<Log>,
    changed: Condvar,
}

#[derive(Default)]
struct Log {
    requests: VecDeque<Kept>,
    /// Bytes of the requests.
    size: usize,
    connections: usize,
    departures: Vec<Instant>,
    /// Counts everything that happens.
    changes: u64,
}

/// A request as it came: its JSON takes many times the room.
#[derive(Clone)]
struct Kept {
    raw: Arc<[u8]>,
    at: Instant,
}

impl Shared {
    fn with_log<T: Default>(&self, look: impl FnOnce(&mut Log) -> T) -> T {
        self.log.lock().map(|mut log| look(&mut log)).unwrap_or_default()
    }

    fn change(&self, change: impl FnOnce(&mut Log)) {
        self.with_log(|log| {
            change(log);
            log.changes += 1;
        });
        self.changed.notify_all();
    }
}

impl http::Service for Shared {
    fn connected(&self) {
        self.change(|log| log.connections += 1);
    }

    fn answer(&self, request: Received) -> Arc<Answer> {
        let kept = Kept { raw: Arc::from(request.raw.as_slice()), at: request.at };
        self.change(|log| {
            log.size += kept.raw.len();
            log.requests.push_back(kept);
            while log.requests.len() > MAX_KEPT || log.size > MAX_KEPT_BYTES {
                let Some(oldest) = log.requests.pop_front() else { break };
                log.size -= oldest.raw.len();
            }
        });
        (self.script)(&request)
    }

    fn left(&self) {
        self.change(|log| {
            if log.departures.len() < MAX_KEPT {
                log.departures.push(Instant::now());
            }
        });
    }
}
