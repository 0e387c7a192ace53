//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

use crate::schema::{ImportFormat, Target};

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
    ScriptHost,
    /// Guard the model server of the deftool that started this one
    #[command(hide = true)]
    ServerGuard,
}

#[derive(Debug, Args)]
pub(super) struct CheckOptions {
    /// Files, scripts, folders or projects; none: the project around the current folder; `-`: stdin
    pub(super) paths: Vec<PathBuf>,
    /// What stdin is called: the file that an editor holds, saved or not
    #[arg(long, value_name = "NAME", default_value = "stdin.eld")]
    pub(super) stdin_filename: PathBuf,
    /// How findings are written
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(super) format: Format,
    /// Say, too, what these APIs drop, weaken or refuse
    #[arg(long = "target", value_enum, value_name = "TARGET", value_delimiter = ',')]
    pub(super) targets: Vec<Target>,
    /// Check the types of the scripts, too
    #[cfg(feature = "types")]
    #[arg(long)]
    pub(super) types: bool,
    /// Exit with 1 on warnings, too
    #[arg(long)]
    pub(super) strict: bool,
    #[command(flatten)]
    pub(super) fixing: FixOptions,
    /// Check again on every save
    #[arg(long, conflicts_with = "fixing")]
    pub(super) watch: bool,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(super) project: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("fixing").args(["fix", "diff"]).multiple(true)))]
pub(super) struct FixOptions {
    /// Repair what can be repaired beyond doubt, then report what is left
    #[arg(long)]
    pub(super) fix: bool,
    /// Repair what is only likely meant, too
    #[arg(long, requires = "fixing")]
    pub(super) unsafe_fixes: bool,
    /// Show what --fix would change and write nothing; exit with 1 if there is something
    #[arg(long, conflicts_with = "format")]
    pub(super) diff: bool,
}

#[derive(Debug, Args)]
pub(super) struct FmtOptions {
    /// Files, folders or projects; none: the project around the current folder; `-`: stdin to stdout
    pub(super) paths: Vec<PathBuf>,
    /// Write nothing; name the files that would change, and exit with 1 if there are any
    #[arg(long)]
    pub(super) check: bool,
    /// Write nothing; print what would change, and exit with 1 if anything would
    #[arg(long)]
    pub(super) diff: bool,
    /// What stdin is called; `.el` lays out the tool forms alone
    #[arg(long, value_name = "NAME", default_value = "stdin.eld")]
    pub(super) stdin_filename: PathBuf,
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
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Workflow commands, for annotations on GitHub
    Github,
    /// A test report in XML, for GitLab and Jenkins
    Junit,
}

#[derive(Debug, Args)]
pub(super) struct CompileOptions {
    /// Files, folders or projects; none: the project around the current folder
    pub(super) paths: Vec<PathBuf>,
    /// Which API, or `gptel` for Emacs Lisp
    #[arg(long, value_enum, default_value = "openai")]
    pub(super) target: CompileTarget,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(super) project: Option<PathBuf>,
}

/// What `compile` prints: JSON for an API, or Emacs Lisp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CompileTarget {
    Api(Target),
    Gptel,
}

#[derive(Debug, Args)]
pub(super) struct ImportOptions {
    /// JSON files; `-`, or none, reads stdin
    pub(super) files: Vec<PathBuf>,
    /// Whose definitions they are, where their shape does not tell
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(super) from: Option<ImportFormat>,
    /// Write one spec a file into this folder
    #[arg(long, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
    /// Overwrite the files that are there
    #[arg(long, requires = "output")]
    pub(super) force: bool,
}

