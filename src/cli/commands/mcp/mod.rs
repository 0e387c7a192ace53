//! `deftool mcp`: serves the tools of the project over the Model Context Protocol, on stdin and stdout or over HTTP.

mod hosts;

use std::convert::Infallible;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use deftool_lang::diagnostic::Severity;
use deftool_lang::diagnostic::render::render_concise;
use deftool_lang::schema::{Target, emit};
use deftool_lang::spec::ToolKind;
use deftool_lang::text::count;
use deftool_lang::tool::{CallContext, ToolCall, ToolError, ToolOutput, ToolRunner};
use deftool_mcp::{
    ApprovalMode, CallEvent, CallEvents, Catalog, CatalogSource, CatalogTool, HttpServer, ToolServer,
};
use deftool_project::{
    Generation, GenerationRunner, LiveProject, LoadedTool, ProjectError, ScriptState, find_root,
    permission_requests,
};
use deftool_script::{LogLevel, ScriptEvent, ScriptRunner, ScriptSink};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::watch;

use crate::cli::options::ProjectOptions;
use crate::cli::outcome::{CliError, Exit, listen_error, runtime};
use crate::cli::project::engine::ScriptOptions;
use crate::cli::project::trust::{ProjectTrust, missing_permissions};
use crate::cli::project::{engine, script_log};
use crate::cli::terminal::interrupt::Signals;
use crate::cli::terminal::output::{clean, eprint_error, eprint_line, eprint_progress, print};
use hosts::{Host, print_config};

#[derive(Debug, Args)]
#[command(after_help = "\
An MCP host starts this command and sends its calls on stdin. With --port, hosts connect to the URL that is printed after
`READY`. Messages and log lines of scripts go to stderr.

Examples:
  deftool mcp -C my-agent
  deftool mcp --port 8808 --token-env MY_TOKEN
  deftool mcp -C my-agent --config cursor")]
pub(in crate::cli) struct McpOptions {
    /// Print what makes this host start the server, with --yes and --exit-tools if they are given
    #[arg(long, value_enum, value_name = "HOST", conflicts_with_all = ["port", "trust", "isolate"])]
    pub(in crate::cli) config: Option<Host>,
    /// Run all calls without confirmation prompts, including tools with :confirm
    #[arg(long)]
    pub(in crate::cli) yes: bool,
    /// Offer exit tools too; their calls are printed to stderr
    #[arg(long)]
    pub(in crate::cli) exit_tools: bool,
    /// Serve streamable HTTP on this port instead of stdin and stdout; 0 chooses a free port
    #[arg(long, value_name = "N")]
    pub(in crate::cli) port: Option<u16>,
    /// With --port: address to listen on; one that is not a loopback address requires --token-env
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", requires = "port")]
    pub(in crate::cli) address: std::net::IpAddr,
    /// With --port: environment variable with the bearer token that clients must send
    #[arg(long, value_name = "NAME", requires = "port")]
    pub(in crate::cli) token_env: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
    #[command(flatten)]
    pub(in crate::cli) project: ProjectOptions,
}

/// The tools of a project that is reloaded after changes.
struct LiveTools {
    project: LiveProject,
    trust: ProjectTrust,
    scripts: Arc<ScriptRunner>,
    /// Whether exit tools are offered.
    exit_tools: bool,
    /// The catalog of the last requested generation, with its number.
    cached: Mutex<Option<(u64, Catalog)>>,
}

pub(in crate::cli) fn run(options: &McpOptions) -> Result<Exit, CliError> {
    let dirs = options.project.dirs()?;
    let root = find_root(&dirs.project)?;
    if let Some(host) = options.config {
        return print_config(host, options, &root);
    }
    let (reloaded, changes) = watch::channel(1);
    let listener = move |loaded: Result<&Generation, &ProjectError>| match loaded {
        Ok(generation) => {
            eprint_progress(&format!("generation {}: {}", generation.number, generation.changes));
            print_findings(generation);
            report_untrusted(generation);
            reloaded.send_replace(generation.number);
        }
        Err(error) => eprint_error(&error.to_string()),
    };
    let project = LiveProject::open(&root, &dirs.current, Some(Box::new(listener)))?;
    let generation = project.current();
    let offered = generation.tools().filter_map(|tool| offer(tool, options.exit_tools)).count();
    eprint_progress(&format!("serving {} of {}", count(offered, "tool"), clean(&root.display().to_string())));
    print_findings(&generation);
    report_untrusted(&generation);
    let events = CallEvents::default();
    let tools = LiveTools {
        project,
        // stdin belongs to the client.
        trust: ProjectTrust::without_prompt(&root, options.scripts.trust),
        scripts: engine::start_with(&options.scripts, sink(events.clone()))?,
        exit_tools: options.exit_tools,
        cached: Mutex::default(),
    };
    let approvals = if options.yes { ApprovalMode::Allow } else { ApprovalMode::Ask };
    let server = ToolServer::new(Arc::new(tools), changes, approvals, events);
    let runtime = runtime()?;
    let served = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(CliError::Runtime)?;
        let served = async {
            match options.port {
                Some(port) => match serve_http(server, options, port).await {
                    Ok(never) => match never {},
                    Err(error) => Err(error),
                },
                None => serve_stdio(server).await,
            }
        };
        tokio::select! {
            served = served => served,
            () = signals.next() => Ok(Exit::Interrupted),
        }
    });
    // A thread may still wait for stdin.
    runtime.shutdown_timeout(Duration::from_millis(100));
    served
}

