//! Time and memory in `deftool call`, `--repeat` and `--watch`.

use std::sync::Arc;
use std::time::Duration;

use deftool_lang::schema::Arguments;
use deftool_lang::tool::{CallContext, Meter, ToolErrorKind};
use deftool_script::{LocalVm, Script, ScriptSink};
use serde_json::Value;

use crate::support::project::Project;
use crate::support::watching::WatchProcess;

#[test]
fn repeated_calls_are_measured() {
    let project = Project::new();
    let arguments = r#"{"text": "abc"}"#;
    let ended = project.run(&["call", "count", arguments, "--repeat", "40", "--json"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["tool", "thread", "json", "pool", "concurrency", "memory"]);
    for way in ["thread", "json", "pool"] {
        let figure = |name: &str| report[way][name].as_f64().unwrap();
        assert!(report[way]["calls"] == 40 && figure("min_us") > 0.0, "{report}");
        assert!(
            figure("min_us") <= figure("median_us") && figure("median_us") <= figure("p99_us"),
            "{report}"
        );
        assert!(figure("p99_us") <= figure("max_us"), "{report}");
    }
    assert_eq!(report["concurrency"], 40);
    let ended = project.run(&["call", "count", arguments, "--repeat", "300"]);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines[0].starts_with("count ") && lines[0].ends_with("calls/s"), "{lines:?}");
    assert!(lines[1].starts_with("script ") && lines[1].contains(" 300 "), "{lines:?}");
    assert!(lines[3].starts_with("pool, 64 concurrent "), "{lines:?}");
    assert!(lines[4].ends_with(" peak of one call, limit 64.0 MiB"), "{lines:?}");
}

/// An isolated script must not run in this process.
#[test]
fn isolated_scripts_are_measured_in_the_pool_only() {
    let project = Project::new();
    let arguments = ["call", "count", r#"{"text": "abc"}"#, "--isolate", "process", "--repeat", "20"];
    let ended = project.run(&[&arguments[..], &["--json"]].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["tool", "pool", "concurrency", "memory"]);
    let ended = project.run(&arguments);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines[1].starts_with("pool, 20 concurrent ") && lines[2].starts_with("memory: "), "{lines:?}");
}

#[test]
fn an_impossible_measurement_is_reported() {
    let project = Project::new();
    let case = |arguments: &[&str], code: i32, expected: &str| {
        let ended = project.run(&[&["call", "--repeat", "5"], arguments].concat());
        assert_eq!(ended.code, Some(code), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.starts_with(expected), "{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "");
    };
    case(&["broken"], 1, "error[script]: scripts/broken.lua:2: no luck");
    case(&["count"], 1, "error[invalid_arguments]: `count`: \"text\" is a required property");
    case(&["gone"], 1, "error[unknown_tool]: unknown tool `gone`");
    case(&["done", r#"{"summary": "x"}"#], 2, "error: `done` is an exit tool");
    case(&["count", "--time"], 2, "error: the argument '--repeat <N>' cannot be used with '--time'");
    let ended = project.run(&["call", "count", "--repeat", "0"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("0 is not in 1..=5000000"), "{ended:?}");
    let ended = project.run(&["call", "broken", "--repeat", "5", "--json"]);
    assert!(
        ended.code == Some(1) && ended.stdout.starts_with(r#"{"ok":false,"error":{"kind":"script""#),
        "{ended:?}"
    );
}

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