#[derive(Debug, Args)]
pub(super) struct TargetsOptions {
    /// Which API; none: all of them, in a line each
    #[arg(value_enum)]
    pub(super) target: Option<Target>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct TypesOptions {
    /// Write deftool.d.luau into this folder; none: print it
    #[arg(long, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
    /// Write nothing; exit with 1 if the file is not what would be written
    #[arg(long, requires = "output")]
    pub(super) check: bool,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(super) project: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Tests of scripts (scripts/NAME_test.lua) run in this process, each in a sandbox of its own; \
                        `--isolate process` goes with `--fuzz`. docs/testing.md says how they are written."
)]
pub(super) struct TestOptions {
    /// Files, scripts, folders or projects; none: the project around the current folder
    pub(super) paths: Vec<PathBuf>,
    /// Only the tools with this in their names, and the tests with it in theirs or in that of their file
    #[arg(long, value_name = "TEXT")]
    pub(super) filter: Option<String>,
    /// How results are written
    #[arg(long, value_enum, default_value_t = TestFormat::Human)]
    pub(super) format: TestFormat,
    /// Run them again on every save
    #[arg(long)]
    pub(super) watch: bool,
    /// Time limit of one test of a script
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub(super) timeout: Duration,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(super) project: Option<PathBuf>,
    #[command(flatten)]
    pub(super) fuzzing: FuzzOptions,
    #[command(flatten)]
    pub(super) scripts: ScriptOptions,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Fuzzing")]
pub(super) struct FuzzOptions {
    /// In place of examples and tests, call the tools with arguments made from their schemas; tools that may write, run
    /// programs or reach the network are left out
    #[arg(long, conflicts_with = "watch")]
    pub(super) fuzz: bool,
    /// Fuzz those tools, too: they will do what they do
    #[arg(long, requires = "fuzz")]
    pub(super) fuzz_all: bool,
    /// How many arguments are made for each tool
    #[arg(long, value_name = "N", requires = "fuzz", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) cases: u32,
    /// What the arguments are made from; the same seed makes the same
    #[arg(long, value_name = "N", requires = "fuzz")]
    pub(super) seed: Option<u64>,
    /// Most time for each tool
    #[arg(long, value_name = "DURATION", requires = "fuzz", default_value = "30s", value_parser = parse_duration)]
    pub(super) fuzz_time: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TestFormat {
    /// One line a test, for people
    Human,
    /// One JSON object, for programs
    Json,
    /// A test report in XML, for GitLab and Jenkins
    Junit,
}

/// How scripts are run.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Scripts")]
pub(super) struct ScriptOptions {
    /// Where scripts run; `process`: in processes of their own, which can be killed, for scripts that one does not trust
    #[arg(long, value_enum, value_name = "WHERE", default_value_t = Isolate::Threads)]
    pub(super) isolate: Isolate,
    /// Let scripts use all that their specs allow them, in this run
    #[arg(long)]
    pub(super) trust: bool,
}

/// Where scripts run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Isolate {
    /// On threads of this process
    Threads,
    /// In child processes
    Process,
}

#[derive(Debug, Clone, Args)]
pub(super) struct CallOptions {
    /// The tool's name
    pub(super) tool: String,
    /// Its arguments, a JSON object; `-` reads them from stdin
    #[arg(default_value = "{}")]
    pub(super) arguments: String,
    /// Print one JSON object, also on failure
    #[arg(long)]
    pub(super) json: bool,
    /// Say how long it took and how much memory it used
    #[arg(long)]
    pub(super) time: bool,
    /// Call it again on every save
    #[arg(long)]
    pub(super) watch: bool,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(super) project: Option<PathBuf>,
    #[command(flatten)]
    pub(super) scripts: ScriptOptions,
}

#[derive(Debug, Args)]
pub(super) struct BenchOptions {
    /// The tool's name
    pub(super) tool: String,
    /// Its arguments, a JSON object; `-` reads them from stdin
    #[arg(default_value = "{}")]
    pub(super) arguments: String,
    /// How many calls are measured; none: as many as the time allows
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) calls: Option<u64>,
    /// How long calls are made
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_duration)]
    pub(super) time: Duration,
    /// How many calls are in flight through the engine's threads
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(super) concurrency: usize,
    /// Do it although the tool may write, run programs or reach the network
    #[arg(long)]
    pub(super) yes: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(super) project: Option<PathBuf>,
    #[command(flatten)]
    pub(super) scripts: ScriptOptions,
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    crate::spec::parse_duration(text)
        .ok_or_else(|| String::from("expected a number and a unit, as in 250ms, 5s or 1.5m"))
}

