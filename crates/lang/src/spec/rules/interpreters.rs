//! Programs that execute text, and the words of their command lines that are code.

use super::wide_permission::without_version;
use crate::spec::Template;

/// A program that executes text.
pub(super) struct Interpreter {
    /// Names without versions, separated by spaces.
    names: &'static str,
    /// Letters of short options with code, also combined: `-lc`. `+` is the option `+CODE`.
    letters: &'static str,
    /// Other options and subcommands with code, separated by spaces.
    options: &'static str,
    /// Letters of short options with another value.
    values: &'static str,
    /// Letters of short options that name the file or module to run.
    files: &'static str,
    pub(super) operands: Operands,
    /// Whether the standard input is code if no word is code and no word names a file to run.
    pub(super) reads_code: bool,
}

/// What the words are that are neither options nor their values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    Data,
    /// Data. Only the standard input is code.
    Input,
    /// The file to run, unless an option has code, then arguments of the code or file.
    Script,
    /// A program and its arguments.
    Program,
    /// A subcommand, after which short options have other meanings.
    Subcommand,
    /// Code, unless an option has it, then data.
    Code,
    /// Data up to this number, then code.
    CodeAfter(usize),
    /// Code after an option with code, otherwise data.
    CodeAfterOption,
}

/// What an option is.
pub(super) enum Meaning {
    /// An option without code.
    Plain,
    /// The next words of this number are its value.
    Value(usize),
    /// It names the file or module to run, or the next word does.
    File { is_next: bool },
    /// It contains code.
    Code,
    /// The next word that is not an option is code.
    CodeFollows,
}

const fn row(
    names: &'static str,
    (letters, options): (&'static str, &'static str),
    (values, files): (&'static str, &'static str),
    operands: Operands,
    reads_code: bool,
) -> Interpreter {
    Interpreter { names, letters, options, values, files, operands, reads_code }
}

use Operands::{Code, CodeAfter, CodeAfterOption, Data, Input, Program, Script, Subcommand};

