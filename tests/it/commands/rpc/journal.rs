//! Requests that a journal keeps.

use deftool_test_support::ignores_hangup;

use super::*;

/// The server is killed during a reply. The command continues the request.
#[test]
fn a_journal_keeps_the_requests_of_a_server_that_is_killed() {
    let project = project();
    let model = Server::script([
        Answer::chunks(&[call(0, "count", r#"{"text":"abc"}"#), finish("tool_calls")]),
        Answer::stream().delta("Three").then(Act::Silence),
        Answer::text("Three characters."),
    ]);
    let endpoint = model.endpoint();
    let mut client = Client::start(&project, &["--trust", "--journal", "j", "--endpoint", &endpoint]);
    let submitted = client.request("submit", json!({"prompt": "count"}));
    model.wait_for_posts(2);
    client.connection.server.kill().unwrap();
    client.connection.server.wait().unwrap();
    let resumed = project.run(&["journal", "resume", "j", "--trust"]);
    assert_eq!((resumed.code, resumed.stdout.as_str()), (Some(0), "Three characters.\n"), "{resumed:?}");
    assert_eq!(model.posts()[1].body, model.posts()[2].body);
    let listed = project.run(&["journal", "list", "j"]).stdout;
    assert!(listed.starts_with(submitted["request_id"].as_str().unwrap()), "{listed}");
    let page = project.run(&["view", "j", "-o", "-"]).stdout;
    assert!(page.contains(r#""logs":["warn: odd"]"#), "{page}");
}

/// After a crash, the client submits its jobs again: no job is repeated.
#[test]
fn jobs_that_are_submitted_again_continue_their_requests() {
    let project = project();
    project.write("note.txt", "one\n");
    let model = Server::script([
        Answer::text("First."),
        Answer::stream().delta("Sec").then(Act::Silence),
        Answer::text("Second."),
        Answer::text("Third."),
    ]);
    let endpoint = model.endpoint();
    let arguments = ["--trust", "--journal", "j", "--endpoint", &endpoint];
    let first = json!({"prompt": "first", "job_name": "a", "files": ["note.txt"], "resume": true});
    let second = json!({"prompt": "second", "params": {"temperature": 0}, "resume": true});
    let mut client = Client::start(&project, &arguments);
    let ids = [&first, &second].map(|job| {
        let submitted = client.request("submit", job.clone());
        if job == &first {
            client.request("result", submitted.clone());
        }
        submitted
    });
    model.wait_for_posts(2);
    assert!(model.posts()[0].body.to_string().contains("<file name=\\\"note.txt\\\">\\none\\n</file>"));
    client.connection.server.kill().unwrap();
    client.connection.server.wait().unwrap();
    let mut client = Client::start(&project, &arguments);
    for (job, id, text) in [(&second, &ids[1], "Second."), (&first, &ids[0], "First.")] {
        assert_eq!(client.request("submit", job.clone()), *id);
        let result = client.request("result", id.clone());
        assert_eq!(
            (&result["outcome"]["text"], result["messages"].as_array().unwrap().len()),
            (&json!(text), 2)
        );
    }
    assert_eq!(model.posts().len(), 3);
    // Each is continued once.
    assert_ne!(client.request("submit", first.clone()), ids[0]);
    model.wait_for_posts(4);
    client.shut_down();
    let mut client = Client::start(&project, &["--trust", "--endpoint", &endpoint]);
    assert_eq!(
        client.error("submit", first),
        "-32602 `resume` requires the option `--journal` of the server"
    );
    for (params, expected) in [
        (json!({"prompt": "x", "files": ["gone"]}), "-32803 gone: cannot be read: "),
        (json!({"messages": [], "files": ["note.txt"]}), "-32602 `files` requires `prompt`"),
    ] {
        let error = client.error("submit", params);
        assert!(error.starts_with(expected), "{error}");
    }
    client.shut_down();
}

/// However the server ends, its open and queued jobs are suspended. Only `cancel` cancels.
#[cfg(unix)]
#[test]
fn the_end_of_the_server_is_not_a_cancel() {
    let job = |prompt: &str| json!({"prompt": prompt, "resume": true});
    for end in ["stdin", "shutdown", "SIGTERM", "SIGHUP"] {
        if end == "SIGHUP" && ignores_hangup() {
            continue;
        }
        let project = project();
        let model = Server::script([
            Answer::stream().delta("Sto").then(Act::Silence),
            Answer::text("First."),
            Answer::text("Second."),
            Answer::text("Third."),
        ]);
        let endpoint = model.endpoint();
        let arguments = ["--trust", "--journal", "j", "--endpoint", &endpoint];
        let mut client = Client::start(&project, &arguments);
        let first = client.request("submit", job("first"));
        model.wait_for_posts(1);
        // The only slot is used.
        let second = client.request("submit", job("second"));
        let third = client.request("submit", job("third"));
        client.request("cancel", third.clone());
        client.request("result", third.clone());
        match end {
            "stdin" => drop(client.connection.writer()),
            "shutdown" => drop(client.request("shutdown", json!({}))),
            signal => {
                let kill =
                    ["-s", signal.trim_start_matches("SIG"), &client.connection.server.id().to_string()];
                assert!(std::process::Command::new("kill").args(kill).status().unwrap().success());
            }
        }
        client.connection.server.wait().unwrap();
        let mut client = Client::start(&project, &arguments);
        for (prompt, id, text) in [("first", &first, "First."), ("second", &second, "Second.")] {
            assert_eq!(client.request("submit", job(prompt)), *id, "{end}");
            let result = client.request("result", id.clone());
            assert_eq!(result["outcome"]["text"], text, "{end}: {result}");
        }
        assert_eq!(client.request("submit", job("third")), third, "{end}");
        let result = client.request("result", third);
        assert_eq!(result["outcome"]["state"], "canceled", "{end}: {result}");
        client.shut_down();
    }
}
