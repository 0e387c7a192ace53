//! `deftool run --batch`: crashes, interrupts and streams that end. The rest is in `tests/commands/run_batch.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs::File;
use std::process::Stdio;

use deftool_test_support::server::{Act, Answer, Received, Server, call, finish};
use deftool_test_support::step;
use serde_json::Value;

use crate::support::ledger::{SLOW_SCRIPT, kill, project, runs, wait_until};
use crate::support::project::{Ended, Project};

/// Writes a batch of `jobs`, whose prompts are `job 0`, `job 1` and so on.
fn write_jobs(project: &Project, jobs: usize) {
    let lines = (0..jobs).fold(String::new(), |mut lines, job| {
        writeln!(lines, r#"{{"prompt": "job {job}", "job_name": "j{job}"}}"#).unwrap();
        lines
    });
    project.write("jobs.jsonl", lines);
}

/// Returns the number of the job of a request.
fn job_of(received: &Received) -> usize {
    let messages = received.body["messages"].as_array().unwrap();
    let user = messages.iter().find(|message| message["role"] == "user").unwrap();
    user["content"].as_str().unwrap().rsplit("job ").next().unwrap().trim().parse().unwrap()
}

/// Returns the complete lines of the output.
fn results(project: &Project, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(project.path(name)).unwrap_or_default();
    let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn list(project: &Project) -> Vec<Value> {
    let listed = project.run(&["journal", "list", "jobs.journal", "--json"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    serde_json::from_str(&listed.stdout).unwrap()
}

/// The arguments of a batch with a journal.
fn arguments(endpoint: &str) -> [&str; 8] {
    ["run", "--batch", "jobs.jsonl", "--journal", "jobs.journal", "--trust", "--endpoint", endpoint]
}

/// A batch is killed five times. Every job then has one request and one result, no job that ended was sent again, and no
/// `once` call was repeated.
#[test]
fn a_batch_that_is_killed_loses_and_repeats_nothing() {
    let jobs = 1_000 / step(10);
    let project = project();
    project.write("specs/worker.eld", r#"(defworker :name "w" :tools ["pay"] :slots 8)"#);
    project.write("scripts/pay.lua", SLOW_SCRIPT);
    write_jobs(&project, jobs);
    // Every fourth job calls `pay`.
    let server = Server::answering(|_, received| {
        let messages = received.body["messages"].as_array().unwrap();
        let is_paid = messages.iter().any(|message| message["role"] == "tool");
        match job_of(received) {
            job if job % 4 == 0 && !is_paid => Answer::chunks(&[call(0, "pay", "{}"), finish("tool_calls")]),
            job => Answer::text(&format!("answer {job}")),
        }
    });
    let endpoint = server.endpoint();
    let mut random = fastrand::Rng::with_seed(1);
    // The request of each job whose result was printed, and the number of requests to the model until then.
    let (mut printed, mut kills) = (BTreeMap::new(), 0);
    for round in 1..=6 {
        let output = File::create(project.path("results.jsonl")).unwrap();
        let mut command = project.command(&arguments(&endpoint));
        let mut child = command.stdin(Stdio::null()).stdout(output).stderr(Stdio::null()).spawn().unwrap();
        if round == 6 {
            assert_eq!(child.wait().unwrap().code(), Some(0));
        } else {
            wait_until("results are printed", || {
                results(&project, "results.jsonl").len() >= round * jobs / 7
            });
            std::thread::sleep(std::time::Duration::from_millis(random.u64(0..20)));
            kills += usize::from(child.try_wait().unwrap().is_none());
            kill(child);
        }
        let mut sent = vec![0; jobs];
        for post in server.posts() {
            sent[job_of(&post)] += 1;
        }
        for result in results(&project, "results.jsonl") {
            let job = result["index"].as_u64().unwrap() as usize;
            assert_eq!(result["state"], "completed", "{result}");
            assert_eq!(
                (&result["job_name"], &result["answer"]),
                (&format!("j{job}").into(), &format!("answer {job}").into())
            );
            let id = result["request_id"].as_str().unwrap().to_owned();
            let (known, posts) = printed.entry(job).or_insert_with(|| (id.clone(), sent[job]));
            assert_eq!((&*known, *posts), (&id, sent[job]), "job {job} was repeated");
        }
    }
    assert_eq!(printed.keys().copied().collect::<Vec<_>>(), (0..jobs).collect::<Vec<_>>(), "lost");
    assert_eq!(results(&project, "results.jsonl").len(), jobs);
    let ids: BTreeSet<&String> = printed.values().map(|(id, _)| id).collect();
    let listed = list(&project);
    let stored: BTreeSet<&str> = listed.iter().map(|request| request["id"].as_str().unwrap()).collect();
    assert_eq!((listed.len(), stored), (jobs, ids.iter().map(|id| id.as_str()).collect()));
    let runs = runs(&project);
    let keys: BTreeSet<&str> = runs.iter().map(|(_, key)| key.as_str()).collect();
    assert_eq!(keys.len(), runs.len(), "a call was repeated: {runs:?}");
    assert!(keys.iter().all(|key| ids.iter().any(|id| key.starts_with(id.as_str()))), "{runs:?}");
    println!("{kills} kills, {jobs} jobs, 0 lost, 0 repeated, {} calls", runs.len());
}

/// Returns a project with `slots`, and a server that answers all jobs except the first.
fn with_a_stuck_job(slots: usize, jobs: usize) -> (Project, Server) {
    let project = Project::with_worker(&format!(r#"(defworker :name "w" :slots {slots})"#));
    write_jobs(&project, jobs);
    let server = Server::answering(|_, received| match job_of(received) {
        0 => Answer::stream().delta("Half").then(Act::Silence),
        job => Answer::text(&format!("answer {job}")),
    });
    (project, server)
}

#[cfg(unix)]
#[test]
fn results_are_printed_in_order_of_completion_and_an_interrupt_cancels_the_rest() {
    use std::io::{BufRead, BufReader};

    let (project, server) = with_a_stuck_job(2, 4);
    let endpoint = server.endpoint();
    let mut child = project.spawn(&["run", "--batch", "jobs.jsonl", "--endpoint", &endpoint]);
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&out.next().unwrap().unwrap()).unwrap();
    for job in 1..4 {
        assert_eq!(next()["index"], job);
    }
    super::run::interrupt(&child);
    let last = next();
    assert_eq!(
        (&last["index"], &last["state"], &last["answer"]),
        (&0.into(), &"canceled".into(), &"Half".into())
    );
    let ended = Ended::of(child.wait_with_output().unwrap());
    let expected = "4 jobs: 3 completed, 1 canceled\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(130), expected));
}

#[cfg(unix)]
#[test]
fn an_interrupted_batch_with_a_journal_continues_its_requests() {
    let (project, server) = with_a_stuck_job(1, 3);
    let child = project.spawn(&arguments(&server.endpoint()));
    server.wait_for_posts(1);
    super::run::interrupt(&child);
    let ended = Ended::of(child.wait_with_output().unwrap());
    let expected = "3 jobs: 3 not finished\n";
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(130), "", expected));
    let [unfinished] = list(&project).try_into().unwrap();
    assert_eq!(unfinished["state"], "unfinished");
    drop(server);
    let server = Server::answering(|_, received| Answer::text(&format!("answer {}", job_of(received))));
    let ended = project.run(&arguments(&server.endpoint()));
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), "3 jobs: 3 completed\n"), "{ended:?}");
    assert_eq!(ended.events()[0]["request_id"], unfinished["id"]);
    assert_eq!((server.posts().len(), list(&project).len()), (3, 3));
}

#[cfg(unix)]
#[test]
fn a_closed_stdout_ends_the_batch_and_loses_nothing() {
    let project = Project::with_worker(r#"(defworker :name "w" :slots 1)"#);
    write_jobs(&project, 5);
    let server = Server::answering(|_, received| Answer::text(&format!("answer {}", job_of(received))));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = project.command(&arguments(&server.endpoint()));
    let ended = Ended::of(command.stdout(writer).output().unwrap());
    assert_eq!((ended.code, server.posts().len()), (Some(130), 1), "{ended:?}");
    let ended = project.run(&arguments(&server.endpoint()));
    assert_eq!((ended.code, ended.events().len(), server.posts().len()), (Some(0), 5, 5), "{ended:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_shows_a_progress_bar() {
    use crate::support::terminal::{Piped, Terminal};

    let (project, server) = with_a_stuck_job(2, 4);
    let endpoint = server.endpoint();
    let arguments = ["run", "--batch", "jobs.jsonl", "--endpoint", &endpoint];
    let mut terminal = Terminal::start(&project, &arguments, Piped::Stdout);
    terminal.wait_for("3/4");
    terminal.type_text("\u{3}");
    let ended = terminal.end();
    assert_eq!((ended.code, ended.events().len()), (Some(130), 4), "{ended:?}");
    assert!(ended.stderr.contains("4 jobs: 3 completed, 1 canceled"), "{ended:?}");
}
