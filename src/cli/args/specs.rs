//! Options of the commands that read specs and run no scripts.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args, ValueEnum};
use deftool_lang::schema::{ImportFormat, Target};

#[allow(clippy::struct_excessive_bools)] // each is a flag
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool check
  deftool check --fix
  deftool check specs/weather.eld --target openai,gemini
  deftool check --select DT2 --ignore idle-description
  deftool check --format github --strict")]
pub(in crate::cli) struct CheckOptions {
    /// Spec files, scripts, folders or projects; `-` reads stdin [default: the project around the current folder]
    pub(in crate::cli) paths: Vec<PathBuf>,
    /// File name of stdin, for an editor buffer that is not saved
    #[arg(long, value_name = "NAME", default_value = "stdin.eld")]
    pub(in crate::cli) stdin_filename: PathBuf,
    /// Output format of findings
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(in crate::cli) format: Format,
    /// Also report schema keywords that these APIs drop, weaken or reject
    #[arg(long = "target", value_parser = target(), value_name = "TARGET", value_delimiter = ',')]
    pub(in crate::cli) targets: Vec<Target>,
    /// Also check the types of scripts; requires the program `deftool-types`
    #[arg(long)]
    pub(in crate::cli) types: bool,
    /// Also start or contact the MCP servers, which must be trusted, and check what they offer
    #[arg(long, conflicts_with_all = ["fixing", "watch"])]
    pub(in crate::cli) online: bool,
    /// Exit with 1 if there are warnings
    #[arg(long)]
    pub(in crate::cli) strict: bool,
    #[command(flatten)]
    pub(in crate::cli) selection: SelectionOptions,
    /// Exit with 0 even if there are errors
    #[arg(long, conflicts_with_all = ["strict", "fixing"])]
    pub(in crate::cli) exit_zero: bool,
    /// Do not print the summary
    #[arg(short, long)]
    pub(in crate::cli) quiet: bool,
    #[command(flatten)]
    pub(in crate::cli) fixing: FixOptions,
    /// Check again after each change
    #[arg(short, long, conflicts_with = "fixing")]
    pub(in crate::cli) watch: bool,
    /// Project folder, or a folder inside it [default: the current folder]
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
}

