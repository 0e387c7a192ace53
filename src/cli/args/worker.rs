//! Options of the commands that drive a worker, and of the doctor, who looks at its server.

use std::path::PathBuf;

use clap::Args;

use super::ScriptOptions;

#[derive(Debug, Args)]
pub(in crate::cli) struct RunOptions {
    /// What to ask; `-` reads it from stdin; a replay takes the recorded one
    #[arg(required_unless_present = "replay")]
    pub(in crate::cli) prompt: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) worker: WorkerOptions,
    #[command(flatten)]
    pub(in crate::cli) request: RequestOptions,
    /// A name for the job, in the events and for the tools
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub(in crate::cli) job: String,
    /// Record the model's side into this file
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(in crate::cli) record: Option<PathBuf>,
    /// Take the model's side from this recording; needs no server and no key
    #[arg(long, value_name = "FILE", conflicts_with_all = ["endpoint", "model"])]
    pub(in crate::cli) replay: Option<PathBuf>,
    /// Go on where a request differs from the recorded one
    #[arg(long, requires = "replay")]
    pub(in crate::cli) replay_lenient: bool,
    /// Run no tool: each gives what it gave
    #[arg(long, requires = "replay")]
    pub(in crate::cli) replay_tools: bool,
    /// Take the time that the recording took, or so many times less
    #[arg(long, requires = "replay", value_name = "FACTOR", num_args = 0..=1, default_missing_value = "1", value_parser = parse_pace)]
    pub(in crate::cli) paced: Option<f64>,
    /// Keep what this regular expression finds, or its group, out of the recording; may be given several times
    #[arg(long, value_name = "REGEX")]
    pub(in crate::cli) redact: Vec<String>,
    /// Print the events, one JSON object a line
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ChatOptions {
    /// The first message; none: it is asked for
    pub(in crate::cli) message: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) worker: WorkerOptions,
    #[command(flatten)]
    pub(in crate::cli) request: RequestOptions,
    /// Go on with a session: its file, or `last`, the newest of this project
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "last", conflicts_with = "no_save")]
    pub(in crate::cli) resume: Option<PathBuf>,
    /// Keep the session in no file
    #[arg(long)]
    pub(in crate::cli) no_save: bool,
    /// Print the events, one JSON object a line
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

#[allow(clippy::struct_excessive_bools)] // each is a flag
#[derive(Debug, Args)]
pub(in crate::cli) struct ReplayOptions {
    /// Recordings, and folders of them
    #[arg(required = true)]
    pub(in crate::cli) paths: Vec<PathBuf>,
    /// Play nothing; hold the arguments of every recorded call against the specs. Takes dumps of calls, too: a line
    /// `{"tool": …, "arguments": …}` each
    #[arg(long)]
    pub(in crate::cli) specs: bool,
    /// Go on where a request differs from the recorded one, and exit with 0
    #[arg(long, conflicts_with = "specs")]
    pub(in crate::cli) replay_lenient: bool,
    /// Run no tool: each gives what it gave
    #[arg(long, conflicts_with = "specs")]
    pub(in crate::cli) replay_tools: bool,
    /// Take the time that the recording took, or so many times less
    #[arg(long, conflicts_with = "specs", value_name = "FACTOR", num_args = 0..=1, default_missing_value = "1", value_parser = parse_pace)]
    pub(in crate::cli) paced: Option<f64>,
    /// Tell where only the order of keys differs, too: servers that cache prompts see it
    #[arg(long, conflicts_with = "specs")]
    pub(in crate::cli) key_order: bool,
    /// Where nothing but the requests differs, write today's into the recording
    #[arg(long, conflicts_with_all = ["specs", "replay_lenient"])]
    pub(in crate::cli) update: bool,
    /// Keep what this regular expression finds, or its group, out of what is shown
    #[arg(long, value_name = "REGEX")]
    pub(in crate::cli) redact: Vec<String>,
    /// Which worker; none: the one that recorded
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) worker: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

/// Which worker, and where its model is.
#[derive(Debug, Args)]
pub(in crate::cli) struct WorkerOptions {
    /// Which worker, where the project has several
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) worker: Option<String>,
    /// Base URL of the server, /v1 included; wins over the worker's and over OPENAI_BASE_URL
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) endpoint: Option<String>,
    /// The model's name; wins over the worker's
    #[arg(long)]
    pub(in crate::cli) model: Option<String>,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
}

/// What requests have of their own, beside their worker's configuration.
#[derive(Debug, Args)]
pub(in crate::cli) struct RequestOptions {
    /// A system message beside the worker's
    #[arg(long, value_name = "TEXT")]
    pub(in crate::cli) system: Option<String>,
    /// Make every call without asking, those of tools with :confirm, too
    #[arg(long)]
    pub(in crate::cli) yes: bool,
}

fn parse_pace(text: &str) -> Result<f64, String> {
    let pace = text.parse::<f64>().ok().filter(|pace| pace.is_finite() && *pace > 0.0);
    pace.ok_or_else(|| {
        String::from("expected how many times faster, as in 10; before a file write --paced=1")
    })
}

#[derive(Debug, Args)]
pub(in crate::cli) struct DoctorOptions {
    /// Which worker's server, where the project has several; none: each of them
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) worker: Option<String>,
    /// Base URL of the server, /v1 included; wins over the worker's and over OPENAI_BASE_URL
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) endpoint: Option<String>,
    /// The model's name; wins over the worker's
    #[arg(long)]
    pub(in crate::cli) model: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
}
