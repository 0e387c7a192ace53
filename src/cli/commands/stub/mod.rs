//! `deftool stub`: a stub model server for tests, with scenarios and fault injection.

mod command;
mod log;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args};
use deftool_lang::spec::advice_on_name;
use deftool_lang::text::count;
use deftool_stub::{Fault, GROUPS, Received, Scenario, Stub, load};

use crate::cli::options::{FormatOptions, parse_duration};
use crate::cli::outcome::{CliError, Exit, listen_error, runtime};
use crate::cli::terminal::interrupt::Signals;
use crate::cli::terminal::output::{
    clean, cut, eprint_error, eprint_line, eprint_progress, print, print_json, print_styled,
};
use command::run_command;
use log::Log;

#[derive(Debug, Args)]
#[command(after_help = "\
Prints `READY URL` when it listens, and serves until Ctrl-C. Without a scenario, every request gets a short text; if the \
model of a request is the name of a fault, the answer has that fault. See docs/stub.md for the format of scenarios.

Examples:
  deftool stub weather.eld --scenario weather -- my-agent \"What is the weather?\"
  deftool stub --fault rst-mid-stream -- deftool run \"Are you there?\"")]
pub(in crate::cli) struct StubOptions {
    /// Scenario file [default: a short text for every request]
    #[arg(value_name = "SCENARIO")]
    pub(in crate::cli) file: Option<PathBuf>,
    /// Scenario to play, if the file contains several
    #[arg(long, value_name = "NAME", requires = "file")]
    pub(in crate::cli) scenario: Option<String>,
    /// Inject a fault into the first answer; separate several with commas or repeat the option to inject one into each
    /// of the first answers
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "file")]
    pub(in crate::cli) fault: Vec<String>,
    /// Interval of faults that send slowly or endlessly
    #[arg(long, hide_short_help = true, value_name = "DURATION", requires = "fault", value_parser = parse_duration)]
    pub(in crate::cli) every: Option<Duration>,
    #[command(flatten)]
    pub(in crate::cli) listing: StubListing,
    /// Port to listen on; 0 chooses a free port
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(in crate::cli) port: u16,
    /// Address to listen on; only loopback addresses are private to this machine
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(in crate::cli) address: std::net::IpAddr,
    /// Write every request to FILE, one JSON object per line
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    pub(in crate::cli) log: Option<PathBuf>,
    /// Also stop when stdin is closed
    #[arg(long, hide_short_help = true)]
    pub(in crate::cli) until_stdin_closes: bool,
    /// Command to run with its base URL set to the stub; the stub exits with it
    #[arg(last = true, value_name = "COMMAND")]
    pub(in crate::cli) command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("list-format").args(["format", "json"]).multiple(true).requires("list")))]
pub(in crate::cli) struct StubListing {
    /// List all faults
    #[arg(long, conflicts_with_all = ["file", "fault", "command"])]
    pub(in crate::cli) list: bool,
    #[command(flatten)]
    pub(in crate::cli) format: FormatOptions,
}

pub(in crate::cli) fn run(options: &StubOptions) -> Result<Exit, CliError> {
    let StubListing { list: lists, format } = &options.listing;
    if *lists {
        if format.is_json() {
            print_json(&GROUPS, true);
        } else {
            print_styled(&list());
        }
        return Ok(Exit::Clean);
    }
    let Some(scenario) = choose(options)? else { return Ok(Exit::NotAttempted) };
    let log = options.log.as_deref().map(Log::create).transpose()?;
    let listener = move |request: &Received, status: Option<u16>, wrong: Option<&str>| {
        if let Some(log) = &log {
            log.write(request, status, wrong);
        }
        let status = status.map_or_else(|| String::from("-"), |status| status.to_string());
        // Without the query, which may contain a key.
        let (method, path) = (request.method(), request.path());
        eprint_progress(&clean(&cut(&format!("{method} {path} {status}"), 300)));
        if let Some(wrong) = wrong {
            eprint_error(wrong);
        }
    };
    let key = scenario.key().map(str::to_owned);
    let address = SocketAddr::new(options.address, options.port);
    let stub = Stub::start_at(address, scenario, listener)
        .map_err(|error| CliError::Usage(listen_error(address, &error)))?;
    let runtime = runtime()?;
    let exit = runtime.block_on(async {
        // Listen before `READY` is printed, because a process that reads it may send a signal immediately.
        let mut signals = Signals::listen().map_err(CliError::Runtime)?;
        if options.command.is_empty() {
            print(&format!("READY {}\n", stub.endpoint()));
            serve_until_stopped(&mut signals, options.until_stdin_closes).await;
            return Ok(Exit::Clean);
        }
        run_command(&options.command, &stub, key.as_deref(), &mut signals).await
    })?;
    // Without a request, the scenario tested nothing.
    if exit == Exit::Clean && !options.command.is_empty() && options.file.is_some() && stub.connections() == 0
    {
        eprint_error(
            "received no request; does the command use OPENAI_BASE_URL or ANTHROPIC_BASE_URL as its endpoint?",
        );
        return Ok(Exit::Failed);
    }
    let failures = stub.failures();
    if !failures.is_empty() {
        eprint_error(&format!("{} not match the scenario", failure_count(failures.len())));
    }
    Ok(if exit == Exit::Clean && !failures.is_empty() { Exit::Failed } else { exit })
}

