//! Ten thousand sequential requests: checks for leaks.
//!
//! The worker keeps the results of the last thousand requests, so the figures after the first thousand and at the end must
//! be the same. Of a hundred requests, ten call a tool, one loses its server and one is canceled.

use deftool_chat::request::{Event, FinalState};
use deftool_worker::{SubmitRequest, Worker};

use crate::meter::{descriptors, now_us, status};
use crate::reader::worker;
use crate::server::Server;

const REQUESTS: usize = 10_000;

pub(crate) fn measure() {
    let server = Server::start();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let worker = worker(&server, 1);
        let start = now_us();
        for number in 1..=REQUESTS {
            ask(&worker, number).await;
            if number.is_multiple_of(1_000) {
                let rss = status("VmRSS:") as f64 / 1024.0;
                let (threads, descriptors) = (status("Threads:"), descriptors());
                println!(
                    "requests after {number:>5}: {rss:>5.1} MB, {threads} threads, {descriptors} descriptors"
                );
            }
        }
        let each = (now_us() - start) / REQUESTS as u64;
        println!("requests took {each} µs each");
    });
}

async fn ask(worker: &Worker, number: usize) {
    let (prompt, expected) = match number % 100 {
        33 => ("close", FinalState::Failed),
        66 => ("silence", FinalState::Canceled),
        ending if ending % 10 == 0 => ("call", FinalState::Completed),
        _ => ("text", FinalState::Completed),
    };
    let id = worker.submit(SubmitRequest::prompt(prompt)).unwrap();
    let mut events = worker.events(&id, 0).unwrap();
    while let Some(event) = events.next().await {
        if prompt == "silence" && matches!(&*event, Event::Text { .. }) {
            worker.cancel(&id);
        }
    }
    let outcome = worker.result(&id).unwrap();
    assert_eq!(outcome.state, expected, "{prompt}: {outcome:?}");
}
