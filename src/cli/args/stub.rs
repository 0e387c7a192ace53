//! Options of `deftool stub`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::tools::parse_duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Prints `READY URL` when it listens, and serves until Ctrl-C. Without a scenario, every request gets a short text; if the \
model of a request is the name of a fault, the answer has that fault. See docs/stub.md for the format of scenarios.

Examples:
  deftool stub weather.eld --scenario weather -- my-agent \"What is the weather?\"
  deftool stub --fault rst-mid-stream -- deftool run \"Are you there?\"")]
pub(in crate::cli) struct StubOptions {
    /// Scenario file [default: a short text for every request]
    #[arg(value_name = "SCENARIO")]
    pub(in crate::cli) file: Option<PathBuf>,
    /// Scenario to play, if the file contains several
    #[arg(long, value_name = "NAME", requires = "file")]
    pub(in crate::cli) scenario: Option<String>,
    /// Inject a fault into the first answer; separate several with commas or repeat the option to inject one into each
    /// of the first answers
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "file")]
    pub(in crate::cli) fault: Vec<String>,
    /// Interval of faults that send slowly or endlessly
    #[arg(long, value_name = "DURATION", requires = "fault", value_parser = parse_duration)]
    pub(in crate::cli) every: Option<Duration>,
    #[command(flatten)]
    pub(in crate::cli) listing: StubListing,
    /// Port to listen on; 0 chooses a free port
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(in crate::cli) port: u16,
    /// Address to listen on; only loopback addresses are private to this machine
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(in crate::cli) address: std::net::IpAddr,
    /// Write every request to FILE, one JSON object per line
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) log: Option<PathBuf>,
    /// Do not print requests to stderr
    #[arg(short, long)]
    pub(in crate::cli) quiet: bool,
    /// Also stop when stdin is closed
    #[arg(long)]
    pub(in crate::cli) until_stdin_closes: bool,
    /// Command to run with OPENAI_BASE_URL set; the stub exits with it
    #[arg(last = true, value_name = "COMMAND")]
    pub(in crate::cli) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct StubListing {
    /// List all faults
    #[arg(long, conflicts_with_all = ["file", "fault", "command"])]
    pub(in crate::cli) list: bool,
    /// With --list: print JSON
    #[arg(long, requires = "list")]
    pub(in crate::cli) json: bool,
}
