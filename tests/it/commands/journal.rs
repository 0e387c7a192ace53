//! Requests in a journal survive the end of their process: the real binary is killed and continues.

use std::path::Path;
use std::process::Child;
use std::time::Duration;

use deftool_test_support::server::{Act, Answer, Server, call, delta, finish};
use deftool_test_support::{ignores_hangup, step};
use serde_json::Value;

use crate::real;
use crate::support::ledger::{SLOW_SCRIPT, calling, kill, project, runs, spawn, wait_until};
use crate::support::project::{Ended, Project};

/// Starts a request whose journal is `requests.journal`.
fn start(project: &Project, server: &Server) -> Child {
    let endpoint = server.endpoint();
    let arguments = ["run", "hello", "--trust", "--journal", "requests.journal", "--endpoint", &endpoint];
    spawn(project.command(&arguments))
}

fn resume(project: &Project) -> Ended {
    project.run(&["journal", "resume", "requests.journal", "--trust"])
}

fn list(project: &Project) -> Vec<(String, String)> {
    let listed = project.run(&["journal", "list", "requests.journal", "--json"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let listed: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    let text = |request: &Value, key: &str| request[key].as_str().unwrap().to_owned();
    listed.iter().map(|request| (text(request, "id"), text(request, "state"))).collect()
}

#[test]
fn an_interrupted_reply_is_requested_again() {
    let project = project();
    project.write("log/go", "");
    let server = Server::script([
        calling("pay"),
        Answer::stream().delta("Half of a").then(Act::Silence),
        Answer::text("The whole answer."),
    ]);
    let child = start(&project, &server);
    let journal = || project.run(&["journal", "list", "requests.journal"]).stdout;
    wait_until("the second turn begins", || server.posts().len() == 2);
    // Its text is on its way to the journal.
    let shown = |id: &str| project.run(&["journal", "show", "requests.journal", id]).stdout;
    wait_until("the text is stored", || {
        journal().split(' ').next().is_some_and(|id| shown(id).contains("Half of a"))
    });
    kill(child);
    let [(id, state)] = list(&project).try_into().unwrap();
    assert_eq!(state, "unfinished");
    #[cfg(unix)]
    for file in ["requests.journal", "requests.journal.lock"] {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(project.path(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let ended = resume(&project);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "Let me see. The whole answer.\n"),
        "{ended:?}"
    );
    assert!(
        ended.stderr.contains("interrupted reply of 9 characters is requested again"),
        "{}",
        ended.stderr
    );
    assert!(shown(&id).contains(r#"{"type":"resumed","superseded":"Half of a"}"#), "{}", shown(&id));
    assert_eq!(list(&project), [(id, String::from("completed"))]);
    let page = project.run(&["view", "requests.journal", "-o", "-"]);
    assert!(page.code == Some(0) && page.stdout.contains(r#""superseded":"Half of a""#), "{page:?}");
    // The first turn and its call were not repeated, and the same conversation was sent.
    let posts = server.posts();
    assert_eq!((posts.len(), runs(&project).len()), (3, 1));
    assert_eq!(posts[1].body, posts[2].body);
    let again = resume(&project);
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), "no request to resume: all have ended\n"));
}

/// Signals other than Ctrl-C, and the end of the reader of stdout, end the process and not the request.
#[cfg(unix)]
#[test]
fn the_end_of_the_process_suspends_and_ctrl_c_cancels() {
    for (signal, state) in [("TERM", "unfinished"), ("HUP", "unfinished"), ("INT", "canceled")] {
        if signal == "HUP" && ignores_hangup() {
            continue;
        }
        let project = project();
        let server = Server::script([
            Answer::stream().delta("Half").then(Act::Silence),
            Answer::text("The whole answer."),
        ]);
        let endpoint = server.endpoint();
        let child = project.spawn(&[
            "run",
            "hello",
            "--trust",
            "--journal",
            "requests.journal",
            "--endpoint",
            &endpoint,
        ]);
        server.wait_for_posts(1);
        let kill = ["-s", signal, &child.id().to_string()];
        assert!(std::process::Command::new("kill").args(kill).status().unwrap().success());
        let ended = Ended::of(child.wait_with_output().unwrap());
        let [(_, stored)] = list(&project).try_into().unwrap();
        assert_eq!(stored, state, "{signal}: {ended:?}");
        if state == "unfinished" {
            assert!(ended.stderr.contains("suspended; `deftool journal resume"), "{signal}: {ended:?}");
            assert_eq!(resume(&project).stdout, "The whole answer.\n", "{signal}");
        }
    }
}

#[test]
fn an_interrupted_call_follows_the_effect_of_its_tool() {
    for (tool, runs_expected) in [("look", 2), ("send", 2), ("pay", 1)] {
        let project = project();
        let server = Server::script([calling(tool), Answer::text("Done.")]);
        let child = start(&project, &server);
        wait_until("the tool runs", || runs(&project).len() == 1);
        kill(child);
        project.write("log/go", "");
        let ended = resume(&project);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(0), "Let me see. Done.\n"),
            "{tool}: {ended:?}"
        );
        let runs = runs(&project);
        assert_eq!(runs.len(), runs_expected, "{tool}");
        assert!(!runs[0].1.is_empty() && runs.iter().all(|run| *run == runs[0]), "{runs:?}");
        let messages = server.posts()[1].body["messages"].to_string();
        assert_eq!(messages.contains("interrupted"), tool == "pay", "{messages}");
        assert_eq!(messages.contains(&format!("{tool} is done")), tool != "pay", "{messages}");
    }
}

/// The stored approval does not count, and the user is not asked about what happened in the killed process.
#[cfg(target_os = "linux")]
#[test]
fn an_allowed_call_is_asked_about_once_again() {
    use crate::support::terminal::{Piped, Terminal};

    let project = project();
    let spec = r#"(deftool :name "pay" :description "Pay." :effect keyed :confirm t :allow (:read ["log/"] :write ["log/"]))"#;
    project.write("specs/tools.eld", spec);
    for tool in ["look", "send"] {
        std::fs::remove_file(project.path(&format!("scripts/{tool}.lua"))).unwrap();
    }
    let server = Server::script([calling("pay"), Answer::text("Paid.")]);
    let endpoint = server.endpoint();
    let arguments =
        ["run", "hello", "--yes", "--trust", "--journal", "requests.journal", "--endpoint", &endpoint];
    let child = spawn(project.command(&arguments));
    wait_until("the tool runs", || runs(&project).len() == 1);
    kill(child);
    project.write("log/go", "");
    let mut terminal =
        Terminal::start(&project, &["journal", "resume", "requests.journal", "--trust"], Piped::Stdout);
    terminal.wait_for("Allow it?");
    terminal.type_text("y\n");
    let ended = terminal.end();
    assert_eq!((ended.code, ended.stdout.trim_end()), (Some(0), "Let me see. Paid."), "{ended:?}");
    assert_eq!((ended.stderr.matches("Allow it?").count(), runs(&project).len()), (1, 2), "{ended:?}");
}

#[test]
fn requests_are_canceled_and_removed() {
    let project = project();
    let server = Server::script([calling("pay")]);
    let child = start(&project, &server);
    wait_until("the tool runs", || runs(&project).len() == 1);
    let [(id, _)] = list(&project).try_into().unwrap();
    // Only one process writes.
    let locked = "error: requests.journal is in use by another deftool process\n";
    for arguments in [&["cancel", "requests.journal", id.as_str()][..], &["prune", "requests.journal"]] {
        let ended = project.run(&[&["journal"], arguments].concat());
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(2), locked));
    }
    assert_eq!(resume(&project).stderr, locked);
    kill(child);
    let ended = project.run(&["journal", "cancel", "requests.journal", &id]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert_eq!(list(&project), [(id.clone(), String::from("canceled"))]);
    let ended = project.run(&["journal", "cancel", "requests.journal", &id]);
    assert_eq!((ended.code, ended.stderr), (Some(2), format!("error: the request {id} has ended\n")));
    let ended = project.run(&["journal", "resume", "requests.journal", &id]);
    assert_eq!((ended.code, ended.stderr), (Some(2), format!("error: the request {id} has ended\n")));
    let ended = project.run(&["journal", "prune", "requests.journal"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), "removed 1 request\n"));
    assert_eq!(list(&project), []);
}

