use deftool_lang::diagnostic::{Diagnostic, rule};
use deftool_lang::spec::nearest;
use deftool_lang::text::Location;
use deftool_script::{ArgumentKey, is_variable_name};

rule! {
    /// an unknown argument of a tool in a test script
    ///
    /// A test passes the arguments by name, and the call is validated against the spec. An unknown name fails the test.
    /// Tables that certainly reach the tool are checked: in a call of the tool, and of a local function that passes a
    /// parameter to it. Calls inside of `expect(…).fails` or `pcall` are not checked.
    ///
    /// ```eld fails
    /// (deftool :name "weather" :description "Tell the weather."
    ///  :args ((:name "location" :type string :description "Where.")))
    /// ```
    ///
    /// ```lua scripts/weather.lua fails
    /// return function(location) return "fine in " .. location end
    /// ```
    ///
    /// ```lua scripts/weather_test.lua fails
    /// local weather = tool.load("weather")
    /// test("it is fine", function() expect(weather({ city = "Rome" })).is("fine in Rome") end)
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "weather" :description "Tell the weather."
    ///  :args ((:name "location" :type string :description "Where.")))
    /// ```
    ///
    /// ```lua scripts/weather.lua repaired
    /// return function(location) return "fine in " .. location end
    /// ```
    ///
    /// ```lua scripts/weather_test.lua repaired
    /// local weather = tool.load("weather")
    /// test("it is fine", function() expect(weather({ location = "Rome" })).is("fine in Rome") end)
    /// ```
    pub(crate) UNKNOWN_TEST_ARGUMENT, "DT431", "unknown-test-argument", Warning
}

/// `known`: the arguments of the tool.
pub(crate) fn finding(at: Location, key: &ArgumentKey, known: &[&str]) -> Diagnostic {
    let ArgumentKey { tool, name, is_name, .. } = key;
    let message = format!("unknown argument `{name}` of `{tool}`");
    let finding = Diagnostic::new(&UNKNOWN_TEST_ARGUMENT, at, message);
    let listed = || known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match nearest(name, known.iter().copied()) {
        Some(near) if *is_name && !is_variable_name(near) => {
            finding.did_you_mean(at.span, format!("[\"{near}\"]"))
        }
        Some(near) => finding.did_you_mean(at.span, near),
        None if known.is_empty() => finding.note(format!("`{tool}` has no arguments")),
        None => finding.note(format!("the arguments of `{tool}` are {}", listed())),
    }
}
