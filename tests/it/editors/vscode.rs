//! VS Code in Chromium with the extension. `tests/editors/vscode/install` installs them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use deftool_stub::{Act, Answer, delta};
use deftool_test_support::can_use;
use deftool_test_support::server::Server;
use serde_json::json;

use crate::support::project::Project;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/editors/vscode")
}

pub(super) fn is_installed() -> bool {
    let is_there = folder().join("node_modules/installed").exists();
    can_use("VS Code", is_there, "DEFTOOL_VSCODE", "tests/editors/vscode/install")
}

/// Returns the folder for the pictures of the documentation, if they are to be taken.
pub(super) fn pictures() -> Option<PathBuf> {
    std::env::var("UPDATE_EXPECT").is_ok().then(|| folder().join("../../../docs/images"))
}

/// Returns the command that runs a driver of `tests/editors/vscode`. The TypeScript compiler checks the drivers first.
pub(super) fn driver(name: &str) -> Command {
    static COMPILED: Once = Once::new();
    COMPILED.call_once(|| {
        let compiler = folder().join("../../../editors/vscode/node_modules/.bin/tsc");
        run(Command::new(compiler).args(["-p", "."]).current_dir(folder()));
    });
    let mut command = Command::new("node");
    command.arg(folder().join("built").join(name));
    command
}

/// Runs a command and returns its output.
pub(super) fn run(command: &mut Command) -> String {
    let ended = command.output().unwrap();
    let output = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(ended.status.success(), "{command:?}: {output}\n{}", String::from_utf8_lossy(&ended.stderr));
    output
}

/// Returns the package of the extension, which is built once.
fn extension() -> PathBuf {
    static PACKAGED: Once = Once::new();
    let extension = folder().join("../../../editors/vscode");
    PACKAGED.call_once(|| drop(run(Command::new("npm").args(["run", "package"]).current_dir(&extension))));
    extension.join("deftool.vsix")
}

/// Installs an extension in the folder `extensions` of a home folder, whose folder `data` has the data of the user.
fn install(home: &Project, package: &Path) {
    let mut command = Command::new("node");
    command.arg(folder().join("node_modules/code-server/out/node/entry.js"));
    command.arg("--install-extension").arg(package);
    command.arg("--extensions-dir").arg(home.path("extensions"));
    command.arg("--user-data-dir").arg(home.path("data"));
    run(command.env("HOME", home.path("")));
}

/// Returns the command that runs the rows of `features.rs` in VS Code. `home`: the folder with the project `tools`.
pub(super) fn features(home: &Project) -> Command {
    let mut driver = driver("features.js");
    // The compiled extension is beside the drivers.
    let rows = folder().join("built/features");
    fs::copy(folder().join("features/package.json"), rows.join("package.json")).unwrap();
    let vsce = folder().join("../../../editors/vscode/node_modules/.bin/vsce");
    let package = ["package", "--no-dependencies", "--allow-missing-repository", "--skip-license", "--out"];
    run(Command::new(vsce).args(package).arg("features.vsix").current_dir(&rows));
    for package in [extension(), rows.join("features.vsix")] {
        install(home, &package);
    }
    home.write(
        "data/Machine/settings.json",
        json!({ "deftool.path": env!("CARGO_BIN_EXE_deftool") }).to_string(),
    );
    let settings = json!({
        "workbench.startupEditor": "none",
        "editor.wordBasedSuggestions": "off",
        "files.autoSave": "off",
    });
    home.write("data/User/settings.json", settings.to_string());
    driver.args(["tools", "extensions", "data", "result"].map(|name| home.path(name)));
    driver
}

const SPEC: &str = r#"(deftool :name "weather" :description "Get the weather."
 :args ((:name "city" :type strng :description "The city to look at."))
 :confirm t :allow (:env ["WEATHER_KEY"])
 :accepts [(:city "Paris")])
"#;

const SCRIPT: &str = r#"return function(city)
  return (env.get("WEATHER_KEY") or "sunny") .. " in " .. city
end
"#;

const TESTS: &str = r#"local weather = tool.load("weather")

test("knows Paris", function()
  expect(weather({ city = "Paris" })).equals("sunny in Paris")
end)

test("knows Rome", function()
  expect(weather({ city = "Rome" })).equals("rainy in Rome")
end)
"#;

const SEEN: &str = r#"diagnostics: DT204
fix: write `string`
fixed: :args ((:name "city" :type string :description "The city to look at."))
lenses: call test compile
completion: :timeout
completed: :accepts [(:city "Paris")] :timeout "2s")
renamed: :args ((:name "town" :type string :description "The city to look at."))|:accepts [(:town "Paris")] :timeout "2s") return function(town)|return (env.get("WEATHER_KEY") or "sunny") .. " in " .. town
offered: shout, yours, Shout.
asked: weather town: "Paris"
not trusted: `weather` was not run: it requires :env ["WEATHER_KEY"], which is not trusted; review the spec, then run `deftool trust grant`
asked: weather requires :env ["WEATHER_KEY"] (specs/a.eld:1:16)
tests: scripts/weather_test.lua (Failed), knows Paris (Passed), knows Rome (Failed), specs/a.eld (Passed), weather accepts 1 (Passed)
compiled: true
asked: weather town: "Paris"
called: sunny in Paris
asked: weather town: "Paris"
call: weather {"town":"Paris"} done
reply: It is sunny in Paris.
result: sunny in Paris
canceled: canceled
"#;

/// With `UPDATE_EXPECT=1`, also takes the pictures of the documentation.
#[test]
fn vscode_shows_findings_renames_tests_and_runs_a_worker() {
    if !is_installed() {
        return;
    }
    let server = Server::script([
        Answer::calls(&[("weather", "{\"town\": \"Paris\"}")]),
        Answer::text("It is sunny in Paris."),
        Answer::stream().chunk(&delta("I wait")).then(Act::Silence),
    ]);
    let home = Project::empty();
    install(&home, &extension());
    let settings = json!({
        "deftool.path": env!("CARGO_BIN_EXE_deftool"),
        "deftool.rpcArguments": ["--endpoint", server.endpoint()],
    });
    home.write("data/Machine/settings.json", settings.to_string());
    home.write("data/User/settings.json", r#"{"workbench.startupEditor": "none"}"#);

    home.write("weather/specs/a.eld", SPEC);
    home.write("weather/scripts/weather.lua", SCRIPT);
    home.write("weather/scripts/weather_test.lua", TESTS);
    home.write("user/specs/a.eld", "(deftool :name \"shout\" :description \"Shout.\" :args ())");
    home.write("user/scripts/shout.lua", "return function() return \"HI!\" end\n");
    let (extensions, data) = (home.path("extensions"), home.path("data"));
    let mut driver = driver("drive.js");
    driver.env("DEFTOOL_CONFIG_DIR", home.path("user"));
    driver.args([&home.path("weather"), &extensions, &data]).args(pictures());
    driver.env("HOME", home.path("")).env("XDG_STATE_HOME", home.path("state"));
    assert_eq!(run(&mut driver), SEEN);
}
