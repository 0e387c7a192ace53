//! Command-line arguments: the subcommands and their options.

mod journal;
mod project;
mod specs;
mod stub;
mod tools;
mod worker;

use std::fmt::Write;

use super::version;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

pub(super) use journal::{RequestsAction, RequestsOptions, ResumeOptions};
pub(super) use project::{
    InitOptions, LspOptions, McpOptions, NewOptions, TrustAction, TrustOptions, WatchOptions,
};
pub(super) use specs::{
    CheckOptions, CompileOptions, CompileTarget, DiffOptions, FmtOptions, ForeignFormat, Format,
    ImportOptions, RuleOptions, SelectionOptions, TargetsOptions, TypesOptions,
};
pub(super) use stub::{StubListing, StubOptions};
pub(super) use tools::{
    BenchOptions, CallOptions, CompletionsOptions, FuzzOptions, Isolate, ManOptions, ScriptOptions,
    TestFormat, TestOptions, ToolsOptions,
};
#[cfg(feature = "restate")]
pub(super) use worker::ServeOptions;
pub(super) use worker::{
    AcpOptions, ChatOptions, DoctorOptions, ReplayOptions, RequestOptions, RpcOptions, RunOptions,
    ViewOptions, WorkerOptions,
};

/// Toolchain and engine for the tools that language models call.
#[derive(Debug, Parser)]
#[command(
    name = "deftool",
    version,
    long_version = version::long_version(),
    about,
    propagate_version = true,
    after_help = "\
Examples:
  deftool init --toolbox
  deftool check --fix
  deftool call read_file path=README.md
  deftool run \"What changed since yesterday?\""
)]
pub(super) struct Arguments {
    /// When to use colours; `auto` uses them on terminals and respects `NO_COLOR` and `CLICOLOR_FORCE`
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto, display_order = 100)]
    pub(super) color: Color,
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Check specs, scripts and workers
    Check(CheckOptions),
    /// Format spec files in place
    Fmt(FmtOptions),
    /// Print the tool definitions for an API as JSON
    Compile(CompileOptions),
    /// Compare two versions of tools and report changes that break callers
    Diff(DiffOptions),
    /// List the target APIs and their support for schema keywords
    Targets(TargetsOptions),
    /// Convert tool definitions from other formats to specs
    Import(ImportOptions),
    /// Generate Luau type definitions for editors
    Types(TypesOptions),
    /// Run spec examples and script tests without a model
    Test(TestOptions),
    /// Validate and run one tool call without a model
    Call(CallOptions),
    /// Measure the duration of calls of one tool
    Bench(BenchOptions),
    /// Send one request through a worker and stream the reply
    Run(RunOptions),
    /// Start or resume a chat session with a model
    Chat(ChatOptions),
    /// Run a stub model server for tests, with scenarios and fault injection
    Stub(StubOptions),
    /// Replay recordings without a model, or validate recorded calls against the specs
    Replay(ReplayOptions),
    /// Write a recording or a journal as an HTML page, or the difference of two
    View(ViewOptions),
    /// Watch the project and report what each change does
    Watch(WatchOptions),
    /// Serve the tools of the project to an MCP host, on stdin and stdout
    Mcp(McpOptions),
    /// Serve editors over the Language Server Protocol, on stdin and stdout
    Lsp(LspOptions),
    /// Serve the tools and workers of the project to another program over JSON-RPC, on stdin and stdout
    Rpc(RpcOptions),
    /// Serve a worker as an agent to editors over the Agent Client Protocol, on stdin and stdout
    Acp(AcpOptions),
    /// Run the workers of the project on a durable engine that several machines share
    #[cfg(feature = "restate")]
    Serve(ServeOptions),
    /// Continue the requests of a journal that were interrupted
    Resume(ResumeOptions),
    /// List, show, cancel and remove the requests of a journal
    Requests(RequestsOptions),
    /// Show the main commands in a temporary project, without a model
    Demo,
    /// Create a project with a tool and a worker
    Init(InitOptions),
    /// Add a tool to the project: a spec and a script
    New(NewOptions),
    /// List the rules of `check`, or explain one
    Rule(RuleOptions),
    /// List, grant and revoke the permissions of projects
    Trust(TrustOptions),
    /// Diagnose the set-up: project, scripts, permissions, servers and models
    Doctor(DoctorOptions),
    /// List the tools of the project: arguments, permissions and files
    Tools(ToolsOptions),
    /// Print shell completions
    Completions(CompletionsOptions),
    /// Write the manual pages of all commands to a folder
    Man(ManOptions),
}

/// The commands of `--help` by group.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Write tools", &["init", "new", "check", "fmt", "test", "call", "bench", "watch", "tools", "lsp"]),
    (
        "Use models",
        &[
            "run", "chat", "mcp", "rpc", "acp", "serve", "replay", "view", "resume", "requests", "stub",
            "trust", "doctor",
        ],
    ),
    ("Convert", &["compile", "import", "diff", "types", "targets"]),
    ("Help", &["demo", "rule", "completions", "man", "help"]),
];

/// Returns the command with its help text.
pub(super) fn command() -> clap::Command {
    let command = Arguments::command();
    let mut groups = String::new();
    for (group, names) in GROUPS {
        // Writing to a string does not fail.
        let _ = writeln!(groups, "\n{group}:");
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let help = (*name == "help").then(|| String::from("Print the help of a command"));
            // A command that this build does not contain is not listed.
            if let Some(about) = about.map(ToString::to_string).or(help) {
                let _ = writeln!(groups, "  {name:<13}{about}");
            }
        }
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\nOptions:\n{{options}}{{after-help}}"
    ))
}

impl Command {
    /// Returns the script options of a command that runs scripts.
    pub(super) fn scripts(&self) -> Option<&ScriptOptions> {
        match self {
            Self::Test(options) => Some(&options.scripts),
            Self::Call(options) => Some(&options.scripts),
            Self::Bench(options) => Some(&options.scripts),
            Self::Run(options) => Some(&options.scripts),
            Self::Chat(options) => Some(&options.scripts),
            Self::Replay(options) => Some(&options.scripts),
            Self::Mcp(options) => Some(&options.scripts),
            Self::Rpc(options) => Some(&options.scripts),
            Self::Acp(options) => Some(&options.scripts),
            #[cfg(feature = "restate")]
            Self::Serve(options) => Some(&options.scripts),
            _ => None,
        }
    }
}