static INTERPRETERS: [Interpreter; 47] = [
    row("sh bash zsh dash ash ksh mksh fish csh tcsh nu", ("c", "--command"), ("oO", ""), Script, true),
    row("pwsh powershell", ("", "-c -Command -command"), ("", ""), Script, true),
    row("python pypy ipython", ("c", ""), ("WX", "m"), Script, true),
    row("perl raku", ("eE", ""), ("MmIF", ""), Script, true),
    row("ruby", ("e", ""), ("rIEC", ""), Script, true),
    row("node nodejs bun tsx ts-node", ("ep", "--eval --print"), ("rC", ""), Script, true),
    row("deno", ("", "eval --eval"), ("", ""), Data, false),
    row("lua luajit luau", ("e", ""), ("l", ""), Script, true),
    row("php", ("rBRE", "--run"), ("dcSt", "f"), Script, true),
    row("julia", ("eE", "--eval --print"), ("LJCpt", ""), Script, true),
    row("R Rscript", ("e", ""), ("", "f"), Script, true),
    row("osascript", ("e", ""), ("ls", ""), Script, true),
    row("guile racket", ("ce", "--eval"), ("lL", ""), Script, true),
    row(
        "bb clj clojure elixir erl ghc gnuplot groovy iex ocaml octave sbcl scala swift tclsh",
        ("e", "--eval -eval"),
        ("", ""),
        Script,
        true,
    ),
    row("awk gawk mawk nawk", ("e", "--source"), ("Fvil", "f"), Code, false),
    row("sed gsed", ("e", "--expression"), ("l", "f"), Code, false),
    row("jq gojq jaq", ("", ""), ("L", "f"), Code, false),
    row("yq", ("", "e ea eval eval-all --expression"), ("op", ""), Code, false),
    row("sqlite", ("", "-cmd"), ("", ""), CodeAfter(1), true),
    row("duckdb", ("", "-c -s -cmd"), ("", ""), CodeAfter(1), true),
    row("psql", ("c", "--command"), ("dhpUoLPvTFR", "f"), Data, true),
    row("mysql mariadb cqlsh", ("e", "--execute --init-command"), ("hPuDS", ""), Data, true),
    row("clickhouse-client sqlcmd", ("qQ", "--query"), ("hudSUP", ""), Data, true),
    row("mongosh mongo", ("", "--eval"), ("", ""), Data, true),
    row("redis-cli", ("", "eval EVAL"), ("hpan", ""), Data, true),
    row("emacs", ("", "--eval -eval --execute -execute"), ("", ""), Data, false),
    row("emacsclient", ("e", "--eval"), ("adfFsT", ""), CodeAfterOption, false),
    row("vim nvim vi gvim ex", ("c+", "--cmd --remote-expr --remote-send"), ("uiSTwWrt", ""), Data, false),
    row("gdb lldb", ("", "-ex -iex --eval-command -o --one-line"), ("", ""), Data, false),
    row("git", ("c", GIT_OPTIONS), ("C", ""), Subcommand, false),
    row("hg jj", ("", "--config"), ("", ""), Data, false),
    row("find", ("", "-exec -execdir -ok -okdir"), ("", ""), Data, false),
    row("fd fdfind", ("xX", "--exec --exec-batch"), ("edtEcSj", ""), Data, false),
    row("make gmake", ("", "--eval"), ("", ""), Data, false),
    row(
        "tar gtar",
        ("IF", "--checkpoint-action --to-command --use-compress-program"),
        ("fC", ""),
        Data,
        false,
    ),
    row("ssh", ("o", ""), ("BbcDEeFIiJLlmOPpQRSWw", ""), CodeAfter(1), true),
    row("scp sftp", ("oS", ""), ("", ""), Data, false),
    row("rsync", ("e", "--rsh --rsync-path"), ("", ""), Data, false),
    row("wget", ("e", "--execute --use-askpass"), ("", ""), Data, false),
    row("su runuser script flock", ("c", "--command --session-command"), ("", ""), Data, false),
    row(
        "nix nix-shell nix-build nix-instantiate npm npx",
        ("cE", "--call --command --expr --run"),
        ("p", ""),
        Data,
        false,
    ),
    row("docker podman nerdctl kubectl", ("", ""), ("", ""), Data, false),
    row("env", ("S", "--split-string"), ("uC", ""), Program, false),
    row("xargs nohup setsid nice time", ("", ""), ("nIPdaLsE", ""), Program, false),
    row("sudo doas", ("", ""), ("ugCDhpRrTtU", ""), Program, false),
    row("watch parallel", ("", ""), ("njI", ""), CodeAfter(0), false),
    row("at batch crontab ed", ("", ""), ("", ""), Input, true),
];

const GIT_OPTIONS: &str =
    "foreach --config-env --exec --exec-path --extcmd --open-files-in-pager --receive-pack --upload-pack";

/// Programs whose options contain no code.
const DATA_PROGRAMS: &str = "ack ag b2sum base basename bzip c++ cat cc cksum clang clang++ cmp comm cp curl cut date df \
    diff dirname du echo egrep ffmpeg fgrep file fold g++ gcc grep gunzip gzip head hexdump join ls md5sum mkdir mv nl \
    notify-send od paste pgrep ping printf readlink realpath rg rm seq sha1sum sha256sum sha512sum shuf sort split stat \
    tac tail tee touch tr tree uniq wc xxd xz zcat zgrep zstd";

/// Options with code of other programs, without dashes.
const CODE_OPTIONS: &str = "c cmd command e eval evaluate exec execute expr expression run";

/// Options without code that have the next word as their value.
const VALUE_OPTIONS: &str = "--assign --dbname --field-separator --host --import --indent --init-file --input-type --port \
    --rcfile --require --user --username -init -newline -nullvalue -separator";

/// Options with a name and a value.
const PAIR_OPTIONS: &str = "--arg --argjson --rawfile --slurpfile";

