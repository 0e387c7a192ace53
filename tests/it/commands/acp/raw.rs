//! A client with raw messages: invalid ones, too many, and one that disappears.

use super::*;

/// A client with raw messages.
pub(in crate::commands) struct RawClient {
    agent: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl RawClient {
    pub(in crate::commands) fn start(project: &Project, arguments: &[&str]) -> Self {
        let mut command = project.command(&[&["acp"], arguments].concat());
        let mut agent =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (agent.stdin.take(), BufReader::new(agent.stdout.take().unwrap()));
        let mut client = Self { agent, input, output };
        client.write(br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#);
        client.receive();
        client
    }

    fn write(&mut self, line: &[u8]) {
        self.input.as_mut().unwrap().write_all(&[line, b"\n"].concat()).unwrap();
    }

    pub(in crate::commands) fn send(&mut self, method: &str, params: &Value) {
        self.write(
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string().as_bytes(),
        );
    }

    pub(in crate::commands) fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Returns all messages until an answer. Allows no calls.
    pub(in crate::commands) fn until_answer(&mut self) -> String {
        let mut received = String::new();
        loop {
            let message = self.receive();
            received += &message.to_string();
            if let Some(refused) = message["params"]["options"].as_array().and_then(|options| options.last())
            {
                let outcome = json!({"outcome": "selected", "optionId": refused["optionId"]});
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": {"outcome": outcome}});
                self.write(answer.to_string().as_bytes());
            }
            if message.get("method").is_none() {
                return received;
            }
        }
    }

    /// Closes the input of the agent, and waits for its end.
    pub(super) fn disconnect(mut self) {
        drop(self.input.take());
        assert!(self.agent.wait().unwrap().success());
    }

    /// Returns the code, the message and the data of a response that reports an error.
    fn error(&mut self) -> String {
        let response = self.receive();
        let error = &response["error"];
        assert!(error.is_object(), "{response}");
        let text = format!("{} {} {}", error["code"], error["message"].as_str().unwrap(), error["data"]);
        text.trim_end_matches(" null").to_owned()
    }
}

#[test]
fn errors_are_reported_and_the_agent_goes_on() {
    let project = rpc::project();
    let mut client = RawClient::start(&project, &["--trust", "--endpoint", "http://127.0.0.1:1"]);
    let root = project.path("").display().to_string().trim_end_matches('/').to_owned();
    let new = |cwd: &str| json!({"cwd": cwd, "mcpServers": []});
    let load = |id: &str| json!({"sessionId": id, "cwd": root, "mcpServers": []});
    let cases = [
        ("session/new", new("specs"), "-32602 `cwd` is not an absolute path: specs"),
        (
            "session/new",
            new(&root),
            "-32603 nothing is listening at http://127.0.0.1:1/models; start the server or correct the port",
        ),
        ("session/load", load("x"), "-32603 no session `x` of ROOT"),
        ("session/load", load("../x"), "-32603 no session `../x` of ROOT"),
        (
            "session/prompt",
            json!({"sessionId": "x", "prompt": []}),
            "-32602 unknown session `x`; open it with `session/new`, `session/load` or `session/resume`",
        ),
        ("session/fly", json!({}), "-32601 Method not found \"session/fly\""),
    ];
    for (method, params, expected) in cases {
        client.send(method, &params);
        assert_eq!(client.error().replace(&root, "ROOT"), expected);
    }
    let malformed = [
        (&b"{"[..], "-32700 Parse error {\"line\":\"{\"}"),
        (
            b"[]",
            "-32600 Invalid request \"JSON-RPC batches are not supported; send each message individually\"",
        ),
        (b"7", "-32600 Invalid request"),
        (b"\xff", "-32700 Parse error {\"line\":\"message with invalid UTF-8\"}"),
    ];
    for (line, expected) in malformed {
        client.write(line);
        assert_eq!(client.error(), expected);
    }
    let before = peak_memory(client.agent.id());
    client.write(&vec![b' '; 100_000_000]);
    assert_eq!(client.error(), "-32700 Parse error {\"line\":\"message longer than 32 MiB\"}");
    let grown = peak_memory(client.agent.id()) - before;
    assert!(grown < 150 << 10, "{grown} kB");
    client.disconnect();
}

/// A client that sends lines without reading fills no memory, and gets an answer to each line when it reads.
#[test]
fn memory_is_bounded_if_a_client_does_not_read() {
    /// The queue of the library needs about 800 bytes for the answer of a line.
    const LINES: usize = 20_000;
    const MAX_GROWTH_KB: u64 = 8_000;
    let project = rpc::project();
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"session/fly","params":{}}"#;
    for line in ["invalid", r#"{"jsonrpc":"1.0"}"#, request] {
        let mut client = RawClient::start(&project, &["--trust", "--endpoint", "http://127.0.0.1:1"]);
        let before = peak_memory(client.agent.id());
        let mut input = client.input.take().unwrap();
        let sent = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..LINES {
                    input.write_all(format!("{line}\n").as_bytes()).unwrap();
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            });
            // Reading earlier would make the test easier, not wrong.
            let mut last = usize::MAX;
            while last != sent.load(Ordering::Relaxed) {
                last = sent.load(Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(300));
            }
            for _ in 0..LINES {
                assert!(client.error().starts_with("-32"));
            }
        });
        let grown = peak_memory(client.agent.id()) - before;
        println!("{line}: {grown} kB more");
        assert!(grown < MAX_GROWTH_KB, "{line}: {grown} kB more");
        client.input = Some(input);
        client.disconnect();
    }
}

