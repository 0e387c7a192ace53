//! The MCP servers of a project: starts them and connects to them.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deftool_lang::spec::{McpServer, McpTransport, WorkerSpec};
use deftool_lang::text::{cut, distinct, one_line, portable, readable};
use deftool_lang::tool::{JoinedTools, ToolSource};
use deftool_mcp::{Launch, Redact, RemoteServer, RemoteTools, ServerTransport};
use deftool_project::{Load, PermissionRequest, Trust, mcp_permission_request};
use deftool_record::Redactor;

use crate::folders::environment;
use crate::{Notices, OpenError};

/// Maximum length of a line of a server in a message, in characters.
const MAX_LINE: usize = 300;

/// Maximum number of lines of a server in a message.
const MAX_LINES: usize = 3;

/// Time limit for reading the last lines of an ended server.
const LAST_LINES: Duration = Duration::from_millis(250);

/// Maximum number of bytes that are read as one line.
const MAX_PIECE: u64 = 64 << 10;

/// A program that a client adds as an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AddedServer {
    /// Its name.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its environment variables.
    pub env: Vec<(String, String)>,
}

/// MCP servers that a worker uses.
pub struct Servers {
    used: Vec<McpServer>,
    /// Servers of the client, and the folder in which they run.
    added: (Vec<AddedServer>, PathBuf),
    /// The `:tools` of the worker.
    tools: Option<Vec<String>>,
    root: PathBuf,
}

impl Servers {
    /// Returns the servers whose tools a worker of the project at `root` uses: those that its `:tools` name, or all.
    pub fn of_worker(load: &Load, worker: &WorkerSpec, root: &Path) -> Self {
        let tools: Option<Vec<String>> =
            worker.tools.as_ref().map(|names| names.iter().map(|name| name.value.clone()).collect());
        let is_used = |server: &&McpServer| {
            tools.as_ref().is_none_or(|names| names.iter().any(|name| server.is_named_by(name)))
        };
        let used = load.mcp_servers.iter().filter(is_used).cloned().collect();
        Self { used, added: Default::default(), tools, root: root.to_owned() }
    }

    /// Adds servers that a client configured, and the folder in which they run. All of their tools are used. One that
    /// cannot be used is left out.
    pub fn add(&mut self, servers: Vec<AddedServer>, folder: PathBuf) {
        self.added = (servers, folder);
    }

    /// Returns the permissions to start or contact the servers of the project.
    pub fn permission_requests(&self, load: &Load) -> Vec<PermissionRequest> {
        self.used.iter().map(|server| mcp_permission_request(load, server)).collect()
    }

    /// Returns the number of servers of the project.
    pub fn count(&self) -> usize {
        self.used.len()
    }

    /// Leaves out the servers of the project that are not trusted.
    pub fn leave_out(&mut self, load: &Load, trust: &Trust) {
        self.used.retain(|server| trust.refused(vec![mcp_permission_request(load, server)]).is_empty());
    }

    /// Connects to the servers, which must be trusted.
    ///
    /// # Errors
    /// If a server cannot be used.
    pub async fn connect(&self, notices: &Notices) -> Result<Option<Arc<RemoteTools>>, OpenError> {
        if self.used.is_empty() && self.added.0.is_empty() {
            return Ok(None);
        }
        let tools = self.tools.as_deref();
        let servers = self.used.iter().map(|server| {
            let unusable =
                |reason| OpenError::Unusable(format!("MCP server `{}`: {reason}", server.name.value));
            Self::remote(server, tools, &self.root).map_err(unusable)
        });
        let (added, folder) = &self.added;
        let mut names: Vec<String> = self.used.iter().map(|server| server.name.value.clone()).collect();
        names.extend(added.iter().map(|server| portable(&server.name)));
        let added = added.iter().map(|server| {
            let name = portable(&server.name);
            let is_shared = names.iter().filter(|known| **known == name).count() > 1;
            let name = if is_shared { distinct(&name, &server.name) } else { name };
            Ok(remote_of_client(server, name, folder))
        });
        let servers = servers.chain(added).collect::<Result<_, OpenError>>()?;
        let notices = notices.clone();
        let report = move |server: &str, message: &str| {
            let line = format!("MCP server `{server}`: {}", one_line(readable(message)));
            notices.send(&cut(&line, 2 * MAX_LINE));
        };
        let connected = RemoteTools::connect(servers, Arc::new(report)).await;
        connected
            .map(|tools| Some(Arc::new(tools)))
            .map_err(|error| OpenError::Unusable(readable(&error.to_string())))
    }

