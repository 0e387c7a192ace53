//! `deftool acp`: clients with the protocol's own crate and with raw messages.

#![cfg(target_os = "linux")]

mod user_tools;

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, ClientCapabilities, ContentBlock, EnvVariable, InitializeRequest, LoadSessionRequest,
    McpServer, McpServerStdio, NewSessionRequest, PromptRequest, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome, SessionId,
    SessionNotification, SessionUpdate, StopReason, ToolCallContent, ToolCallStatus,
};
use agent_client_protocol::{Agent, ByteStreams, Client, Error, on_receive_notification, on_receive_request};
use deftool_test_support::server::{Answer, Server, call, finish, without_budget};
use serde_json::{Value, json};
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

use super::rpc;
use crate::managed::fake::{family, wait_until_gone};
use crate::support::process::peak_memory;
use crate::support::project::Project;

/// What the client received, one line per update, request and response.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<String>>);

impl Seen {
    fn add(&self, line: &str) {
        let mut seen = self.0.lock().unwrap();
        // Chunks of one text are one line.
        match line.split_once(": ") {
            Some((kind @ ("agent" | "thought"), text))
                if seen.lines().last().is_some_and(|last| last.starts_with(kind)) =>
            {
                seen.pop();
                *seen += text;
            }
            _ => *seen += line,
        }
        seen.push('\n');
    }

