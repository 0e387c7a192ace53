//! A chat server on a real loopback socket that answers by script and misbehaves as it is told.
//!
//! It runs on a thread and a runtime of its own, so that tests with a paused clock, blocking tests and the real
//! binary can all talk to it. `GET …/models` is answered by itself; every `POST` takes the script's next answer.

use std::fmt::Write;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};

/// No test waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(10);

/// One thing that the server does with an answer.
#[derive(Clone)]
pub(crate) enum Act {
    /// Writes bytes.
    Write(Vec<u8>),
    /// Does nothing for a while.
    Wait(Duration),
    /// Says nothing more, and keeps the connection until the client closes it.
    Silence,
    /// Writes these bytes again and again until the client closes the connection.
    Endless(Vec<u8>),
    /// Closes the connection.
    Close,
    /// Resets the connection.
    Reset,
    /// Does something on the server's thread.
    Do(Arc<dyn Fn() + Send + Sync>),
}

/// An answer: acts, one after another. After the last the connection takes the next request.
#[derive(Clone, Default)]
pub(crate) struct Answer {
    acts: Vec<Act>,
}

impl Answer {
    /// An answer that says nothing at all.
    pub(crate) fn silent() -> Self {
        Self::default().then(Act::Silence)
    }

    /// The head of a chunked answer.
    pub(crate) fn head(status: u16, headers: &[(&str, &str)]) -> Self {
        let mut head = format!("HTTP/1.1 {status} Scripted\r\ntransfer-encoding: chunked\r\n");
        for (name, value) in headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str("\r\n");
        Self::default().then(Act::Write(head.into_bytes()))
    }

    /// The head of an event stream.
    pub(crate) fn stream() -> Self {
        Self::head(200, &[("content-type", "text/event-stream")])
    }

    /// A whole answer of one piece.
    pub(crate) fn whole(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        Self::head(status, headers).piece(body).end()
    }

    /// An error object with its message.
    pub(crate) fn error(status: u16, headers: &[(&str, &str)], message: &str) -> Self {
        Self::whole(status, headers, &json!({"error": {"message": message}}).to_string())
    }

    /// An event stream that is whole: these chunks and `[DONE]`.
    pub(crate) fn chunks(chunks: &[Value]) -> Self {
        let answer = chunks.iter().fold(Self::stream(), Self::chunk);
        answer.done().end()
    }

    /// A whole reply of text.
    pub(crate) fn text(text: &str) -> Self {
        Self::chunks(&[delta(text), finish("stop"), usage(3, 2)])
    }

    /// A whole reply of calls, each a tool's name and its arguments as the model writes them.
    pub(crate) fn calls(calls: &[(&str, &str)]) -> Self {
        let chunks: Vec<Value> = calls
            .iter()
            .enumerate()
            .map(|(index, (name, arguments))| call(index, name, arguments))
            .chain([finish("tool_calls"), usage(5, 4)])
            .collect();
        Self::chunks(&chunks)
    }

    pub(crate) fn then(mut self, act: Act) -> Self {
        self.acts.push(act);
        self
    }

    pub(crate) fn wait_ms(self, ms: u64) -> Self {
        self.then(Act::Wait(Duration::from_millis(ms)))
    }

    /// A piece of a chunked body.
    pub(crate) fn piece(self, text: impl AsRef<[u8]>) -> Self {
        self.then(Act::Write(framed(text.as_ref())))
    }

    /// One event of a stream.
    pub(crate) fn chunk(self, chunk: &Value) -> Self {
        self.piece(event(chunk))
    }

    pub(crate) fn delta(self, text: &str) -> Self {
        self.chunk(&delta(text))
    }

    pub(crate) fn done(self) -> Self {
        self.piece("data: [DONE]\n\n")
    }

    /// The end of a chunked body.
    pub(crate) fn end(self) -> Self {
        self.then(Act::Write(b"0\r\n\r\n".to_vec()))
    }

    /// Every byte of the body so far as a piece of its own. The first act is the head.
    pub(crate) fn byte_by_byte(self) -> Self {
        let mut acts = Vec::new();
        for (index, act) in self.acts.into_iter().enumerate() {
            match act {
                Act::Write(bytes) if index > 0 && !bytes.starts_with(b"0\r\n") => {
                    let body = unframed(&bytes);
                    acts.extend(body.iter().map(|byte| Act::Write(framed(&[*byte]))));
                }
                act => acts.push(act),
            }
        }
        Self { acts }
    }

