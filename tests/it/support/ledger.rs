//! A project whose scripts write each run to a file, to count what a crash repeats.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use deftool_test_support::server::{Answer, call, delta, finish};

use super::project::Project;

/// Tools whose scripts write each run to a file, then wait for a file `go`.
const TOOLS: &str = r#"
(deftool :name "look" :description "Look." :effect pure :allow (:read ["log/"] :write ["log/"]))
(deftool :name "send" :description "Send." :effect keyed :allow (:read ["log/"] :write ["log/"]))
(deftool :name "pay" :description "Pay." :allow (:read ["log/"] :write ["log/"]))
"#;

const SCRIPT: &str = r#"
return function()
  fs.append("log/runs", tool.name .. " " .. tool.idempotency_key .. "\n")
  while not fs.exists("log/go") do
    task.wait(0.005)
  end
  return tool.name .. " is done"
end
"#;

/// Like [`SCRIPT`], and then waits for a while.
pub(crate) const SLOW_SCRIPT: &str = r#"
return function()
  fs.append("log/runs", tool.name .. " " .. tool.idempotency_key .. "\n")
  task.wait(0.02)
  return tool.name .. " is done"
end
"#;

pub(crate) fn project() -> Project {
    let project = Project::empty();
    project.write("specs/tools.eld", TOOLS);
    for tool in ["look", "send", "pay"] {
        project.write(&format!("scripts/{tool}.lua"), SCRIPT);
    }
    project.write("log/runs", "");
    project
}

pub(crate) fn spawn(mut command: Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

pub(crate) fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Waits until `is_true`. The limit is only for a test that fails.
pub(crate) fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_true() {
        assert!(started.elapsed() < deftool_test_support::HANG_LIMIT, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the runs so far: the tool and the key of each.
pub(crate) fn runs(project: &Project) -> Vec<(String, String)> {
    let runs = std::fs::read_to_string(project.path("log/runs")).unwrap();
    let runs = runs.lines().map(|line| line.split_once(' ').unwrap());
    runs.map(|(tool, key)| (tool.to_owned(), key.to_owned())).collect()
}

pub(crate) fn calling(tool: &str) -> Answer {
    Answer::chunks(&[delta("Let me see. "), call(0, tool, "{}"), finish("tool_calls")])
}
