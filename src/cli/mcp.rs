//! `deftool mcp`: serves the tools of the project over the Model Context Protocol, on stdin and stdout.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deftool_lang::diagnostic::Severity;
use deftool_lang::diagnostic::render::render_concise;
use deftool_lang::schema::{Target, emit};
use deftool_lang::spec::ToolKind;
use deftool_lang::text::count;
use deftool_mcp::{ApprovalMode, Catalog, CatalogSource, CatalogTool, Progress, ProgressReports, ToolServer};
use deftool_project::{
    Generation, GenerationRunner, LiveProject, LoadedTool, ProjectError, ScriptState, find_root,
    permission_requests,
};
use deftool_script::{ScriptEvent, ScriptRunner, ScriptSink};
use serde_json::Value;
use tokio::sync::watch;

use super::args::McpOptions;
use super::command::{CliError, Exit, command_dirs};
use super::interrupt::Signals;
use super::output::{clean, eprint_error, eprint_line};
use super::trust::{ProjectTrust, not_trusted};
use super::{engine, script_log};

/// The tools of a project that is reloaded after changes.
struct LiveTools {
    project: LiveProject,
    trust: ProjectTrust,
    scripts: Arc<ScriptRunner>,
    /// The catalog of the last requested generation, with its number.
    cached: Mutex<Option<(u64, Catalog)>>,
}

pub(super) fn run(options: &McpOptions) -> Result<Exit, CliError> {
    let dirs = command_dirs(options.project.as_deref())?;
    let root = find_root(&dirs.project)?;
    let (reloaded, changes) = watch::channel(1);
    let listener = move |loaded: Result<&Generation, &ProjectError>| match loaded {
        Ok(generation) => {
            eprint_line(&format!("generation {}: {}", generation.number, generation.changes));
            print_findings(generation);
            report_untrusted(generation);
            reloaded.send_replace(generation.number);
        }
        Err(error) => eprint_error(&error.to_string()),
    };
    let project = LiveProject::open(&root, &dirs.current, Some(Box::new(listener)))?;
    let generation = project.current();
    let offered = generation.tools().filter_map(offer).count();
    eprint_line(&format!("serving {} of {}", count(offered, "tool"), clean(&root.display().to_string())));
    print_findings(&generation);
    report_untrusted(&generation);
    if std::io::stdin().is_terminal() {
        eprint_line(
            "note: an MCP host starts this command and sends messages on stdin; press Ctrl-C to stop",
        );
    }
    let reports = ProgressReports::default();
    let tools = LiveTools {
        project,
        // stdin belongs to the client.
        trust: ProjectTrust::without_prompt(&root, options.scripts.trust),
        scripts: engine::start_with(&options.scripts, sink(reports.clone()))?,
        cached: Mutex::default(),
    };
    let approvals = if options.yes { ApprovalMode::Allow } else { ApprovalMode::Ask };
    let server = ToolServer::new(Arc::new(tools), changes, approvals, reports);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    let served = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(CliError::Runtime)?;
        tokio::select! {
            served = server.serve(tokio::io::stdin(), tokio::io::stdout()) => match served {
                Ok(()) => Ok(Exit::Clean),
                Err(error) => Err(CliError::Usage(error.to_string())),
            },
            () = signals.next() => Ok(Exit::Interrupted),
        }
    });
    // A thread may still wait for stdin.
    runtime.shutdown_timeout(Duration::from_millis(100));
    served
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
    for request in not_trusted(generation, permission_requests(&generation.load, generation.tools())) {
        eprint_line(&format!("not trusted: {request}; see `deftool trust grant`"));
    }
}

/// Returns a sink that prints log lines to stderr and reports progress to the client.
fn sink(reports: ProgressReports) -> ScriptSink {
    let log = script_log::sink();
    ScriptSink::new(move |event| match event {
        ScriptEvent::Progressed { request_id, fraction, text, .. } => {
            reports.send(&request_id, Progress { fraction, text });
        }
        ScriptEvent::Logged { .. } => log.send(event),
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
        let offered = generation.tools().filter_map(offer).collect::<Vec<_>>();
        let runner = GenerationRunner {
            trust: self.trust.of(&generation),
            generation,
            scripts: Arc::clone(&self.scripts),
        };
        let catalog = Catalog::new(offered, Arc::new(runner));
        *cached = Some((number, catalog.clone()));
        catalog
    }
}

/// Returns a tool as it is offered. Exit tools and tools with a broken script are left out.
fn offer(loaded: &LoadedTool) -> Option<CatalogTool> {
    if loaded.tool.kind == ToolKind::Exit || matches!(loaded.script, ScriptState::Broken(_)) {
        return None;
    }
    let Value::Array(mut definitions) = emit(Target::Mcp, [&*loaded.tool]) else { return None };
    CatalogTool::new(definitions.pop()?, Arc::clone(loaded.entry())).ok()
}
