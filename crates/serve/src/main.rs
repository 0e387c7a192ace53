//! Entry point of `deftool-serve`, which runs the workers of a project on Restate.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use deftool::cli::serve::{ServeOptions, Stop, Workers, main as run, report};
use deftool_serve::{Host, RestateJournal, serve};
use futures_util::FutureExt;
use tokio::net::TcpListener;

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

impl AsRef<ServeOptions> for Arguments {
    fn as_ref(&self) -> &ServeOptions {
        &self.options
    }
}

fn main() -> ExitCode {
    let journal = Arc::new(RestateJournal::default());
    let stored = Arc::clone(&journal);
    run(journal, |arguments, workers, stop| serve_workers(arguments, workers, stored, stop))
}

async fn serve_workers(
    Arguments { listen, .. }: Arguments,
    workers: Arc<Workers>,
    journal: Arc<RestateJournal>,
    mut stop: Stop,
) -> Result<(), String> {
    // A load balancer that finds the port open can use the workers.
    tokio::select! {
        opened = workers.open_all() => opened?,
        () = &mut stop => return Ok(()),
    }
    let listener = TcpListener::bind(&listen).await;
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