async fn serve_stdio(server: ToolServer) -> Result<Exit, CliError> {
    if std::io::stdin().is_terminal() {
        eprint_line(
            "note: an MCP host starts this command and sends messages on stdin; press Ctrl-C to stop",
        );
    }
    match server.serve(tokio::io::stdin(), tokio::io::stdout()).await {
        Ok(()) => Ok(Exit::Clean),
        Err(error) => Err(CliError::Usage(error.to_string())),
    }
}

async fn serve_http(server: ToolServer, options: &McpOptions, port: u16) -> Result<Infallible, CliError> {
    let address = SocketAddr::new(options.address, port);
    let token = options.token_env.as_deref().map(token_from).transpose()?;
    if token.is_none() && !address.ip().is_loopback() {
        let message = format!("other machines can reach {address}; set a bearer token with --token-env NAME");
        return Err(CliError::Usage(message));
    }
    let http = HttpServer::bind(address, token).await;
    let http = http.map_err(|error| CliError::Usage(listen_error(address, &error)))?;
    print(&format!("READY {}\n", http.url()));
    Ok(http.serve(server).await)
}

/// Reads the bearer token from an environment variable.
fn token_from(name: &str) -> Result<String, CliError> {
    match std::env::var(name) {
        Ok(token) if !token.is_empty() => Ok(token),
        _ => {
            Err(CliError::Usage(format!("--token-env: the environment variable `{name}` contains no token")))
        }
    }
}

/// Prints the errors: these tools are not offered, or in their last good version.
fn print_findings(generation: &Generation) {
    let load = &generation.load;
    for finding in load.findings.iter().filter(|finding| finding.severity == Severity::Error) {
        eprint_line(&render_concise(finding, &load.sources));
    }
}

/// Reports the permissions that the project requires but does not have. Calls that need them are refused.
fn report_untrusted(generation: &Generation) {
    for request in missing_permissions(generation, permission_requests(&generation.load, generation.tools()))
    {
        eprint_line(&format!("not trusted: {request}; see `deftool trust grant`"));
    }
}

/// Returns a sink that prints log lines to stderr, and reports them and progress to the client.
fn sink(events: CallEvents) -> ScriptSink {
    let log = script_log::sink();
    ScriptSink::new(move |event| match event {
        ScriptEvent::Progressed { request_id, fraction, text, .. } => {
            events.send(&request_id, CallEvent::Progressed { fraction, text });
        }
        ScriptEvent::Logged { ref request_id, level, ref text, .. } => {
            let level = match level {
                LogLevel::Debug => deftool_mcp::LogLevel::Debug,
                LogLevel::Info => deftool_mcp::LogLevel::Info,
                LogLevel::Warn => deftool_mcp::LogLevel::Warning,
                LogLevel::Error => deftool_mcp::LogLevel::Error,
            };
            events.send(request_id, CallEvent::Logged { level, text: text.clone() });
            log.send(event);
        }
    })
}

impl CatalogSource for LiveTools {
    fn current(&self) -> Catalog {
        let generation = self.project.current();
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((number, catalog)) = &*cached
            && *number == generation.number
        {
            return catalog.clone();
        }
        let number = generation.number;
        let offered = generation.tools().filter_map(|tool| offer(tool, self.exit_tools)).collect::<Vec<_>>();
        let tools = GenerationRunner {
            trust: self.trust.of(&generation),
            generation,
            scripts: Arc::clone(&self.scripts),
        };
        let catalog = Catalog::new(offered, Arc::new(ServedTools(tools)));
        *cached = Some((number, catalog.clone()));
        catalog
    }
}

/// Runs the tools of one generation. Calls of exit tools are printed to stderr.
struct ServedTools(GenerationRunner);

impl ToolRunner for ServedTools {
    fn run(&self, call: ToolCall, context: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        let kind = self.0.generation.tool(&call.name).map(|loaded| loaded.tool.kind);
        if kind != Some(ToolKind::Exit) {
            return self.0.run(call, context);
        }
        eprint_line(&clean(&format!("exit tool {}: {}", call.name, call.arguments)));
        std::future::ready(Ok(Value::from("recorded").into())).boxed()
    }
}

/// Returns a tool as it is offered. Tools with a broken script and, without `exit_tools`, exit tools are left out.
fn offer(loaded: &LoadedTool, exit_tools: bool) -> Option<CatalogTool> {
    let is_left_out = loaded.tool.kind == ToolKind::Exit && !exit_tools;
    if is_left_out || matches!(loaded.script, ScriptState::Broken(_)) {
        return None;
    }
    let Value::Array(mut definitions) = emit(Target::Mcp, [&*loaded.tool]) else { return None };
    let offered = CatalogTool::new(definitions.pop()?, Arc::clone(loaded.entry())).ok()?;
    Some(offered.with_hints(&loaded.tool.permissions))
}
