//! Options of the commands that manage a project: `init`, `new`, `watch` and `trust`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::tools::ScriptOptions;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool init my-agent
  deftool init --toolbox
  deftool init --toolbox read_file,search_text
  deftool init --from gptel ~/.emacs.d/init.el my-agent
  deftool init --from mcp \"uvx mcp-server-time\" my-agent")]
pub(in crate::cli) struct InitOptions {
    /// Folder of the new project
    #[arg(default_value = ".")]
    pub(in crate::cli) folder: PathBuf,
    /// Copy the bundled tools (files, search, programs, git, web, time, arithmetic), or only the named ones
    #[arg(long, value_name = "NAME", num_args = 0.., value_delimiter = ',')]
    pub(in crate::cli) toolbox: Option<Vec<String>>,
    /// Convert the tools of FILE to specs, each with a placeholder script; for `mcp`, FILE may also be the URL of a
    /// server, or a command that starts one
    #[arg(long, value_names = ["FORMAT", "FILE"], num_args = 2, conflicts_with = "toolbox")]
    pub(in crate::cli) from: Option<Vec<String>>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Creates specs/NAME.eld and scripts/NAME.lua. If the tool has a spec but no script, creates a placeholder script; calls
fail with `NAME is not implemented`.

Examples:
  deftool new get_weather")]
pub(in crate::cli) struct NewOptions {
    /// Name of the tool
    pub(in crate::cli) name: String,
    /// Project folder, or a folder inside it [default: the current folder]
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Prints the changed tools and the findings after each change, until Ctrl-C.

Examples:
  deftool watch
  deftool watch --project my-agent")]
pub(in crate::cli) struct WatchOptions {
    /// Project folder, or a folder inside it [default: the current folder]
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
An editor starts this command and sends messages on stdin. It reports findings of unsaved texts, completes and renames. It
executes nothing of a project.

Examples:
  deftool lsp")]
pub(in crate::cli) struct LspOptions {
    /// Accepted for editors that add it; the server always uses stdin and stdout
    #[arg(long)]
    stdio: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
An MCP host starts this command and sends its calls on stdin. With --port, hosts connect to the URL that is printed after
`READY`. Messages and log lines of scripts go to stderr.

Examples:
  deftool mcp -C my-agent
  deftool mcp --port 8808 --token-env MY_TOKEN
  claude mcp add my-agent -- deftool mcp -C /path/to/my-agent")]
pub(in crate::cli) struct McpOptions {
    /// Run calls of tools with :confirm without asking
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
    /// Project folder, or a folder inside it [default: the current folder]
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Without a subcommand, lists the trusted projects and their permissions.

Examples:
  deftool trust
  deftool trust grant
  deftool trust revoke my-agent"
)]
pub(in crate::cli) struct TrustOptions {
    #[command(subcommand)]
    pub(in crate::cli) action: Option<TrustAction>,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum TrustAction {
    /// Grant a project all permissions that its specs require now
    #[command(after_help = "Examples:\n  deftool trust grant\n  deftool trust grant my-agent")]
    Grant {
        /// Project folder, or a folder inside it [default: the current folder]
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
        /// Print the permissions without granting them
        #[arg(long)]
        dry_run: bool,
    },
    /// Revoke all permissions of a project
    #[command(after_help = "Examples:\n  deftool trust revoke\n  deftool trust revoke --all")]
    Revoke {
        /// Project folder, or a folder inside it [default: the current folder]
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
        /// Revoke the permissions of all projects
        #[arg(long, conflicts_with = "folder")]
        all: bool,
    },
}
