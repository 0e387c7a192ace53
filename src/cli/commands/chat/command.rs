//! The input lines of a chat: messages and slash commands.

use std::path::PathBuf;

use deftool_lang::spec::nearest;

/// A slash command.
#[derive(Debug, PartialEq)]
pub(super) enum Command {
    Help,
    Tools,
    Reload,
    Save(Option<PathBuf>),
    Load(PathBuf),
    Clear,
    /// `None` prints the system message; an empty text removes it.
    System(Option<String>),
    Model(Option<String>),
    Retry,
    Undo,
    Quit,
}

/// A parsed input line.
#[derive(Debug, PartialEq)]
pub(super) enum InputLine {
    Empty,
    Message(String),
    Command(Command),
    /// An invalid command, with the error message.
    Invalid(String),
}

const NAMES: [&str; 12] = [
    "/help", "/tools", "/reload", "/save", "/load", "/clear", "/system", "/model", "/retry", "/undo",
    "/quit", "/exit",
];

pub(super) const HELP: &str = "\
/tools            List the tools that the model may call
/reload           Reload the project and print the changes
/save [FILE]      Print the path of the session, or save a copy to FILE (as Markdown if it ends in .md)
/load FILE        Resume another session by its file or name; `last` is the newest other session of this project
/clear            Clear the conversation
/system [TEXT]    Print or set the system message in addition to the worker's; `-` removes it
/model [NAME]     Print or set the model; `-` resets it
/retry            Send the last message again
/undo             Remove the last message and its reply
/quit             Quit, like Ctrl-D
A backslash at the end of a line, or an open ``` block, continues the message on the next line.
Start a message with // to send a leading slash. Ctrl-C during a reply cancels it and keeps the text so far.";

/// Parses an input line.
pub(super) fn parse(text: &str) -> InputLine {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return InputLine::Empty;
    }
    if let Some(message) = trimmed.strip_prefix("//") {
        return InputLine::Message(format!("/{message}"));
    }
    if !trimmed.starts_with('/') {
        return InputLine::Message(trimmed.to_owned());
    }
    let (name, rest) = trimmed.split_once(char::is_whitespace).unwrap_or((trimmed, ""));
    let rest = rest.trim();
    let command = match name {
        "/help" => Command::Help,
        "/tools" => Command::Tools,
        "/reload" => Command::Reload,
        "/save" => Command::Save((!rest.is_empty()).then(|| PathBuf::from(rest))),
        "/load" if rest.is_empty() => {
            return InputLine::Invalid(String::from(
                "missing argument: /load requires the file or the name of a session, or `last`",
            ));
        }
        "/load" => Command::Load(PathBuf::from(rest)),
        "/clear" => Command::Clear,
        "/system" => Command::System(setting(rest)),
        "/model" => Command::Model(setting(rest)),
        "/retry" => Command::Retry,
        "/undo" => Command::Undo,
        "/quit" | "/exit" => Command::Quit,
        _ => {
            let advice = match nearest(name, NAMES) {
                Some(near) => format!("did you mean {near}?"),
                None => {
                    String::from("/help lists the commands; start a message with // to send a leading slash")
                }
            };
            return InputLine::Invalid(format!("unknown command {name}; {advice}"));
        }
    };
    let takes_no_argument = matches!(
        command,
        Command::Help
            | Command::Tools
            | Command::Reload
            | Command::Clear
            | Command::Retry
            | Command::Undo
            | Command::Quit
    );
    if takes_no_argument && !rest.is_empty() {
        return InputLine::Invalid(format!("unexpected argument: {name} takes none"));
    }
    InputLine::Command(command)
}

/// Parses the argument of a setting; `-` is an empty text.
fn setting(rest: &str) -> Option<String> {
    match rest {
        "" => None,
        "-" => Some(String::new()),
        text => Some(text.to_owned()),
    }
}

/// Returns whether a text continues on the next line: it ends with a backslash, or a code block is open.
pub(super) fn is_incomplete(text: &str) -> bool {
    let mut joiner = LineJoiner::default();
    text.lines().fold(false, |_, line| joiner.continues_after(line))
}

/// Detects continued lines, one line at a time.
#[derive(Default)]
pub(super) struct LineJoiner {
    /// The number of backticks that opened the current block.
    block: Option<usize>,
}

impl LineJoiner {
    /// Returns whether the text continues after `line`, which has no line end.
    pub(super) fn continues_after(&mut self, line: &str) -> bool {
        let is_code = self.is_code(line);
        self.block.is_some() || (!is_code && ends_with_backslash(line))
    }

    /// Returns whether the line belongs to a code block, which includes its fences. As in Markdown, a fence line
    /// contains no further backticks, so a line that starts with a code span does not open a block.
    fn is_code(&mut self, line: &str) -> bool {
        let line = line.trim_start();
        let rest = line.trim_start_matches('`');
        let ticks = line.len() - rest.len();
        let is_fence = ticks >= 3 && !rest.contains('`');
        match self.block {
            Some(opening) if is_fence && ticks >= opening => self.block = None,
            None if is_fence => self.block = Some(ticks),
            None => return false,
            Some(_) => {}
        }
        true
    }
}

