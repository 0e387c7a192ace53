//! The commands: a file or folder each, with the options beside `run`.

#![allow(clippy::unnecessary_wraps)] // all commands have the same signature

mod acp;
mod call;
mod chat;
mod check;
mod compile;
mod completions;
mod diff;
mod doctor;
mod eval;
mod fmt;
mod import;
mod init;
mod journal;
mod lsp;
mod man;
mod mcp;
mod new;
mod renamed;
mod replay;
mod rpc;
mod rule;
mod run;
mod stub;
mod test;
mod tools;
mod trust;
mod types;
mod version;
mod view;

use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand};

use super::outcome::{CliError, Exit};
use super::terminal::output::Color;
use super::terminal::width::{fill, help_columns};

pub(super) use renamed::with_new_name;

/// Toolchain and engine for the tools that language models call.
#[derive(Debug, Parser)]
#[command(
    name = "deftool",
    version,
    long_version = version::long_version(),
    about,
    propagate_version = true,
    after_help = "\
Examples:
  deftool init --toolbox
  deftool check --fix
  deftool call read_file path=README.md
  deftool run \"What changed since yesterday?\""
)]
pub(super) struct Arguments {
    /// Project folder, or a folder inside it [default: the current folder]
    // Hidden in the help of commands without a project; those with one have it in their options.
    #[arg(short = 'C', long, value_name = "DIR", global = true, hide = true)]
    pub(super) directory: Option<PathBuf>,
    /// Do not print progress and summaries
    #[arg(short, long, global = true, display_order = 100)]
    pub(super) quiet: bool,
    /// When to use colours; `auto` uses them on terminals and respects `NO_COLOR` and `CLICOLOR_FORCE`
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Color::Auto, hide_short_help = true,
        display_order = 100)]
    pub(super) color: Color,
    /// Enable a preview feature, which may change or leave; can be repeated
    // Hidden in the help of commands, as most have none.
    #[arg(long, value_name = "NAME", global = true, hide = true, display_order = 100)]
    pub(super) preview: Vec<String>,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// Defines the commands by group: attributes, variant and options. The module has the name of the command and a function
