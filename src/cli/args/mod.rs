//! Command-line arguments: the subcommands and their options.

mod project;
mod specs;
mod stub;
mod tools;
mod worker;

use clap::{Parser, Subcommand, ValueEnum};

pub(super) use project::{InitOptions, NewOptions, TrustAction, TrustOptions, WatchOptions};
pub(super) use specs::{
    CheckOptions, CompileOptions, CompileTarget, FmtOptions, Format, ImportOptions, RuleOptions,
    TargetsOptions, TypesOptions,
};
pub(super) use stub::{StubListing, StubOptions};
pub(super) use tools::{
    BenchOptions, CallOptions, FuzzOptions, Isolate, ScriptOptions, TestFormat, TestOptions,
};
pub(super) use worker::{
    ChatOptions, DoctorOptions, ReplayOptions, RequestOptions, RunOptions, WorkerOptions,
};

/// Toolchain and engine for the tools that language models call.
#[derive(Debug, Parser)]
#[command(name = "deftool", version, about, propagate_version = true)]
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
    /// Watch the project and report what each change does
    Watch(WatchOptions),
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
    /// Run scripts for the parent deftool process
    #[command(hide = true)]
    ScriptHost {
        /// Role of the process, if it is not a script host; read by `serve_isolated`
        role: Option<String>,
    },
    /// Guard the model server of the parent deftool process
    #[command(hide = true)]
    ServerGuard,
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
            _ => None,
        }
    }
}
