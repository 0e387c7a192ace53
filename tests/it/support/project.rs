//! Small projects on disk, and runs of the real binary in them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// A project in a temporary folder with three tools: `count` returns the length of a text, `broken` fails, and `done`
/// is an exit tool.
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
    /// Creates an empty folder.
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

    /// Creates a project with an additional worker form.
    pub(crate) fn with_worker(form: &str) -> Self {
        let project = Self::new();
        project.write("specs/worker.eld", form);
        project
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file atomically, so that a watcher never sees it empty.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let beside = self.folder.path().with_extension("saved");
        fs::write(&beside, content).unwrap();
        fs::rename(beside, path).unwrap();
    }

    /// Returns a command that runs the binary in this folder, without inherited server settings and keys.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        command_in(self.folder.path(), arguments)
    }

    /// Runs the binary and waits for its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        Ended::of(self.command(arguments).output().unwrap())
    }

    /// Runs the binary with input on stdin and waits for its end.
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

/// A folder that is not the user's own project. `.cargo/config.toml` sets it for binaries that are started in other ways.
const NO_USER_TOOLS: &str = "/dev/null";

/// The state folder of the tests.
pub(crate) const STATE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/state");

/// Variables that a test does not inherit.
pub(crate) const INHERITED: [&str; 18] = [
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
    "TRACEPARENT",
    "TRACESTATE",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
    "OTEL_METRICS_EXPORTER",
    "OTEL_RESOURCE_ATTRIBUTES",
    "OTEL_SDK_DISABLED",
    "OTEL_SERVICE_NAME",
];

pub(crate) fn command_in(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deftool"));
    command.args(arguments).current_dir(folder);
    for name in INHERITED {
        command.env_remove(name);
    }
    command.env("XDG_STATE_HOME", STATE).env("DEFTOOL_CONFIG_DIR", NO_USER_TOOLS);
    command
}

/// The exit code and output of the binary.
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

    /// Returns the events of `--json`.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the last event, which must be `finished`.
    pub(crate) fn finished(&self) -> Value {
        let last = self.events().pop().unwrap_or_default();
        assert_eq!(last["type"], "finished", "{self:?}");
        last
    }
}
