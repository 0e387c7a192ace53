//! `deftool mcp`: serves the tools of the project over the Model Context Protocol, on stdin and stdout or over HTTP.

mod hosts;

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use deftool_engine::{ProjectRoots, ProjectTrust};
use deftool_lang::diagnostic::Severity;
use deftool_lang::diagnostic::render::render_concise;
use deftool_lang::schema::{Target, emit};
use deftool_lang::spec::{Tool, ToolKind};
use deftool_lang::text::count;
use deftool_lang::tool::{CallContext, ToolCall, ToolError, ToolOutput, ToolRunner};
use deftool_mcp::{
    ApprovalMode, CallEvent, CallEvents, Catalog, CatalogSource, CatalogTool, HttpServer, ToolServer,
};
use deftool_project::{
    Generation, GenerationRunner, Listener, LiveProject, LoadedTool, PermissionRequest, ScriptState,
    permission_requests,
};
use deftool_script::{LogLevel, ScriptEvent, ScriptRunner, ScriptSink};
use deftool_worker::TrustSource;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::watch;

use crate::cli::options::ProjectOptions;
use crate::cli::outcome::{CliError, Exit, listen_error, runtime};
use crate::cli::project::engine::ScriptOptions;
use crate::cli::project::trust::{report_untrusted, stored_trust};
use crate::cli::project::{engine, script_log};
use crate::cli::terminal::interrupt::Signals;
use crate::cli::terminal::output::{clean, eprint_error, eprint_line, eprint_progress, notices, print};
use crate::cli::terminal::stdio::{stdin, stdout};
use hosts::{Host, print_config};

#[derive(Debug, Args)]
#[command(after_help = "\
An MCP host starts this command and sends its calls on stdin. With --port, hosts connect to the URL that is printed after \
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
    /// Opens the tools of the user for another folder.
    opener: Option<Opener>,
    trust: ProjectTrust,
    scripts: Arc<ScriptRunner>,
    /// Whether exit tools are offered.
    exit_tools: bool,
    emitted: Arc<EmittedTools>,
    /// The tools of the last requested generation, and when their trust was read.
    offered: Mutex<Option<(Arc<OfferedTools>, Instant)>>,
}

/// Interval at which permissions that are missing are read again: the user may grant them while the server runs.
const TRUST_INTERVAL: Duration = Duration::from_secs(1);

/// What opens the tools of the user for the folder of a client.
#[derive(Clone)]
struct Opener {
    roots: ProjectRoots,
    /// File names in messages are relative to it.
    from: PathBuf,
    reloaded: watch::Sender<u64>,
    trusts_all: bool,
}

impl Opener {
    fn open(&self) -> Result<LiveProject, CliError> {
        let folder = self.roots.trusted_folder();
        let listener = |is_user| report_reloads(self.reloaded.clone(), folder.to_owned(), is_user);
        Ok(self.roots.open(&self.from, listener)?)
    }
}