/// `run`. The options have no doc comment, also if they are flattened: it would replace the description of the command.
macro_rules! commands {
    ($($group:literal: $($(#[$attribute:meta])* $variant:ident($module:ident::$options:ident),)*)*) => {
        #[allow(clippy::large_enum_variant)] // there is one value
        #[derive(Debug, Subcommand)]
        #[command(defer = true)] // a start makes the options of its own command only
        pub(super) enum Command {
            $($(
                $(#[$attribute])*
                $variant($module::$options),
            )*)*
        }

        impl Command {
            /// Runs the command.
            pub(super) fn run(&self) -> Result<Exit, CliError> {
                match self {
                    $($(Self::$variant(options) => $module::run(options),)*)*
                }
            }
        }

        /// The names of the commands by group.
        const GROUPS: &[(&str, &[&str])] = &[$(($group, &[$(stringify!($module)),*])),*];
    };
}

commands! {
    "Write tools":
    /// Create a project with a tool and a worker
    Init(init::InitOptions),
    /// Add a tool to the project: a spec and a script
    New(new::NewOptions),
    /// Check specs, scripts and workers
    Check(check::CheckOptions),
    /// Format spec files in place
    Fmt(fmt::FmtOptions),
    /// Run spec examples and script tests without a model
    Test(test::TestOptions),
    /// Validate and run one tool call without a model
    Call(call::CallOptions),
    /// List the tools of the project: arguments, permissions and files
    Tools(tools::ToolsOptions),

    "Use models":
    /// Send one request through a worker and stream the reply
    Run(run::RunOptions),
    /// Start or resume a chat session with a model
    Chat(chat::ChatOptions),
    /// Send the asks of tools to models, and judge which tools they call
    Eval(eval::EvalOptions),
    /// Verify recordings without a model and without running tools
    ///
    /// With --specs, validates recorded calls against the specs.
    Replay(replay::ReplayOptions),
    /// Show a recording or journal, or the difference of two, in HTML
    View(view::ViewOptions),
    /// List, show, resume, cancel and remove the requests of a journal
    Journal(journal::JournalOptions),
    /// Run a stub model server with scenarios and fault injection
    Stub(stub::StubOptions),

    "Serve other programs":
    /// Serve the tools of the project to an MCP host
    Mcp(mcp::McpOptions),
    /// Serve tools and workers to another program over JSON-RPC
    Rpc(rpc::RpcOptions),
    /// Serve a worker to editors over the Agent Client Protocol
    Acp(acp::AcpOptions),
    /// Serve editors over the Language Server Protocol
    Lsp(lsp::LspOptions),

    "Trust and diagnose":
    /// List, grant and revoke the permissions of projects
    Trust(trust::TrustOptions),
    /// Diagnose project, scripts, permissions, servers and models
    Doctor(doctor::DoctorOptions),

    "Convert":
    /// Print the tool definitions for an API as JSON, or list the APIs
    Compile(compile::CompileOptions),
    /// Convert tool definitions from other formats to specs
    Import(import::ImportOptions),
    /// Report changes between two versions of tools that break callers
    Diff(diff::DiffOptions),
    /// Generate Luau type definitions for editors
    Types(types::TypesOptions),

    "Help":
    /// List the rules of `check`, or explain one
    Rule(rule::RuleOptions),
    /// Print shell completions
    Completions(completions::CompletionsOptions),
    /// Write the manual pages of all commands to a folder
    #[command(hide = true)]
    Man(man::ManOptions),
}

/// Returns the command with its help text. Only the commands that users type themselves are listed.
pub(super) fn command() -> clap::Command {
    let shown = |argument: clap::Arg| argument.global(false).hide(false);
    let command = Arguments::command().mut_arg("directory", shown).mut_arg("preview", shown);
    let mut groups = String::new();
    let columns = help_columns();
    let line = |name: &str, about: &str| fill(&format!("  {name:<13}"), about, 15, columns);
    for (group, names) in GROUPS {
        groups.extend(["\n", group, ":\n"]);
        for name in *names {
            let found = command.find_subcommand(name).filter(|command| !command.is_hide_set());
            if let Some(about) = found.and_then(clap::Command::get_about) {
                groups += &line(name, &about.to_string());
            }
        }
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\nOptions:\n{{options}}{{after-help}}"
    ))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::{Arguments, command};

    /// Returns each command with its name, without those that are hidden.
    fn all() -> Vec<(String, clap::Command)> {
        let mut whole = command();
        whole.build();
        let mut all = vec![(String::from("deftool"), whole)];
        let mut next = 0;
        while let Some((name, command)) = all.get(next) {
            let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
            let named = shown.filter(|command| command.get_name() != "help");
            let found: Vec<_> =
                named.map(|command| (format!("{name} {}", command.get_name()), command.clone())).collect();
            all.extend(found);
            next += 1;
        }
        all
    }

    /// Two screens.
    const MAX_LINES: usize = 48;

    #[test]
    fn the_short_help_of_each_command_fits_on_two_screens() {
        let all = all();
        assert!(all.len() > 30, "{}", all.len());
        for columns in [80, 100] {
            // The list of the commands is longer.
            let lines: Vec<(usize, &str)> = all
                .iter()
                .skip(1)
                .map(|(name, command)| {
                    let help = command.clone().term_width(columns).render_help().to_string();
                    (help.lines().count(), name.as_str())
                })
                .collect();
            let long: Vec<_> = lines.into_iter().filter(|(lines, _)| *lines > MAX_LINES).collect();
            assert!(long.is_empty(), "{columns} columns: {long:?}");
        }
    }

    /// Commands without a report: they write files, print what they make, or serve a protocol. `journal show` prints JSON.
    const WITHOUT_FORMAT: &[&str] = &[
        "deftool",
        "deftool acp",
        "deftool completions",
        "deftool fmt",
        "deftool import",
        "deftool init",
        "deftool journal",
        "deftool journal cancel",
        "deftool journal prune",
        "deftool journal show",
        "deftool lsp",
        "deftool mcp",
        "deftool new",
        "deftool rpc",
        "deftool trust revoke",
        "deftool types",
        "deftool view",
    ];

    #[test]
    fn each_report_has_a_machine_format() {
        let mut without = Vec::new();
        for (name, command) in &all() {
            let has = |id: &str| command.get_arguments().any(|argument| argument.get_id() == id);
            assert_eq!(has("format"), has("json"), "{name}");
            if !has("format") {
                without.push(name.clone());
            }
        }
        without.sort();
        assert_eq!(without, WITHOUT_FORMAT);
    }

    /// Terminals have different widths: only lines of examples and tables, which are indented, end in the text.
    #[test]
    fn texts_of_help_are_not_wrapped_by_hand() {
        fn check(command: &clap::Command) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for paragraph in help.split("\n\n") {
                let mut rest = paragraph.lines().skip(1);
                assert!(rest.all(|line| line.starts_with(' ')), "{}: {paragraph}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        let mut command = Arguments::command();
        command.build();
        check(&command);
    }
}
