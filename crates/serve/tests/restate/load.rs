//! What requests on Restate cost, on one node and on three. `benches/restate/run` runs it and sets `DEFTOOL_LOAD`, the
//! program `empty_handler`.

// The numbers are small.
#![allow(clippy::cast_precision_loss)]

use std::time::Instant;

use super::cluster::{Cluster, INGRESS, WORKERS};
use super::*;

/// Number of turns with a call in a long request.
const TURNS: usize = 40;
/// Requests of a load, with six calls each.
const REQUESTS: usize = 300;
/// Submitted requests that have not ended, in each load.
const OPEN: [usize; 2] = [32, 200];
/// Repetitions of the measurement of a step.
const ROUNDS: usize = 25;

/// Clock ticks in a second, in which Linux counts CPU time.
const TICKS: f64 = 100.0;

/// Returns the CPU time of a process so far, in seconds.
fn cpu(child: &Child) -> f64 {
    cpu_of(child.id())
}

fn cpu_of(id: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / TICKS
}

/// Returns the size of the files in a folder, in bytes.
fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(about) if about.is_dir() => size(&entry.path()),
        Ok(about) => about.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

/// Returns minimum, median and maximum.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let (first, last) = (values[0], values[values.len() - 1]);
    format!("{:.2} ms ({first:.2}–{last:.2})", values[values.len() / 2])
}

/// A project whose tools do nothing, and a server that calls one in each turn. The prompt is the number of turns.
fn without_work() -> (Project, Server) {
    let project = project();
    project.write("specs/worker.eld", "(defworker :name \"many\" :slots 200 :tool-budget 1000)");
    for tool in ["look", "send", "pay"] {
        project.write(&format!("scripts/{tool}.lua"), "return function() return 'done' end");
    }
    let server = Server::answering(move |_, received| {
        let turns: usize = received.texts("user")[0].parse().unwrap();
        let results = received.texts("tool").len();
        if results < turns { calling("look") } else { Answer::text("The end.") }
    });
    (project, server)
}

/// The cost of a step: of an empty handler, and of a request without the time that it takes in process. Each is the
/// difference of a long and a short request, so that the start does not count.
fn measure_steps(empty_handler: &str) {
    let engine = Engine::start().unwrap();
    let (project, server) = without_work();
    let worker = engine.serve(&project, &server);
    engine.register();
    let [port] = free_ports();
    let mut command = Command::new(empty_handler);
    let address = format!("127.0.0.1:{port}");
    command.arg(&address);
    let empty = start_worker(command, &address);
    engine.register_at(port);
    let in_process = |turns: usize| {
        let started = Instant::now();
        let prompt = turns.to_string();
        let events = engine.client.runtime.block_on(run_in_process(&project, &server, &prompt));
        assert_eq!(events.last().unwrap()["state"], "completed");
        ms(started)
    };
    let durable = |turns: usize, id: &str| {
        let started = Instant::now();
        let (status, result) =
            engine.call(&format!("Request/{id}/run"), &json!({"prompt": turns.to_string()}));
        let took = ms(started);
        assert_eq!((status, &result["outcome"]["state"]), (200, &json!("completed")), "{result}");
        let steps = engine.query(&format!(
            "select count(*) as steps from sys_journal j join sys_invocation i on j.id = i.id \
             where i.target_service_key = '{id}' and j.entry_type = 'Command: Run'"
        ))[0]["steps"]
            .as_u64()
            .unwrap();
        (took, steps)
    };
    let nothing = |steps: u64, id: &str| {
        let started = Instant::now();
        assert_eq!(engine.call(&format!("Empty/{id}/run"), &json!(steps)).0, 200);
        ms(started)
    };
    let (mut of_request, mut of_empty, mut ratios) = (vec![], vec![], vec![]);
    let mut steps = 0;
    for round in 0..=ROUNDS {
        let (long, short) = (durable(TURNS, &format!("l{round}")), durable(0, &format!("s{round}")));
        steps = long.1 - short.1;
        let empty = nothing(long.1, &format!("l{round}")) - nothing(short.1, &format!("s{round}"));
        let plain = in_process(TURNS) - in_process(0);
        // The first round starts everything.
        if round > 0 {
            let count = steps as f64;
            of_request.push((long.0 - short.0 - plain) / count);
            of_empty.push(empty / count);
            ratios.push((long.0 - short.0 - plain) / empty);
        }
    }
    ratios.sort_by(f64::total_cmp);
    println!("{steps} steps, {ROUNDS} rounds; a step:");
    println!("  empty handler    {}", spread(of_empty));
    println!("  request          {}", spread(of_request));
    let last = ratios.len() - 1;
    println!("  request / empty  {:.2} ({:.2}–{:.2})", ratios[last / 2], ratios[0], ratios[last]);
    kill(worker);
    kill(empty);
}

