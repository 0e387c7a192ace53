//! A fake model server in a separate process, run by this test binary. Environment variables control its behaviour.

use std::io::Write;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use deftool_lang::spec::ServerSpec;
use deftool_test_support::server::{Act, Answer, Received, Server, Texts, call, delta, finish};
use deftool_worker::ServerOptions;
use rustix::process::{Signal, getpid, kill_process};
use serde_json::json;

/// Returns the command that starts the fake server.
pub(crate) fn command() -> Vec<String> {
    let own = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let name = concat!(module_path!(), "::serve").split_once("::").unwrap().1;
    [own.as_str(), "--ignored", "--exact", name, "--nocapture"].map(String::from).to_vec()
}

/// Returns the options of a server with this behaviour, and of its guard.
pub(super) fn options(behaviour: &str) -> ServerOptions {
    let spec = ServerSpec {
        command: command(),
        env: vec![
            (String::from("FAKE"), behaviour.to_owned()),
            (String::from("FAKE_PORT"), String::from("{port}")),
        ],
        cwd: None,
        port: None,
    };
    crate::support::process::set_guard();
    let mut options = ServerOptions::of_spec(&spec, Path::new("/")).unwrap();
    options.limits.start = Duration::from_secs(60);
    options.limits.first_restart_delay = Duration::from_millis(20);
    options
}

/// Whether the server uses CPU without a request and answers probes with 503.
static SPINS: AtomicBool = AtomicBool::new(false);

#[test]
#[ignore = "other tests start it as their server"]
fn serve() {
    let Ok(behaviour) = std::env::var("FAKE") else { return };
    let port: u16 = std::env::var("FAKE_PORT").unwrap().parse().unwrap();
    let word = |name: &str| {
        behaviour.split(' ').find_map(|word| Some(word.strip_prefix(name)?.trim_start_matches('=')))
    };
    let number = |name: &str| word(name).map(|value| value.parse::<u64>().unwrap());
    let address = format!("{}:{port}", Ipv4Addr::LOCALHOST);
    // The worker starts the server again on another port. This start is not counted.
    assert!(std::net::TcpListener::bind(&address).is_ok(), "{address} is in use");
    if let Some(text) = word("say") {
        eprintln!("{}", text.replace('_', " "));
    }
    if let Some(file) = word("count") {
        writeln!(std::fs::File::options().create(true).append(true).open(file).unwrap(), "start").unwrap();
        let starts = std::fs::read_to_string(file).unwrap().lines().count() as u64;
        if number("fails-from").is_some_and(|first| starts >= first) {
            eprintln!("no model on start {starts}");
            std::process::exit(4);
        }
    }
    if let Some(code) = number("exit") {
        std::process::exit(code as i32);
    }
    if word("stubborn").is_some() {
        ignore_term();
    }
    if word("family").is_some() {
        // One process in its group, and an orphan in a separate session.
        let start = |program: &str, arguments: &[&str]| {
            Command::new(program).args(arguments).stdin(Stdio::null()).spawn().unwrap().id()
        };
        let child = start("sleep", &["1000"]);
        let stray = start("sh", &["-c", "setsid sh -c 'echo stray $$; exec sleep 1000' & wait"]);
        println!("child {child} {stray}");
    }
    if word("flood").is_some() {
        std::thread::spawn(|| {
            loop {
                if std::io::stdout().write_all(&vec![b'\xff'; 1 << 16]).is_err() {
                    return;
                }
            }
        });
    }
    let load = Duration::from_millis(number("load").unwrap_or_default());
    let status = number("models").unwrap_or(200) as u16;
    // Either the value, or a file with the value that a test changes.
    let slots = word("slots").map(str::to_owned);
    let slots = move || {
        let value = slots.as_ref()?;
        let in_file = std::fs::read_to_string(value).ok();
        Some(in_file.unwrap_or_else(|| value.clone()) == "busy")
    };
    let (is_moody, asked_for_models) = (word("moody").is_some(), AtomicUsize::new(0));
    let leaked = word("leak").map(|name| std::env::var(name).unwrap());
    let is_deaf = word("deaf").is_some();
    let started = Instant::now();
    let logs = word("log").is_some();
    let server = Server::answering_at(&address, move |_, asked| {
        if is_deaf {
            return Answer::silent();
        }
        match asked.line.split(' ').nth(1).unwrap_or_default() {
            "/v1/models" if started.elapsed() < load => Answer::error(503, &[], "Loading model"),
            "/v1/models" if status != 200 => Answer::error(status, &[], leaked.as_deref().unwrap_or("no")),
            "/v1/models" if SPINS.load(Ordering::SeqCst) => Answer::error(503, &[], "busy"),
            "/v1/models" if is_moody && asked_for_models.fetch_add(1, Ordering::SeqCst) % 3 > 0 => {
                Answer::error(503, &[], "not now")
            }
            "/v1/models" => {
                let models = json!({"object": "list", "data": [{"id": "fake", "owned_by": "test"}]});
                Answer::whole(200, &[("content-type", "application/json")], &models.to_string())
            }
            "/slots" => match slots() {
                Some(is_busy) => {
                    let all = json!([{"id": 0, "is_processing": is_busy}]);
                    Answer::whole(200, &[("content-type", "application/json")], &all.to_string())
                }
                None => Answer::error(404, &[], "no such page"),
            },
            "/v1/chat/completions" => {
                if logs {
                    eprintln!("asked {}", asked.texts("user").pop().unwrap_or_default());
                }
                reply(asked)
            }
            _ => Answer::error(404, &[], "no such page"),
        }
    });
    if let Some(after) = number("closes") {
        // An orderly shutdown: the connections are closed, and the process exits later.
        until_term();
        drop(server);
        std::thread::sleep(Duration::from_millis(after));
        std::process::exit(0);
    }
    if let Some(after) = number("die") {
        std::thread::sleep(Duration::from_millis(after));
        std::process::exit(3);
    }
    // Exit eventually if the guard fails.
    std::thread::sleep(Duration::from_secs(300));
}

