//! The start of the program, and workers whose model server does not answer.

use std::net::TcpListener;
use std::process::Stdio;

use deftool_test_support::ignores_hangup;
use deftool_test_support::server::{ClosedPort, Received};

use super::*;

/// Two workers with servers of their own.
fn two_workers(good: &str, bad: &str) -> Project {
    let project = project();
    let spec = |name, url| format!("(defworker :name \"{name}\" :endpoint \"{url}\")\n");
    project.write("specs/workers.eld", spec("good", good) + &spec("bad", bad));
    project
}

/// Starts the workers at `port`, with stderr in the file `stderr`. Waits until they listen.
fn serve_with_log(project: &Project, port: u16) -> Child {
    let address = format!("127.0.0.1:{port}");
    let mut command = project.command(&["--listen", &address, "--trust"]);
    let stderr = std::fs::File::create(project.path("stderr")).unwrap();
    let child = command.stdin(Stdio::null()).stderr(stderr).spawn().unwrap();
    wait_until("the workers listen", || std::net::TcpStream::connect(&address).is_ok());
    child
}

fn log(project: &Project) -> String {
    std::fs::read_to_string(project.path("stderr")).unwrap()
}

#[test]
fn a_program_without_a_usable_worker_does_not_start() {
    let port = ClosedPort::reserve();
    let closed = port.endpoint();
    let refused = format!("nothing is listening at {closed}/models; start the server or correct the port");
    let server = Server::answering_all(|_, _| Answer::whole(401, &[], ""));
    let answering = Server::script([]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let project = two_workers(&closed, &closed);
    for (arguments, expected) in [
        (&["--worker", "good"][..], format!("error: {refused}\n")),
        (&[], format!("error: worker `good`: {refused}; worker `bad`: {refused}\n")),
        (
            &["--worker", "good", "--endpoint", &server.endpoint()],
            format!(
                "error: {}/models returned HTTP 401; `deftool doctor` examines the server\n",
                server.endpoint()
            ),
        ),
        (
            &["--worker", "unknown"],
            String::from("error: unknown worker `unknown`; known workers: good, bad\n"),
        ),
        (
            &["--endpoint", &answering.endpoint(), "--listen", &address],
            format!("error: cannot listen on {address}: "),
        ),
    ] {
        let output = project.command(&[arguments, &["--trust"]].concat()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.starts_with(&expected), "{arguments:?}: {stderr}");
    }
}

/// Each signal ends the program in the same way, after its workers.
#[test]
fn signals_end_the_program() {
    use rustix::process::{Pid, Signal, kill_process};
    let good = Server::answering(|_, _| Answer::text("Done."));
    let project = two_workers(&good.endpoint(), &good.endpoint());
    for (signal, code) in [(Signal::HUP, 129), (Signal::INT, 130), (Signal::TERM, 143)] {
        if signal == Signal::HUP && ignores_hangup() {
            continue;
        }
        let [port] = free_ports();
        let mut program = serve_with_log(&project, port);
        kill_process(Pid::from_child(&program), signal).unwrap();
        assert_eq!(program.wait().unwrap().code(), Some(code), "{}", log(&project));
    }
}

/// A client does not wait for a worker that cannot run, and uses the same id again.
#[test]
fn a_new_request_of_a_worker_that_cannot_run_gets_the_status_503() {
    let Some(engine) = Engine::start() else { return };
    let good = Server::answering(|_, _| Answer::text("Done."));
    let [port] = free_ports();
    let closed = format!("http://127.0.0.1:{port}/v1");
    let project = two_workers(&good.endpoint(), &closed);
    let worker = serve_with_log(&project, engine.worker);
    let reason = format!("nothing is listening at {closed}/models");
    let warning = format!("warning: worker `bad`: {reason}; start the server or correct the port\n");
    assert!(log(&project).starts_with(&warning), "{}", log(&project));
    engine.register();
    let bad = json!({"prompt": "hello", "worker": "bad"});
    for path in ["Request/r1/submit", "Request/r2/run", "Conversation/c1/send"] {
        let (status, error) = engine.call(path, &bad);
        let message = error["message"].as_str().unwrap();
        assert!(status == 503 && message.starts_with(&reason), "{path}: {status}: {error}");
    }
    let lines = log(&project);
    let reported = format!(
        "request r1: {reason}; start the server or correct the port; the client receives the status 503\n"
    );
    assert!(lines.contains(&reported) && lines.matches("status 503").count() == 1, "{lines}");
    let (status, result) = engine.call("Request/r3/submit", &json!({"prompt": "hello", "worker": "good"}));
    assert_eq!((status, &result["outcome"]["text"]), (200, &json!("Done.")), "{result}");

    let address = format!("127.0.0.1:{port}");
    let _now = Server::answering_at(&address, |_, _| Answer::text("Here."));
    let (status, result) = engine.call("Request/r1/submit", &bad);
    assert_eq!((status, &result["outcome"]["text"]), (200, &json!("Here.")), "{result}");
    // The workflow has ended.
    assert_eq!(engine.call("Request/r2/submit", &bad).0, 503);
    kill(worker);
}

/// A request that has begun waits for its worker. Each reason is reported.
#[test]
fn a_request_that_has_begun_waits_for_its_worker() {
    let Some(engine) = Engine::start() else { return };
    let good = Server::script([]);
    let [port] = free_ports();
    let address = format!("127.0.0.1:{port}");
    let answer = |_: usize, received: &Received| {
        if received.texts("tool").is_empty() { calling("pay") } else { Answer::text("Done.") }
    };
    let bad = Server::answering_at(&address, answer);
    let project = two_workers(&good.endpoint(), &bad.endpoint());
    let worker = serve_with_log(&project, engine.worker);
    engine.register();
    engine.submit("r1", &json!({"prompt": "hello", "worker": "bad"}));
    wait_until("the tool runs", || runs(&project).len() == 1);
    kill(worker);
    drop(bad);
    project.write("log/go", "");
    let worker = serve_with_log(&project, engine.worker);
    let repeats = "request r1: nothing is listening at ";
    wait_until("the failure is reported", || log(&project).contains(repeats));
    assert!(log(&project).contains("; Restate repeats the attempt\n"), "{}", log(&project));
    let _again = Server::answering_at(&address, answer);
    assert_eq!(engine.result("r1")["outcome"]["text"], "Let me see. Done.");
    assert_eq!(log(&project).matches(repeats).count(), 1, "{}", log(&project));
    kill(worker);
}
