use crate::diagnostic::{Diagnostic, rule};
use crate::spec::{CommandInput, Template, Tool, ToolCommand};
use crate::text::{Location, Span, Spanned};

rule! {
    /// a placeholder inside of code
    ///
    /// The model writes the value, and text from a web page can contain instructions that the model follows. As a part of
    /// code, the value can run anything: quotes in the code do not help, because the value may contain quotes. Pass the
    /// values as JSON on stdin, and read them in the code.
    ///
    /// ```eld fails
    /// (deftool :name "double" :description "Double a number." :command ["python3" "-c" "print(2 * {n})"]
    ///  :args ((:name "n" :description "The number." :type string)))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "double" :description "Double a number."
    ///  :command ["python3" "-c" "import json, sys; print(2 * float(json.load(sys.stdin)['n']))"] :stdin json
    ///  :args ((:name "n" :description "The number." :type string)))
    /// ```
    pub(crate) PLACEHOLDER_IN_CODE, "DT143", "placeholder-in-code", Error
}

pub(in crate::spec) fn check(tool: &Tool, command: &ToolCommand, findings: &mut Vec<Diagnostic>) {
    let mut found = Vec::new();
    find_code(&command.words, command.stdin.as_ref(), command.span, &mut found);
    findings.extend(found.into_iter().map(|(span, program)| {
        let message = format!("the value of a placeholder would be code of `{program}`");
        Diagnostic::new(&PLACEHOLDER_IN_CODE, Location { source: tool.source, span }, message)
            .note("pass the values as JSON on stdin, and read them in the code: `:stdin json`")
    }));
}

/// A program that executes text.
struct Interpreter {
    names: &'static [&'static str],
    /// Letters of short options with code, also combined: `-lc`.
    letters: &'static str,
    /// Other options with code.
    options: &'static [&'static str],
    /// Letters of short options with another value.
    values: &'static str,
    /// Letters of short options that name the file or module to run.
    files: &'static str,
    otherwise: Otherwise,
}

/// What is code besides the values of options.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Otherwise {
    Nothing,
    /// Without such an option and without a file: the standard input.
    Stdin,
    /// Without such an option: the first word that is not an option.
    FirstWord,
    /// All words after the first one that is not an option.
    Rest,
    /// After such an option: all words that are not options.
    Further,
}

const fn interpreter(
    names: &'static [&'static str],
    (letters, options): (&'static str, &'static [&'static str]),
    (values, files): (&'static str, &'static str),
    otherwise: Otherwise,
) -> Interpreter {
    Interpreter { names, letters, options, values, files, otherwise }
}

static INTERPRETERS: [Interpreter; 16] = [
    interpreter(
        &["sh", "bash", "zsh", "dash", "ash", "ksh", "mksh", "fish", "csh", "tcsh", "nu"],
        ("c", &["--command"]),
        ("oO", ""),
        Otherwise::Stdin,
    ),
    interpreter(&["python", "pypy", "ipython"], ("c", &[]), ("WX", "m"), Otherwise::Stdin),
    interpreter(&["perl"], ("eE", &[]), ("MmIF", ""), Otherwise::Stdin),
    interpreter(&["ruby"], ("e", &[]), ("rIEC", ""), Otherwise::Stdin),
    interpreter(&["node", "nodejs", "bun"], ("ep", &["--eval", "--print"]), ("rC", ""), Otherwise::Stdin),
    interpreter(&["deno"], ("", &["eval"]), ("", ""), Otherwise::Nothing),
    interpreter(&["lua", "luajit", "luau"], ("e", &[]), ("l", ""), Otherwise::Stdin),
    interpreter(&["php"], ("rBRE", &["--run"]), ("dcSt", "f"), Otherwise::Stdin),
    interpreter(&["Rscript"], ("e", &[]), ("", ""), Otherwise::Nothing),
    interpreter(&["osascript"], ("e", &[]), ("ls", ""), Otherwise::Stdin),
    interpreter(&["awk", "gawk", "mawk", "nawk"], ("ef", &["--source", "--file"]), ("Fvil", ""), Otherwise::FirstWord),
    interpreter(&["sed", "gsed"], ("ef", &["--expression", "--file"]), ("l", ""), Otherwise::FirstWord),
    interpreter(&["emacs"], ("", &["--eval", "-eval", "--execute", "-execute"]), ("", ""), Otherwise::Nothing),
    interpreter(&["emacsclient"], ("e", &["--eval"]), ("adfFsT", ""), Otherwise::Further),
    interpreter(&["ssh"], ("o", &[]), ("BbcDEeFIiJLlmOPpQRSWw", ""), Otherwise::Rest),
    interpreter(&["env"], ("S", &["--split-string"]), ("uC", ""), Otherwise::Nothing),
];

/// Programs that run the program in their arguments.
const WRAPPERS: [&str; 18] = [
    "env", "xargs", "nohup", "nice", "setsid", "sudo", "doas", "time", "timeout", "stdbuf", "busybox", "find", "fd",
    "watch", "flock", "docker", "podman", "kubectl",
];

/// The [`WRAPPERS`] whose first word that is not an option is the program.
const DIRECT: usize = 8;

/// What an option is.
enum Meaning {
    /// An option without code.
    Plain,
    /// The next word is its value.
    Value,
    /// It names the file or module to run, or the next word does.
    File,
    /// It contains code.
    Code,
    /// The next word that is not an option is code.
    CodeFollows,
}

impl Interpreter {
    /// Returns the interpreter that a word of a command runs.
    fn of(word: &Template) -> Option<&'static Self> {
        let name = program_name(word)?;
        INTERPRETERS.iter().find(|interpreter| interpreter.names.contains(&name))
    }

    fn is_option(&self, word: &Template) -> bool {
        let text = word.start();
        (text.starts_with(['-', '+']) && text.len() > 1) || self.options.contains(&text)
    }

    fn meaning(&self, word: &Template) -> Meaning {
        let text = word.start();
        let is_literal = word.literal().is_some();
        if is_literal && self.options.contains(&text) {
            return Meaning::CodeFollows;
        }
        if text.split_once('=').is_some_and(|(option, _)| self.options.contains(&option)) {
            return Meaning::Code;
        }
        let Some(flags) = text.strip_prefix('-').filter(|flags| !flags.starts_with('-')) else {
            return Meaning::Plain;
        };
        let letters = [self.letters, self.values, self.files];
        let is_special =
            |c: char| !c.is_ascii_alphabetic() || letters.iter().any(|letters| letters.contains(c));
        let Some(at) = flags.find(is_special) else { return Meaning::Plain };
        let (letter, rest) = flags.split_at(at).1.split_at_checked(1).unwrap_or_default();
        if letter.is_empty() {
            Meaning::Plain
        } else if self.letters.contains(letter) {
            let is_end = is_literal && rest.chars().all(|c| c.is_ascii_alphabetic());
            if is_end { Meaning::CodeFollows } else { Meaning::Code }
        } else if is_literal && rest.is_empty() && self.values.contains(letter) {
            Meaning::Value
        } else if self.files.contains(letter) {
            Meaning::File
        } else {
            Meaning::Plain
        }
    }
}