    /// Every line end of the body so far as CR LF.
    pub(crate) fn crlf(self) -> Self {
        let acts = self.acts.into_iter().enumerate().map(|(index, act)| match act {
            Act::Write(bytes) if index > 0 && !bytes.starts_with(b"0\r\n") => {
                let body = String::from_utf8(unframed(&bytes)).unwrap().replace('\n', "\r\n");
                Act::Write(framed(body.as_bytes()))
            }
            act => act,
        });
        Self { acts: acts.collect() }
    }
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{:x}\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes.extend_from_slice(b"\r\n");
    bytes
}

fn unframed(bytes: &[u8]) -> Vec<u8> {
    let start = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    bytes[start..bytes.len() - 2].to_vec()
}

/// One event of a stream.
pub(crate) fn event(chunk: &Value) -> String {
    format!("data: {chunk}\n\n")
}

/// A chunk of text.
pub(crate) fn delta(text: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {"content": text}}]})
}

/// A chunk that holds a call.
pub(crate) fn call(index: usize, name: &str, arguments: &str) -> Value {
    let function = json!({"name": name, "arguments": arguments});
    let calls =
        json!([{"index": index, "id": format!("call_{index}"), "type": "function", "function": function}]);
    json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]})
}

/// A chunk that ends the reply.
pub(crate) fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

/// A chunk that counts tokens.
pub(crate) fn usage(prompt: u64, completion: u64) -> Value {
    json!({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}})
}

