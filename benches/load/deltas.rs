//! The memory of a request with 1,000,000 deltas whose result has not been fetched. The transport is in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use deftool_chat::Api;
use deftool_chat::request::{Event, RunConfig};
use deftool_worker::{Incoming, Outgoing, SubmitRequest, Transport, TransportError, Worker, WorkerConfig};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};

use crate::meter::status;
use crate::server::words;
use crate::tools::toolbox;

const DELTAS: usize = 1_000_000;

/// A transport that returns a chunk per read. The first reply is short.
#[derive(Default)]
struct Memory(AtomicBool);

impl Transport for Memory {
    fn send(&self, _: Outgoing) -> BoxFuture<'_, Result<Incoming, TransportError>> {
        let deltas = if self.0.swap(true, Ordering::Relaxed) { DELTAS } else { 10 };
        let chunks = words(deltas).chain([String::from("data: [DONE]\n\n")]);
        let body = stream::iter(chunks.map(|chunk| Ok(chunk.into()))).boxed();
        async { Ok(Incoming::new(200, body)) }.boxed()
    }

    fn url(&self, _: Api) -> &'static str {
        "http://memory/v1/chat/completions"
    }
}

pub(crate) fn measure() {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let run = RunConfig { model: String::from("memory"), ..RunConfig::default() };
        let config = WorkerConfig { run, ..WorkerConfig::default() };
        let worker = Worker::start(config, toolbox(), Arc::new(Memory::default()));
        // It initialises the process.
        worker.ask("short").await.unwrap();
        let before = status("VmRSS:");
        let id = worker.submit(SubmitRequest::prompt("deltas")).unwrap();
        let mut events = worker.events(&id, 0).unwrap();
        let (mut deltas, mut bytes) = (0, 0);
        while let Some(event) = events.next().await {
            if let Event::Text { text } = &*event {
                deltas += 1;
                bytes += text.len();
            }
        }
        assert_eq!(deltas, DELTAS);
        let each = |kib: u64| (kib - before) as f64 * 1024.0 / deltas as f64;
        println!(
            "deltas  {deltas} deltas, {:.1} bytes of text each: {:.1} bytes each are kept, {:.1} at the peak",
            bytes as f64 / deltas as f64,
            each(status("VmRSS:")),
            each(status("VmHWM:")),
        );
    });
}
