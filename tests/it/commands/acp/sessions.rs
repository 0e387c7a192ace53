//! Sessions that clients list, resume, close, and switch to another worker.

use agent_client_protocol::v1::schema::{
    CloseSessionRequest, ListSessionsRequest, ResumeSessionRequest, SetSessionModeRequest,
};
use deftool_test_support::server::{Act, Received, Texts as _};

use super::*;

/// A project with two workers, and tools of each kind.
fn project() -> Project {
    let project = Project::empty();
    project.write(
        "specs/workers.eld",
        "(defworker :name \"writer\" :default t :system \"You write.\")
(defworker :name \"reader\" :tools [\"read\"] :system \"You read.\")
(deftool :name \"read\" :description \"d\" :allow (:read [\".\"]))
(deftool :name \"write\" :description \"d\" :allow (:read [\".\"] :write [\"out\"]) :confirm t
  :args ((:name \"path\" :type string :description \"d\") (:name \"text\" :type string :description \"d\")))
",
    );
    project.write(
        "scripts/read.lua",
        "return function()
  tool.progress(0.5, \"half\")
  tool.progress(nil, \"nearly\")
  return \"read\"
end
",
    );
    project.write("scripts/write.lua", "return function(path, text) return text end\n");
    project
}

fn modes(session: &Value) -> String {
    let modes = &session["result"]["modes"];
    let names = modes["availableModes"].as_array().unwrap().iter().map(|mode| mode["id"].as_str().unwrap());
    format!("{} of {}", modes["currentModeId"].as_str().unwrap(), names.collect::<Vec<_>>().join(" "))
}

/// A session is answered by the worker that the client chose, with its tools, prompt and kinds.
#[tokio::test(flavor = "multi_thread")]
async fn modes_are_the_workers_of_the_project() {
    let server =
        Server::script([Answer::text("Written."), Answer::calls(&[("read", "{}")]), Answer::text("Read.")]);
    let project = project();
    connect(&project, &["--trust", "--endpoint", &server.endpoint()], async |connection, seen| {
        let request = NewSessionRequest::new(project.path(""));
        let created = connection.send_request(request).block_task().await?;
        let session = created.session_id.clone();
        assert_eq!(modes(&json!({ "result": created })), "writer of writer reader");
        prompt(connection, seen, &session, "Write.").await;
        let unknown = SetSessionModeRequest::new(session.clone(), "x");
        let error = connection.send_request(unknown).block_task().await.unwrap_err();
        assert_eq!(error.message, "unknown mode `x`; expected one of: writer, reader");
        let reader = SetSessionModeRequest::new(session.clone(), "reader");
        connection.send_request(reader).block_task().await?;
        assert_eq!(
            prompt(connection, seen, &session, "Read.").await,
            "call Pending Read: read\nInProgress: \nprogress: 50 % half\nprogress: nearly\nCompleted: read\n\
             agent: Read.\nstop: EndTurn\n"
        );
        Ok(())
    })
    .await;
    let tools = |post: usize| server.posts()[post].body["tools"].as_array().unwrap().len();
    assert_eq!((tools(0), tools(1)), (2, 1));
    assert!(server.posts()[0].texts("system")[0].ends_with("\n\nYou write."));
    let second = &server.posts()[1];
    assert!(second.texts("system")[0].ends_with("\n\nYou read."));
    assert_eq!(second.texts("user"), ["Write.", "Read."]);
}

/// A mode is used again if the project still has its worker: by the agent and by `deftool chat`.
#[tokio::test(flavor = "multi_thread")]
async fn a_mode_is_stored_with_its_session() {
    let server = Server::answering(|_, _| Answer::text("ok"));
    let project = project();
    let endpoint = server.endpoint();
    let arguments = ["--trust", "--endpoint", &endpoint];
    let stored = Mutex::new(None);
    connect(&project, &arguments, async |connection, seen| {
        let session = new_session(connection, project.path("")).await?;
        let reader = SetSessionModeRequest::new(session.clone(), "reader");
        connection.send_request(reader).block_task().await?;
        prompt(connection, seen, &session, "Read.").await;
        *stored.lock().unwrap() = Some(session);
        Ok(())
    })
    .await;
    let session = stored.into_inner().unwrap().unwrap();
    let load = async || {
        connect(&project, &arguments, async |connection, seen| {
            let request = LoadSessionRequest::new(session.clone(), project.path(""));
            let loaded = connection.send_request(request).block_task().await?;
            let current = loaded.modes.as_ref().map(|_| modes(&json!({ "result": loaded })));
            assert!(current.is_none_or(|current| current == "reader of writer reader"));
            prompt(connection, seen, &session, "And now?").await;
            Ok(())
        })
        .await;
    };
    let chat =
        || project.run(&["chat", "Hi.", "--resume", "last", "--trust", "--endpoint", &endpoint]).stderr;
    load().await;
    assert!(!chat().contains("note: "));
    let workers = std::fs::read_to_string(project.path("specs/workers.eld")).unwrap();
    project.write("specs/workers.eld", workers.replace("[\"read\"]", "[\"gone\"]"));
    load().await;
    let note = "note: the worker `reader` of this session no longer exists or has errors; `writer` is used\n";
    assert!(chat().contains(note));
    let of_worker = |post: &Received| post.texts("system")[0].rsplit_once('\n').unwrap().1.to_owned();
    let prompts: Vec<String> = server.posts().iter().map(of_worker).collect();
    assert_eq!(prompts, ["You read.", "You read.", "You read.", "You write.", "You write."]);
}

/// The user allows a tool for the session: its next call is not asked about, in another session it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_allowed_for_a_session() {
    let arguments = r#"{"path": "always", "text": "a"}"#;
    let call = || Answer::calls(&[("write", arguments)]);
    let server = Server::script([call(), call(), Answer::text("One."), call(), Answer::text("Two.")]);
    let project = project();
    connect(&project, &["--trust", "--endpoint", &server.endpoint()], async |connection, seen| {
        let called = "call Pending Edit: write path: \"always\", text: \"a\"\n";
        let ran = "InProgress: \nCompleted: a\n";
        let asked = "asked: write path: \"always\", text: \"a\"\n";
        for expected in [
            format!("{called}{asked}{ran}{called}{ran}agent: One.\nstop: EndTurn\n"),
            format!("{called}{asked}{ran}agent: Two.\nstop: EndTurn\n"),
        ] {
            let session = new_session(connection, project.path("")).await?;
            assert_eq!(prompt(connection, seen, &session, "Write twice.").await, expected);
        }
        Ok(())
    })
    .await;
}

/// A closed session is listed, and goes on without its past being sent again.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_listed_closed_and_resumed() {
    let server = Server::script([Answer::text("One."), Answer::text("Two."), Answer::text("Three.")]);
    let (project, other) = (project(), project());
    connect(&project, &["--trust", "--endpoint", &server.endpoint()], async |connection, seen| {
        let mut sessions = Vec::new();
        for (folder, text) in [(&project, "\nFirst \u{1b}[31mline\nof a prompt."), (&other, "Elsewhere.")] {
            let session = new_session(connection, folder.path("")).await?;
            prompt(connection, seen, &session, text).await;
            sessions.push(session);
        }
        let list = async |request: ListSessionsRequest| connection.send_request(request).block_task().await;
        let here = list(ListSessionsRequest::new().cwd(project.path("scripts"))).await?.sessions;
        let [session] = here.as_slice() else { panic!("{here:?}") };
        assert_eq!((&session.session_id, &session.cwd), (&sessions[0], &project.path("")));
        assert_eq!(session.title.as_deref(), Some("First \\u{1b}[31mline"));
        assert!(session.updated_at.as_deref().is_some_and(|time| time.ends_with('Z')));
        // Other tests have sessions, too.
        let all = list(ListSessionsRequest::new()).await?.sessions;
        let is_listed = |session: &SessionId| all.iter().any(|listed| listed.session_id == *session);
        assert!(sessions.iter().all(is_listed) && all.len() <= 100, "{all:?}");
        assert_eq!(list(ListSessionsRequest::new().cursor(String::from("1000000"))).await?.sessions, []);
        let error = list(ListSessionsRequest::new().cursor(String::from("x"))).await.unwrap_err();
        assert_eq!(error.message, "invalid cursor `x`");

        let session = &sessions[0];
        connection.send_request(CloseSessionRequest::new(session.clone())).block_task().await?;
        let closed = prompt(connection, seen, session, "Still there?").await;
        assert!(closed.contains("unknown session"), "{closed}");
        let request = ResumeSessionRequest::new(session.clone(), project.path(""));
        connection.send_request(request).block_task().await?;
        assert_eq!(prompt(connection, seen, session, "And now?").await, "agent: Three.\nstop: EndTurn\n");
        Ok(())
    })
    .await;
    assert_eq!(server.posts()[2].texts("user").len(), 2);
}

/// Closing a session cancels its prompt.
#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_ends_with_its_session() {
    let server = Server::script([Answer::stream().delta("Begun").then(Act::Silence)]);
    let project = project();
    connect(&project, &["--trust", "--endpoint", &server.endpoint()], async |connection, seen| {
        let session = new_session(connection, project.path("")).await?;
        let request = PromptRequest::new(session.clone(), vec!["Go.".into()]);
        let waiting = connection.send_request(request).block_task();
        let closing = CloseSessionRequest::new(session.clone());
        let closing = async {
            while seen.is_empty() {
                tokio::task::yield_now().await;
            }
            connection.send_request(closing).block_task().await
        };
        let (prompted, closed) = tokio::join!(waiting, closing);
        closed?;
        assert_eq!(prompted?.stop_reason, StopReason::Cancelled);
        let request = LoadSessionRequest::new(session, project.path(""));
        connection.send_request(request).block_task().await?;
        assert_eq!(seen.take(), "agent: Begun\nuser: Go.\nagent: Begun\n\n[this reply was interrupted]\n");
        Ok(())
    })
    .await;
}