#[test]
fn a_changed_tool_is_reported() {
    let project = project();
    let server = Server::script([calling("look"), Answer::text("Done.")]);
    let child = start(&project, &server);
    wait_until("the tool runs", || runs(&project).len() == 1);
    kill(child);
    project.write("scripts/look.lua", "return function() return 1 end");
    std::fs::remove_file(project.path("scripts/send.lua")).unwrap();
    let ended = resume(&project);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("note: the tool `look` has changed\n"), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("note: the tool `send` no longer exists or has errors\n"),
        "{}",
        ended.stderr
    );
    assert!(!ended.stderr.contains("`pay`"), "{}", ended.stderr);
}

/// Files that are not journals, and a damaged one.
#[test]
fn a_file_that_cannot_be_used_is_explained() {
    let project = project();
    project.write("log/go", "");
    let server = Server::script([Answer::text("Done.")]);
    let child = start(&project, &server);
    wait_until("the request ends", || {
        project.path("requests.journal").exists()
            && list(&project).iter().any(|(_, state)| state == "completed")
    });
    child.wait_with_output().unwrap();
    let bytes = std::fs::read(project.path("requests.journal")).unwrap();
    project.write("text.journal", "This is a text, and not a journal. ".repeat(100));
    project.write("cut.journal", &bytes[..bytes.len() / 2]);
    // The format is at byte 60 of an SQLite database.
    let mut newer = bytes.clone();
    newer[63] = 9;
    project.write("newer.journal", newer);
    for (name, expected) in [
        ("text.journal", "text.journal is not a journal of deftool"),
        ("cut.journal", "cut.journal: database disk image is malformed"),
        ("newer.journal", "newer.journal has format 9, and this version of deftool reads format 1"),
        ("missing.journal", "missing.journal: No such file or directory"),
        ("specs", "specs: not a regular file"),
    ] {
        for command in [&["journal", "list"][..], &["journal", "resume"]] {
            let ended = project.run(&[command, &[name]].concat());
            assert!(ended.code == Some(2) && ended.stderr.contains(expected), "{name}: {ended:?}");
        }
    }
    let endpoint = server.endpoint();
    let ended = project.run(&["run", "hello", "--journal", "text.journal", "--endpoint", &endpoint]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
}

/// Returns the seed and the number of kills of a test with random crashes.
fn chaos(kills: usize) -> (u64, usize) {
    let set = |name: &str| std::env::var(name).ok().and_then(|number| number.parse().ok());
    (set("DEFTOOL_CHAOS_SEED").unwrap_or(1), set("DEFTOOL_CHAOS_KILLS").map_or(kills, |kills| kills as usize))
}

/// Kills a process of a request after at most `limit_ms`, and continues the request, until a process ends by itself. After
/// five kills it may: on a slow machine, a request may take longer than any limit. Returns the number of kills.
fn kill_at_random_times(
    project: &Project,
    mut child: Child,
    random: &mut fastrand::Rng,
    limit_ms: u64,
) -> usize {
    for killed in 0..5 {
        std::thread::sleep(Duration::from_millis(random.u64(1..limit_ms)));
        if child.try_wait().unwrap().is_some() {
            return killed;
        }
        kill(child);
        child = spawn(project.command(&["journal", "resume", "requests.journal", "--trust"]));
    }
    child.wait().unwrap();
    5
}

/// Returns the id and the outcome of the request in a journal, after all processes have ended. `None`: the process was
/// killed before it stored the request.
fn outcome(project: &Project, seed: u64) -> Option<(String, Value)> {
    if !project.path("requests.journal").exists() || list(project).is_empty() {
        return None;
    }
    // The last process may have been killed.
    resume(project);
    let [(id, state)] = list(project).try_into().unwrap();
    assert_eq!(state, "completed", "seed {seed}");
    let shown = project.run(&["journal", "show", "requests.journal", &id]).stdout;
    Some((id, serde_json::from_str(shown.lines().last().unwrap()).unwrap()))
}

/// Kills requests at random times until each has ended. The scripts and the server count the side effects.
#[test]
fn nothing_is_lost_or_repeated_in_random_crashes() {
    let (seed, kills) = chaos(50 / step(5));
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut killed, mut requests, mut repeated) = (0, 0, [0; 2]);
    while killed < kills {
        let project = project();
        for tool in ["look", "send", "pay"] {
            project.write(&format!("scripts/{tool}.lua"), SLOW_SCRIPT);
        }
        // The turn depends on the conversation: a repeated request gets the same reply.
        let server = Server::answering(|_, received| {
            let messages = received.body["messages"].as_array().unwrap();
            let results = messages.iter().filter(|message| message["role"] == "tool").count();
            match ["look", "pay", "send", "pay"].get(results) {
                Some(tool) => {
                    Answer::chunks(&[delta("One more. "), call(0, tool, "{}"), finish("tool_calls")])
                }
                None => Answer::stream().delta("The ").wait_ms(30).delta("end.").done(),
            }
        });
        killed += kill_at_random_times(&project, start(&project, &server), &mut random, 300);
        let Some((_, last)) = outcome(&project, seed) else {
            let is_untouched = server.posts().is_empty() && runs(&project).is_empty();
            assert!(is_untouched, "seed {seed}: a request was lost");
            continue;
        };
        requests += 1;
        assert_eq!(last["text"], "One more. One more. One more. One more. The end.", "seed {seed}");
        let runs = runs(&project);
        for (tool, effect) in [("look", Some(0)), ("send", Some(1)), ("pay", None)] {
            let keys: Vec<&str> =
                runs.iter().filter(|(name, _)| name == tool).map(|(_, key)| key.as_str()).collect();
            let mut different = keys.clone();
            different.sort_unstable();
            different.dedup();
            // The model calls `pay` twice.
            assert!(different.len() <= if tool == "pay" { 2 } else { 1 }, "seed {seed}: {runs:?}");
            match effect {
                Some(index) => repeated[index] += keys.len() - different.len(),
                None => assert_eq!(keys.len(), different.len(), "seed {seed}: a call was repeated: {runs:?}"),
            }
        }
    }
    println!(
        "{killed} kills, {requests} requests, 0 lost, 0 repeated `once` calls, {} repeated `pure` calls, {} `keyed` \
         calls repeated with their key",
        repeated[0], repeated[1]
    );
}

