use super::interpreters::{Interpreter, Meaning, Operands, is_data_program, program_name, unknown_option};
use super::placeholder_in_option;
use crate::diagnostic::{Diagnostic, rule};
use crate::spec::{CommandInput, Template, Tool, ToolCommand};
use crate::text::Location;

rule! {
    /// a placeholder inside of code
    ///
    /// The model writes the value, and text from a web page can contain instructions that the model follows. As a part of
    /// code, the value can run anything: quotes in the code do not help, because the value may contain quotes. Pass the
    /// values as JSON on stdin, and read them in the code, or as words after the code: `sh -c 'wc -l "$1"' sh {file}`.
    ///
    /// The code of a program that executes text is in an option (`sh -c`, `vim +CODE`, `git -c`, `find -exec`), a word
    /// (`awk`, `sed`, `jq`, `sqlite3`, `ssh`) or on stdin. Such a program may follow any word, such as `uv run`. In a
    /// word of any other program, except a URL, a placeholder is code between quotes and beside `;`, `|`, `&&`, a
    /// backtick or `$(`.
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

/// A word that is code.
#[derive(Clone, Copy)]
enum Code<'w> {
    /// Code of an interpreter.
    Certain { program: &'w str },
    /// The value of an option that may be code.
    Possible { program: &'w str, option: &'w str },
}

pub(in crate::spec) fn check(tool: &Tool, command: &ToolCommand, findings: &mut Vec<Diagnostic>) {
    let Some((program, words)) = command.words.split_first() else { return };
    let at = |span| Location { source: tool.source, span };
    let of_program = |program| format!("the value of a placeholder would be code of `{program}`");
    let mut line = CommandLine::new(&program.value);
    for word in words {
        let code = line.read(&word.value);
        if word.value.literal().is_some() {
            continue;
        }
        findings.extend(match (code, mark_of_code(&word.value)) {
            (Some(Code::Certain { program }), _) => Some(finding(at(word.span), of_program(program))),
            (_, Some(mark)) => {
                let message = format!("the value of a placeholder {mark} could become code");
                Some(finding(at(word.span), message))
            }
            (Some(Code::Possible { program, option }), None) => {
                Some(placeholder_in_option::finding(at(word.span), program, option))
            }
            (None, None) => None,
        });
    }
    let input = match &command.stdin {
        Some(CommandInput::Text(text)) => Some(text.span).filter(|_| text.value.literal().is_none()),
        Some(CommandInput::Json) => Some(command.span),
        None => None,
    };
    if let Some((span, program)) = input.zip(line.reader_of_input()) {
        findings.push(finding(at(span), of_program(program)));
    }
}

fn finding(at: Location, message: String) -> Diagnostic {
    Diagnostic::new(&PLACEHOLDER_IN_CODE, at, message)
        .note("pass the values as JSON on stdin (`:stdin json`), or as words after the code: `sh -c 'wc -l \"$1\"' sh {file}`")
}

/// What reads the next word of a command.
#[derive(Clone, Copy)]
enum Reader {
    Interpreter(&'static Interpreter),
    UnknownProgram,
    /// A program that executes no text, or code that receives the words as arguments.
    Data,
}

/// The words of a command up to one of them. An interpreter may follow any word, so wrappers need not be known.
struct CommandLine<'w> {
    reader: Reader,
    /// The name of the program.
    program: &'w str,
    /// Whether the interpreter may be the value of an option instead: `--language python`.
    is_ambiguous: bool,
    operands: usize,
    /// Whether an option has code, or names the file to run.
    has_code: bool,
    /// What the next word is, after an option with code.
    pending: Option<Code<'w>>,
    /// The number of words to skip: the values of an option.
    skipped: usize,
    follows_option: bool,
}

impl<'w> CommandLine<'w> {
    fn new(program: &'w Template) -> Self {
        let mut line = Self {
            reader: Reader::UnknownProgram,
            program: "",
            is_ambiguous: false,
            operands: 0,
            has_code: false,
            pending: None,
            skipped: 0,
            follows_option: false,
        };
        match Interpreter::of(program) {
            Some(interpreter) => line.start(Reader::Interpreter(interpreter), program),
            None if is_data_program(program) => {
                line.start(Reader::Data, program);
                line.skipped = usize::MAX;
            }
            None => line.start(Reader::UnknownProgram, program),
        }
        line
    }

    fn start(&mut self, reader: Reader, program: &'w Template) {
        self.reader = reader;
        self.program = program_name(program).unwrap_or(self.program);
        self.is_ambiguous = false;
        self.operands = 0;
        self.has_code = false;
    }

    /// Reads the next word, and returns whether it is code.
    fn read(&mut self, word: &'w Template) -> Option<Code<'w>> {
        let is_option = word.start().starts_with('-') && !word.start().contains('=') && word.literal() != Some("--");
        let follows_option = std::mem::replace(&mut self.follows_option, is_option);
        if self.skipped > 0 {
            self.skipped -= 1;
            return None;
        }
        let pending = self.pending.take();
        if pending.is_none() && self.ends_options(word) {
            self.reader = Reader::Data;
            return None;
        }
        if let Some(interpreter) = Interpreter::of(word).filter(|found| !found.is_common_word() || self.runs_operand()) {
            let is_ambiguous = follows_option && matches!(self.reader, Reader::UnknownProgram);
            self.start(Reader::Interpreter(interpreter), word);
            self.is_ambiguous = is_ambiguous;
            return None;
        }
        match self.reader {
            Reader::Interpreter(interpreter) => self.read_for(interpreter, word, pending),
            Reader::UnknownProgram => self.read_unknown_option(word, 1).or(pending),
            Reader::Data => None,
        }
    }

    /// Whether `word` is the first argument of the code in an option.
    fn ends_options(&self, word: &Template) -> bool {
        let Reader::Interpreter(interpreter) = self.reader else { return false };
        interpreter.operands == Operands::Script
            && self.has_code
            && word.literal() != Some("-")
            && interpreter.meaning(word, true).is_none()
    }

    fn runs_operand(&self) -> bool {
        matches!(self.reader, Reader::Interpreter(interpreter) if interpreter.operands == Operands::Program)
    }

    /// `shortest`: the minimum length of the name of the option.
    fn read_unknown_option(&mut self, word: &'w Template, shortest: usize) -> Option<Code<'w>> {
        let option = unknown_option(word).filter(|option| option.letters.len() >= shortest)?;
        let code = Code::Possible { program: self.program, option: option.name };
        if option.is_next {
            self.pending = Some(code);
            return None;
        }
        Some(code)
    }

    fn read_for(
        &mut self,
        interpreter: &'static Interpreter,
        word: &'w Template,
        pending: Option<Code<'w>>,
    ) -> Option<Code<'w>> {
        let code = Code::Certain { program: self.program };
        match interpreter.meaning(word, self.operands == 0) {
            Some(Meaning::Plain) => {
                self.pending = pending;
                if pending.is_none() { self.read_unknown_option(word, 2) } else { None }
            }
            Some(Meaning::Value(words)) => {
                self.pending = pending;
                self.skipped = words;
                None
            }
            Some(Meaning::File { is_next }) => {
                self.has_code = true;
                self.skipped = usize::from(is_next);
                if interpreter.operands == Operands::Script {
                    self.reader = Reader::UnknownProgram;
                }
                None
            }
            Some(Meaning::Code) => {
                self.has_code = true;
                Some(code)
            }
            Some(Meaning::CodeFollows) => {
                self.has_code = true;
                self.pending = Some(code);
                None
            }
            None if pending.is_some() => {
                self.pending = pending.filter(|_| interpreter.operands == Operands::CodeAfterOption);
                pending
            }
            None => Some(code).filter(|_| self.is_code_operand(interpreter, word) && !self.is_ambiguous),
        }
    }

    fn is_code_operand(&mut self, interpreter: &Interpreter, word: &'w Template) -> bool {
        if matches!(word.literal(), Some("-" | "")) {
            return false;
        }
        if matches!(interpreter.operands, Operands::Data | Operands::Program) && is_data_program(word) {
            self.reader = Reader::Data;
            return false;
        }
        self.operands += 1;
        match interpreter.operands {
            Operands::Data | Operands::Input | Operands::Subcommand | Operands::CodeAfterOption => false,
            Operands::Script => {
                self.start(Reader::UnknownProgram, word);
                false
            }
            // A variable of `env`.
            Operands::Program if word.start().contains('=') => false,
            Operands::Program => {
                self.start(Reader::UnknownProgram, word);
                word.start().is_empty()
            }
            Operands::Code => self.operands == 1 && !self.has_code,
            Operands::CodeAfter(data) => self.operands > data,
        }
    }

    /// Returns the name of the interpreter that executes the standard input.
    fn reader_of_input(&self) -> Option<&'w str> {
        let Reader::Interpreter(interpreter) = self.reader else { return None };
        let is_in_words = match interpreter.operands {
            Operands::CodeAfter(data) => self.operands > data,
            _ => self.has_code,
        };
        Some(self.program).filter(|_| interpreter.reads_code && !is_in_words && !self.is_ambiguous)
    }
}

/// Stands for a placeholder in a text.
const PLACEHOLDER: char = '\u{FFFC}';

/// Returns what shows that a word is code, whatever the program: the characters around a placeholder.
fn mark_of_code(word: &Template) -> Option<&'static str> {
    let text = word.with_placeholders_as(PLACEHOLDER);
    if is_url(&text) {
        return None;
    }
    if ['"', '\'', '`'].into_iter().any(|quote| is_quoted(&text, quote)) {
        return Some("between quotes");
    }
    text.match_indices(PLACEHOLDER).find_map(|(at, placeholder)| {
        let (before, rest) = text.split_at(at);
        let after = rest.trim_start_matches(placeholder).trim_start();
        let before = before.trim_end();
        let is_beside = |mark: &&str| before.ends_with(*mark) || after.starts_with(*mark);
        if before.rfind("$(").is_some_and(|start| !before[start..].contains(')')) {
            return Some("inside of `$(`");
        }
        ["beside `;`", "beside `|`", "beside `&&`", "beside a backtick"]
            .into_iter()
            .zip([";", "|", "&&", "`"])
            .find_map(|(name, mark)| is_beside(&mark).then_some(name))
    })
}