/// Finds the words of a command, and its input, that are code with placeholders. `command` is the span for the input.
/// Adds their spans, with the name of the program that executes them.
fn find_code<'w>(
    words: &'w [Spanned<Template>],
    input: Option<&CommandInput>,
    command: Span,
    found: &mut Vec<(Span, &'w str)>,
) {
    let Some((program, arguments)) = words.split_first() else { return };
    let name = program_name(&program.value).unwrap_or_default();
    if let Some(interpreter) = Interpreter::of(&program.value) {
        let is_input_code = find_arguments(interpreter, name, arguments, found);
        match input.filter(|_| is_input_code) {
            Some(CommandInput::Text(text)) => found.extend(code(text).map(|span| (span, name))),
            Some(CommandInput::Json) => found.push((command, name)),
            None => {}
        }
    }
    let Some(wrapper) = WRAPPERS.iter().position(|wrapper| *wrapper == name) else { return };
    let mut is_program = wrapper < DIRECT;
    for (index, word) in arguments.iter().enumerate() {
        let text = word.value.start();
        let inner = program_name(&word.value);
        if inner.is_some_and(|inner| WRAPPERS.contains(&inner)) || Interpreter::of(&word.value).is_some() {
            return find_code(arguments.get(index..).unwrap_or_default(), input, command, found);
        }
        if text.starts_with('-') || text.contains('=') {
            // The next word may be the value of the option.
            continue;
        }
        let follows_option = index.checked_sub(1).and_then(|before| arguments.get(before));
        if follows_option.is_some_and(|before| before.value.start().starts_with('-')) {
            continue;
        }
        found.extend(code(word).filter(|_| is_program && text.is_empty()).map(|span| (span, name)));
        is_program = false;
    }
}

/// Finds the words after `interpreter`. Returns whether its input is code.
fn find_arguments<'w>(
    interpreter: &Interpreter,
    name: &'w str,
    arguments: &'w [Spanned<Template>],
    found: &mut Vec<(Span, &'w str)>,
) -> bool {
    let ends_at_file = interpreter.otherwise == Otherwise::Stdin;
    let (mut operands, mut has_code) = (0, false);
    let (mut is_value, mut is_code) = (false, false);
    for word in arguments {
        if std::mem::take(&mut is_value) {
            continue;
        }
        let mut is_here = false;
        if interpreter.is_option(&word.value) {
            match interpreter.meaning(&word.value) {
                Meaning::Plain => {}
                Meaning::Value => is_value = true,
                Meaning::File => operands += 1,
                Meaning::Code => is_here = true,
                Meaning::CodeFollows => is_code = true,
            }
            has_code |= is_here || is_code;
        } else if is_code {
            is_here = true;
            is_code = interpreter.otherwise == Otherwise::Further;
        } else if word.value.literal() != Some("-") {
            operands += 1;
            is_here = match interpreter.otherwise {
                Otherwise::FirstWord => operands == 1 && !has_code,
                Otherwise::Rest => operands > 1,
                Otherwise::Nothing | Otherwise::Stdin | Otherwise::Further => false,
            };
        }
        found.extend(code(word).filter(|_| is_here).map(|span| (span, name)));
        // The other words are arguments of the code or of the file.
        if ends_at_file && operands > 0 {
            break;
        }
    }
    ends_at_file && operands == 0 && !has_code
}

/// Returns the span of a text that has placeholders.
fn code(text: &Spanned<Template>) -> Option<Span> {
    text.value.literal().is_none().then_some(text.span)
}

/// Returns the name of a program without its folder and version: `/usr/bin/python3.12` is `python`.
fn program_name(word: &Template) -> Option<&str> {
    let text = word.literal()?;
    let name = text.rsplit('/').next().unwrap_or(text);
    Some(super::wide_permission::without_version(name))
}