/// A load of requests with six calls each.
struct Load {
    open: usize,
    seconds: f64,
    events: usize,
    /// CPU time of the clients and the model server, in seconds.
    clients_cpu: f64,
}

/// Submits requests, `open` at a time, and waits for their ends. `send` sends a body to Restate, or reads a page.
fn load(name: &str, open: usize, send: impl Fn(&str, Option<&Value>) -> Value + Sync) -> Load {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let (started, before) = (Instant::now(), cpu_of(std::process::id()));
    std::thread::scope(|scope| {
        for _ in 0..open {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if number >= REQUESTS {
                        return;
                    }
                    let id = format!("{name}-{number}");
                    send(&format!("Request/{id}/run/send"), Some(&json!({"prompt": "6"})));
                    let result = send(&format!("restate/workflow/Request/{id}/attach"), None);
                    assert_eq!(result["outcome"]["state"], "completed", "{result}");
                }
            });
        }
    });
    let seconds = started.elapsed().as_secs_f64();
    let clients_cpu = cpu_of(std::process::id()) - before;
    let mut events = 0;
    let mut cursor = json!(0);
    while !cursor.is_null() {
        let mut page = send(&format!("Request/{name}-0/events"), Some(&cursor));
        events += page["events"].as_array().unwrap().len();
        cursor = page["next"].take();
    }
    Load { open, seconds, events, clients_cpu }
}

fn report(nodes: usize, load: &Load, nodes_cpu: f64, worker_cpu: f64, bytes: u64) {
    let (count, Load { open, seconds, events, clients_cpu }) = (REQUESTS as f64, load);
    println!(
        "{nodes} node(s), {REQUESTS} requests of 6 calls, {open} at a time: {:.0} requests/s, {:.0} events/s; \
         CPU a request: {:.1} ms nodes, {:.1} ms worker; cores in use: {:.2}, with clients and model server {:.2}; {:.0} kB a request on all disks",
        count / seconds,
        count * *events as f64 / seconds,
        nodes_cpu * 1e3 / count,
        worker_cpu * 1e3 / count,
        (nodes_cpu + worker_cpu) / seconds,
        (nodes_cpu + worker_cpu + clients_cpu) / seconds,
        bytes as f64 / count / 1e3,
    );
}

#[test]
fn figures() {
    let Ok(empty_handler) = std::env::var("DEFTOOL_LOAD") else { return };
    measure_steps(&empty_handler);

    let (project, server) = without_work();
    {
        let engine = Engine::start().unwrap();
        let worker = engine.serve(&project, &server);
        engine.register();
        let send = |path: &str, body: Option<&Value>| {
            let (status, answer) = engine.send(engine.ingress, path, body).unwrap();
            assert!(status < 300, "{status}: {answer}");
            answer
        };
        // A node that has just started is slow.
        load("first", OPEN[0], send);
        for open in OPEN {
            let before = (cpu(&engine.node), cpu(&worker), size(engine.folder.path()));
            let load = load(&format!("one-{open}"), open, send);
            let bytes = size(engine.folder.path()).saturating_sub(before.2);
            report(1, &load, cpu(&engine.node) - before.0, cpu(&worker) - before.1, bytes);
        }
        kill(worker);
    }
    let Some(cluster) = Cluster::start() else { return };
    let [port] = free_ports();
    let worker = cluster::serve(&project, &server, port);
    let deployment = json!({"uri": format!("http://{WORKERS}:{port}")});
    cluster.ask(9070, "deployments", Some(&deployment), |status| status < 300);
    let send = |path: &str, body: Option<&Value>| cluster.ask(INGRESS, path, body, |status| status < 300);
    // Nodes that have just started are slow.
    load("first", OPEN[0], send);
    for open in OPEN {
        let before = (cluster.cpu(cpu), cpu(&worker), cluster.size(size));
        let load = load(&format!("three-{open}"), open, send);
        let bytes = cluster.size(size).saturating_sub(before.2);
        report(3, &load, cluster.cpu(cpu) - before.0, cpu(&worker) - before.1, bytes);
    }
    kill(worker);
}