/// Whether a word, or the value of an option, is a URL.
fn is_url(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once("://") else { return false };
    let scheme = scheme.rsplit('=').next().unwrap_or(scheme);
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    !scheme.is_empty() && scheme.chars().all(is_scheme) && !text.contains(char::is_whitespace)
}

/// Whether a placeholder is between a pair of `quote`. Apostrophes, as in `Don't` and `the users' names`, are not quotes.
fn is_quoted(text: &str, quote: char) -> bool {
    let is_word = |c: &char| c.is_alphanumeric() || *c == PLACEHOLDER;
    let (mut is_open, mut has_placeholder) = (false, false);
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let after = rest.peek();
        let follows_word = before.replace(character).is_some_and(|before| is_word(&before));
        has_placeholder |= character == PLACEHOLDER;
        if character != quote {
            continue;
        }
        let is_in_word = follows_word && after.is_some_and(|after| after.is_alphanumeric());
        let is_possessive = follows_word && !is_open && after != Some(&PLACEHOLDER);
        if quote == '\'' && (is_in_word || is_possessive) {
            continue;
        }
        if is_open && has_placeholder {
            return true;
        }
        let opens = quote == '\'' && !follows_word && after.is_some_and(is_word);
        is_open = !is_open || opens;
        has_placeholder = false;
    }
    false
}