/// The same with a real server and a real model, whose request has one call.
#[test]
fn nothing_is_lost_or_repeated_in_random_crashes_with_a_real_model() {
    let Some(server) = real::Server::start_with(&[]) else { return };
    let (seed, kills) = chaos(20 / step(5));
    let mut random = fastrand::Rng::with_seed(seed);
    let quickstart = |name: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/quickstart/specs");
        std::fs::read_to_string(folder.join(name)).unwrap()
    };
    let (mut killed, mut requests, mut calls, mut repeated) = (0, 0, 0, [0; 2]);
    while killed < kills {
        let effect = ["pure", "keyed", "once"][requests % 3];
        let project = project();
        let with = format!(":effect {effect} :allow (:read [\"log/\"] :write [\"log/\"])");
        project.write("specs/tools.eld", quickstart("weather.eld").replace(":effect pure", &with));
        project.write("specs/worker.eld", quickstart("worker.eld"));
        let script =
            SLOW_SCRIPT.replace("function()", "function(_, _)").replace("is done", "says 21 degrees");
        project.write("scripts/get_weather.lua", script);
        let run =
            ["run", real::PROMPT, "--trust", "--journal", "requests.journal", "--endpoint", &server.endpoint];
        killed += kill_at_random_times(&project, spawn(project.command(&run)), &mut random, 1_500);
        let Some((id, _)) = outcome(&project, seed) else {
            assert!(runs(&project).is_empty(), "seed {seed}: a request was lost");
            continue;
        };
        requests += 1;
        // The replies of the model differ, so the calls are counted by their events.
        let shown = project.run(&["journal", "show", "requests.journal", &id]).stdout;
        let events: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut counted = 0;
        for event in events.iter().filter(|event| event["type"] == "tool_finished") {
            let key = format!("{id}-{}", event["id"].as_str().unwrap());
            let times = runs(&project).iter().filter(|(_, used)| *used == key).count();
            counted += times;
            calls += 1;
            match effect {
                "once" => assert!(times <= 1, "seed {seed}: {shown}"),
                _ => repeated[usize::from(effect == "keyed")] += times.saturating_sub(1),
            }
            assert!(times > 0 || event["ok"] == false, "seed {seed}: {shown}");
        }
        assert_eq!(counted, runs(&project).len(), "seed {seed}: {shown}");
    }
    assert!(calls > 0, "the model calls the tool");
    println!(
        "real model: {killed} kills, {requests} requests, {calls} calls, 0 lost, 0 repeated `once` calls, {} repeated `pure` calls, {} \
         `keyed` calls repeated with their key",
        repeated[0], repeated[1]
    );
}

