//! Time and memory in `deftool call`, and `--watch`.

use std::sync::Arc;
use std::time::Duration;

use deftool_lang::schema::Arguments;
use deftool_lang::tool::{CallContext, Meter, ToolErrorKind};
use deftool_script::{LocalVm, Script, ScriptSink};
use serde_json::Value;

use crate::support::project::Project;
use crate::support::watching::WatchProcess;

#[test]
fn call_prints_time_and_memory() {
    let project = Project::new();
    let source = "return function(text)
      local kept = {}
      for i = 1, 20 do kept[i] = string.rep(text, 1e6 + i) end
      local sum = 0
      local start = time.monotonic()
      while time.monotonic() - start < 0.05 do sum += #kept end
      kept = nil
      return sum > 0
    end";
    project.write("scripts/count.lua", source.replace("(text)", "(text, times)"));
    let ended = project.run(&["call", "count", r#"{"text": "a"}"#, "--json"]);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let keys: Vec<&String> = report["timing"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["project_ms", "validation_ms", "load_ms", "run_ms"], "{report}");
    assert!(report["timing"]["run_ms"].as_f64().unwrap() >= 50.0, "{report}");
    let peak = report["memory"]["peak_bytes"].as_u64().unwrap();
    assert!((18_000_000..64 << 20).contains(&peak), "{report}");
    assert_eq!(report["memory"]["limit_bytes"], 64 << 20);
    let ended = project.run(&["call", "count", r#"{"text": "a"}"#, "--time"]);
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(ended.stdout, "true\n");
    assert!(lines[0].starts_with("time   ") && lines[0].contains(", function "), "{lines:?}");
    assert!(lines[1].starts_with("memory ") && lines[1].ends_with(" MiB peak, limit 64.0 MiB"), "{lines:?}");
    // Without a script run, there is no memory line.
    let ended = project.run(&["call", "count", "--time"]);
    assert_eq!((ended.code, ended.stderr.contains("memory")), (Some(1), false), "{ended:?}");
}

/// A stop between two memory samples is not lost.
#[test]
fn a_metered_call_is_stopped_at_its_limits() {
    let project = Project::empty();
    for (timeout, body) in [("37ms", "while true do end"), ("150ms", "while true do pcall(error) end")] {
        project.write(
            "specs/a.eld",
            format!("(deftool :name \"spin\" :description \"Spin until it is stopped.\" :timeout \"{timeout}\" :args ())"),
        );
        project.write("scripts/spin.lua", format!("return function() {body} end"));
        for _ in 0..3 {
            let ended = project.run(&["call", "spin", "--json"]);
            let report: Value = serde_json::from_str(&ended.stdout).unwrap();
            assert_eq!(report["error"]["kind"], "timeout", "{report}");
        }
    }
}

#[test]
fn the_call_is_repeated_after_each_change() {
    let project = Project::new();
    let watching =
        WatchProcess::start(&project.path("."), "call", &["count", r#"{"text": "abc"}"#, "--json"]);
    assert_eq!(watching.report()["result"]["length"], 3);
    project.write("scripts/count.lua", "return function(text, times) return { length = 7 } end");
    assert_eq!(watching.report()["result"]["length"], 7);
    project.write("scripts/count.lua", "return function(text, times) return nonsense( end");
    assert_eq!(watching.report()["error"]["kind"], "load");
    project.write("scripts/count.lua", "return function(text, times) return { length = 8 } end");
    assert_eq!(watching.report()["result"]["length"], 8);
}

/// Memory samples and stops come from other threads at any time.
#[test]
fn memory_samples_and_stops_do_not_interfere() {
    let source = "local n = 0 for i = 1, 1000 do n += i end
      return function() local t = {} while true do t = { t = #t } end end";
    let script = Arc::new(Script::new("spin", "scripts/spin.lua", source));
    let mut vm = LocalVm::new(script, ScriptSink::default()).unwrap();
    for round in 0..60_u64 {
        let meter = Arc::new(Meter::default());
        let timeout = Some(Duration::from_micros(800 + round * 97));
        let context = CallContext { timeout, meter: Some(Arc::clone(&meter)), ..CallContext::default() };
        let error = vm.call(&Arguments::default(), context).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Timeout, "{error}");
        assert!(meter.usage().is_some());
    }
    // A pending sample does not affect the next call.
    let script = Arc::new(Script::new(
        "sum",
        "scripts/sum.lua",
        "return function() local n = 0 for i = 1, 3e5 do n += i end return n end",
    ));
    let mut vm = LocalVm::new(script, ScriptSink::default()).unwrap();
    for round in 0..20 {
        let meter = (round % 2 == 0).then(|| Arc::new(Meter::default()));
        let context = CallContext { meter: meter.clone(), ..CallContext::default() };
        assert_eq!(vm.call(&Arguments::default(), context).unwrap().value, 45_000_150_000_i64);
        assert_eq!(meter.is_some_and(|meter| meter.usage().is_some()), round % 2 == 0);
    }
}
