//! The requests of a client.

use std::io;
use std::sync::Arc;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, CloseSessionRequest, CloseSessionResponse, Implementation,
    InitializeRequest, InitializeResponse, ListSessionsRequest, ListSessionsResponse, LoadSessionRequest,
    LoadSessionResponse, NewSessionRequest, NewSessionResponse, PromptCapabilities, PromptRequest,
    PromptResponse, ResumeSessionRequest, ResumeSessionResponse, SessionCapabilities,
    SessionCloseCapabilities, SessionInfo, SessionListCapabilities, SessionResumeCapabilities,
    SetSessionModeRequest, SetSessionModeResponse,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{
    Agent, Client, ConnectTo, Error, JsonRpcResponse, Lines, on_receive_notification, on_receive_request,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::host::{Host, StoredSession};
use crate::lines;
use crate::sessions::{Sessions, invalid};
use crate::updates::replay;

/// Maximum number of sessions in a response.
const PAGE: usize = 100;

/// Serves one client until `input` ends, `output` fails or `stop` is canceled. Then cancels all prompts, stores their
/// replies, and closes the host. Must be called in a multi-threaded runtime.
///
/// # Errors
/// If the connection fails.
pub async fn serve(
    host: impl Host,
    input: impl AsyncRead + Send + 'static,
    output: impl AsyncWrite + Send + 'static,
    stop: CancellationToken,
) -> io::Result<()> {
    let canceled = stop.child_token();
    let sessions = Arc::new(Sessions::new(Box::new(host), canceled.clone()));
    let server = Arc::new(Server { sessions, tasks: TaskTracker::new() });
    let (outgoing, incoming, waiting) = lines::connect(input);
    let connected = async {
        let connected = connect(&server, Lines::new(outgoing, incoming)).await;
        connected.map_err(|error| io::Error::other(error.message))
    };
    let served = async { tokio::try_join!(connected, lines::write(output, waiting)) };
    let served = stop.run_until_cancelled(served).await;
    canceled.cancel();
    server.tasks.close();
    server.tasks.wait().await;
    server.sessions.close_host().await;
    served.unwrap_or(Ok(((), ()))).map(drop)
}

/// Answers the messages of the client until the connection ends.
async fn connect(server: &Arc<Server>, transport: impl ConnectTo<Agent> + 'static) -> Result<(), Error> {
    // Each handler owns a reference.
    let [initializing, creating, loading, resuming, listing, closing, switching, prompting, canceling] =
        std::array::from_fn(|_| Arc::clone(server));
    Agent
        .v1()
        .name("deftool")
        .on_receive_request(
            async move |request: InitializeRequest, responder, _| {
                responder.respond(initializing.initialize(&request))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: NewSessionRequest, responder, _| {
                creating.answer(responder, |sessions| async move {
                    let (id, _, modes) = sessions.open(request.cwd, None, request.mcp_servers).await?;
                    Ok(NewSessionResponse::new(id).modes(modes))
                });
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: LoadSessionRequest, responder, connection: ConnectionTo<Client>| {
                loading.answer(responder, |sessions| async move {
                    let id = Some(request.session_id.to_string());
                    let (id, conversation, modes) =
                        sessions.open(request.cwd, id, request.mcp_servers).await?;
                    let peer = sessions.peer(id, connection);
                    for update in replay(&conversation.messages, &*conversation.kind_of) {
                        peer.update(update);
                    }
                    Ok(LoadSessionResponse::new().modes(modes))
                });
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ResumeSessionRequest, responder, _| {
                resuming.answer(responder, |sessions| async move {
                    let id = Some(request.session_id.to_string());
                    let (_, _, modes) = sessions.open(request.cwd, id, request.mcp_servers).await?;
                    Ok(ResumeSessionResponse::new().modes(modes))
                });
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ListSessionsRequest, responder, _| {
                listing.answer(responder, |sessions| async move {
                    list(sessions.stored(request.cwd)?, request.cursor)
                });
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: CloseSessionRequest, responder, _| {
                closing.answer(responder, |sessions| async move {
                    sessions.close(&request.session_id).await?;
                    Ok(CloseSessionResponse::new())
                });
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: SetSessionModeRequest, responder, _| {
                switching.answer(responder, |sessions| async move {
                    sessions.set_mode(&request.session_id, &request.mode_id.0).await?;
                    Ok(SetSessionModeResponse::new())
                });
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, connection: ConnectionTo<Client>| {
                prompting.prompt(request, responder, connection)
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |notification: CancelNotification, _| {
                canceling.sessions.cancel(&notification.session_id);
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_to(transport)
        .await
}

/// A running agent.
struct Server {
    sessions: Arc<Sessions>,
    tasks: TaskTracker,
}

impl Server {
    fn initialize(&self, request: &InitializeRequest) -> InitializeResponse {
        let session = request.client_capabilities.session.as_ref();
        self.sessions.show_notices(session.is_some_and(|session| session.notices.is_some()));
        // The server of a session is not known yet. One without images gets a line of text for each.
        let prompts = PromptCapabilities::new().embedded_context(true).image(true);
        let sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(prompts)
            .session_capabilities(sessions);
        InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .agent_info(Implementation::new("deftool", env!("CARGO_PKG_VERSION")))
    }

    /// Starts a prompt. A `session/cancel` that follows cancels it, even if its task has not started.
    fn prompt(
        &self,
        request: PromptRequest,
        responder: Responder<PromptResponse>,
        connection: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        match self.sessions.start_prompt(&request.session_id) {
            Ok(prompt) => {
                let peer = self.sessions.peer(request.session_id.to_string(), connection);
                self.answer(responder, |_| prompt.run(peer, request));
                Ok(())
            }
            Err(error) => responder.respond_with_error(error),
        }
    }

    /// Runs `work` in a task, and sends its result.
    fn answer<T: JsonRpcResponse, F: Future<Output = Result<T, Error>> + Send + 'static>(
        &self,
        responder: Responder<T>,
        work: impl FnOnce(Arc<Sessions>) -> F,
    ) {
        let work = work(Arc::clone(&self.sessions));
        self.tasks.spawn(async move {
            // Fails only if the client is gone.
            let _ = responder.respond_with_result(work.await);
        });
    }
}

/// Returns a page of the stored sessions. A cursor is the number of those before it.
fn list(stored: Vec<StoredSession>, cursor: Option<String>) -> Result<ListSessionsResponse, Error> {
    let start = cursor.map_or(Ok(0), |cursor| {
        cursor.parse::<usize>().map_err(|_| invalid(format!("invalid cursor `{cursor}`")))
    })?;
    let next = start.saturating_add(PAGE);
    let cursor = (next < stored.len()).then(|| next.to_string());
    let page = stored.into_iter().skip(start).take(PAGE).map(|session| {
        SessionInfo::new(session.id, session.folder).title(session.title).updated_at(session.changed)
    });
    Ok(ListSessionsResponse::new(page.collect()).next_cursor(cursor))
}