#[derive(Debug, Args)]
pub(super) struct RunOptions {
    /// What to ask; `-` reads it from stdin; a replay takes the recorded one
    #[arg(required_unless_present = "replay")]
    pub(super) prompt: Option<String>,
    #[command(flatten)]
    pub(super) worker: WorkerOptions,
    #[command(flatten)]
    pub(super) request: RequestOptions,
    /// A name for the job, in the events and for the tools
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub(super) job: String,
    /// Record the model's side into this file
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(super) record: Option<PathBuf>,
    /// Take the model's side from this recording; needs no server and no key
    #[arg(long, value_name = "FILE")]
    pub(super) replay: Option<PathBuf>,
    /// Go on where a request differs from the recorded one
    #[arg(long, requires = "replay")]
    pub(super) replay_lenient: bool,
    /// Run no tool: each gives what it gave
    #[arg(long, requires = "replay")]
    pub(super) replay_tools: bool,
    /// Take the time that the recording took, or so many times less
    #[arg(long, requires = "replay", value_name = "FACTOR", num_args = 0..=1, default_missing_value = "1", value_parser = parse_pace)]
    pub(super) paced: Option<f64>,
    /// Keep what this regular expression finds, or its group, out of the recording; may be given several times
    #[arg(long, value_name = "REGEX")]
    pub(super) redact: Vec<String>,
    /// Print the events, one JSON object a line
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) scripts: ScriptOptions,
}

#[derive(Debug, Args)]
pub(super) struct ChatOptions {
    /// The first message; none: it is asked for
    pub(super) message: Option<String>,
    #[command(flatten)]
    pub(super) worker: WorkerOptions,
    #[command(flatten)]
    pub(super) request: RequestOptions,
    /// Go on with a session: its file, or `last`, the newest of this project
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "last", conflicts_with = "no_save")]
    pub(super) resume: Option<PathBuf>,
    /// Keep the session in no file
    #[arg(long)]
    pub(super) no_save: bool,
    /// Print the events, one JSON object a line
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) scripts: ScriptOptions,
}

#[allow(clippy::struct_excessive_bools)] // each is a flag
#[derive(Debug, Args)]
pub(super) struct ReplayOptions {
    /// Recordings, and folders of them
    #[arg(required = true)]
    pub(super) paths: Vec<PathBuf>,
    /// Play nothing; hold the arguments of every recorded call against the specs. Takes dumps of calls, too: a line
    /// `{"tool": …, "arguments": …}` each
    #[arg(long)]
    pub(super) specs: bool,
    /// Go on where a request differs from the recorded one, and exit with 0
    #[arg(long, conflicts_with = "specs")]
    pub(super) replay_lenient: bool,
    /// Run no tool: each gives what it gave
    #[arg(long, conflicts_with = "specs")]
    pub(super) replay_tools: bool,
    /// Take the time that the recording took, or so many times less
    #[arg(long, conflicts_with = "specs", value_name = "FACTOR", num_args = 0..=1, default_missing_value = "1", value_parser = parse_pace)]
    pub(super) paced: Option<f64>,
    /// Tell where only the order of keys differs, too: servers that cache prompts see it
    #[arg(long, conflicts_with = "specs")]
    pub(super) key_order: bool,
    /// Where nothing but the requests differs, write today's into the recording
    #[arg(long, conflicts_with_all = ["specs", "replay_lenient"])]
    pub(super) update: bool,
    /// Keep what this regular expression finds, or its group, out of what is shown
    #[arg(long, value_name = "REGEX")]
    pub(super) redact: Vec<String>,
    /// Which worker; none: the one that recorded
    #[arg(long, value_name = "NAME")]
    pub(super) worker: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(super) project: Option<PathBuf>,
    #[command(flatten)]
    pub(super) scripts: ScriptOptions,
}

/// What requests have of their own, beside their worker's configuration.
#[derive(Debug, Args)]
pub(super) struct RequestOptions {
    /// A system message beside the worker's
    #[arg(long, value_name = "TEXT")]
    pub(super) system: Option<String>,
    /// Make every call without asking, those of tools with :confirm, too
    #[arg(long)]
    pub(super) yes: bool,
}

fn parse_pace(text: &str) -> Result<f64, String> {
    let pace = text.parse::<f64>().ok().filter(|pace| pace.is_finite() && *pace > 0.0);
    pace.ok_or_else(|| {
        String::from("expected how many times faster, as in 10; before a file write --paced=1")
    })
}

