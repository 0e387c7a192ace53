//! The server in a separate process: the library's stub. The last user message selects the answer.
//!
//! Tokens of streams contain the time of sending: `@` and microseconds. The server prints `READY URL` to stdout, and
//! `gone NAME TIME` when the connection of a stream is closed. It exits when its stdin is closed.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use deftool_stub::{Act, Answer, Received, Stub};
use deftool_test_support::server::Texts;

use crate::meter::{allow_descriptors, now_us};

/// Number of chunks in a text.
pub(crate) const CHUNKS: usize = 5_000;
/// Number of chunks in a paced text.
pub(crate) const PACED_CHUNKS: usize = 2_000;
/// Delay between chunks of a paced text.
const PACE: Duration = Duration::from_millis(1);
/// Delay between tokens of a stream.
pub(crate) const TOKEN_PACE: Duration = Duration::from_millis(20);
/// Number of chunks in a text for `deftool run`.
pub(crate) const RUN_CHUNKS: usize = 50_000;
/// Size of the long argument in bytes.
pub(crate) const ARGUMENT: usize = 15 << 20;
/// Number of digits in a timestamp.
const STAMP: usize = 16;

/// Returns a chunk in llama.cpp's format.
fn chunk(text: &str) -> String {
    format!(
        "data: {{\"choices\":[{{\"finish_reason\":null,\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}],\
         \"created\":1795145193,\"id\":\"chatcmpl-dyUPgHOJyzgakZIaXVtVC3rtlT0TdQxd\",\"model\":\"smollm2.gguf\",\
         \"system_fingerprint\":\"b0-unknown\",\"object\":\"chat.completion.chunk\"}}\n\n"
    )
}

/// Generates words with lengths that vary like tokens, some with escapes or non-ASCII characters. Consecutive lines differ.
pub(crate) fn words(count: usize) -> impl Iterator<Item = String> + Send {
    let words =
        [" the", " ship", ".", "\\n\\n", " Maverick", "'s", " \\\"Rev", "enge", " é", " of", " 日本", "1"];
    let word = |(number, word): (usize, &str)| {
        if word == "1" { chunk(&number.to_string()) } else { chunk(word) }
    };
    words.into_iter().cycle().take(count).enumerate().map(word)
}

fn end(answer: Answer) -> Answer {
    answer.chunk(&deftool_stub::finish("stop")).done().end()
}

/// Returns a text with `size` chunks per piece.
fn text_in_groups(size: usize) -> Answer {
    let chunks: Vec<String> = words(RUN_CHUNKS).collect();
    end(chunks.chunks(size).map(<[String]>::concat).fold(Answer::stream(), Answer::piece))
}

/// Returns a text with `size` HTTP chunks in a write, each of which holds one event.
fn text_in_http_chunks(size: usize) -> Answer {
    let framed = |word: &String| format!("{:x}\r\n{word}\r\n", word.len());
    let chunks: Vec<String> = words(RUN_CHUNKS).collect();
    let writes = chunks.chunks(size).map(|group| group.iter().map(framed).collect::<String>());
    end(writes.fold(Answer::stream(), |answer, write| answer.then(Act::Write(write.into_bytes()))))
}

/// Returns a text in pieces of `size` bytes.
fn text_in_pieces(size: usize) -> Answer {
    let body: String = words(CHUNKS).collect();
    end(body.as_bytes().chunks(size).fold(Answer::stream(), Answer::piece))
}

/// Returns a text with one chunk per piece and a delay of `pace` before each.
fn text_chunk_by_chunk(count: usize, pace: Duration) -> Answer {
    let add = |answer: Answer, word| {
        if pace.is_zero() { answer.piece(word) } else { answer.then(Act::Wait(pace)).piece(word) }
    };
    end(words(count).fold(Answer::stream(), add))
}

/// Returns tokens with timestamps, for `seconds` seconds.
fn stream(name: &str, seconds: u64) -> Answer {
    let tokens = seconds * 1000 / TOKEN_PACE.as_millis() as u64;
    let gone = Gone(name.to_owned());
    let hold = Arc::new(move || {
        let _ = &gone;
    });
    let add = |answer: Answer, number: u64| {
        let end = if number.is_multiple_of(20) { "\\n" } else { " " };
        let make = move || chunk(&format!("@{:0width$}{end}", now_us(), width = STAMP));
        answer.then(Act::Wait(TOKEN_PACE)).computed_piece(make)
    };
    end((1..=tokens).fold(Answer::stream().then(Act::Do(hold)), add))
}

