//! The worker on a real socket, against a server in another process: `cargo bench --bench load [-- PART]`.
//!
//! | part | measures | goal |
//! |---|---|---|
//! | `text` | user CPU of the worker process per text chunk, from the socket to the consumer | 1.0 µs with reads of 16 KiB, 5 µs with one chunk per read |
//! | `streams` | 1,000 streams of 50 tokens a second | 1.3 × the CPU of `streams-bare`, 100 MB, 10 ms added latency (p99), 100 ms from cancel to closed connection (p99) |
//! | `streams-rpc` | the same through one `deftool rpc` | 1.15 × the CPU of `streams` |
//! | `requests` | 10,000 sequential requests | no growth in memory, threads, descriptors |
//! | `deltas` | memory of a finished request with 1,000,000 deltas | the text once and 16 bytes a delta |
//! | `argument` | peak memory for a call with an argument of 15 MiB in one delta | 3 × the argument |
//! | `run` | CPU of `deftool run` and `deftool rpc` per chunk, and of curl | 1.2 × curl at one chunk a write (`--json` 1.4); at 60: 1.0 µs, `rpc` 2.0 |
//! | `conversation` | CPU of one request with 500, 1,000 and 2,000 turns | 1.5 s for 2,000 turns |
//!
//! `text-bare` and `streams-bare` do the same with reqwest only; the difference is the overhead of the worker.
//! `streams-observer` reads each reply in the task of its request, as `streams-bare` does; `streams` has a second task
//! for it. Each part runs in its own process, so that peak values are separate. Linux only, because it reads `/proc`.

// A benchmark stops at the first error.
#![allow(clippy::unwrap_used)]
// Figures are rounded for a table.
#![allow(clippy::cast_precision_loss)]

mod argument;
mod conversation;
mod deltas;
mod meter;
mod reader;
mod requests;
mod rpc;
mod run;
mod server;
mod streams;
mod text;
mod tools;

use std::process::Command;

use reader::Way;

const PARTS: [&str; 11] = [
    "text-bare",
    "text",
    "streams-bare",
    "streams",
    "streams-observer",
    "streams-rpc",
    "requests",
    "conversation",
    "deltas",
    "argument",
    "run",
];

fn main() {
    // As in the command.
    deftool_script::return_large_blocks();
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    match arguments.next().as_deref() {
        None => PARTS.iter().for_each(|part| {
            let status = Command::new(std::env::current_exe().unwrap()).arg(part).status().unwrap();
            assert!(status.success(), "{part} failed: {status}");
        }),
        Some("server") => server::serve(),
        Some("text") => text::measure(Way::Stream),
        Some("text-bare") => text::measure(Way::Bare),
        Some("streams") => streams::measure(Way::Stream),
        Some("streams-observer") => streams::measure(Way::Observer),
        Some("streams-rpc") => rpc::measure(),
        Some("streams-bare") => streams::measure(Way::Bare),
        Some("requests") => requests::measure(),
        Some("deltas") => deltas::measure(),
        Some("argument") => argument::measure(),
        Some("run") => run::measure(),
        Some("conversation") => conversation::measure(),
        Some("conversation-server") => conversation::serve(),
        Some(part) => panic!("there is no part `{part}`; there are {}", PARTS.join(", ")),
    }
}