pub(in crate::cli) fn run(options: &McpOptions) -> Result<Exit, CliError> {
    let dirs = options.project.dirs()?;
    let roots = ProjectRoots::find(&dirs.project, &notices())?;
    let root = roots.main_root();
    if let Some(host) = options.config {
        return print_config(host, options, root);
    }
    let (reloaded, changes) = watch::channel(1);
    let trusts_all = options.scripts.trust;
    let opener = Opener { roots: roots.clone(), from: dirs.current, reloaded, trusts_all };
    let project = opener.open()?;
    let generation = project.current();
    let offered = generation.tools().filter(|tool| is_offered(tool, options.exit_tools)).count();
    let shown = |root: &Path| clean(&root.display().to_string());
    let and_user = roots.user().filter(|user| *user != root && project.user().is_some());
    let and_user = and_user.map(|user| format!(" and {}", shown(user))).unwrap_or_default();
    eprint_progress(&format!("serving {} of {}{and_user}", count(offered, "tool"), shown(root)));
    print_findings(&generation);
    let folder = roots.trusted_folder();
    if !trusts_all {
        report_untrusted(&missing_of(&generation, folder, options.exit_tools));
    }
    let events = CallEvents::default();
    let tools = LiveTools {
        project,
        opener: Some(opener),
        // stdin belongs to the client.
        trust: ProjectTrust::stored(folder, options.scripts.trust),
        scripts: engine::start_with(&options.scripts, sink(events.clone()))?,
        exit_tools: options.exit_tools,
        emitted: Arc::default(),
        offered: Mutex::default(),
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

/// Returns the listener of the project, or of the user's own, whose errors are already reported and whose permissions need
/// no trust.
fn report_reloads(reloaded: watch::Sender<u64>, folder: PathBuf, is_user: bool) -> Listener {
    Box::new(move |loaded| match loaded {
        Ok(generation) => {
            eprint_progress(&format!("generation {}: {}", generation.number, generation.changes));
            if !is_user {
                print_findings(generation);
                // Alone, a project replaces no exit tool.
                report_untrusted(&missing_of(generation, &folder, false));
            }
            reloaded.send_replace(generation.number);
        }
        Err(error) => eprint_error(&error.to_string()),
    })
}

async fn serve_stdio(server: ToolServer) -> Result<Exit, CliError> {
    if std::io::stdin().is_terminal() {
        eprint_line(
            "note: an MCP host starts this command and sends messages on stdin; press Ctrl-C to stop",
        );
    }
    match server.serve(stdin(), stdout()).await {
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

/// Returns the permissions that the offered tools require but do not have in `folder`. Calls that need them are refused.
fn missing_of(generation: &Generation, folder: &Path, exit_tools: bool) -> Vec<PermissionRequest> {
    let offered = generation.tools().filter(|loaded| is_offered(loaded, exit_tools));
    stored_trust(folder).missing_requests(permission_requests(&generation.load, offered))
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
    fn current(&self) -> Arc<dyn Catalog> {
        let generation = self.project.current();
        let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((offered, read_at)) = &*offered
            && Arc::ptr_eq(&offered.tools.generation, &generation)
            && (self.trust.is_complete(&generation) || read_at.elapsed() < TRUST_INTERVAL)
        {
            return Arc::<OfferedTools>::clone(offered);
        }
        self.emitted.keep_only(&generation);
        let tools = GenerationRunner {
            trust: self.trust.of(&generation),
            generation,
            scripts: Arc::clone(&self.scripts),
        };
        let current = OfferedTools { tools, exit_tools: self.exit_tools, emitted: Arc::clone(&self.emitted) };
        let (current, _) = offered.insert((Arc::new(current), Instant::now()));
        Arc::<OfferedTools>::clone(current)
    }

    fn in_folder(&self, folder: &Path) -> Option<Arc<dyn CatalogSource>> {
        let opener = self.opener.as_ref()?;
        let opener = Opener { roots: opener.roots.in_folder(folder)?, ..opener.clone() };
        let project = opener.open().map_err(|error| eprint_error(&error.to_string())).ok()?;
        let folder = opener.roots.trusted_folder();
        if !opener.trusts_all {
            report_untrusted(&missing_of(&project.current(), folder, self.exit_tools));
        }
        let trust = ProjectTrust::stored(folder, opener.trusts_all);
        let (scripts, exit_tools) = (Arc::clone(&self.scripts), self.exit_tools);
        let (emitted, offered) = (Arc::clone(&self.emitted), Mutex::default());
        Some(Arc::new(Self { project, opener: None, trust, scripts, exit_tools, emitted, offered }))
    }
}

/// The offered tools of one generation. Calls of exit tools are printed to stderr.
struct OfferedTools {
    tools: GenerationRunner,
    /// Whether exit tools are offered.
    exit_tools: bool,
    emitted: Arc<EmittedTools>,
}

impl Catalog for OfferedTools {
    fn names(&self) -> Vec<&str> {
        let offered = self.tools.generation.tools().filter(|loaded| is_offered(loaded, self.exit_tools));
        offered.map(|loaded| loaded.tool.name.value.as_str()).collect()
    }

    fn tool(&self, name: &str) -> Option<Arc<CatalogTool>> {
        let loaded = self.tools.generation.tool(name)?;
        if is_offered(loaded, self.exit_tools) { self.emitted.get(loaded) } else { None }
    }
}

impl ToolRunner for OfferedTools {
    fn run(&self, call: ToolCall, context: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        let GenerationRunner { generation, trust, .. } = &self.tools;
        let exit = generation.tool(&call.name).filter(|loaded| loaded.tool.kind == ToolKind::Exit);
        let Some(exit) = exit else { return self.tools.run(call, context) };
        if let Err(error) = trust.allow_tool(generation.load_of(exit), exit) {
            return std::future::ready(Err(error)).boxed();
        }
        eprint_line(&clean(&format!("exit tool {}: {}", call.name, call.arguments)));
        std::future::ready(Ok(Value::from("recorded").into())).boxed()
    }
}

/// The tools that were requested, by name. All generations share them, so that a reload emits only tools with a changed
/// spec.
#[derive(Default)]
struct EmittedTools(Mutex<HashMap<String, EmittedTool>>);

struct EmittedTool {
    spec: Arc<Tool>,
    tool: Arc<CatalogTool>,
}

impl EmittedTools {
    fn get(&self, loaded: &LoadedTool) -> Option<Arc<CatalogTool>> {
        let mut emitted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = &loaded.tool.name.value;
        if let Some(EmittedTool { spec, tool }) = emitted.get(name)
            && Arc::ptr_eq(spec, &loaded.tool)
        {
            return Some(Arc::clone(tool));
        }
        let tool = Arc::new(emit_tool(loaded)?);
        let spec = Arc::clone(&loaded.tool);
        emitted.insert(name.clone(), EmittedTool { spec, tool: Arc::clone(&tool) });
        Some(tool)
    }

    /// Drops tools that `generation` does not have, if there are more tools than it has.
    fn keep_only(&self, generation: &Generation) {
        let mut emitted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if emitted.len() > generation.tools().count() {
            emitted.retain(|name, _| generation.tool(name).is_some());
        }
    }
}

/// Returns whether a tool is offered. Tools with a broken script and, without `exit_tools`, exit tools are left out.
fn is_offered(loaded: &LoadedTool, exit_tools: bool) -> bool {
    let is_left_out = loaded.tool.kind == ToolKind::Exit && !exit_tools;
    !is_left_out && !matches!(loaded.script, ScriptState::Broken(_))
}

/// Compiles a tool to the form in which it is listed.
fn emit_tool(loaded: &LoadedTool) -> Option<CatalogTool> {
    let Value::Array(mut definitions) = emit(Target::Mcp, [&*loaded.tool]) else { return None };
    let offered = CatalogTool::new(definitions.pop()?, Arc::clone(loaded.entry())).ok()?;
    Some(offered.with_hints(&loaded.tool.permissions))
}

#[cfg(test)]
mod tests {
    use deftool_script::RunnerOptions;

    use super::*;

    fn write(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn spec(name: &str, description: &str) -> String {
        format!("(deftool :name \"{name}\" :description \"{description}\")\n")
    }

    /// Lists the tools, and returns those that are not in `before`.
    fn list_new(tools: &LiveTools, before: &mut Vec<Arc<CatalogTool>>) -> Vec<String> {
        let catalog = tools.current();
        let listed: Vec<_> =
            catalog.names().into_iter().map(|name| (name.to_owned(), catalog.tool(name).unwrap())).collect();
        let is_new = |tool: &Arc<CatalogTool>| !before.iter().any(|before| Arc::ptr_eq(before, tool));
        let new = listed.iter().filter(|(_, tool)| is_new(tool)).map(|(name, _)| name.clone()).collect();
        *before = listed.into_iter().map(|(_, tool)| tool).collect();
        new
    }

    #[test]
    fn a_save_emits_only_the_tools_that_it_changes() {
        const LIMIT: Duration = Duration::from_secs(300);
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, "specs/1.eld", &(spec("a", "d") + &spec("b", "d")));
        write(root, "specs/2.eld", &(spec("c", "d") + &spec("d", "d")));
        for name in ["a", "b", "c", "d"] {
            write(root, &format!("scripts/{name}.lua"), "return function() return 1 end\n");
        }
        let tools = LiveTools {
            project: LiveProject::open(root, root, None).unwrap(),
            opener: None,
            trust: ProjectTrust::stored(root, true),
            scripts: Arc::new(ScriptRunner::new(RunnerOptions::default())),
            exit_tools: false,
            emitted: Arc::default(),
            offered: Mutex::default(),
        };
        let emitted = || tools.emitted.0.lock().unwrap().len();
        let save = |name: &str, text: &str| {
            let generation = tools.project.current().number;
            write(root, name, text);
            while tools.project.current().number == generation {
                tools.project.refresh(LIMIT);
            }
        };
        // A call needs one tool.
        tools.current().tool("b").unwrap();
        assert_eq!(emitted(), 1);
        let mut listed = Vec::new();
        assert_eq!(list_new(&tools, &mut listed), ["a", "b", "c", "d"]);
        save("scripts/a.lua", "return function() return 2 end\n");
        assert!(list_new(&tools, &mut listed).is_empty());
        // Only the form that changed is read again.
        save("specs/2.eld", &(spec("c", "d") + &spec("d", "other")));
        assert_eq!(list_new(&tools, &mut listed), ["d"]);
        save("specs/2.eld", &spec("d", "other"));
        assert_eq!(list_new(&tools, &mut listed), ["d"]);
        assert_eq!(emitted(), 3);
    }
}