/// Returns the model's reply to a prompt.
fn reply(asked: &Received) -> Answer {
    if asked.body["messages"].as_array().unwrap().iter().any(|message| message["role"] == "tool") {
        return Answer::text("seen");
    }
    let prompt = asked.texts("user").pop().unwrap_or_default();
    let begun = || Answer::stream().delta("so far");
    let ms = |text: &str| Duration::from_millis(text.parse().unwrap());
    match prompt.split_once(' ').unwrap_or((&prompt, "")) {
        ("die", _) => begun().wait_ms(20).then(Act::Do(Arc::new(|| {
            kill_process(getpid(), Signal::KILL).unwrap();
        }))),
        ("die-early", _) => Answer::default().wait_ms(20).then(Act::Do(Arc::new(|| {
            kill_process(getpid(), Signal::KILL).unwrap();
        }))),
        // The body ends regularly, like that of a proxy, but without the end of the reply.
        ("call-and-die", _) => {
            let answer = begun().chunk(&call(0, "done", "{}")).delta(" and on").end();
            answer.then(Act::Do(Arc::new(|| {
                kill_process(getpid(), Signal::KILL).unwrap();
            })))
        }
        ("exit", code) => {
            let code: i32 = code.parse().unwrap();
            begun().wait_ms(20).then(Act::Do(Arc::new(move || {
                eprintln!("out of memory");
                std::process::exit(code);
            })))
        }
        ("hold", _) => Answer::silent(),
        ("drip", _) => (0..20_000).fold(begun(), |answer, _| answer.delta("x ").wait_ms(2)),
        ("stall", _) => begun().then(Act::Silence),
        ("mute", _) => Answer::stream().then(Act::Silence),
        ("spin", _) => {
            SPINS.store(true, Ordering::SeqCst);
            std::thread::spawn(|| {
                loop {
                    std::hint::black_box((0..1000).fold(1_u64, |a, b| a.wrapping_mul(b | 1)));
                }
            });
            Answer::text("spinning")
        }
        ("read", time) => {
            let time = ms(time);
            let read = move || {
                let until = Instant::now() + time;
                while Instant::now() < until {
                    std::hint::black_box((0..1000).fold(1_u64, |a, b| a.wrapping_mul(b | 1)));
                }
            };
            // Send the head before the thread is busy.
            let head = Answer::stream().wait_ms(20).then(Act::Do(Arc::new(read)));
            head.delta("read").chunk(&finish("stop")).done().end()
        }
        ("sleep", time) => {
            let head = Answer::stream().then(Act::Wait(ms(time)));
            head.delta("slept").chunk(&finish("stop")).done().end()
        }
        ("look", _) => Answer::chunks(&[delta("so far "), call(0, "look", "{}"), finish("tool_calls")]),
        _ => Answer::text("hi"),
    }
}

/// Ignores SIGTERM.
fn ignore_term() {
    std::thread::spawn(|| {
        loop {
            until_term();
            eprintln!("not now");
        }
    });
    // Wait until the handler is installed.
    std::thread::sleep(Duration::from_millis(50));
}

/// Waits for SIGTERM.
fn until_term() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let kind = tokio::signal::unix::SignalKind::terminate();
        tokio::signal::unix::signal(kind).unwrap().recv().await;
    });
}

/// Whether a process is running. A zombie is not.
pub(crate) fn runs(id: u32) -> bool {
    let Ok(line) = std::fs::read_to_string(format!("/proc/{id}/stat")) else {
        return !cfg!(target_os = "linux")
            && rustix::process::Pid::from_raw(id.cast_signed())
                .is_some_and(|id| rustix::process::test_kill_process(id).is_ok());
    };
    !line.rsplit_once(')').unwrap().1.trim_start().starts_with(['Z', 'X'])
}

/// Waits until none of the processes is running. Returns the elapsed time.
pub(crate) fn wait_until_gone(ids: &[u32]) -> Duration {
    let begun = Instant::now();
    while ids.iter().any(|id| runs(*id)) {
        assert!(begun.elapsed() < deftool_test_support::HANG_LIMIT, "left behind: {ids:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    begun.elapsed()
}

/// Returns a process and its descendants.
pub(crate) fn family(id: u32) -> Vec<u32> {
    let mut found = vec![id];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        at += 1;
        for task in std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten() {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().map(|id| id.parse::<u32>().unwrap()));
        }
    }
    found
}

/// Returns the parent of a process.
pub(crate) fn parent(id: u32) -> u32 {
    let line = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    line.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap()
}

pub(crate) fn signal(id: u32, signal: Signal) {
    kill_process(rustix::process::Pid::from_raw(id.cast_signed()).unwrap(), signal).unwrap();
}
