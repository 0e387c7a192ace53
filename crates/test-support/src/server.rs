//! A model server for tests: `deftool_stub` with answers written in Rust.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use deftool_stub::Stub;

use crate::HANG_LIMIT;
pub use deftool_stub::{
    Act, Answer, Received, call, delta, encode_events, encode_whole, event, finish, usage,
};
use serde_json::json;

/// Reads the conversation in a request.
pub trait Texts {
    /// Returns the texts of the messages of a role, without the lines with time and budget.
    fn texts(&self, role: &str) -> Vec<String>;
}

impl Texts for Received {
    fn texts(&self, role: &str) -> Vec<String> {
        self.contents(role).iter().map(|text| without_budget(text).to_owned()).collect()
    }
}

/// Returns the text of a message without the lines with time and budget.
pub fn without_budget(text: &str) -> &str {
    match text.strip_prefix("Time at submit: ") {
        Some(lines) => lines.split_once("\n\n").map_or("", |(_, text)| text),
        None => text.split_once("\n\nTime at submit: ").map_or(text, |(text, _)| text),
    }
}

/// A running server. It stops when it is dropped.
pub struct Server {
    stub: Stub,
    /// Whether only `POST`s are scripted.
    has_pages: bool,
}

impl Server {
    /// Returns these answers in order to `POST` requests, then repeats the last. Lists one model.
    pub fn script(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers: Vec<Answer> = answers.into_iter().collect();
        Self::answering(move |index, _| answers[index.min(answers.len() - 1)].clone())
    }

    /// Answers each `POST` by calling `script` with the index of the request and the request. Lists one model.
    pub fn answering(script: impl Fn(usize, &Received) -> Answer + Send + Sync + 'static) -> Self {
        let models = json!({"object": "list", "data": [{"id": "scripted", "owned_by": "test"}]});
        let models = Answer::whole(200, &[("content-type", "application/json")], &models.to_string());
        Self::start("127.0.0.1:0", script, Some(move |_: &Received| models.clone()))
    }

    /// Answers each `GET` by calling `pages`. A `POST` is an error.
    pub fn pages(pages: impl Fn(&Received) -> Answer + Send + Sync + 'static) -> Self {
        let posted = |_: usize, _: &Received| Answer::error(500, &[], "unexpected POST");
        Self::start("127.0.0.1:0", posted, Some(pages))
    }

    /// Answers each request with any method by calling `script` with the index of the request and the request.
    pub fn answering_all(script: impl Fn(usize, &Received) -> Answer + Send + Sync + 'static) -> Self {
        Self::answering_at("127.0.0.1:0", script)
    }

    /// Same as [`Server::answering_all`], at a given address.
    pub fn answering_at(
        address: &str,
        script: impl Fn(usize, &Received) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::start(address, script, None::<fn(&Received) -> Answer>)
    }

    /// `pages` answers requests other than `POST`. `None`: `script` answers them too.
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

    /// Returns the base URL for a worker.
    pub fn endpoint(&self) -> String {
        self.stub.endpoint()
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.stub.address()
    }

    /// Returns the number of accepted connections.
    pub fn connections(&self) -> usize {
        self.stub.connections()
    }

    /// Returns the requests so far that `script` answered.
    pub fn posts(&self) -> Vec<Received> {
        let mut requests = self.stub.requests();
        requests.retain(|request| !self.has_pages || request.method() == "POST");
        requests
    }

    /// Waits until `count` of these requests have arrived.
    pub fn wait_for_posts(&self, count: usize) {
        let arrived = self.stub.wait_until(HANG_LIMIT, |_| self.posts().len() >= count);
        assert!(arrived, "timed out after {HANG_LIMIT:?}");
    }

    /// Waits until a client closes its connection in the middle of an answer.
    pub fn wait_for_disconnect(&self) {
        let left = self.stub.wait_until(HANG_LIMIT, |stub| !stub.disconnects().is_empty());
        assert!(left, "timed out after {HANG_LIMIT:?}");
    }
}

/// A reserved port that refuses connections.
pub struct ClosedPort(tokio::net::TcpSocket);

impl ClosedPort {
    /// Reserves a port until the value is dropped.
    pub fn reserve() -> Self {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self(socket)
    }

    /// Returns the base URL at this port.
    pub fn endpoint(&self) -> String {
        format!("http://{}/v1", self.0.local_addr().unwrap())
    }
}
