//! The server of these tests: `deftool::serve::stub` with a script in Rust, as short as tests want it.
//!
//! `GET …/models` is answered by itself; every `POST` takes the script's next answer.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use deftool::serve::stub::Stub;
pub(crate) use deftool::serve::stub::{Act, Answer, Received, call, delta, event, finish, usage};
use serde_json::json;

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(10);

/// The server. It stops when it is dropped.
pub(crate) struct Server {
    stub: Stub,
    /// Whether only `POST`s are scripted.
    has_pages: bool,
}

impl Server {
    /// Gives these answers in order; the last of them again and again.
    pub(crate) fn script(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers: Vec<Answer> = answers.into_iter().collect();
        Self::answering(move |index, _| answers[index.min(answers.len() - 1)].clone())
    }

    /// Answers each request by a function of its index and what it holds.
    pub(crate) fn answering(script: impl Fn(usize, &Received) -> Answer + Send + Sync + 'static) -> Self {
        let models = json!({"object": "list", "data": [{"id": "scripted", "owned_by": "test"}]});
        let models = Answer::whole(200, &[("content-type", "application/json")], &models.to_string());
        Self::start("127.0.0.1:0", script, Some(move |_: &Received| models.clone()))
    }

    /// Answers each `GET` by a function of its path; nothing is posted.
    pub(crate) fn pages(pages: impl Fn(&Received) -> Answer + Send + Sync + 'static) -> Self {
        let posted = |_: usize, _: &Received| Answer::error(500, &[], "nothing is to be posted");
        Self::start("127.0.0.1:0", posted, Some(pages))
    }

    /// Answers each request, whatever its method, by a function of its index and what it holds.
    pub(crate) fn answering_all(script: impl Fn(usize, &Received) -> Answer + Send + Sync + 'static) -> Self {
        Self::answering_at("127.0.0.1:0", script)
    }

    /// [`Server::answering_all`] at an address.
    pub(crate) fn answering_at(
        address: &str,
        script: impl Fn(usize, &Received) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::start(address, script, None::<fn(&Received) -> Answer>)
    }

    /// `pages` answers what is not posted; `None`: the script answers that, too.
    fn start(
        address: &str,
        script: impl Fn(usize, &Received) -> Answer + Send + Sync + 'static,
        pages: Option<impl Fn(&Received) -> Answer + Send + Sync + 'static>,
    ) -> Self {
        let has_pages = pages.is_some();
        let count = AtomicUsize::new(0);
        let answer = move |request: &Received| match &pages {
            Some(pages) if request.method() != "POST" => pages(request),
            _ => script(count.fetch_add(1, Ordering::SeqCst), request),
        };
        Self { stub: Stub::answering(address.parse().unwrap(), answer).unwrap(), has_pages }
    }

    /// The base URL to give to a worker.
    pub(crate) fn endpoint(&self) -> String {
        self.stub.endpoint()
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.stub.address()
    }

    /// The connections that it took.
    pub(crate) fn connections(&self) -> usize {
        self.stub.connections()
    }

    /// The scripted requests so far.
    pub(crate) fn posts(&self) -> Vec<Received> {
        let mut requests = self.stub.requests();
        requests.retain(|request| !self.has_pages || request.method() == "POST");
        requests
    }

    /// Waits until `count` chat requests have come.
    pub(crate) fn wait_for_posts(&self, count: usize) {
        let has_come = self.stub.wait_until(PATIENCE, |_| self.posts().len() >= count);
        assert!(has_come, "the server waited in vain");
    }

    /// Waits until a client left the server in the middle of an answer; when that was.
    pub(crate) fn wait_for_client_to_leave(&self) -> Instant {
        let has_left = self.stub.wait_until(PATIENCE, |stub| !stub.disconnects().is_empty());
        assert!(has_left, "the server waited in vain");
        self.stub.disconnects()[0]
    }
}

/// A port where nobody listens and that nobody else can take.
pub(crate) struct DeadEnd(tokio::net::TcpSocket);

impl DeadEnd {
    pub(crate) fn new() -> Self {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self(socket)
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}/v1", self.0.local_addr().unwrap())
    }
}