/// Reports on drop that an answer ended or that its connection was closed.
struct Gone(String);

impl Drop for Gone {
    fn drop(&mut self) {
        println!("gone {} {}", self.0, now_us());
    }
}

/// Returns the timestamps in `text`, in microseconds.
pub(crate) fn stamps(text: &[u8]) -> impl Iterator<Item = u64> {
    let digits = |rest: &[u8]| str::from_utf8(rest.get(..STAMP)?).ok()?.parse().ok();
    text.split(|byte| *byte == b'@').skip(1).filter_map(digits)
}

fn answer(request: &Received) -> Answer {
    let said = request.texts("user").pop().unwrap_or_default();
    let mut words = said.split(' ');
    let mut next = || words.next().unwrap_or_default();
    let (what, value) = (next(), next());
    let is_answered = request.messages().iter().any(|message| message["role"] == "tool");
    match what {
        "pieces" => text_in_pieces(value.parse().unwrap()),
        "chunks" => text_chunk_by_chunk(CHUNKS, Duration::ZERO),
        "run" => text_in_groups(value.parse().unwrap()),
        "framed" => text_in_http_chunks(value.parse().unwrap()),
        "paced" => text_chunk_by_chunk(PACED_CHUNKS, PACE),
        "stream" => stream(value, next().parse().unwrap()),
        "argument" if !is_answered => {
            let arguments = format!("{{\"location\":\"{}\"}}", "Paris, ".repeat(ARGUMENT / 7));
            Answer::calls(&[("get_weather", &arguments)])
        }
        "call" if !is_answered => Answer::calls(&[("get_weather", "{\"location\":\"Paris\"}")]),
        "close" => Answer::stream().delta("It is").then(Act::Close),
        "silence" => Answer::stream().delta("It is").then(Act::Silence),
        _ => Answer::text("It is 21 degrees in Paris."),
    }
}

/// The `main` of the child process.
pub(crate) fn serve() {
    allow_descriptors();
    let stub = Stub::answering(([127, 0, 0, 1], 0).into(), answer).unwrap();
    println!("READY {}", stub.endpoint());
    let _ = std::io::stdin().read(&mut [0]);
}

/// A handle to the server process, which exits when the handle is dropped.
pub(crate) struct Server {
    pub(crate) endpoint: String,
    gone: Arc<Mutex<HashMap<String, u64>>>,
    sizes: Arc<Mutex<Vec<usize>>>,
    stdin: Option<ChildStdin>,
    child: Child,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_as("server")
    }

    /// Starts the server that is the part `name` of this program.
    pub(crate) fn start_as(name: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg(name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let ready = lines.next().unwrap();
        let endpoint = ready.strip_prefix("READY ").unwrap().to_owned();
        let gone = Arc::<Mutex<HashMap<String, u64>>>::default();
        let sizes = Arc::<Mutex<Vec<usize>>>::default();
        let (reported, received) = (Arc::clone(&gone), Arc::clone(&sizes));
        std::thread::spawn(move || {
            for line in lines {
                match line.split(' ').collect::<Vec<_>>()[..] {
                    ["gone", name, at] => {
                        reported.lock().unwrap().insert(name.to_owned(), at.parse().unwrap());
                    }
                    ["size", size] => received.lock().unwrap().push(size.parse().unwrap()),
                    _ => panic!("the server printed {line:?}"),
                }
            }
        });
        Self { endpoint, gone, sizes, stdin: child.stdin.take(), child }
    }

    /// Returns the sizes of the first `count` bodies, in bytes, once they were reported.
    pub(crate) fn sizes(&self, count: usize) -> Vec<usize> {
        loop {
            let sizes = self.sizes.lock().unwrap().clone();
            if sizes.len() >= count {
                return sizes;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns when the server observed that the connections of these streams were closed.
    pub(crate) async fn gone(&self, names: &[String]) -> Vec<u64> {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let gone = self.gone.lock().unwrap().clone();
            let times: Option<Vec<u64>> = names.iter().map(|name| gone.get(name).copied()).collect();
            if let Some(times) = times {
                return times;
            }
            assert!(Instant::now() < deadline, "the server still sees some of the streams");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stdin.take();
        let _ = self.child.wait();
    }
}
