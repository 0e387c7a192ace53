//! Options of the commands that read specs and run nothing.

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{ArgGroup, Args, ValueEnum};

use crate::schema::{ImportFormat, Target};

#[derive(Debug, Args)]
pub(in crate::cli) struct CheckOptions {
    /// Files, scripts, folders or projects; none: the project around the current folder; `-`: stdin
    pub(in crate::cli) paths: Vec<PathBuf>,
    /// What stdin is called: the file that an editor holds, saved or not
    #[arg(long, value_name = "NAME", default_value = "stdin.eld")]
    pub(in crate::cli) stdin_filename: PathBuf,
    /// How findings are written
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(in crate::cli) format: Format,
    /// Say, too, what these APIs drop, weaken or refuse
    #[arg(long = "target", value_enum, value_name = "TARGET", value_delimiter = ',')]
    pub(in crate::cli) targets: Vec<Target>,
    /// Check the types of the scripts, too, with the program `deftool-types`
    #[arg(long)]
    pub(in crate::cli) types: bool,
    /// Exit with 1 on warnings, too
    #[arg(long)]
    pub(in crate::cli) strict: bool,
    #[command(flatten)]
    pub(in crate::cli) fixing: FixOptions,
    /// Check again on every save
    #[arg(long, conflicts_with = "fixing")]
    pub(in crate::cli) watch: bool,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("fixing").args(["fix", "diff"]).multiple(true)))]
pub(in crate::cli) struct FixOptions {
    /// Repair what can be repaired beyond doubt, then report what is left
    #[arg(long)]
    pub(in crate::cli) fix: bool,
    /// Repair what is only likely meant, too
    #[arg(long, requires = "fixing")]
    pub(in crate::cli) unsafe_fixes: bool,
    /// Show what --fix would change and write nothing; exit with 1 if there is something
    #[arg(long, conflicts_with = "format")]
    pub(in crate::cli) diff: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Format {
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
pub(in crate::cli) struct FmtOptions {
    /// Files, folders or projects; none: the project around the current folder; `-`: stdin to stdout
    pub(in crate::cli) paths: Vec<PathBuf>,
    /// Write nothing; name the files that would change, and exit with 1 if there are any
    #[arg(long)]
    pub(in crate::cli) check: bool,
    /// Write nothing; print what would change, and exit with 1 if anything would
    #[arg(long)]
    pub(in crate::cli) diff: bool,
    /// What stdin is called; `.el` lays out the tool forms alone
    #[arg(long, value_name = "NAME", default_value = "stdin.eld")]
    pub(in crate::cli) stdin_filename: PathBuf,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct CompileOptions {
    /// Files, folders or projects; none: the project around the current folder
    pub(in crate::cli) paths: Vec<PathBuf>,
    /// Which API, or `gptel` for Emacs Lisp
    #[arg(long, value_enum, default_value = "openai")]
    pub(in crate::cli) target: CompileTarget,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
}

/// What `compile` prints: JSON for an API, or Emacs Lisp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum CompileTarget {
    Api(Target),
    Gptel,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct TargetsOptions {
    /// Which API; none: all of them, in a line each
    #[arg(value_enum)]
    pub(in crate::cli) target: Option<Target>,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ImportOptions {
    /// JSON files; `-`, or none, reads stdin
    pub(in crate::cli) files: Vec<PathBuf>,
    /// Whose definitions they are, where their shape does not tell
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(in crate::cli) from: Option<ImportFormat>,
    /// Write one spec a file into this folder
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) output: Option<PathBuf>,
    /// Overwrite the files that are there
    #[arg(long, requires = "output")]
    pub(in crate::cli) force: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct TypesOptions {
    /// Write deftool.d.luau into this folder; none: print it
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) output: Option<PathBuf>,
    /// Write nothing; exit with 1 if the file is not what would be written
    #[arg(long, requires = "output")]
    pub(in crate::cli) check: bool,
    /// Folder of the project, or a folder inside it
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RuleOptions {
    /// Its code or name; none: all of them
    pub(in crate::cli) rule: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(in crate::cli) json: bool,
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
