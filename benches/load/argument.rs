//! The peak memory of a call with one long argument, until its result is sent to the model.

use std::sync::Arc;
use std::time::Duration;

use deftool_chat::request::{FinalState, RunConfig};
use deftool_worker::{HttpTransport, Worker, WorkerConfig};

use crate::meter::status;
use crate::server::{ARGUMENT, Server};
use crate::tools::toolbox;

pub(crate) fn measure() {
    let server = Server::start();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let run = RunConfig { model: String::from("stub"), ..RunConfig::default() };
        let config = WorkerConfig { run, ..WorkerConfig::default() };
        let transport = HttpTransport::new(&server.endpoint, None, Duration::from_secs(3)).unwrap();
        let worker = Worker::start(config, toolbox(), Arc::new(transport));
        // It initialises the process.
        worker.ask("call").await.unwrap();
        let before = status("VmHWM:");
        let outcome = worker.ask("argument").await.unwrap();
        assert_eq!(
            (outcome.state, outcome.tool_iterations),
            (FinalState::Completed, 1),
            "{:?}",
            outcome.detail
        );
        let peak = (status("VmHWM:") - before) as f64 * 1024.0;
        println!(
            "argument {:.1} MB in one delta: peak {:.1} MB, {:.1} × the argument",
            ARGUMENT as f64 / 1e6,
            peak / 1e6,
            peak / ARGUMENT as f64
        );
    });
}