#[test]
fn a_project_that_is_not_trusted_and_unsupported_content_are_refused() {
    let server = Server::script([Answer::text("ok")]);
    let project = rpc::project();
    let new = json!({"cwd": project.path(""), "mcpServers": []});
    project.write("specs/w.eld", "(defworker :name \"w\" :endpoint \"http://llm.example/v1\")\n");
    let mut client = RawClient::start(&project, &[]);
    client.send("session/new", &new);
    let error = client.error();
    assert!(error.starts_with("-32603 the project requires permissions that are not trusted: "), "{error}");
    assert!(error.contains("worker `w` requires :net [") && error.contains("deftool trust grant"), "{error}");
    client.disconnect();
    std::fs::remove_file(project.path("specs/w.eld")).unwrap();
    let mut client = RawClient::start(&project, &["--trust", "--endpoint", &server.endpoint()]);
    client.send("session/new", &new);
    let session = client.receive()["result"]["sessionId"].clone();
    let prompt = |content: &Value| json!({"sessionId": session, "prompt": content});
    let image = json!({"type": "image", "mimeType": "image/png", "data": "AA=="});
    let audio = json!({"type": "audio", "mimeType": "audio/wav", "data": "AA=="});
    let cases = [
        (json!([image]), "-32602 unsupported image in the prompt: not PNG, JPEG, GIF or WebP"),
        (
            json!([audio]),
            "-32602 unsupported content in the prompt: only text, images and resources can be sent",
        ),
        (json!([]), "-32602 the prompt is empty"),
    ];
    for (content, expected) in cases {
        client.send("session/prompt", &prompt(&content));
        assert_eq!(client.error(), expected);
    }
    let content = json!([
        {"type": "text", "text": "Compare "},
        {"type": "resource_link", "name": "a.txt", "uri": "file:///a.txt"},
        {"type": "resource", "resource": {"uri": "file:///b.txt", "text": "b\n"}},
    ]);
    client.send("session/prompt", &prompt(&content));
    assert_eq!(client.receive()["params"]["update"]["content"]["text"], "ok");
    assert_eq!(client.receive()["result"]["stopReason"], "end_turn");
    client.disconnect();
    let sent = server.posts()[0].body["messages"].clone();
    let sent = sent.as_array().unwrap().iter().find(|message| message["role"] == "user").unwrap();
    let content = without_budget(sent["content"].as_str().unwrap());
    assert_eq!(content, "Compare [a.txt](file:///a.txt)\nfile:///b.txt:\n\n```\nb\n```\n");
}

/// A client that closes the connection while a call runs, and one that does not read the reply either.
#[test]
fn a_disconnected_client_leaves_no_process_and_keeps_its_prompt() {
    let long = "A long line of text. ".repeat(200_000);
    for reply in [Answer::calls(&[("wait", "{}")]), Answer::text(&long)] {
        let server = Server::script([reply]);
        let project = rpc::project();
        let mut client = RawClient::start(&project, &["--trust", "--endpoint", &server.endpoint()]);
        client.send("session/new", &json!({"cwd": project.path(""), "mcpServers": []}));
        let session = client.receive()["result"]["sessionId"].clone();
        let prompt = json!([{"type": "text", "text": "Go."}]);
        client.send("session/prompt", &json!({"sessionId": session, "prompt": prompt}));
        let update = client.receive()["params"]["update"]["sessionUpdate"].clone();
        if update == "tool_call" {
            while !project.path("pid").exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let processes = family(client.agent.id());
        client.disconnect();
        wait_until_gone(&processes);
        // The prompt is stored.
        let arguments = ["chat", "--resume", "last", "--trust", "--endpoint", &server.endpoint()];
        let resumed = project.run_with_stdin(&arguments, b"/undo\n");
        assert!(resumed.stderr.contains("removed: Go."), "{}", resumed.stderr);
    }
}

/// Errors are reported to the model, unless the worker sets otherwise.
#[test]
fn acp_uses_the_setting_of_the_worker() {
    for (worker, completes) in
        [("", true), (":on-invalid-arguments fail", false), (":on-invalid-arguments report", true)]
    {
        let server = Server::script([Answer::calls(&[("nothing", "{}")]), Answer::text("ok")]);
        let project = rpc::project();
        project.write("specs/w.eld", format!("(defworker :name \"w\" {worker})"));
        let arguments = ["--trust", "--worker", "w", "--endpoint", &server.endpoint()];
        let mut client = RawClient::start(&project, &arguments);
        client.send("session/new", &json!({"cwd": project.path(""), "mcpServers": []}));
        let session = client.receive()["result"]["sessionId"].clone();
        let prompt = json!([{"type": "text", "text": "Go."}]);
        client.send("session/prompt", &json!({"sessionId": session, "prompt": prompt}));
        let response = loop {
            let message = client.receive();
            if message["id"] == 1 {
                break message;
            }
        };
        assert_eq!(response["result"]["stopReason"] == "end_turn", completes, "{worker}: {response}");
        client.disconnect();
    }
}