    /// Returns how to use a server of the project at `root`. `tools`: the `:tools` of the worker, if it has any.
    ///
    /// # Errors
    /// If its token or a header is not set.
    pub fn remote(server: &McpServer, tools: Option<&[String]>, root: &Path) -> Result<RemoteServer, String> {
        let name = &server.name.value;
        let value_of = |variable: &String| {
            environment(variable).ok_or_else(|| format!("the environment variable `{variable}` is not set"))
        };
        let (mut token, mut headers) = (None, Vec::new());
        if let McpTransport::Url(_) = &server.transport {
            token = server.token_env.as_ref().map(value_of).transpose()?;
            for (header, variable) in &server.header_env {
                headers.push((header.clone(), value_of(variable)?));
            }
        }
        let redact =
            redact(token.as_deref().into_iter().chain(headers.iter().map(|(_, value)| value.as_str())));
        let transport = match &server.transport {
            McpTransport::Command(command) => ServerTransport::Program(launch(
                command.clone(),
                server.env.clone(),
                Vec::new(),
                root.to_owned(),
            )),
            McpTransport::Url(url) => ServerTransport::Http { url: url.clone(), token, headers },
        };
        // The name of the server selects all of its tools.
        let is_partial = |names: &&[String]| !names.contains(name);
        Ok(RemoteServer {
            name: name.clone(),
            transport,
            tools: server.tools.as_ref().map(|names| names.iter().map(|name| name.value.clone()).collect()),
            only: tools.filter(is_partial).map(<[String]>::to_vec),
            is_required: true,
            confirm: server.confirm,
            timeout: server.timeout,
            redact,
        })
    }
}

/// Returns how to use a server of a client, which is called `name`.
fn remote_of_client(server: &AddedServer, name: String, root: &Path) -> RemoteServer {
    let program = launch(server.command.clone(), Vec::new(), server.env.clone(), root.to_owned());
    RemoteServer {
        name,
        transport: ServerTransport::Program(program),
        tools: None,
        only: None,
        is_required: false,
        confirm: true,
        timeout: None,
        redact: redact([]),
    }
}

/// Returns a function that redacts the secrets of a server as the API key is redacted.
fn redact<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Redact {
    let redactor = Redactor::new(secrets);
    Box::new(move |value| redactor.value(value))
}

/// Adds the tools of MCP servers to those of the project.
pub fn join(tools: Arc<dyn ToolSource>, remote: Option<&Arc<RemoteTools>>) -> Arc<dyn ToolSource> {
    match remote {
        None => tools,
        Some(remote) => Arc::new(JoinedTools::new(tools, Arc::clone(remote) as Arc<dyn ToolSource>)),
    }
}

#[cfg(unix)]
fn launch(
    command: Vec<String>,
    env: Vec<String>,
    variables: Vec<(String, String)>,
    folder: PathBuf,
) -> Launch {
    use deftool_mcp::ServerProgram;
    use deftool_script::start_program;
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

    Box::new(move || {
        let (command, env, folder) = (command.clone(), env.clone(), folder.clone());
        let variables = variables.clone();
        Box::pin(async move {
            let mut program = start_program(command, env, variables, &folder).await?;
            let missing = || std::io::Error::other("it has no pipes");
            let input = program.stdin.take().ok_or_else(missing)?;
            let output = program.stdout.take().ok_or_else(missing)?;
            let errors = program.stderr.take().ok_or_else(missing)?;
            let last_lines = Arc::new(Mutex::new(VecDeque::new()));
            let lines = Arc::clone(&last_lines);
            let reader = tokio::spawn(async move {
                let mut errors = BufReader::new(errors);
                let mut line = Vec::new();
                loop {
                    line.clear();
                    // The rest of a long line counts as another line.
                    let limited = (&mut errors).take(MAX_PIECE).read_until(b'\n', &mut line).await;
                    if !matches!(limited, Ok(1..)) {
                        return;
                    }
                    let text = String::from_utf8_lossy(&line).trim().to_owned();
                    let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                    lines.extend((!text.is_empty()).then(|| cut(&text, MAX_LINE)));
                    while lines.len() > MAX_LINES {
                        lines.pop_front();
                    }
                }
            });
            let ended = async move {
                let how = program.wait().await.map_or_else(|error| error.to_string(), describe);
                let _ = tokio::time::timeout(LAST_LINES, reader).await;
                let lines = last_lines.lock().unwrap_or_else(PoisonError::into_inner);
                if lines.is_empty() {
                    how
                } else {
                    format!("{how}: {}", Vec::from(lines.clone()).join(" | "))
                }
            };
            Ok(ServerProgram { input: Box::new(input), output: Box::new(output), ended: Box::pin(ended) })
        })
    })
}

#[cfg(unix)]
fn describe(status: std::process::ExitStatus) -> String {
    match (status.code(), std::os::unix::process::ExitStatusExt::signal(&status)) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("was terminated by signal {signal}"),
        (None, None) => String::from("exited"),
    }
}

#[cfg(not(unix))]
fn launch(_: Vec<String>, _: Vec<String>, _: Vec<(String, String)>, _: PathBuf) -> Launch {
    Box::new(|| Box::pin(std::future::ready(Err(std::io::Error::other("not supported on this platform")))))
}
