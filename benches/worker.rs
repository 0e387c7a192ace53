//! The whole worker: a reply from bytes through the decoder, the request state machine and the recording to the event
//! consumer.
//!
//! The relevant figure is the time per item (one text chunk). Goals: at most 1.0 µs with reads of 16 KiB, at most 5 µs with
//! one chunk per read. The transport is in memory; `load` measures sockets.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::sync::Arc;

use bytes::Bytes;
use deftool_chat::request::{Event, RunConfig};
use deftool_chat::{Api, BodyForm, ChatRequest};
use deftool_lang::schema::{ToolEntry, ToolKind, ToolSet};
use deftool_lang::tool::{CallContext, ToolCall, ToolError, ToolOutput, ToolRunner};
use deftool_record::Recording;
use deftool_worker::{
    Incoming, Outgoing, ReplayTransport, SubmitRequest, Toolbox, Transport, TransportError, Worker,
    WorkerConfig,
};
use divan::Bencher;
use divan::counter::ItemsCount;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt};
use serde_json::json;

const CHUNKS: usize = 5_000;

/// Returns chunks in llama.cpp's format. Word lengths vary like tokens; some words have escapes or non-ASCII characters.
fn chunks() -> Vec<Bytes> {
    let words =
        [" the", " ship", ".", "\\n\\n", " Maverick", "'s", " \\\"Rev", "enge", " é", " of", " 日本", "1"];
    let chunk = |(number, word): (usize, &&str)| {
        // Consecutive lines differ.
        let word = if *word == "1" { number.to_string() } else { (*word).to_owned() };
        format!(
            "data: {{\"choices\":[{{\"finish_reason\":null,\"index\":0,\"delta\":{{\"content\":\"{word}\"}}}}],\
             \"created\":1795145193,\"id\":\"chatcmpl-dyUPgHOJyzgakZIaXVtVC3rtlT0TdQxd\",\"model\":\"smollm2.gguf\",\
             \"system_fingerprint\":\"b0-unknown\",\"object\":\"chat.completion.chunk\"}}\n\n"
        )
        .into()
    };
    words.iter().cycle().take(CHUNKS).enumerate().map(chunk).collect()
}

/// A transport that returns these reads as every reply.
struct Memory(Arc<Vec<Bytes>>);

impl Transport for Memory {
    fn send(&self, _: Outgoing) -> BoxFuture<'_, Result<Incoming, TransportError>> {
        let reads = Arc::clone(&self.0);
        async move {
            let count = reads.len();
            let body = stream::iter(0..count).map(move |index| Ok(reads[index].clone())).boxed();
            Ok(Incoming::new(200, body))
        }
        .boxed()
    }

    fn url(&self, _: Api) -> &'static str {
        "http://memory/v1/chat/completions"
    }
}

struct NoTools;

impl ToolRunner for NoTools {
    fn run(&self, _: ToolCall, _: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        async { Ok(ToolOutput::default()) }.boxed()
    }
}

fn toolbox() -> Arc<Toolbox> {
    let function = json!({"name": "look", "description": "look", "parameters": {"type": "object"}});
    let definition = json!({"type": "function", "function": function});
    let entry = ToolEntry::new(ToolKind::Normal, definition, None).unwrap();
    Arc::new(Toolbox { generation: 1, tools: ToolSet::new([Arc::new(entry)]), runner: Arc::new(NoTools) })
}

fn measure(bencher: Bencher<'_, '_>, read_bytes: Option<usize>) {
    let mut reads = chunks();
    reads.push(Bytes::from_static(b"data: [DONE]\n\n"));
    if let Some(size) = read_bytes {
        reads = reads.concat().chunks(size).map(Bytes::copy_from_slice).collect();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = WorkerConfig {
        run: RunConfig { model: String::from("memory"), ..RunConfig::default() },
        ..WorkerConfig::default()
    };
    let transport: Arc<dyn Transport> = Arc::new(Memory(Arc::new(reads)));
    bencher.counter(ItemsCount::new(CHUNKS)).bench_local(|| {
        runtime.block_on(async {
            let worker = Worker::start(config.clone(), toolbox(), Arc::clone(&transport));
            let id = worker.submit(SubmitRequest::prompt("hello")).unwrap();
            let mut events = worker.events(&id, 0).unwrap();
            let mut bytes = 0;
            while let Some(event) = events.next().await {
                if let Event::Text { text } = &*event {
                    bytes += text.len();
                }
            }
            assert!(bytes > CHUNKS, "{bytes}");
            bytes
        })
    });
}

#[divan::bench]
fn text_in_reads_of_16_kib(bencher: Bencher<'_, '_>) {
    measure(bencher, Some(16 * 1024));
}

#[divan::bench]
fn text_one_chunk_a_read(bencher: Bencher<'_, '_>) {
    measure(bencher, None);
}

/// Reads a recording with one session and one chat request per request. The time per request must not grow with their
/// number.
#[divan::bench(args = [1_000, 10_000, 100_000], sample_count = 5)]
fn recording_of_requests(bencher: Bencher<'_, '_>, count: usize) {
    let file = std::env::temp_dir().join(format!("deftool-bench-{}-{count}.jsonl", std::process::id()));
    let mut text = String::new();
    for number in 1..=count {
        let session = json!({"record": "session", "version": 3, "request": number, "request_id": format!("req_{number}"),
            "job_name": "", "worker": "bench", "conversation": [], "url": "http://memory/v1", "model": "memory",
            "server": {"dialect": "openai"}, "parallel_tool_calls": true, "submitted_at_ms": 0, "zone": "UTC",
            "local_time": "", "id_seed": 1});
        let request =
            json!({"record": "request", "request": number, "turn": 1, "attempt": 1, "at_ms": 1, "body": {}});
        let response = json!({"record": "response", "request": number, "at_ms": 2, "status": 200});
        writeln!(text, "{session}\n{request}\n{response}").unwrap();
    }
    std::fs::write(&file, text).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    bencher.counter(ItemsCount::new(count)).bench_local(|| {
        let body = ChatRequest::default().encode_body(BodyForm::default());
        let replay = ReplayTransport::new(Recording::read(&file).unwrap(), true);
        runtime.block_on(async {
            for number in 1..=count {
                let request_id = format!("req_{number}");
                let (api, body) = (Api::ChatCompletions, body.clone());
                let outgoing =
                    Outgoing { request_id, turn: 1, attempt: 1, api, trace: None, body, keep_alive: true };
                assert_eq!(replay.send(outgoing).await.unwrap().status, 200);
            }
        });
    });
    std::fs::remove_file(&file).unwrap();
}

fn main() {
    divan::main();
}
