//! Operation of workers on Restate: new versions, restarts of the node, several clients, changed projects, telemetry.

use super::*;

impl Engine {
    /// Returns how many requests a deployment has not finished.
    fn open_requests(&self, deployment: &Value) -> u64 {
        let query = format!(
            "select count(*) as open from sys_invocation where pinned_deployment_id = '{}' and status <> 'completed'",
            deployment.as_str().unwrap()
        );
        self.query(&query)[0]["open"].as_u64().unwrap()
    }

    /// Changes a resource of the admin API.
    fn patch(&self, path: &str) -> Option<(u16, Value)> {
        self.client.exchange(self.client.http.patch(format!("http://127.0.0.1:{}/{path}", self.admin)))
    }
}

/// Two versions of a project: the one that began a request finishes it.
#[test]
fn an_old_deployment_finishes_its_requests_and_a_new_one_takes_the_others() {
    let Some(engine) = Engine::start() else { return };
    let server = in_turn(&["look"]);
    let [old, new] = [(); 2].map(|()| project());
    let [port] = free_ports();
    let mut old_worker = engine.serve(&old, &server);
    let old_deployment = engine.register();
    engine.submit("r1", &json!({"prompt": "hello"}));
    wait_until("the tool runs", || runs(&old).len() == 1);

    new.write("log/go", "");
    let new_worker = serve_at(port, &new, &server);
    engine.register_at(port);
    let (status, result) = engine.call("Request/r2/run", &json!({"prompt": "hello"}));
    assert_eq!((status, &result["outcome"]["state"]), (200, &json!("completed")), "{result}");
    assert_eq!((runs(&old).len(), runs(&new).len()), (1, 1));
    assert_eq!(engine.open_requests(&old_deployment), 1);

    old.write("log/go", "");
    assert_eq!(engine.result("r1")["outcome"]["text"], "One more. The end.");
    assert_eq!((runs(&old).len(), runs(&new).len()), (1, 1));
    wait_until("the old deployment is unused", || engine.open_requests(&old_deployment) == 0);
    terminate(&old_worker);
    assert_eq!(old_worker.wait().unwrap().code(), Some(143));
    let (status, result) = engine.call("Request/r3/run", &json!({"prompt": "hello"}));
    assert_eq!((status, runs(&new).len()), (200, 2), "{result}");
    kill(new_worker);
}

/// The old version is lost before it has finished: its requests can be moved.
#[test]
fn requests_of_a_lost_deployment_can_be_moved_to_a_new_one() {
    let Some(engine) = Engine::start() else { return };
    let server = in_turn(&["look"]);
    let [old, new] = [(); 2].map(|()| project());
    let [port] = free_ports();
    let old_worker = engine.serve(&old, &server);
    engine.register();
    let (status, answer) = engine.call("Request/r1/run/send", &json!({"prompt": "hello"}));
    assert!(status < 300, "{status}: {answer}");
    wait_until("the tool runs", || runs(&old).len() == 1);
    kill(old_worker);

    new.write("log/go", "");
    let new_worker = serve_at(port, &new, &server);
    engine.register_at(port);
    let id = answer["invocationId"].as_str().unwrap();
    for change in ["pause", "resume?deployment=latest"] {
        let path = format!("invocations/{id}/{change}");
        wait_until(change, || engine.patch(&path).is_some_and(|(status, _)| status < 300));
    }
    assert_eq!(engine.result("r1")["outcome"]["text"], "One more. The end.");
    assert_eq!((runs(&old).len(), runs(&new).len()), (1, 1));
    kill(new_worker);
}

#[test]
fn requests_continue_after_a_restart_of_the_node() {
    let Some(mut engine) = Engine::start() else { return };
    let project = project();
    let server = in_turn(&["look", "pay"]);
    let worker = engine.serve(&project, &server);
    engine.register();
    engine.submit("r1", &json!({"prompt": "hello"}));
    wait_until("the tool runs", || runs(&project).len() == 1);
    engine.node.kill().unwrap();
    engine.node.wait().unwrap();
    // The node does not answer. The request is not lost.
    assert!(engine.send(engine.ingress, "Request/r2/run/send", Some(&json!({}))).is_none());
    project.write("log/go", "");
    engine.start_node();
    assert_eq!(engine.result("r1")["outcome"]["text"], "One more. One more. The end.");
    assert_eq!(runs(&project).iter().filter(|(tool, _)| tool == "pay").count(), 1);
    kill(worker);
}