/// The option with code of an unknown program that a word contains, or that has the next word as its value.
pub(super) struct UnknownOption<'w> {
    /// Its name with dashes.
    pub(super) name: &'w str,
    /// Its name without dashes.
    pub(super) letters: &'w str,
    pub(super) is_next: bool,
}

/// Returns the option of an unknown program that may have code.
pub(super) fn unknown_option(word: &Template) -> Option<UnknownOption<'_>> {
    let text = word.start();
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    let letters = name.strip_prefix('-')?.trim_start_matches('-');
    let is_next = value.is_none() && word.literal().is_some();
    contains(CODE_OPTIONS, letters).then_some(UnknownOption { name, letters, is_next })
}

/// Returns whether `word` is a program whose options contain no code.
pub(super) fn is_data_program(word: &Template) -> bool {
    program_name(word).is_some_and(|name| contains(DATA_PROGRAMS, name))
}

/// Returns the name of a program without its folder and version: `/usr/bin/python3.12` is `python`.
pub(super) fn program_name(word: &Template) -> Option<&str> {
    let text = word.literal().filter(|text| !text.starts_with('-') && !text.contains(['=', ' ']))?;
    let name = text.rsplit('/').next().unwrap_or(text);
    Some(without_version(name))
}

/// Whether `list`, separated by spaces, contains `word`.
fn contains(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

impl Interpreter {
    /// Returns the interpreter that a word of a command runs.
    pub(super) fn of(word: &Template) -> Option<&'static Self> {
        let name = program_name(word)?;
        INTERPRETERS.iter().find(|interpreter| contains(interpreter.names, name))
    }

    /// Whether its names are also common words, as of subcommands: `cargo watch`.
    pub(super) fn is_common_word(&self) -> bool {
        matches!(self.operands, Program | CodeAfter(0) | Input)
    }

    /// Returns the meaning of an option, or `None` if `word` is not one. `is_first`: no operand is before it.
    pub(super) fn meaning(&self, word: &Template, is_first: bool) -> Option<Meaning> {
        let text = word.start();
        let is_literal = word.literal().is_some();
        if is_literal && contains(self.options, text) {
            return Some(Meaning::CodeFollows);
        }
        if text.starts_with('+') && self.letters.contains('+') {
            return Some(Meaning::Code);
        }
        if text.len() < 2 || !text.starts_with(['-', '+']) {
            return None;
        }
        if text.split_once('=').is_some_and(|(option, _)| contains(self.options, option)) {
            return Some(Meaning::Code);
        }
        if contains(VALUE_OPTIONS, text) {
            return Some(Meaning::Value(1));
        }
        if contains(PAIR_OPTIONS, text) {
            return Some(Meaning::Value(2));
        }
        if self.operands == Subcommand && !is_first {
            return Some(Meaning::Plain);
        }
        Some(self.short_option(text, is_literal))
    }

    fn short_option(&self, text: &str, is_literal: bool) -> Meaning {
        let Some(flags) = text.strip_prefix('-').filter(|flags| !flags.starts_with('-')) else {
            return Meaning::Plain;
        };
        let letters = [self.letters, self.values, self.files];
        let is_special =
            |c: char| !c.is_ascii_alphanumeric() || letters.iter().any(|letters| letters.contains(c));
        let Some((at, letter)) = flags.char_indices().find(|(_, c)| is_special(*c)) else {
            return Meaning::Plain;
        };
        let rest = flags.get(at + letter.len_utf8()..).unwrap_or_default();
        let is_end = is_literal && rest.is_empty();
        if self.letters.contains(letter) {
            let is_combined = is_literal && rest.chars().all(|c| c.is_ascii_alphabetic());
            if is_combined { Meaning::CodeFollows } else { Meaning::Code }
        } else if self.files.contains(letter) {
            Meaning::File { is_next: is_end }
        } else if is_end && self.values.contains(letter) {
            Meaning::Value(1)
        } else {
            Meaning::Plain
        }
    }
}
