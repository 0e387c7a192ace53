//! Small projects on disk, and the real binary run in them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// A project in a folder of its own, with three tools: `count` says how long a text is, `broken` fails, `done` is an
/// exit tool.
pub(crate) struct Project {
    folder: tempfile::TempDir,
}

const SPECS: &str = r#"
(deftool :name "count" :description "Count the characters of a text."
 :args ((:name "text" :type string :description "The text.")
        (:name "times" :type integer :optional t :description "How often it is counted.")))
(deftool :name "broken" :description "Fails." :args ())
(defexit :name "done" :description "The task is done."
 :args ((:name "summary" :type string :description "What was done.")))
"#;

const COUNT: &str = "return function(text, times)\n  return { length = #text * (times or 1) }\nend\n";

const BROKEN: &str = "local function fail()\n  error('no luck')\nend\nreturn function()\n  fail()\nend\n";

impl Project {
    /// A folder with nothing in it yet.
    pub(crate) fn empty() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn new() -> Self {
        let project = Self::empty();
        project.write("specs/tools.eld", SPECS);
        project.write("scripts/count.lua", COUNT);
        project.write("scripts/broken.lua", BROKEN);
        project
    }

    /// A project with one worker form more.
    pub(crate) fn with_worker(form: &str) -> Self {
        let project = Self::new();
        project.write("specs/worker.eld", form);
        project
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Saves a file, all at once: who watches the project never finds it empty, however long this thread has to wait.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let beside = self.folder.path().with_extension("saved");
        fs::write(&beside, content).unwrap();
        fs::rename(beside, path).unwrap();
    }

    /// The binary in this folder, without anything of the environment that could lead it elsewhere.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        command_in(self.folder.path(), arguments)
    }

    /// Runs the binary to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        Ended::of(self.command(arguments).output().unwrap())
    }

    /// Runs the binary to its end with something on stdin.
    pub(crate) fn run_with_stdin(&self, arguments: &[&str], stdin: &[u8]) -> Ended {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin).unwrap();
        Ended::of(child.wait_with_output().unwrap())
    }

    /// Starts the binary.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }
}

/// What the tests remember is not the developer's.
pub(crate) const STATE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/state");

pub(crate) fn command_in(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deftool"));
    command.args(arguments).current_dir(folder);
    for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        command.env_remove(name);
    }
    command.env("XDG_STATE_HOME", STATE);
    command
}

/// How a run of the binary ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The lines of `--json`.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The last event.
    pub(crate) fn finished(&self) -> Value {
        let last = self.events().pop().unwrap_or_default();
        assert_eq!(last["type"], "finished", "{self:?}");
        last
    }
}
