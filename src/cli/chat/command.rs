//! What begins with a slash.

use std::path::PathBuf;

use crate::spec::nearest;

/// A command of a chat.
#[derive(Debug, PartialEq)]
pub(super) enum Command {
    Help,
    Tools,
    Reload,
    Save(Option<PathBuf>),
    Load(PathBuf),
    Clear,
    /// `None`: it is asked what it is; empty: there is to be none.
    System(Option<String>),
    Model(Option<String>),
    Retry,
    Undo,
    Quit,
}

/// What a line is.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    Nothing,
    Message(String),
    Command(Command),
    /// Why it is no command.
    Unclear(String),
}

const NAMES: [&str; 12] = [
    "/help", "/tools", "/reload", "/save", "/load", "/clear", "/system", "/model", "/retry", "/undo",
    "/quit", "/exit",
];

pub(super) const HELP: &str = "\
/tools            the tools that the model may call
/reload           look for changes of the project now, and say what changed
/save [FILE]      where the session is kept; with a name a copy of it, Markdown if it ends in .md
/load FILE        go on with another session; `last`: the newest other one of this project
/clear            forget the conversation
/system [TEXT]    the system message beside the worker's; `-`: none
/model [NAME]     the model
/retry            send the last message again
/undo             take the last message and its reply back
/quit             leave; so does Ctrl-D
A line that ends in a backslash goes on in the next, and so does one with an open ``` block.
A message that begins with a slash is written with two. Ctrl-C during a reply ends it and keeps what came.";

/// What was typed, or came on a line.
pub(super) fn parse(text: &str) -> Said {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Said::Nothing;
    }
    if let Some(message) = trimmed.strip_prefix("//") {
        return Said::Message(format!("/{message}"));
    }
    if !trimmed.starts_with('/') {
        return Said::Message(trimmed.to_owned());
    }
    let (name, rest) = trimmed.split_once(char::is_whitespace).unwrap_or((trimmed, ""));
    let rest = rest.trim();
    let command = match name {
        "/help" => Command::Help,
        "/tools" => Command::Tools,
        "/reload" => Command::Reload,
        "/save" => Command::Save((!rest.is_empty()).then(|| PathBuf::from(rest))),
        "/load" if rest.is_empty() => {
            return Said::Unclear(String::from("/load takes the file of a session, or `last`"));
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
                None => String::from(
                    "/help lists the commands; a message that begins with a slash is written with two",
                ),
            };
            return Said::Unclear(format!("no command {name}; {advice}"));
        }
    };
    let takes_nothing = matches!(
        command,
        Command::Help
            | Command::Tools
            | Command::Reload
            | Command::Clear
            | Command::Retry
            | Command::Undo
            | Command::Quit
    );
    if takes_nothing && !rest.is_empty() {
        return Said::Unclear(format!("{name} takes nothing after it"));
    }
    Said::Command(command)
}

fn setting(rest: &str) -> Option<String> {
    match rest {
        "" => None,
        "-" => Some(String::new()),
        text => Some(text.to_owned()),
    }
}

/// Whether a text goes on in the next line: it ends in a backslash, or a block is open.
pub(super) fn goes_on(text: &str) -> bool {
    let mut opening = Opening::default();
    text.lines().fold(false, |_, line| opening.goes_on_after(line))
}

/// The same, line by line.
#[derive(Default)]
pub(super) struct Opening {
    /// How many backticks the open block began with.
    block: Option<usize>,
}

impl Opening {
    /// `line`: the next, without its end.
    pub(super) fn goes_on_after(&mut self, line: &str) -> bool {
        let is_code = self.is_code(line);
        self.block.is_some() || (!is_code && ends_open(line))
    }

    /// Whether the line is one of a block, of which the fences are. As Markdown has it, no backtick follows those of a fence:
    /// a line that begins with a span of code opens nothing.
    fn is_code(&mut self, line: &str) -> bool {
        let line = line.trim_start();
        let rest = line.trim_start_matches('`');
        let ticks = line.len() - rest.len();
        let is_fence = ticks >= 3 && !rest.contains('`');
        match self.block {
            Some(begun) if is_fence && ticks >= begun => self.block = None,
            None if is_fence => self.block = Some(ticks),
            None => return false,
            Some(_) => {}
        }
        true
    }
}

/// Two backslashes are a backslash.
fn ends_open(line: &str) -> bool {
    line.ends_with('\\') && !line.ends_with("\\\\")
}

/// A text of several lines without the backslashes that joined them.
pub(super) fn joined(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut opening = Opening::default();
    for line in text.split_inclusive('\n') {
        let is_code = opening.is_code(line);
        match line.strip_suffix('\n') {
            Some(begun) if !is_code && ends_open(begun) => {
                joined.extend(begun.strip_suffix('\\'));
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
    fn lines_are_told_apart() {
        let message = |text: &str| Said::Message(text.to_owned());
        for (text, expected) in [
            ("", Said::Nothing),
            (" \n", Said::Nothing),
            ("hello", message("hello")),
            ("//etc is a folder", message("/etc is a folder")),
            ("/help", Said::Command(Command::Help)),
            ("/exit ", Said::Command(Command::Quit)),
            ("/save", Said::Command(Command::Save(None))),
            ("/save a b.md", Said::Command(Command::Save(Some(PathBuf::from("a b.md"))))),
            ("/system", Said::Command(Command::System(None))),
            ("/system -", Said::Command(Command::System(Some(String::new())))),
            ("/system Be\nbrief.", Said::Command(Command::System(Some(String::from("Be\nbrief."))))),
            ("/toools", Said::Unclear(String::from("no command /toools; did you mean /tools?"))),
            ("/undo twice", Said::Unclear(String::from("/undo takes nothing after it"))),
        ] {
            assert_eq!(parse(text), expected, "{text:?}");
        }
        assert!(matches!(parse("/xyzzy"), Said::Unclear(why) if why.contains("/help lists")));
    }

    #[test]
    fn lines_that_go_on() {
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
            assert_eq!(goes_on(text), expected, "{text:?}");
        }
        assert_eq!(joined("a\\\nb\\\nc"), "a\nb\nc");
        assert_eq!(joined("```\na\\\nb\n```"), "```\na\\\nb\n```");
        assert_eq!(joined("```a``` b\\\nc"), "```a``` b\nc");
    }
}