#[test]
fn several_clients_wait_for_one_request() {
    let Some(engine) = Engine::start() else { return };
    let project = project();
    let server = in_turn(&["look"]);
    let worker = engine.serve(&project, &server);
    engine.register();
    engine.submit("r1", &json!({"prompt": "hello"}));
    let results: Vec<(Value, Vec<Value>)> = std::thread::scope(|scope| {
        let clients: Vec<_> =
            (0..3).map(|_| scope.spawn(|| (engine.result("r1"), engine.events("r1")))).collect();
        wait_until("the tool runs", || runs(&project).len() == 1);
        project.write("log/go", "");
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert_eq!(results[0].0["outcome"]["state"], "completed");
    assert!(results.iter().all(|result| *result == results[0]));
    kill(worker);
}

/// A stored call whose tool is gone fails, as in a request without Restate.
#[test]
fn a_call_of_a_tool_that_was_removed_fails() {
    let Some(engine) = Engine::start() else { return };
    let project = project();
    let server = in_turn(&["look"]);
    let worker = engine.serve(&project, &server);
    engine.register();
    engine.submit("r1", &json!({"prompt": "hello"}));
    wait_until("the tool runs", || runs(&project).len() == 1);
    kill(worker);
    project.write("specs/tools.eld", "(deftool :name \"pay\" :description \"Pay.\")");
    let worker = engine.serve(&project, &server);
    let result = engine.result("r1");
    assert_eq!(result["outcome"]["state"], "failed", "{result}");
    assert_eq!(result["outcome"]["kind"], "unknown_tool", "{result}");
    kill(worker);
}

/// Restate limits the size of a page, so large results do not wait for more.
#[test]
fn a_page_is_full_at_one_megabyte() {
    const LENGTH: usize = 100_000;
    let Some(engine) = Engine::start() else { return };
    let project = project();
    project.write("specs/worker.eld", "(defworker :name \"many\" :tool-budget 100)");
    project.write("scripts/look.lua", format!("return function() return ('x'):rep({LENGTH}) end"));
    let server = in_turn(&["look"; 30]);
    let worker = engine.serve(&project, &server);
    engine.register();
    let (status, result) = engine.call("Request/r1/run", &json!({"prompt": "hello"}));
    assert_eq!((status, &result["outcome"]["state"]), (200, &json!("completed")), "{result}");
    let (mut cursor, mut results) = (json!(0), Vec::new());
    while !cursor.is_null() {
        let (_, mut page) = engine.call("Request/r1/events", &cursor);
        let events = page["events"].as_array().unwrap().iter();
        results.push(events.filter(|event| event["type"] == "tool_finished").count());
        cursor = page["next"].take();
    }
    println!("results in each page: {results:?}");
    assert!(results.iter().sum::<usize>() == 30 && results.iter().all(|count| *count <= 11), "{results:?}");
    kill(worker);
}

/// A step of Restate is one message of at most 32 MiB. A result may have more.
#[test]
fn large_images_are_stored_in_steps_of_their_own() {
    let Some(engine) = Engine::start() else { return };
    let project = project();
    let script = "\
        local function picture(byte)\n\
          return tool.image('\\137PNG\\r\\n\\26\\n' .. byte:rep(9000000))\n\
        end\n\
        return function() return { picture('a'), picture('b'), picture('c') } end\n";
    project.write("scripts/look.lua", script);
    let server = in_turn(&["look"]);
    let worker = engine.serve(&project, &server);
    engine.register();
    let (status, result) = engine.call("Request/r1/run", &json!({"prompt": "hello"}));
    assert_eq!((status, &result["outcome"]["state"]), (200, &json!("completed")), "{result}");
    // The server refuses a body of 36 MB.
    let sent = server.posts()[1].body.to_string();
    assert_eq!(sent.matches("[image: image/png").count(), 3, "{sent}");
    kill(worker);
}

/// A suspended request has one span, in the same trace as its parts.
#[test]
fn a_suspended_request_has_one_span() {
    let Some(engine) = Engine::start() else { return };
    let collector = deftool_test_support::otlp::Collector::start();
    let project = project();
    project.write("specs/ask.eld", "(deftool :name \"ask\" :description \"Ask.\" :confirm t)");
    project.write("scripts/ask.lua", "return function() return 'yes' end");
    let server = in_turn(&["ask"]);
    let address = format!("127.0.0.1:{}", engine.worker);
    let mut command = serve_command(&address, &project, &server);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint());
    let mut worker = start_worker(command, &address);
    engine.register();
    engine.submit("r1", &json!({"prompt": "hello"}));
    engine.answer(&engine.asked("r1"), &json!({"answer": "allowed"}));
    assert_eq!(engine.result("r1")["outcome"]["state"], "completed");
    terminate(&worker);
    worker.wait().unwrap();
    let spans = collector.spans();
    let names = |name: &str| spans.iter().filter(|span| span.name.starts_with(name)).collect::<Vec<_>>();
    let requests = names("invoke_agent");
    assert_eq!((requests.len(), requests[0].is_error), (1, false), "{spans:#?}");
    assert_eq!((names("chat").len(), names("execute_tool").len()), (2, 1), "{spans:#?}");
    assert!(spans.iter().all(|span| span.trace == requests[0].trace));
    assert!(names("chat").iter().all(|span| span.parent == requests[0].id && !span.is_error));
}

/// Asks a process to stop.
fn terminate(child: &Child) {
    let id = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
}