/// The key of a call reaches the service again, also from a child process.
#[test]
fn a_keyed_call_that_runs_again_sends_the_same_idempotency_key() {
    for isolate in ["threads", "process"] {
        let project = Project::empty();
        let spec = r#"(deftool :name "pay" :description "Pay." :effect keyed :allow (:net ["127.0.0.1:*"])
 :args ((:name "url" :type string :description "The URL.")))"#;
        project.write("specs/pay.eld", spec);
        project.write("scripts/pay.lua", "return function(url) return http.post(url, 'x').status end\n");
        let service = Server::answering_all(|index, _| match index {
            0 => Answer::silent(),
            _ => Answer::whole(200, &[], ""),
        });
        let url = serde_json::json!({"url": format!("http://{}/", service.address())}).to_string();
        let model = Server::script([
            Answer::chunks(&[call(0, "pay", &url), finish("tool_calls")]),
            Answer::text("Paid."),
        ]);
        let endpoint = model.endpoint();
        let options = ["--trust", "--isolate", isolate, "--endpoint", &endpoint];
        let child = spawn(project.command(&[&["run", "x", "--journal", "j"], &options[..]].concat()));
        service.wait_for_posts(1);
        kill(child);
        let ended = project.run(&[&["journal", "resume", "j"], &options[..]].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let keys = service.posts();
        let keys: Vec<_> = keys.iter().map(|post| post.header("idempotency-key").unwrap()).collect();
        assert_eq!(keys.len(), 2);
        assert!(keys[0].starts_with("req_") && keys[0] == keys[1], "{keys:?}");
    }
}
