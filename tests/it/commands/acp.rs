//! `deftool acp`: clients with the protocol's own crate and with raw messages.

#![cfg(target_os = "linux")]

pub(super) mod raw;
mod sessions;
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
    McpServer, McpServerStdio, NewSessionRequest, PermissionOptionKind, PromptRequest,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome,
    SessionId, SessionNotification, SessionUpdate, StopReason, ToolCallContent, ToolKind,
};
use agent_client_protocol::{Agent, ByteStreams, Client, Error, on_receive_notification, on_receive_request};
use deftool_test_support::server::{Answer, Server, call, finish, without_budget};
use serde_json::{Value, json};
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

use self::raw::RawClient;
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

    fn is_empty(&self) -> bool {
        self.0.lock().unwrap().is_empty()
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
            let kind = if call.kind == ToolKind::Other { String::new() } else { format!(" {:?}", call.kind) };
            let text = format!("call {:?}{kind}: {} {}", call.status, call.title, texts_of(&call.content));
            text.trim().to_owned()
        }
        SessionUpdate::ToolCallUpdate(update) => {
            let texts = texts_of(&update.fields.content.unwrap_or_default());
            let status = update.fields.status;
            format!("{}: {texts}", status.map_or(String::from("progress"), |status| format!("{status:?}")))
        }
        SessionUpdate::Notice(notice) => format!("notice: {}", notice.title),
        other => panic!("{other:?}"),
    }
}

/// Starts `deftool acp` in the project, and runs `work` with a connection to it. The user allows the calls with the path
/// `a`, and all calls of the tool with the path `always`.
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
                let path = fields.raw_input.unwrap()["path"].clone();
                let kind = match path.as_str() {
                    Some("a") => PermissionOptionKind::AllowOnce,
                    Some("always") => PermissionOptionKind::AllowAlways,
                    _ => PermissionOptionKind::RejectOnce,
                };
                let option = request.options.iter().find(|option| option.kind == kind).unwrap();
                let selected = SelectedPermissionOutcome::new(option.option_id.clone());
                let selected = RequestPermissionOutcome::Selected(selected);
                let outcome = if path == "c" { RequestPermissionOutcome::Cancelled } else { selected };
                responder.respond(RequestPermissionResponse::new(outcome))
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

const CONVERSATION: &str = r#"call Pending: count text: "abcd"
call Pending: careful path: "a"
call Pending: careful path: "b\u{202e}\u{200b}\u{2028}\u{7f}"
call Pending: careful path: "c"
InProgress: 
progress: 50 % half
Completed: 4
asked: careful path: "a"
InProgress: 
Completed: changed a
asked: careful path: "b\u{202e}\u{200b}\u{2028}\u{7f}"
Failed: {"refused":"the user did not allow this call"}
asked: careful path: "c"
Failed: {"refused":"the user did not allow this call","reason":"nobody answered the request for approval"}
agent: It is 4.
call Completed: done
call Failed: done [] the arguments are an array, not an object
stop: EndTurn
"#;

const LOADED: &str = r#"user: How long is abcd?
call Pending: count text: "abcd"
call Pending: careful path: "a"
call Pending: careful path: "b\u{202e}\u{200b}\u{2028}\u{7f}"
call Pending: careful path: "c"
Completed: 4
Completed: changed a
Completed: {"refused":"the user did not allow this call"}
Completed: {"refused":"the user did not allow this call","reason":"nobody answered the request for approval"}
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
        ("careful", "{\"path\": \"c\"}"),
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
        "system user assistant tool tool tool tool assistant user assistant user assistant user"
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
            "call Pending Execute: wait\nInProgress: \nerror Invalid params: another prompt of this session is not finished\n"
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

/// The editor adds another deftool project as an MCP server, twice. The names would be the same with portable characters.
#[tokio::test(flavor = "multi_thread")]
async fn mcp_servers_of_the_client_are_used() {
    let names = ["my_server_adaf036e__greet", "my_server_73b1ebfc__greet"];
    let server =
        Server::script([Answer::calls(&names.map(|name| (name, "{\"path\": \"a\"}"))), Answer::text("ok")]);
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
        let greeters = [("my server", "hello"), ("my.server", "hi")].map(|(name, greeting)| {
            let greeter = McpServerStdio::new(name, env!("CARGO_BIN_EXE_deftool")).args(arguments.to_vec());
            McpServer::Stdio(greeter.env(vec![EnvVariable::new("GREETING", greeting)]))
        });
        let request = NewSessionRequest::new(project.path("")).mcp_servers(greeters.to_vec());
        let session = connection.send_request(request).block_task().await?.session_id;
        let replied = prompt(connection, seen, &session, "Greet.").await;
        assert_eq!(
            replied,
            format!(
                "call Pending: {0} {arguments}\ncall Pending: {1} {arguments}\nasked: {0} {arguments}\nInProgress: \nCompleted: hello a\n\
                 asked: {1} {arguments}\nInProgress: \nCompleted: hi a\nagent: ok\nstop: EndTurn\n",
                names[0], names[1], arguments = "path: \"a\""
            )
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
