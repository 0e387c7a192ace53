//! The command line: the commands, and their options by sort.

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
pub(super) use worker::{ChatOptions, DoctorOptions, ReplayOptions, RunOptions, WorkerOptions};

/// Toolchain and engine for the tools that language models call.
#[derive(Debug, Parser)]
#[command(name = "deftool", version, about, propagate_version = true)]
pub(super) struct Arguments {
    /// When to write in colours; `auto`: on a terminal, as `NO_COLOR` and `CLICOLOR_FORCE` say
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
    /// Lay out specs, in place
    Fmt(FmtOptions),
    /// Print the JSON that an API gets for the tools
    Compile(CompileOptions),
    /// List the APIs that tools are compiled for, and what each makes of a schema
    Targets(TargetsOptions),
    /// Make specs of the tool definitions of others
    Import(ImportOptions),
    /// Write the Luau types of what scripts are given, for editors
    Types(TypesOptions),
    /// Run the examples of the specs and the tests of the scripts, without a model
    Test(TestOptions),
    /// Call one tool, validated, without a model
    Call(CallOptions),
    /// Call one tool again and again, and say how long that takes
    Bench(BenchOptions),
    /// Run one request through a worker, streamed
    Run(RunOptions),
    /// Talk with a model, several turns, in a session that is kept
    Chat(ChatOptions),
    /// Play a model's server by a scenario, for tests without a model; it misbehaves in every known way
    Stub(StubOptions),
    /// Play recordings again, without a model; or hold their arguments against the specs
    Replay(ReplayOptions),
    /// Hold the project loaded and say what each save changes
    Watch(WatchOptions),
    /// Make a project: a spec, its script and a worker
    Init(InitOptions),
    /// Add a tool to the project: a spec and its script, ready to run
    New(NewOptions),
    /// List the rules of check, or explain one
    Rule(RuleOptions),
    /// List what projects are trusted with, grant it or take it back
    Trust(TrustOptions),
    /// Look for what is wrong with this set-up
    Doctor(DoctorOptions),
    /// Run scripts for the deftool that started this one
    #[command(hide = true)]
    ScriptHost {
        /// What the process is, if it is not a host of scripts: `serve_isolated` reads it
        role: Option<String>,
    },
    /// Guard the model server of the deftool that started this one
    #[command(hide = true)]
    ServerGuard,
}

impl Command {
    /// How the scripts of a command that runs them are run.
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