/// A request that the server got.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    /// Method and path.
    pub(crate) line: String,
    /// Header lines, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body, or null.
    pub(crate) body: Value,
    /// Head and body as they came.
    pub(crate) raw: Vec<u8>,
    /// When it was read.
    pub(crate) at: Instant,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Contents of the messages of `role`.
    pub(crate) fn contents(&self, role: &str) -> Vec<String> {
        let messages = self.body["messages"].as_array().cloned().unwrap_or_default();
        let of_role = messages.iter().filter(|message| message["role"] == role);
        of_role.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// Gives the answer to a `GET`, by its method and path.
type Pages = dyn Fn(&Received) -> Answer + Send + Sync;

/// Gives the answer to the request of an index.
type Script = dyn Fn(usize, &Received) -> Answer + Send + Sync;

#[derive(Default)]
struct Log {
    posts: Vec<Received>,
    connections: usize,
    /// Clients that closed while the server was still answering.
    left: Vec<Instant>,
}

struct Shared {
    script: Box<Script>,
    log: Mutex<Log>,
    changed: Condvar,
    /// What answers a `GET`; `None`: the script answers those too.
    pages: Option<Box<Pages>>,
}

/// The server. It stops when it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
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
        Self::start("127.0.0.1:0", script, Some(Box::new(move |_| models.clone())))
    }

    /// Answers each `GET` by a function of its path; nothing is posted.
    pub(crate) fn pages(pages: impl Fn(&Received) -> Answer + Send + Sync + 'static) -> Self {
        let posted = |_: usize, _: &Received| Answer::error(500, &[], "nothing is to be posted");
        Self::start("127.0.0.1:0", posted, Some(Box::new(pages)))
    }

    /// Answers each request, whatever its method, by a function of its index and what it holds.
    pub(crate) fn answering_all(script: impl Fn(usize, &Received) -> Answer + Send + Sync + 'static) -> Self {
        Self::start("127.0.0.1:0", script, None)
    }

    /// [`Server::answering_all`] at an address.
    pub(crate) fn answering_at(
        address: &str,
        script: impl Fn(usize, &Received) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::start(address, script, None)
    }

    fn start(
        address: &str,
        script: impl Fn(usize, &Received) -> Answer + Send + Sync + 'static,
        pages: Option<Box<Pages>>,
    ) -> Self {
        let shared = Arc::new(Shared {
            script: Box::new(script),
            log: Mutex::default(),
            changed: Condvar::new(),
            pages,
        });
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let (served, address) = (Arc::clone(&shared), address.to_owned());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind(address).await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                tokio::select! {
                    () = accept(&listener, &served) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { address: told.recv().unwrap(), shared, stop: Some(stop), thread: Some(thread) }
    }

    /// The base URL to give to a worker.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The connections that it took.
    pub(crate) fn connections(&self) -> usize {
        self.shared.log.lock().unwrap().connections
    }

    /// The scripted requests so far.
    pub(crate) fn posts(&self) -> Vec<Received> {
        self.shared.log.lock().unwrap().posts.clone()
    }

    /// Waits until `count` chat requests have come.
    pub(crate) fn wait_for_posts(&self, count: usize) {
        self.wait_until(|log| log.posts.len() >= count);
    }

    /// Waits until a client left the server in the middle of an answer; when that was.
    pub(crate) fn wait_for_client_to_leave(&self) -> Instant {
        self.wait_until(|log| !log.left.is_empty());
        self.shared.log.lock().unwrap().left[0]
    }

    fn wait_until(&self, met: impl Fn(&Log) -> bool) {
        let log = self.shared.log.lock().unwrap();
        let (_log, waited) = self.shared.changed.wait_timeout_while(log, PATIENCE, |log| !met(log)).unwrap();
        assert!(!waited.timed_out(), "the server waited in vain");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
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

async fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while let Ok((socket, _)) = listener.accept().await {
        let shared = Arc::clone(shared);
        shared.log.lock().unwrap().connections += 1;
        tokio::spawn(async move { serve(socket, &shared).await });
    }
}

/// Serves one connection to its end.
async fn serve(socket: TcpStream, shared: &Shared) {
    let _ = socket.set_nodelay(true);
    let (mut read, mut write) = socket.into_split();
    let mut pending_bytes = Vec::new();
    while let Some(received) = read_request(&mut read, &mut pending_bytes).await {
        let pages = shared.pages.as_ref().filter(|_| !received.line.starts_with("POST"));
        let answer = if let Some(pages) = pages {
            pages(&received)
        } else {
            let mut log = shared.log.lock().unwrap();
            log.posts.push(received.clone());
            let index = log.posts.len() - 1;
            drop(log);
            shared.changed.notify_all();
            (shared.script)(index, &received)
        };
        let played = tokio::select! {
            biased;
            played = play(&answer, &mut write) => played,
            // A client that writes on is no client of ours; one that closes has gone.
            () = gone(&mut read) => None,
        };
        match played {
            Some(Last::Open) => {}
            Some(Last::Close) => return,
            Some(Last::Reset) => {
                if let Ok(socket) = read.reunite(write) {
                    let _ = socket.set_zero_linger();
                }
                return;
            }
            None => {
                shared.log.lock().unwrap().left.push(Instant::now());
                shared.changed.notify_all();
                return;
            }
        }
    }
}

/// What is done with the connection after an answer.
enum Last {
    Open,
    Close,
    Reset,
}

/// `None`: the client has gone.
async fn play(answer: &Answer, write: &mut tokio::net::tcp::OwnedWriteHalf) -> Option<Last> {
    for act in &answer.acts {
        match act {
            Act::Write(bytes) => write.write_all(bytes).await.ok()?,
            Act::Wait(time) => tokio::time::sleep(*time).await,
            Act::Silence => pending().await,
            Act::Endless(bytes) => loop {
                write.write_all(bytes).await.ok()?;
                // A writer that is always ready would leave nobody else a turn.
                tokio::task::yield_now().await;
            },
            Act::Close => return Some(Last::Close),
            Act::Reset => {
                // What was written before is to be read first.
                tokio::time::sleep(Duration::from_millis(50)).await;
                return Some(Last::Reset);
            }
            Act::Do(action) => action(),
        }
    }
    Some(Last::Open)
}

async fn gone(read: &mut OwnedReadHalf) {
    let mut byte = [0];
    while !matches!(read.read(&mut byte).await, Ok(0) | Err(_)) {}
}

/// `None`: the connection is over.
async fn read_request(read: &mut OwnedReadHalf, buffer: &mut Vec<u8>) -> Option<Received> {
    let head_end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        read_more(read, buffer).await?;
    };
    let head = String::from_utf8(buffer[..head_end].to_vec()).unwrap();
    let mut lines = head.lines();
    let line = lines.next()?.trim_end_matches(" HTTP/1.1").to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, length)| length.parse().unwrap());
    while buffer.len() < head_end + 4 + length {
        read_more(read, buffer).await?;
    }
    let rest = buffer.split_off(head_end + 4 + length);
    let body = serde_json::from_slice(&buffer[head_end + 4..]).unwrap_or_default();
    let raw = std::mem::replace(buffer, rest);
    Some(Received { line, headers, body, raw, at: Instant::now() })
}

async fn read_more(read: &mut OwnedReadHalf, buffer: &mut Vec<u8>) -> Option<()> {
    match read.read_buf(buffer).await {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(()),
    }
}
