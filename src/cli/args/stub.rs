//! Options of the stub.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::tools::parse_duration;

#[derive(Debug, Args)]
#[command(
    after_help = "Prints `READY URL` when it listens, and serves until Ctrl-C. Without a scenario every request gets a \
                        short text, and one whose model is the name of a misbehaviour that misbehaviour. docs/stub.md says \
                        how scenarios are written."
)]
pub(in crate::cli) struct StubOptions {
    /// File with scenarios; none: a short text for every request
    #[arg(value_name = "SCENARIO")]
    pub(in crate::cli) file: Option<PathBuf>,
    /// Which scenario, where the file has several
    #[arg(long, value_name = "NAME", requires = "file")]
    pub(in crate::cli) scenario: Option<String>,
    /// Answer the first requests by these misbehaviours, one each, and all later ones well; several with commas, or by
    /// giving it several times
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "file")]
    pub(in crate::cli) misbehave: Vec<String>,
    /// Wait of what trickles or never ends
    #[arg(long, value_name = "DURATION", requires = "misbehave", value_parser = parse_duration)]
    pub(in crate::cli) every: Option<Duration>,
    #[command(flatten)]
    pub(in crate::cli) listing: StubListing,
    /// Port; 0: a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(in crate::cli) port: u16,
    /// Address; other than this machine's own, others can reach it, too
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(in crate::cli) address: std::net::IpAddr,
    /// Write every request into this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) log: Option<PathBuf>,
    /// Say nothing of requests on stderr
    #[arg(long)]
    pub(in crate::cli) quiet: bool,
    /// Serve until stdin ends, too
    #[arg(long)]
    pub(in crate::cli) until_stdin_closes: bool,
    /// Run this with OPENAI_BASE_URL set, and end with it
    #[arg(last = true, value_name = "COMMAND")]
    pub(in crate::cli) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct StubListing {
    /// List every misbehaviour
    #[arg(long, conflicts_with_all = ["file", "misbehave", "command"])]
    pub(in crate::cli) list: bool,
    /// With --list: print JSON
    #[arg(long, requires = "list")]
    pub(in crate::cli) json: bool,
}