fn failure_count(failures: usize) -> String {
    format!("{} {}", count(failures, "request"), if failures == 1 { "does" } else { "do" })
}

/// Returns the selected scenario, or `None` if its file is invalid, which was reported.
fn choose(options: &StubOptions) -> Result<Option<Scenario>, CliError> {
    let Some(path) = &options.file else {
        if options.fault.is_empty() {
            return Ok(Some(Scenario::without_steps()));
        }
        let faults = options.fault.iter().map(|name| named(name)).collect::<Result<Vec<_>, _>>()?;
        return Ok(Some(Scenario::with_faults(faults, options.every)));
    };
    let mut scenarios = match load(path) {
        Ok(scenarios) => scenarios,
        Err(error) => {
            for finding in &error.findings {
                eprint_line(&clean(finding));
            }
            return Ok(None);
        }
    };
    let names: Vec<String> = scenarios.iter().map(|scenario| scenario.name.clone()).collect();
    let index = match &options.scenario {
        Some(wanted) => names.iter().position(|name| name == wanted),
        None if names.len() == 1 => Some(0),
        None => None,
    };
    match index {
        Some(index) => Ok(Some(scenarios.swap_remove(index))),
        None => {
            let path = path.display();
            Err(CliError::Usage(match &options.scenario {
                Some(wanted) => {
                    let advice = advice_on_name(wanted, "scenarios", names.iter().map(String::as_str));
                    format!("no scenario `{wanted}` in {path}; {advice}")
                }
                None => {
                    let names = names.join(", ");
                    format!("{path} contains several scenarios: {names}; choose one with --scenario")
                }
            }))
        }
    }
}

fn named(name: &str) -> Result<&'static Fault, CliError> {
    Fault::named(name).ok_or_else(|| {
        let advice = advice_on_name(name, "faults", Fault::all().map(|fault| fault.name));
        CliError::Usage(format!("unknown fault `{name}`; {advice}"))
    })
}

/// Serves until a signal arrives or, with `by_stdin`, stdin is closed.
async fn serve_until_stopped(signals: &mut Signals, by_stdin: bool) {
    let (closed, stdin_closed) = tokio::sync::oneshot::channel::<()>();
    if by_stdin {
        // A blocking read of stdin cannot be canceled. The thread ends with the process.
        std::thread::spawn(move || {
            let mut bytes = [0; 1024];
            let mut stdin = std::io::stdin().lock();
            while !matches!(stdin.read(&mut bytes), Ok(0) | Err(_)) {}
            drop(closed);
        });
        tokio::select! {
            () = signals.next() => {}
            _ = stdin_closed => {}
        }
    } else {
        signals.next().await;
    }
}

/// Formats the list of faults, one per line.
fn list() -> String {
    let mut text = String::new();
    for group in &GROUPS {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", group.title);
        for fault @ Fault { name, about, seen, .. } in group.members {
            let remark = fault.restriction().map_or_else(String::new, |apis| format!(" [{apis} only]"));
            let _ = writeln!(text, "  {name:<27} {about} ({seen}){remark}");
        }
        text.push('\n');
    }
    text.trim_end().to_owned() + "\n"
}