    fn take(&self) -> String {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn text_of(content: &ContentBlock) -> &str {
    match content {
        ContentBlock::Text(text) => &text.text,
        other => panic!("{other:?}"),
    }
}

fn texts_of(content: &[ToolCallContent]) -> String {
    let texts = content.iter().map(|content| match content {
        ToolCallContent::Content(content) => text_of(&content.content),
        other => panic!("{other:?}"),
    });
    texts.collect()
}

fn describe(update: SessionUpdate) -> String {
    match update {
        SessionUpdate::UserMessageChunk(chunk) => format!("user: {}", text_of(&chunk.content)),
        SessionUpdate::AgentMessageChunk(chunk) => format!("agent: {}", text_of(&chunk.content)),
        SessionUpdate::AgentThoughtChunk(chunk) => format!("thought: {}", text_of(&chunk.content)),
        SessionUpdate::ToolCall(call) => {
            [format!("call {:?}: {}", call.status, call.title), texts_of(&call.content)]
                .join(" ")
                .trim()
                .to_owned()
        }
        SessionUpdate::ToolCallUpdate(update) => {
            let texts = texts_of(&update.fields.content.unwrap_or_default());
            format!("{:?}: {texts}", update.fields.status.unwrap_or(ToolCallStatus::Pending))
        }
        SessionUpdate::Notice(notice) => format!("notice: {}", notice.title),
        other => panic!("{other:?}"),
    }
}

/// Starts `deftool acp` in the project, and runs `work` with a connection to it. The user allows the calls with the path
/// `a`.
async fn connect(
    project: &Project,
    arguments: &[&str],
    work: impl AsyncFnOnce(&ConnectionTo<Agent>, &Seen) -> Result<(), Error>,
) {
    connect_to(project.command(&[&["acp"], arguments].concat()), work).await;
}

/// Starts the command, which is `deftool acp`, and runs `work` with a connection to it.
async fn connect_to(
    mut command: Command,
    work: impl AsyncFnOnce(&ConnectionTo<Agent>, &Seen) -> Result<(), Error>,
) {
    // The sessions choose the project.
    command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut agent = tokio::process::Command::from(command).spawn().unwrap();
    let (input, output) = (agent.stdin.take().unwrap(), agent.stdout.take().unwrap());
    let seen = Seen::default();
    let (updates, asked) = (seen.clone(), seen.clone());
    let result = Client
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _| {
                updates.add(&describe(notification.update));
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _| {
                let fields = request.tool_call.fields;
                asked.add(&format!("asked: {}", fields.title.unwrap()));
                let is_allowed = fields.raw_input.unwrap()["path"] == "a";
                let option = request.options[usize::from(!is_allowed)].option_id.clone();
                let selected = SelectedPermissionOutcome::new(option);
                responder
                    .respond(RequestPermissionResponse::new(RequestPermissionOutcome::Selected(selected)))
            },
            on_receive_request!(),
        )
        .connect_with(
            ByteStreams::new(input.compat_write(), output.compat()),
            async |connection: ConnectionTo<Agent>| {
                let request = InitializeRequest::new(ProtocolVersion::V1)
                    .client_capabilities(ClientCapabilities::new());
                let initialized = connection.send_request(request).block_task().await?;
                assert!(initialized.agent_capabilities.load_session);
                work(&connection, &seen).await
            },
        )
        .await;
    result.unwrap();
    // The connection is closed, so the agent ends.
    assert!(agent.wait().await.unwrap().success());
}

async fn prompt(connection: &ConnectionTo<Agent>, seen: &Seen, session: &SessionId, text: &str) -> String {
    let request = PromptRequest::new(session.clone(), vec![text.into()]);
    match connection.send_request(request).block_task().await {
        Ok(response) => seen.add(&format!("stop: {:?}", response.stop_reason)),
        Err(error) => seen.add(&format!("error {}: {}", error.code, error.message)),
    }
    seen.take()
}

const CONVERSATION: &str = r#"call Pending: count {"text":"abcd"}
call Pending: careful {"path":"a"}
call Pending: careful {"path":"b\u{202e}\u{200b}\u{2028}\u{7f}"}
InProgress: 
Completed: 4
asked: careful {"path":"a"}
InProgress: 
Completed: changed a
asked: careful {"path":"b\u{202e}\u{200b}\u{2028}\u{7f}"}
Failed: {"refused":"the user did not allow this call"}
agent: It is 4.
call Completed: done
call Failed: done [] the arguments are an array, not an object
stop: EndTurn
"#;

const LOADED: &str = r#"user: How long is abcd?
call Pending: count {"text":"abcd"}
call Pending: careful {"path":"a"}
call Pending: careful {"path":"b\u{202e}\u{200b}\u{2028}\u{7f}"}
Completed: 4
Completed: changed a
Completed: {"refused":"the user did not allow this call"}
agent: It is 4.
user: What did I ask?
agent: For a count.
"#;

async fn new_session(connection: &ConnectionTo<Agent>, folder: PathBuf) -> Result<SessionId, Error> {
    Ok(connection.send_request(NewSessionRequest::new(folder)).block_task().await?.session_id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_continued_and_loaded() {
    let calls = [
        ("count", "{\"text\": \"abcd\"}"),
        ("careful", "{\"path\": \"a\"}"),
        ("careful", r#"{"path": "b\u202e\u200b\u2028\u007f"}"#),
    ];
    let server = Server::script([
        Answer::calls(&calls),
        Answer::stream()
            .delta("It is 4.")
            .chunk(&call(0, "done", "{}"))
            .chunk(&call(1, "done", "[]"))
            .chunk(&finish("tool_calls"))
            .done()
            .end(),
        Answer::text("For a count."),
        Answer::text("Once more."),
        Answer::text("In a terminal."),
    ]);
    let project = rpc::project();
    let endpoint = server.endpoint();
    let arguments = ["--trust", "--endpoint", &endpoint];
    // A folder inside of the project.
    let folder = project.path("scripts");
    let stored = Mutex::new(None);
    connect(&project, &arguments, async |connection, seen| {
        let session = new_session(connection, folder.clone()).await?;
        assert_eq!(prompt(connection, seen, &session, "How long is abcd?").await, CONVERSATION);
        let replied = prompt(connection, seen, &session, "What did I ask?").await;
        assert_eq!(replied, "agent: For a count.\nstop: EndTurn\n");
        *stored.lock().unwrap() = Some(session);
        Ok(())
    })
    .await;
    let session = stored.into_inner().unwrap().unwrap();
    connect(&project, &arguments, async |connection, seen| {
        for _ in 0..2 {
            // The second load finds the session open.
            let request = LoadSessionRequest::new(session.clone(), folder.clone());
            connection.send_request(request).block_task().await?;
            assert_eq!(seen.take(), LOADED);
        }
        let replied = prompt(connection, seen, &session, "And again?").await;
        assert_eq!(replied, "agent: Once more.\nstop: EndTurn\n");
        Ok(())
    })
    .await;
    // It is a session of `deftool chat`.
    let ended = project.run(&["chat", "Where?", "--resume", "last", "--trust", "--endpoint", &endpoint]);
    assert_eq!(ended.stdout, "In a terminal.\n", "{}", ended.stderr);
    let last = server.posts().last().unwrap().body["messages"].clone();
    let roles: Vec<&str> =
        last.as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(
        roles.join(" "),
        "system user assistant tool tool tool assistant user assistant user assistant user"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_canceled() {
    let server = Server::script([Answer::calls(&[("wait", "{}")]), Answer::text("Gone on.")]);
    let project = rpc::project();
    connect(&project, &["--trust", "--endpoint", &server.endpoint()], async |connection, seen| {
        let session = new_session(connection, project.path("")).await?;
        let request = PromptRequest::new(session.clone(), vec!["Wait.".into()]);
        let waiting = connection.send_request(request).block_task();
        tokio::pin!(waiting);
        let program = loop {
            if let Ok(id) = std::fs::read_to_string(project.path("pid")).unwrap_or_default().trim().parse() {
                break id;
            }
            let pause = tokio::time::sleep(Duration::from_millis(5));
            assert!(tokio::time::timeout(Duration::from_millis(5), &mut waiting).await.is_err());
            pause.await;
        };
        let other = prompt(connection, seen, &session, "Meanwhile.").await;
        assert_eq!(
            other,
            "call Pending: wait\nInProgress: \nerror Invalid params: another prompt of this session is not finished\n"
        );
        connection.send_notification(CancelNotification::new(session.clone()))?;
        assert_eq!(waiting.await?.stop_reason, StopReason::Cancelled);
        wait_until_gone(&[program]);
        seen.take();
        let replied = prompt(connection, seen, &session, "Go on.").await;
        assert_eq!(replied, "agent: Gone on.\nstop: EndTurn\n");
        Ok(())
    })
    .await;
}

/// The editor adds another deftool project as an MCP server.
#[tokio::test(flavor = "multi_thread")]
async fn mcp_servers_of_the_client_are_used() {
    let server =
        Server::script([Answer::calls(&[("my_server__greet", "{\"path\": \"a\"}")]), Answer::text("ok")]);
    let (project, other) = (rpc::project(), Project::empty());
    other.write(
        "specs/greet.eld",
        r#"(deftool :name "greet" :description "Greet." :allow (:env ["GREETING"])
            :args ((:name "path" :type string :description "Whom.")))"#,
    );
    other.write(
        "scripts/greet.lua",
        "return function(path) return env.get(\"GREETING\") .. \" \" .. path end\n",
    );
    connect(&project, &["--trust", "--endpoint", &server.endpoint()], async |connection, seen| {
        let arguments = ["mcp", "--trust", "-C", other.path("").to_str().unwrap()].map(str::to_owned);
        let greeter = McpServerStdio::new("my server", env!("CARGO_BIN_EXE_deftool"))
            .args(arguments.to_vec())
            .env(vec![EnvVariable::new("GREETING", "hello")]);
        let request = NewSessionRequest::new(project.path("")).mcp_servers(vec![McpServer::Stdio(greeter)]);
        let session = connection.send_request(request).block_task().await?.session_id;
        let replied = prompt(connection, seen, &session, "Greet.").await;
        assert_eq!(
            replied,
            "call Pending: my_server__greet {\"path\":\"a\"}\nasked: my_server__greet {\"path\":\"a\"}\nInProgress: \nCompleted: hello a\nagent: ok\nstop: EndTurn\n"
        );
        Ok(())
    })
    .await;
}

/// An editor lists servers that cannot be used, and a tool is not trusted: the session opens without them, and names each.
#[tokio::test(flavor = "multi_thread")]
async fn servers_and_tools_that_cannot_be_used_are_left_out() {
    let server = Server::script([Answer::text("ok"), Answer::text("again")]);
    let project = rpc::project();
    let mut client = RawClient::start(&project, &["--endpoint", &server.endpoint()]);
    let notices = json!({"protocolVersion": 1, "clientCapabilities": {"session": {"notices": {}}}});
    client.send("initialize", &notices);
    client.receive();
    let servers = json!([
        {"type": "http", "name": "linear", "url": "https://mcp.linear.invalid/mcp", "headers": []},
        {"type": "sse", "name": "old", "url": "https://x.invalid/sse", "headers": []},
        {"name": "gone", "command": "/no/such/program", "args": [], "env": []},
        {"name": "ends", "command": "/bin/sh", "args": ["-c", "echo no key >&2; exit 7"], "env": []},
    ]);
    client.send("session/new", &json!({"cwd": project.path(""), "mcpServers": servers}));
    let session = client.receive()["result"]["sessionId"].as_str().unwrap().to_owned();
    let mut prompt = |text: &str| {
        let prompt = json!([{"type": "text", "text": text}]);
        client.send("session/prompt", &json!({"sessionId": session, "prompt": prompt}));
        let mut notices = Vec::new();
        loop {
            let message = client.receive();
            let update = &message["params"]["update"];
            if update["sessionUpdate"] == "notice" {
                notices.push(update["title"].as_str().unwrap().to_owned());
            } else if message.get("result").is_some() {
                assert_eq!(message["result"]["stopReason"], "end_turn");
                return notices;
            }
        }
    };
    let notices = prompt("Hello.");
    let [linear, old, gone, ends, tools] = notices.as_slice() else { panic!("{notices:?}") };
    assert_eq!(linear, "MCP server `linear`: only programs can be used, not URLs");
    assert_eq!(old, "MCP server `old`: only programs can be used, not URLs");
    assert!(gone.starts_with("MCP server `gone`: cannot be started: "), "{gone}");
    assert_eq!(ends, "MCP server `ends`: exited with code 7: no key");
    assert!(tools.starts_with("not trusted, so not available: wait requires :run [\"sh\"] ("), "{tools}");
    assert_eq!(prompt("Again."), [""; 0]);
    client.disconnect();
    let offered = server.posts()[0].body["tools"].to_string();
    assert!(offered.contains("\"count\"") && !offered.contains("\"wait\""), "{offered}");
}

/// A client with raw messages.
struct RawClient {
    agent: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl RawClient {
    fn start(project: &Project, arguments: &[&str]) -> Self {
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

    fn send(&mut self, method: &str, params: &Value) {
        self.write(
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string().as_bytes(),
        );
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Closes the input of the agent, and waits for its end.
    fn disconnect(mut self) {
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
            "-32602 unknown session `x`; open it with `session/new` or `session/load`",
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

/// The client shows images of prompts again when it loads the session.
#[test]
fn images_of_prompts_are_sent_and_loaded() {
    let server = Server::script([Answer::text("A dot."), Answer::text("The same.")]);
    let project = rpc::project();
    let arguments = ["--trust", "--endpoint", &server.endpoint()];
    let data = "iVBORw0KGgo=";
    let image = json!({"type": "image", "mimeType": "image/png", "data": data});
    let mut client = RawClient::start(&project, &arguments);
    client.send("initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}}));
    assert_eq!(client.receive()["result"]["agentCapabilities"]["promptCapabilities"]["image"], true);
    client.send("session/new", &json!({"cwd": project.path(""), "mcpServers": []}));
    let session = client.receive()["result"]["sessionId"].clone();
    let prompt = |content: Value| json!({"sessionId": session, "prompt": content});
    client.send("session/prompt", &prompt(json!([{"type": "text", "text": "What is this?"}, image])));
    assert_eq!(client.receive()["params"]["update"]["content"]["text"], "A dot.");
    assert_eq!(client.receive()["result"]["stopReason"], "end_turn");
    client.disconnect();

    let mut client = RawClient::start(&project, &arguments);
    client.send("session/load", &json!({"sessionId": session, "cwd": project.path(""), "mcpServers": []}));
    let content = |message: Value| message["params"]["update"]["content"].clone();
    let text = content(client.receive())["text"].clone();
    assert_eq!(text, "What is this?\n[image: image/png, 8 bytes]\n");
    assert_eq!(content(client.receive()), image);
    assert_eq!(content(client.receive())["text"], "A dot.");
    assert!(client.receive().get("result").is_some());
    client.send("session/prompt", &prompt(json!([{"type": "text", "text": "And now?"}])));
    assert_eq!(content(client.receive())["text"], "The same.");
    client.disconnect();
    for post in server.posts() {
        assert_eq!(post.body.to_string().matches(&format!("data:image/png;base64,{data}")).count(), 1);
    }
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