/// Which worker, and where its model is.
#[derive(Debug, Args)]
pub(super) struct WorkerOptions {
    /// Which worker, where the project has several
    #[arg(long, value_name = "NAME")]
    pub(super) worker: Option<String>,
    /// Base URL of the server, /v1 included; wins over the worker's and over OPENAI_BASE_URL
    #[arg(long, value_name = "URL")]
    pub(super) endpoint: Option<String>,
    /// The model's name; wins over the worker's
    #[arg(long)]
    pub(super) model: Option<String>,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(super) project: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Prints `READY URL` when it listens, and serves until Ctrl-C. Without a scenario every request gets a \
                        short text, and one whose model is the name of a misbehaviour that misbehaviour. docs/stub.md says \
                        how scenarios are written."
)]
pub(super) struct StubOptions {
    /// File with scenarios; none: a short text for every request
    #[arg(value_name = "SCENARIO")]
    pub(super) file: Option<PathBuf>,
    /// Which scenario, where the file has several
    #[arg(long, value_name = "NAME", requires = "file")]
    pub(super) scenario: Option<String>,
    /// Answer the first requests by these misbehaviours, one each, and all later ones well
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "file")]
    pub(super) misbehave: Vec<String>,
    /// Wait of what trickles or never ends
    #[arg(long, value_name = "DURATION", requires = "misbehave", value_parser = parse_duration)]
    pub(super) every: Option<Duration>,
    #[command(flatten)]
    pub(super) listing: StubListing,
    /// Port; 0: a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) port: u16,
    /// Address; other than this machine's own, others can reach it, too
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(super) address: std::net::IpAddr,
    /// Write every request into this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(super) log: Option<PathBuf>,
    /// Say nothing of requests on stderr
    #[arg(long)]
    pub(super) quiet: bool,
    /// Serve until stdin ends, too
    #[arg(long)]
    pub(super) until_stdin_closes: bool,
    /// Run this with OPENAI_BASE_URL set, and end with it
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(super) struct StubListing {
    /// List every misbehaviour
    #[arg(long, conflicts_with_all = ["file", "misbehave", "command"])]
    pub(super) list: bool,
    /// With --list: print JSON
    #[arg(long, requires = "list")]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
pub(super) struct WatchOptions {
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(super) project: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct InitOptions {
    /// Folder to make it in
    #[arg(default_value = ".")]
    pub(super) folder: PathBuf,
    /// Copy the tools that ship with deftool: files, search, programs, git, the web, time, arithmetic
    #[arg(long)]
    pub(super) toolbox: bool,
}

#[derive(Debug, Args)]
pub(super) struct NewOptions {
    /// The tool's name
    pub(super) name: String,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(super) project: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct RuleOptions {
    /// Its code or name; none: all of them
    pub(super) rule: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct TrustOptions {
    #[command(subcommand)]
    pub(super) action: Option<TrustAction>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum TrustAction {
    /// Trust a project with all that its specs want now
    Grant {
        /// Folder of the project, or a folder inside it; none: the current folder
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
    /// Trust a project no longer
    Revoke {
        /// Folder of the project, or a folder inside it; none: the current folder
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
        /// Every project
        #[arg(long, conflicts_with = "folder")]
        all: bool,
    },
}

#[derive(Debug, Args)]
pub(super) struct DoctorOptions {
    /// Which worker's server, where the project has several; none: each of them
    #[arg(long, value_name = "NAME")]
    pub(super) worker: Option<String>,
    /// Base URL of the server, /v1 included; wins over the worker's and over OPENAI_BASE_URL
    #[arg(long, value_name = "URL")]
    pub(super) endpoint: Option<String>,
    /// The model's name; wins over the worker's
    #[arg(long)]
    pub(super) model: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
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

impl ValueEnum for CompileTarget {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<CompileTarget>> = LazyLock::new(|| {
            Target::value_variants()
                .iter()
                .copied()
                .map(CompileTarget::Api)
                .chain([CompileTarget::Gptel])
                .collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        match self {
            Self::Api(target) => target.to_possible_value(),
            Self::Gptel => Some(clap::builder::PossibleValue::new("gptel")),
        }
    }
}

impl ValueEnum for ImportFormat {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.as_str()))
    }
}