/// The findings to report and fix.
#[derive(Debug, Clone, Default, Args)]
pub(in crate::cli) struct SelectionOptions {
    /// Report only these rules: codes, prefixes such as DT2, or names
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub(in crate::cli) select: Vec<String>,
    /// Do not report these rules
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub(in crate::cli) ignore: Vec<String>,
    /// Report only findings that are not in FILE, the output of an earlier `check --format json`
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) baseline: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("fixing").args(["fix", "diff"]).multiple(true)))]
pub(in crate::cli) struct FixOptions {
    /// Apply safe fixes, then report the remaining findings
    #[arg(long)]
    pub(in crate::cli) fix: bool,
    /// Also apply fixes that may change the meaning
    #[arg(long, requires = "fixing")]
    pub(in crate::cli) unsafe_fixes: bool,
    /// Print the changes of --fix without writing them, as a diff or with `--format json`; exit with 1 if there are any
    #[arg(long)]
    pub(in crate::cli) diff: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Format {
    /// Text with source lines
    Human,
    /// One line per finding, for editors
    Concise,
    /// One JSON object
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Workflow commands for GitHub annotations
    Github,
    /// JUnit XML, for GitLab and Jenkins
    Junit,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool fmt
  deftool fmt --check
  deftool fmt - --stdin-filename init.el < init.el")]
pub(in crate::cli) struct FmtOptions {
    /// Spec files, folders or projects; `-` formats stdin to stdout [default: the project around the current folder]
    pub(in crate::cli) paths: Vec<PathBuf>,
    /// Print the files that would change without writing them; exit with 1 if there are any
    #[arg(long)]
    pub(in crate::cli) check: bool,
    /// Print the changes without writing them; exit with 1 if there are any
    #[arg(long)]
    pub(in crate::cli) diff: bool,
    /// File name of stdin; in `.el` files, only tool forms are formatted
    #[arg(long, value_name = "NAME", default_value = "stdin.eld")]
    pub(in crate::cli) stdin_filename: PathBuf,
    /// Project folder, or a folder inside it [default: the current folder]
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Tools with errors are omitted, and so are tools that the target rejects. `deftool targets` lists the targets.

Examples:
  deftool compile
  deftool compile --target anthropic specs/weather.eld
  deftool compile -o tools.json
  deftool compile --check tools.json
  deftool compile --target gptel > tools.el")]
pub(in crate::cli) struct CompileOptions {
    /// Spec files, folders or projects [default: the project around the current folder]
    pub(in crate::cli) paths: Vec<PathBuf>,
    /// Target API, or `gptel` for Emacs Lisp
    #[arg(long, value_parser = compile_target(), default_value = "openai")]
    pub(in crate::cli) target: CompileTarget,
    /// Write to this file [default: print to stdout]
    #[arg(short, long, value_name = "FILE")]
    pub(in crate::cli) output: Option<PathBuf>,
    /// Compare with this file without writing; print the difference and exit with 1 if it is out of date
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    pub(in crate::cli) check: Option<PathBuf>,
    /// Project folder, or a folder inside it [default: the current folder]
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A change breaks callers if arguments that the old schema accepts may be rejected by the new one. Other changes are only
visible to the model. Exit codes: 0 no breaking change, 1 a breaking change, 2 some tools could not be compared.

Examples:
  deftool diff HEAD~1
  deftool diff origin/main specs/weather.eld
  deftool diff tools.json specs --json")]
pub(in crate::cli) struct DiffOptions {
    /// Old tools: a spec file, folder or project, JSON definitions (.json), or a git revision of the new tools
    pub(in crate::cli) old: PathBuf,
    /// New tools [default: the project in the current folder]
    pub(in crate::cli) new: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// The output of `compile`: JSON for an API, or Emacs Lisp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum CompileTarget {
    Api(Target),
    Gptel,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool targets
  deftool targets openai-strict")]
pub(in crate::cli) struct TargetsOptions {
    /// Target API to describe [default: list all]
    #[arg(value_parser = target())]
    pub(in crate::cli) target: Option<Target>,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool import tools.json --output specs --scripts
  curl -s http://localhost:3000/tools | deftool import --from mcp")]
pub(in crate::cli) struct ImportOptions {
    /// Files with JSON or Emacs Lisp; `-` reads stdin [default: stdin]
    pub(in crate::cli) files: Vec<PathBuf>,
    /// Import the tools of this MCP server of the project, which must be trusted
    #[arg(long, value_name = "NAME", conflicts_with_all = ["files", "from"])]
    pub(in crate::cli) mcp: Option<String>,
    /// Format of the definitions [default: detect]
    #[arg(long, value_parser = foreign_format(), value_name = "FORMAT")]
    pub(in crate::cli) from: Option<ForeignFormat>,
    /// Write one spec file per tool to this folder [default: print all to stdout]
    #[arg(short, long, value_name = "DIR")]
    pub(in crate::cli) output: Option<PathBuf>,
    /// Overwrite existing specs
    #[arg(long, requires = "output")]
    pub(in crate::cli) force: bool,
    /// Also write a placeholder script for each tool without a script; calls fail with `NAME is not implemented`
    #[arg(long, requires = "output")]
    pub(in crate::cli) scripts: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool types --output types
  deftool types --output types --check")]
pub(in crate::cli) struct TypesOptions {
    /// Write deftool.d.luau to this folder [default: print it to stdout]
    #[arg(short, long, value_name = "DIR")]
    pub(in crate::cli) output: Option<PathBuf>,
    /// Compare without writing; exit with 1 if the file is out of date
    #[arg(long, requires = "output")]
    pub(in crate::cli) check: bool,
    /// Project folder, or a folder inside it [default: the current folder]
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deftool rule
  deftool rule DT204
  deftool rule unknown-type")]
pub(in crate::cli) struct RuleOptions {
    /// Code or name of the rule to explain [default: list all]
    pub(in crate::cli) rule: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

/// Parses one of `choices`: a name and its value.
fn one_of<T: Copy + Send + Sync + 'static>(
    choices: impl IntoIterator<Item = (&'static str, T)>,
) -> impl TypedValueParser<Value = T> {
    let choices: Vec<_> = choices.into_iter().collect();
    PossibleValuesParser::new(choices.iter().map(|(name, _)| *name)).try_map(move |given: String| {
        let chosen = choices.iter().find(|(name, _)| *name == given);
        chosen.map(|(_, value)| *value).ok_or("unknown name")
    })
}

fn target() -> impl TypedValueParser<Value = Target> {
    one_of(Target::ALL.map(|target| (target.as_str(), target)))
}

fn compile_target() -> impl TypedValueParser<Value = CompileTarget> {
    let targets = Target::ALL.map(|target| (target.as_str(), CompileTarget::Api(target)));
    one_of(targets.into_iter().chain([("gptel", CompileTarget::Gptel)]))
}

/// A format of tool definitions other than specs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum ForeignFormat {
    Json(ImportFormat),
    /// Emacs Lisp with tool forms.
    Gptel,
}

fn foreign_format() -> impl TypedValueParser<Value = ForeignFormat> {
    one_of(ForeignFormat::all())
}

impl ForeignFormat {
    /// Every format with its name on the command line.
    pub(in crate::cli) fn all() -> impl Iterator<Item = (&'static str, Self)> {
        let json = ImportFormat::ALL.into_iter().map(|format| (format.as_str(), Self::Json(format)));
        json.chain([("gptel", Self::Gptel)])
    }
}
