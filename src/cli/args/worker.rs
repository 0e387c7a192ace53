//! Options of the commands that use a worker, and of `doctor`.

use std::path::PathBuf;

use clap::Args;
use deftool_lang::spec::is_reserved_param;
use serde_json::Value;

use super::ScriptOptions;

#[allow(clippy::struct_excessive_bools)] // each is a flag
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool run \"What changed since yesterday?\"
  git diff | deftool run \"Review this change.\"
  deftool run \"What does this do?\" -f src/main.rs --param temperature=0
  deftool run \"Hello\" --endpoint http://127.0.0.1:8080/v1 --record hello.jsonl
  deftool run --replay hello.jsonl")]
pub(in crate::cli) struct RunOptions {
    /// Prompt; stdin is added to it, unless it is a terminal [default: stdin; with --replay: the recorded prompt]
    pub(in crate::cli) prompt: Option<String>,
    /// Add a text file to the prompt; can be repeated
    #[arg(short, long = "file", value_name = "FILE")]
    pub(in crate::cli) files: Vec<PathBuf>,
    /// Do not read stdin
    #[arg(long)]
    pub(in crate::cli) no_stdin: bool,
    #[command(flatten)]
    pub(in crate::cli) worker: WorkerOptions,
    #[command(flatten)]
    pub(in crate::cli) request: RequestOptions,
    /// Job name, available in events and to tools
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub(in crate::cli) job: String,
    /// Record requests and replies to FILE
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(in crate::cli) record: Option<PathBuf>,
    /// Store the request in a journal, so that `deftool resume` can continue it after a crash; several requests
    /// can share one file
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(in crate::cli) journal: Option<PathBuf>,
    /// Replay the replies of a recording; requires no server and no key
    #[arg(long, value_name = "FILE", conflicts_with_all = ["endpoint", "model"])]
    pub(in crate::cli) replay: Option<PathBuf>,
    /// Continue if a request differs from the recorded one
    #[arg(long, requires = "replay")]
    pub(in crate::cli) replay_lenient: bool,
    /// Use recorded tool results instead of running tools
    #[arg(long, requires = "replay")]
    pub(in crate::cli) replay_tools: bool,
    /// Replay with the recorded delays, divided by FACTOR if given
    #[arg(long, requires = "replay", value_name = "FACTOR", num_args = 0..=1, default_missing_value = "1", value_parser = parse_pace)]
    pub(in crate::cli) paced: Option<f64>,
    /// Redact matches of REGEX, or of its group, in the recording; can be repeated
    #[arg(long, value_name = "REGEX")]
    pub(in crate::cli) redact: Vec<String>,
    /// Print events, one JSON object per line
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Sessions are stored in the state folder of the user ($XDG_STATE_HOME/deftool/sessions). /help lists the commands of a
chat.

Examples:
  deftool chat
  deftool chat --resume
  deftool chat --no-save \"What does this project do?\"")]
pub(in crate::cli) struct ChatOptions {
    /// First message [default: prompt for it]
    pub(in crate::cli) message: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) worker: WorkerOptions,
    #[command(flatten)]
    pub(in crate::cli) request: RequestOptions,
    /// Resume a session: its file, or `last` for the newest of this project
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "last", conflicts_with = "no_save")]
    pub(in crate::cli) resume: Option<PathBuf>,
    /// Do not store the session
    #[arg(long)]
    pub(in crate::cli) no_save: bool,
    /// Print events, one JSON object per line
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

#[allow(clippy::struct_excessive_bools)] // each is a flag
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool replay recordings/
  deftool replay recordings/ --replay-tools --json
  deftool replay recordings/ --update
  deftool replay --specs calls.jsonl")]
pub(in crate::cli) struct ReplayOptions {
    /// Recordings, or folders that contain recordings
    #[arg(required = true)]
    pub(in crate::cli) paths: Vec<PathBuf>,
    /// Do not replay; validate the arguments of recorded calls against the specs. Also accepts lists of calls, one
    /// `{"tool": …, "arguments": …}` per line
    #[arg(long)]
    pub(in crate::cli) specs: bool,
    /// Continue if a request differs from the recorded one, and exit with 0
    #[arg(long, conflicts_with = "specs")]
    pub(in crate::cli) replay_lenient: bool,
    /// Use recorded tool results instead of running tools
    #[arg(long, conflicts_with = "specs")]
    pub(in crate::cli) replay_tools: bool,
    /// Replay with the recorded delays, divided by FACTOR if given
    #[arg(long, conflicts_with = "specs", value_name = "FACTOR", num_args = 0..=1, default_missing_value = "1", value_parser = parse_pace)]
    pub(in crate::cli) paced: Option<f64>,
    /// Also report differences in key order, which affect prompt caches
    #[arg(long, conflicts_with = "specs")]
    pub(in crate::cli) key_order: bool,
    /// Update the recording if only request bodies differ
    #[arg(long, conflicts_with_all = ["specs", "replay_lenient"])]
    pub(in crate::cli) update: bool,
    /// Redact matches of REGEX, or of its group, in the output; can be repeated
    #[arg(long, value_name = "REGEX")]
    pub(in crate::cli) redact: Vec<String>,
    /// Worker to use [default: the recorded worker]
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) worker: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// Project folder, or a folder inside it [default: the current folder]
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The page contains the whole run and needs neither the network nor the project. A file may also be a journal, or the
output of `deftool run --json`, which has no times.

