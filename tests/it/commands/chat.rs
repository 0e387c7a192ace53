//! `deftool chat` with signals, crashes and terminals. The rest is in `tests/commands/chat.md`.

mod lines;
mod saves;
mod sessions;
#[cfg(target_os = "linux")]
mod terminal;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use deftool_test_support::server::{Act, Answer, Server, without_budget};
use deftool_test_support::validity::assert_valid;
use serde_json::Value;

use crate::support::project::{Ended, Project};

/// A project with its own state folder.
struct Home {
    project: Project,
    state: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { project: Project::new(), state: tempfile::tempdir().unwrap() }
    }

    fn command(&self, server: &Server, arguments: &[&str]) -> Command {
        let endpoint = server.endpoint();
        let mut command = self.project.command(&[&["chat", "--endpoint", &endpoint], arguments].concat());
        command.env("XDG_STATE_HOME", self.state.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a chat with these lines of stdin.
    fn chat(&self, server: &Server, arguments: &[&str], lines: &str) -> Ended {
        let mut child = self.command(server, arguments).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A chat that fails to start does not read stdin.
        let _ = stdin.write_all(lines.as_bytes());
        drop(stdin);
        let ended = Ended::of(child.wait_with_output().unwrap());
        server.posts().iter().for_each(|post| assert_valid(&post.body));
        ended
    }

    /// Returns the stored sessions, sorted by name.
    fn sessions(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for folder in fs::read_dir(self.state.path().join("deftool/sessions")).into_iter().flatten().flatten()
        {
            found.extend(fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path()));
        }
        found.sort();
        found
    }

    fn only_session(&self) -> PathBuf {
        let sessions = self.sessions();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        sessions[0].clone()
    }
}

/// Returns role and text of each message in the nth request, without system messages, time and budget.
fn sent(server: &Server, nth: usize) -> Vec<(String, String)> {
    let posts = server.posts();
    let messages = posts[nth].body["messages"].as_array().unwrap().clone();
    let text = |message: &Value, key: &str| message[key].as_str().unwrap_or_default().to_owned();
    let conversation = messages.iter().filter(|message| message["role"] != "system");
    let content = |message: &Value| without_budget(&text(message, "content")).to_owned();
    conversation.map(|message| (text(message, "role"), content(message))).collect()
}

fn message(role: &str, content: &str) -> (String, String) {
    (role.to_owned(), content.to_owned())
}

const INTERRUPTED: &str = "[this reply was interrupted]";

#[cfg(target_os = "linux")]
#[test]
fn the_model_of_a_managed_server_is_reported() {
    let project = crate::commands::managed::project("");
    let ended =
        project.run_with_stdin(&["chat", "--trust", "--no-save"], b"/model\n/model x\n/model -\n/model\n");
    assert!(ended.stderr.ends_with("\nfake\nfake\n"), "{ended:?}");
}
