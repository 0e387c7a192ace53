use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::spec::nearest;
use deftool_lang::text::Location;

rule! {
    /// an unknown tool in a test script
    ///
    /// `tool.load` takes the name of a tool of the project. With another name, the test fails. A name inside of
    /// `expect(…).fails` or `pcall` is not checked, and neither is one that is computed.
    ///
    /// ```eld fails
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    ///
    /// ```lua scripts/now.lua fails
    /// return function() return "noon" end
    /// ```
    ///
    /// ```lua scripts/now_test.lua fails
    /// local now = tool.load("time_now")
    /// test("it is noon", function() expect(now({})).is("noon") end)
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "now" :description "Tell the time.")
    /// ```
    ///
    /// ```lua scripts/now.lua repaired
    /// return function() return "noon" end
    /// ```
    ///
    /// ```lua scripts/now_test.lua repaired
    /// local now = tool.load("now")
    /// test("it is noon", function() expect(now({})).is("noon") end)
    /// ```
    pub(crate) UNKNOWN_TEST_TOOL, "DT430", "unknown-test-tool", Error
}

/// `known`: the tools that tests can load.
pub(crate) fn finding(at: Location, name: &str, known: &[&str]) -> Diagnostic {
    let finding = Diagnostic::new(&UNKNOWN_TEST_TOOL, at, format!("unknown tool `{name}`"));
    match nearest(name, known.iter().copied()) {
        Some(near) => finding.did_you_mean(at.span, near),
        None => finding,
    }
}

/// The finding for an exit tool.
pub(crate) fn exit_tool(at: Location, name: &str) -> Diagnostic {
    Diagnostic::new(&UNKNOWN_TEST_TOOL, at, format!("`{name}` is an exit tool and cannot be called"))
        .note("exit tools have no script to test")
}