Examples:
  deftool view hello.jsonl
  deftool view before.jsonl after.jsonl -o difference.html
  deftool view hello.jsonl -o - > hello.html")]
pub(in crate::cli) struct ViewOptions {
    /// Recording or journal; with a second one, show both side by side
    #[arg(required = true, num_args = 1..=2, value_name = "FILE")]
    pub(in crate::cli) files: Vec<PathBuf>,
    /// File to write, or `-` for stdout [default: the name of FILE with .html, in the current folder]
    #[arg(short, long, value_name = "FILE")]
    pub(in crate::cli) output: Option<PathBuf>,
    /// Overwrite a file that is not a page of `deftool view`
    #[arg(long)]
    pub(in crate::cli) force: bool,
}

/// Worker and server options.
#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct WorkerOptions {
    /// Worker to use [default: the only worker of the project]
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) worker: Option<String>,
    /// Base URL of the server, including /v1; overrides the worker's [env: OPENAI_BASE_URL]
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) endpoint: Option<String>,
    /// Model name; overrides the worker's
    #[arg(long)]
    pub(in crate::cli) model: Option<String>,
    /// Project folder, or a folder inside it [default: the current folder]
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
}

/// Options of a request.
#[derive(Debug, Args)]
pub(in crate::cli) struct RequestOptions {
    /// System message, in addition to the worker's
    #[arg(long, value_name = "TEXT")]
    pub(in crate::cli) system: Option<String>,
    /// Member of the request body such as `temperature=0`; overrides the worker's :params; can be repeated
    #[arg(long = "param", value_name = "KEY=VALUE", value_parser = parse_param)]
    pub(in crate::cli) params: Vec<(String, Value)>,
    /// Run all calls without confirmation prompts, including tools with :confirm
    #[arg(long)]
    pub(in crate::cli) yes: bool,
}

/// Parses `KEY=VALUE`. A value that is not JSON is a string.
fn parse_param(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE, as in temperature=0")?;
    let key = key.trim().replace('-', "_");
    if key.is_empty() || is_reserved_param(&key) {
        return Err(format!("`{key}` is set by deftool and cannot be a parameter"));
    }
    Ok((key, serde_json::from_str(value).unwrap_or_else(|_| Value::from(value))))
}

/// Parses the factor of `--paced`: finite and greater than 0.
fn parse_pace(text: &str) -> Result<f64, String> {
    let pace = text.parse::<f64>().ok().filter(|pace| pace.is_finite() && *pace > 0.0);
    pace.ok_or_else(|| {
        String::from("expected a factor such as 10; before a file argument, write `--paced=1`")
    })
}

#[derive(Debug, Args)]
#[command(after_help = "\
Another program starts this command and sends JSON-RPC requests on stdin, one per line or with a Content-Length header.
docs/rpc.md describes the methods.

Examples:
  deftool rpc -C my-agent
  echo '{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"list\"}' | deftool rpc")]
pub(in crate::cli) struct RpcOptions {
    #[command(flatten)]
    pub(in crate::cli) worker: WorkerOptions,
    /// Store the requests in a journal, so that `deftool resume` can continue them after a crash
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) journal: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

#[cfg(feature = "restate")]
#[derive(Debug, Args)]
#[command(after_help = "\
Restate calls this command over HTTP and stores each step of a request, so that another machine can continue it.
docs/scale-out.md describes the set-up.

Examples:
  deftool serve --durable restate -C my-agent
  deftool serve --durable restate --listen 0.0.0.0:9080 -C my-agent --trust")]
pub(in crate::cli) struct ServeOptions {
    /// The engine that stores the requests
    #[arg(long, value_enum)]
    pub(in crate::cli) durable: DurableEngine,
    /// Address on which Restate reaches this command
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9080")]
    pub(in crate::cli) listen: String,
    #[command(flatten)]
    pub(in crate::cli) worker: WorkerOptions,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

/// The engines of `serve --durable`.
#[cfg(feature = "restate")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum DurableEngine {
    /// Restate
    Restate,
}

#[derive(Debug, Args)]
#[command(after_help = "\
An editor starts this command and sends messages of the Agent Client Protocol on stdin. Each session uses the project
that contains its folder, or the project of -C. docs/editors.md describes the set-up.

Examples:
  deftool acp
  deftool acp -C my-agent --worker local")]
pub(in crate::cli) struct AcpOptions {
    #[command(flatten)]
    pub(in crate::cli) worker: WorkerOptions,
    #[command(flatten)]
    pub(in crate::cli) scripts: ScriptOptions,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Runs no script and sends no request to a model.

Examples:
  deftool doctor
  deftool doctor --worker local --json")]
pub(in crate::cli) struct DoctorOptions {
    /// Worker whose server is checked [default: all workers]
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) worker: Option<String>,
    /// Base URL of the server, including /v1; overrides the worker's [env: OPENAI_BASE_URL]
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) endpoint: Option<String>,
    /// Model name; overrides the worker's
    #[arg(long)]
    pub(in crate::cli) model: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// Project folder, or a folder inside it [default: the current folder]
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
}
