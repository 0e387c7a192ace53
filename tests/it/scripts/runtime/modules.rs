//! `require`: modules in `scripts/lib`, which run once per call.

use super::*;

fn with_modules(source: &str, modules: &[(&str, &str)]) -> Result<Value, ToolError> {
    let mut script = script(source);
    let module =
        |(name, source): &(&str, &str)| Arc::new(Module::new(format!("scripts/lib/{name}.lua"), source));
    script.modules = modules.iter().map(module).collect();
    run(script, json!({}))
}

#[test]
fn a_module_runs_once_per_call_and_may_require_others() {
    let source = "
        return function()
          local count = require('./lib/count')
          count.n = count.n + 1
          return { require('./lib/count').n, require('./lib/deep/twice')(21), math.abs(-1) }
        end";
    let modules = [
        ("count", "return { n = 0 }"),
        ("deep/twice", "local times = require('../times') return function(n) return times(n, 2) end"),
        ("times", "return function(a, b) return a * b end"),
    ];
    let script = Arc::new({
        let mut script = script(source);
        script.modules = modules
            .iter()
            .map(|(name, source)| Arc::new(Module::new(format!("scripts/lib/{name}.lua"), source)))
            .collect();
        script
    });
    let runner = ScriptRunner::new(RunnerOptions { threads: 1, ..RunnerOptions::default() });
    for _ in 0..3 {
        let ended = block_on(runner.value_of(Arc::clone(&script), call(json!({})), CallContext::default()));
        assert_eq!(ended, Ok(json!([1, 42, 1])));
    }
}

#[test]
fn a_module_may_wait_and_its_errors_have_its_location() {
    let waits = [("slow", "task.wait(0.001) return 1")];
    assert_eq!(with_modules("return function() return require('./lib/slow') end", &waits), Ok(json!(1)));
    let fails = [("bad", "return {\n  go = function() error('no luck') end,\n}")];
    let error =
        with_modules("return function()\n  return require('./lib/bad').go()\nend", &fails).unwrap_err();
    assert_eq!(error.message, "scripts/lib/bad.lua:2: no luck");
    let details = error.details.unwrap();
    assert!(details.starts_with("scripts/lib/bad.lua:2 in go\nscripts/probe.lua:2"), "{details}");
}

#[test]
fn errors_of_require_describe_the_cause() {
    let modules = [
        ("a", "return require('./b')"),
        ("b", "return require('./a')"),
        ("nothing", "local x = 1"),
        ("raises", "error('at once')"),
        ("broken", "return ("),
    ];
    for (path, fragment) in [
        ("./lib/a", "circular dependency"),
        ("./lib/nothing", "must return a value"),
        ("./lib/raises", "scripts/lib/raises.lua:1: at once"),
        ("./lib/broken", "scripts/lib/broken.lua:1:"),
        ("./lib/other", "only files in scripts/lib"),
        ("a", "require(\"./lib/a\")"),
        ("./lib/a.lua", "without an extension"),
        ("/etc/passwd", "starts with `./`"),
        ("../../../etc/passwd", "only files in scripts/lib"),
    ] {
        let error = with_modules(&format!("return function() return require('{path}') end"), &modules);
        let error = error.unwrap_err();
        assert!(error.message.contains(fragment), "{path}: {}", error.message);
    }
    let again = "return function() pcall(require, './lib/raises') return require('./lib/raises') end";
    assert!(with_modules(again, &modules).unwrap_err().message.contains("failed to load"));
}

#[test]
fn a_module_cannot_set_globals_or_do_io_while_the_script_loads() {
    let modules = [("io", "return fs.read('x')"), ("leaves", "leaked = 1 return true")];
    let error = with_modules("require('./lib/io') return function() end", &modules).unwrap_err();
    assert!(error.message.contains("not available while the script loads"), "{}", error.message);
    let leaked = with_modules("require('./lib/leaves') return function() return leaked == nil end", &modules);
    assert_eq!(leaked, Ok(json!(true)));
}
