//! `deftool stub`: a model's server for tests, by a scenario or by the name of a misbehaviour.

mod command;
mod log;

use std::fmt::Write as _;
use std::io::Read;
use std::net::SocketAddr;

use super::args::{StubListing, StubOptions};
use super::interrupt::Signals;
use super::output::{clean, cut, print, print_json, print_painted, say, say_error};
use super::{CliError, Exit};
use crate::serve::stub::{GROUPS, Misbehaviour, Received, Scenario, Stub, load};
use crate::spec::nearest;
use crate::text::count;
use command::run_command;
use log::Log;

pub(super) fn run(options: &StubOptions) -> Result<Exit, CliError> {
    let StubListing { list: lists, json } = options.listing;
    if lists {
        if json {
            print_json(&GROUPS, true);
        } else {
            print_painted(&list());
        }
        return Ok(Exit::Clean);
    }
    let Some(scenario) = choose(options)? else { return Ok(Exit::NotAttempted) };
    let log = options.log.as_deref().map(Log::create).transpose()?;
    let is_quiet = options.quiet;
    let listener = move |request: &Received, status: Option<u16>, wrong: Option<&str>| {
        if let Some(log) = &log {
            log.write(request, status, wrong);
        }
        if !is_quiet {
            let status = status.map_or_else(|| String::from("-"), |status| status.to_string());
            // Without the query, in which some send their key.
            let (method, path) = (request.method(), request.path());
            say(&clean(&cut(&format!("{method} {path} {status}"), 300)));
        }
        if let Some(wrong) = wrong {
            say_error(wrong);
        }
    };
    let key = scenario.key().map(str::to_owned);
    let address = SocketAddr::new(options.address, options.port);
    let stub = Stub::start_at(address, scenario, listener)
        .map_err(|error| CliError::Usage(unheard(address, &error)))?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    let exit = runtime.block_on(async {
        // Whoever reads READY may send a signal at once.
        let mut signals = Signals::listen().map_err(CliError::Runtime)?;
        if options.command.is_empty() {
            print(&format!("READY {}\n", stub.endpoint()));
            until_told(&mut signals, options.until_stdin_closes).await;
            return Ok(Exit::Clean);
        }
        run_command(&options.command, &stub, key.as_deref(), &mut signals).await
    })?;
    // A test of an agent that asks elsewhere, or nobody, is none.
    if exit == Exit::Clean && !options.command.is_empty() && options.file.is_some() && stub.connections() == 0
    {
        say_error("no request came: does the command take its endpoint from OPENAI_BASE_URL?");
        return Ok(Exit::Failed);
    }
    let failures = stub.failures();
    if !failures.is_empty() {
        say_error(&format!("{} not as the scenario expects", were(failures.len())));
    }
    Ok(if exit == Exit::Clean && !failures.is_empty() { Exit::Failed } else { exit })
}

fn unheard(address: SocketAddr, error: &std::io::Error) -> String {
    let hint = match error.kind() {
        std::io::ErrorKind::AddrInUse => "; take another --port, or none for a free one",
        std::io::ErrorKind::AddrNotAvailable => "; take an --address of this machine, or none",
        _ => "",
    };
    format!("cannot listen at {address}: {error}{hint}")
}

fn were(failures: usize) -> String {
    format!("{} {}", count(failures, "request"), if failures == 1 { "was" } else { "were" })
}

/// The scenario that was asked for; `None`: its file has mistakes, which were told.
fn choose(options: &StubOptions) -> Result<Option<Scenario>, CliError> {
    let Some(path) = &options.file else {
        if options.misbehave.is_empty() {
            return Ok(Some(Scenario::polite()));
        }
        let ways = options.misbehave.iter().map(|name| named(name)).collect::<Result<Vec<_>, _>>()?;
        return Ok(Some(Scenario::misbehaving(ways, options.every)));
    };
    let mut scenarios = match load(path) {
        Ok(scenarios) => scenarios,
        Err(error) => {
            for finding in &error.findings {
                say(&clean(finding));
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
            let names = names.join(", ");
            let path = path.display();
            Err(CliError::Usage(match &options.scenario {
                Some(wanted) => format!("{path} has no scenario `{wanted}`; there are {names}"),
                None => format!("{path} has several scenarios: {names}; choose one with --scenario"),
            }))
        }
    }
}

fn named(name: &str) -> Result<&'static Misbehaviour, CliError> {
    Misbehaviour::named(name).ok_or_else(|| {
        let hint = match nearest(name, Misbehaviour::all().map(|way| way.name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => String::from("`deftool stub --list` has them all"),
        };
        CliError::Usage(format!("no misbehaviour is called `{name}`; {hint}"))
    })
}

/// Serves until a signal comes, or stdin ends.
async fn until_told(signals: &mut Signals, by_stdin: bool) {
    let (closed, stdin_closed) = tokio::sync::oneshot::channel::<()>();
    if by_stdin {
        // A read of stdin cannot be given up; the thread ends with the process.
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

/// Every misbehaviour in a line: what it is, and where it was seen.
fn list() -> String {
    let mut text = String::new();
    for group in &GROUPS {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", group.title);
        for Misbehaviour { name, about, seen, chat_completions_only, .. } in group.members {
            let remark = if *chat_completions_only { " [chat completions only]" } else { "" };
            let _ = writeln!(text, "  {name:<27} {about} ({seen}){remark}");
        }
        text.push('\n');
    }
    text.trim_end().to_owned() + "\n"
}
