//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::schema::Target;

/// Toolchain and engine for the tools that language models call.
#[derive(Debug, Parser)]
#[command(name = "deftool", version, about, propagate_version = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Check specs, scripts and workers
    Check(CheckOptions),
    /// Print the JSON that an API gets for the tools
    Compile(CompileOptions),
    /// Make a project: a spec, its script and a worker
    Init(InitOptions),
    /// Add a tool to the project: a spec and its script, ready to run
    New(NewOptions),
}

#[derive(Debug, Args)]
pub(super) struct CheckOptions {
    /// Files, folders or projects; none: the project around the current folder
    pub(super) paths: Vec<PathBuf>,
    /// How findings are written
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
    /// Exit with 1 on warnings, too
    #[arg(long)]
    pub(super) strict: bool,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(super) project: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// With the source lines, for people
    Human,
    /// One line a finding, for editors
    Concise,
    /// One JSON object, for programs
    Json,
}

#[derive(Debug, Args)]
pub(super) struct CompileOptions {
    /// Files, folders or projects; none: the project around the current folder
    pub(super) paths: Vec<PathBuf>,
    /// Which API
    #[arg(long, value_enum, default_value = "openai")]
    pub(super) target: Target,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(super) project: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct InitOptions {
    /// Folder to make it in
    #[arg(default_value = ".")]
    pub(super) folder: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct NewOptions {
    /// The tool's name
    pub(super) name: String,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(super) project: Option<PathBuf>,
}

impl ValueEnum for Target {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.as_str()))
    }
}
