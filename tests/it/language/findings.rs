//! `check` on projects of unusual size. The other findings are in `tests/commands/findings.md` and `tests/lang`.

use deftool_lang::schema::Target;
use deftool_test_support::step;
use serde_json::Value;

use crate::support::project::Project;

const NOW: &str = "(deftool :name \"now\" :description \"Tell the time.\")\n";
const SCRIPT: &str = "return function() return 1 end\n";

/// Twelve definitions that each refer to the next one ten times have a million million paths. No command follows them.
#[test]
fn a_costly_schema_is_an_error() {
    let schema = |at: &str| {
        let level = |level: usize| {
            format!(":d{level} (:anyOf [{}])", format!("(:$ref \"#{at}/$defs/d{}\") ", level + 1).repeat(10))
        };
        let levels: String = (0..12).map(level).collect();
        format!(":$ref \"#{at}/$defs/d0\" :$defs ({levels} :d12 (:type string))")
    };
    let (argument, result) = (schema("/properties/x"), schema(""));
    let specs = format!(
        "(deftool :name \"costly\" :description \"Do it.\" :accepts [(:x 5)]
 :args ((:name \"x\" :description \"An x.\" {argument})))
(deftool :name \"results\" :description \"Do it.\" :args () :returns ({result}))\n{NOW}"
    );
    let script = "return function(x) return x end\n";
    let project = Project::empty();
    project.write("specs/a.eld", specs);
    for (name, script) in [("now", SCRIPT), ("costly", script), ("results", SCRIPT)] {
        project.write(&format!("scripts/{name}.lua"), script);
    }
    let error = "error[DT260]: the schema is too costly to validate: its references expand to more than 100000 subschemas for one value";
    for target in Target::ALL {
        let check = ["check", "--format", "concise", "--target", target.as_str()];
        let out = project.run(&check).stdout;
        let found: Vec<&str> = out.lines().filter(|line| line.contains("DT260")).collect();
        assert_eq!(found, [format!("specs/a.eld:1:16: {error}"), format!("specs/a.eld:3:66: {error}")]);
        project.run(&["compile", "--target", target.as_str()]);
    }
    for (arguments, code) in
        [(&["call", "costly", "{\"x\": 5}"][..], 1), (&["call", "results"], 1), (&["call", "now"], 0)]
    {
        let ended = project.run(arguments);
        assert_eq!(ended.code, Some(code), "{arguments:?}: {ended:?}");
    }
}

#[test]
fn many_allows_are_applied() {
    let many = 10_000 / step(4);
    let text = "(progn\n;; deftool: allow(missing-description)\n".repeat(many)
        + &"(gptel-make-tool :name \"a\")\n".repeat(many)
        + &")".repeat(many);
    let project = Project::empty();
    project.write("nested.el", text);
    let ended = project.run(&["check", "--format", "concise", "nested.el"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // One allow applies to the first tool, the enclosing one to the others.
    assert_eq!(ended.stdout.matches("DT126").count(), many - 2);
    let beside = "(gptel-make-tool :name \"a\") ; deftool: allow(DT112, DT129, no-such)\n".repeat(2_000);
    project.write("beside.el", beside);
    let ended = project.run(&["check", "--format", "concise", "beside.el"]);
    assert_eq!(ended.stdout.matches("unknown rule `no-such`").count(), 2_000, "{}", ended.stderr);
}

#[test]
fn all_rules_are_listed() {
    let project = Project::empty();
    let rules = deftool_project::rules::all().len();
    assert_eq!(project.run(&["rule"]).stdout.lines().count(), rules);
    let json: Value = serde_json::from_str(&project.run(&["rule", "--json"]).stdout).unwrap();
    assert_eq!(json.as_array().unwrap().len(), rules);
}