/// Returns whether a line ends with a single backslash.
fn ends_with_backslash(line: &str) -> bool {
    line.ends_with('\\') && !line.ends_with("\\\\")
}

/// Removes the backslashes that continue lines.
pub(super) fn join_lines(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut joiner = LineJoiner::default();
    for line in text.split_inclusive('\n') {
        let is_code = joiner.is_code(line);
        match line.strip_suffix('\n') {
            Some(start) if !is_code && ends_with_backslash(start) => {
                joined.extend(start.strip_suffix('\\'));
                joined.push('\n');
            }
            _ => joined.push_str(line),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_lines_are_parsed() {
        let message = |text: &str| InputLine::Message(text.to_owned());
        for (text, expected) in [
            ("", InputLine::Empty),
            (" \n", InputLine::Empty),
            ("hello", message("hello")),
            ("//etc is a folder", message("/etc is a folder")),
            ("/help", InputLine::Command(Command::Help)),
            ("/exit ", InputLine::Command(Command::Quit)),
            ("/save", InputLine::Command(Command::Save(None))),
            ("/save a b.md", InputLine::Command(Command::Save(Some(PathBuf::from("a b.md"))))),
            ("/system", InputLine::Command(Command::System(None))),
            ("/system -", InputLine::Command(Command::System(Some(String::new())))),
            ("/system Be\nbrief.", InputLine::Command(Command::System(Some(String::from("Be\nbrief."))))),
            ("/toools", InputLine::Invalid(String::from("unknown command /toools; did you mean /tools?"))),
            ("/undo twice", InputLine::Invalid(String::from("unexpected argument: /undo takes none"))),
        ] {
            assert_eq!(parse(text), expected, "{text:?}");
        }
        assert!(matches!(parse("/xyzzy"), InputLine::Invalid(why) if why.contains("/help lists")));
    }

    #[test]
    fn continued_lines_are_detected() {
        for (text, expected) in [
            ("one", false),
            ("one\\", true),
            ("one\\\\", false),
            ("```", true),
            ("```sh\nls", true),
            ("```sh\nls\n```", false),
            ("see ``` inside", false),
            ("```ls -la``` what does it do?", false),
            ("```\n```ls``` lists\n", true),
            ("````\n```\nls\n```", true),
            ("````\n```\nls\n```\n````", false),
            ("a\\\nb", false),
        ] {
            assert_eq!(is_incomplete(text), expected, "{text:?}");
        }
        assert_eq!(join_lines("a\\\nb\\\nc"), "a\nb\nc");
        assert_eq!(join_lines("```\na\\\nb\n```"), "```\na\\\nb\n```");
        assert_eq!(join_lines("```a``` b\\\nc"), "```a``` b\nc");
    }
}
