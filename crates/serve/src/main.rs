//! Entry point of `deftool-serve`, which runs the workers of a project on Restate.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use deftool_engine::{Notices, Signals, prepare, serve_parent, telemetry};
use deftool_serve::{Host, RestateJournal, ServeOptions, Workers, report, serve};
use futures_util::FutureExt;
use tokio::net::TcpListener;
use tokio::runtime::Builder;

/// Run the workers of a deftool project on Restate, so that several machines share the requests.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    after_help = "\
Restate calls this program over HTTP and stores each step of a request, so that another machine can continue it.
docs/scale-out.md describes the set-up.

Examples:
  deftool-serve -C my-agent
  deftool-serve --listen 0.0.0.0:9080 -C my-agent --trust"
)]
struct Arguments {
    /// Address on which Restate reaches this program; 9080 is the usual port of services on Restate
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9080")]
    listen: String,
    #[command(flatten)]
    options: ServeOptions,
}

/// Time limit for blocked threads at the end.
const LAST_WORK: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    deftool_script::return_large_blocks();
    // The processes that this program starts itself have no options.
    let ended = match serve_parent() {
        Some(served) => served.map(|()| ExitCode::SUCCESS).map_err(|error| error.to_string()),
        None => run(Arguments::parse()),
    };
    // No program started by a script may outlive this process.
    deftool_process::kill_programs();
    telemetry::finish(&Notices::new(report));
    ended.unwrap_or_else(|message| {
        report(&format!("error: {message}"));
        ExitCode::from(2)
    })
}

fn run(Arguments { listen, options }: Arguments) -> Result<ExitCode, String> {
    prepare(Some(options.is_isolated())).map_err(|error| error.to_string())?;
    let journal = Arc::new(RestateJournal::default());
    let workers = Arc::new(Workers::of_project(options, Arc::<RestateJournal>::clone(&journal))?);
    // A step is short, so passing it between threads would cost more than it gains. Scripts have threads of their own.
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let served = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(|error| error.to_string())?;
        let mut received = 0;
        let stop = async { received = signals.next().await };
        let ended = serve_workers(&listen, Arc::clone(&workers), journal, stop).await;
        workers.close().await;
        ended.map(|()| ExitCode::from(128 + received))
    });
    runtime.shutdown_timeout(LAST_WORK);
    served
}

async fn serve_workers(
    listen: &str,
    workers: Arc<Workers>,
    journal: Arc<RestateJournal>,
    stop: impl Future<Output = ()>,
) -> Result<(), String> {
    let mut stop = std::pin::pin!(stop);
    // A load balancer that finds the port open can use the workers.
    tokio::select! {
        opened = workers.open_all() => opened?,
        () = &mut stop => return Ok(()),
    }
    let listener = TcpListener::bind(listen).await;
    let listener = listener.map_err(|error| format!("cannot listen on {listen}: {error}"))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    report(&format!("listening on {address}; register it in Restate with the URL http://{address}"));
    let open_worker = move |name: Option<&str>| {
        let (workers, name) = (Arc::clone(&workers), name.map(str::to_owned));
        async move { workers.open(name.as_deref()).await }.boxed()
    };
    serve(Host::new(Box::new(open_worker), journal, report), listener, stop).await;
    Ok(())
}
