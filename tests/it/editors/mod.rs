//! Real editors with the real binary. `tests/editors/install` installs them.

#![cfg(target_os = "linux")]

mod emacs;
mod features;
mod terminal;
mod vscode;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Once;

use deftool_lang::spec::reference::FORMS;
use deftool_test_support::can_use;
use deftool_test_support::markdown::blocks_in;
use deftool_test_support::server::{Answer, Server};

use crate::commands::rpc;
use crate::support::project::{Project, STATE};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/editors")
}

/// Whether the editors are installed. Only CI requires them.
fn are_installed() -> bool {
    let has_emacs = || Command::new("emacs").arg("--version").output().is_ok();
    let are_installed =
        [".venv/installed", "node_modules/installed"].iter().all(|file| folder().join(file).exists())
            && has_emacs();
    can_use("editor", are_installed, "DEFTOOL_EDITORS", "tests/editors/install")
}

const SEEN: &str = r#"filetype: eld
diagnostics: 2:29 DT204
fixed: (deftool :name "weather" :description "Get the weather."| :args ((:name "city" :type string :description "The city to look at."))| :accepts [(:city "Paris")])
diagnostics: 
completion: true
hover: `:name`
definition: weather.lua
references: 5
renamed: (deftool :name "weather" :description "Get the weather."| :args ((:name "town" :type string :description "The city to look at."))| :accepts [(:town "Paris")])
script: return function(town) return town end
test: test("a", function() expect(tool.load("weather")({ town = "Rome" })).is("Rome") end)
formatted: (deftool| :name "weather"| :description "Get the weather."| :args ((:name "town" :type string :description "The city to look at."))| :accepts [(:town "Paris")])
symbols: weather
tokens: true
lenses: 3
hint: : string
diagnostics: 1:30 DT420
"#;

const SEEN_WITH_PLUGIN: &str = "command: terminal\nlens: terminal\n";

/// After the rename of the tool. `{script}`: the key that names the script, in an editor that cannot move files.
const SEEN_AT_THE_END: &str = r#"tool: (deftool| :name "forecast"|{script} :description "Get the weather."| :args ((:name "town" :type string :description "The city to look at."))| :accepts [(:town "Paris")])
test: test("a", function() expect(tool.load("forecast")({ town = "Rome" })).is("Rome") end)
check: 0
tests: 0
"#;

/// The mode of Emacs and the grammar of VS Code.
#[test]
fn every_form_is_coloured() {
    let heads = FORMS.map(|form| form.head);
    for (file, heads) in [
        ("emacs/deftool.el", heads.map(|head| format!("{head:?}")).join(" ")),
        ("vscode/syntaxes/eld.tmLanguage.json", format!("({})", heads.join("|"))),
    ] {
        let text = fs::read_to_string(folder().join("../../editors").join(file)).unwrap();
        assert!(text.contains(&heads), "{file}: {heads}");
    }
}

/// Returns a `PATH` with the tested binary.
fn path_with_deftool() -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_deftool")).parent().unwrap();
    format!("{}:{}", binary.display(), std::env::var("PATH").unwrap())
}

/// A project with a misspelt type.
fn project() -> Project {
    let project = Project::empty();
    project.write(
        "specs/a.eld",
        "(deftool :name \"weather\" :description \"Get the weather.\"\n :args ((:name \"city\" :type strng \
         :description \"The city to look at.\"))\n :accepts [(:city \"Paris\")])\n",
    );
    project.write("scripts/weather.lua", "return function(city) return city end\n");
    project.write(
        "scripts/weather_test.lua",
        "test(\"a\", function() expect(tool.load(\"weather\")({ city = \"Rome\" })).is(\"Rome\") end)\n",
    );
    project
}

/// The plugin, and the configuration in `docs/editors.md` without it.
#[test]
fn neovim_shows_findings_completes_renames_and_runs_commands() {
    if !are_installed() {
        return;
    }
    let page = fs::read_to_string(folder().join("../../docs/editors.md")).unwrap();
    let documented = blocks_in(&page, "lua")[0];
    let plugin = folder().join("../../editors/nvim").canonicalize().unwrap();
    for (with_plugin, moves_files) in [(true, true), (false, true), (false, false)] {
        let project = project();
        let init = project.path("init.lua");
        let text =
            if with_plugin { format!("vim.opt.rtp:prepend({plugin:?})") } else { documented.to_owned() };
        fs::write(&init, text).unwrap();
        let mut command = Command::new(folder().join(".venv/bin/neovim"));
        command.args(["--headless", "--clean", "-u"]).arg(init).arg("-S").arg(folder().join("nvim.lua"));
        for home in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"] {
            command.env(home, project.path("home"));
        }
        command
            .env("XDG_STATE_HOME", STATE)
            .env("PATH", path_with_deftool())
            .env("RESULT", project.path("result"));
        if !moves_files {
            command.env("WITHOUT_MOVES", "1");
        }
        let ended = command.current_dir(project.path("")).output().unwrap();
        let seen = fs::read_to_string(project.path("result")).unwrap_or_else(|_| panic!("{ended:?}"));
        let (with_comments, more) =
            if with_plugin { ("commentstring: ;; %s\n", SEEN_WITH_PLUGIN) } else { ("", "") };
        let expected = SEEN.replacen("diagnostics", &format!("{with_comments}diagnostics"), 1) + more;
        let script = if moves_files { "" } else { " :script \"scripts/weather.lua\"|" };
        let expected = expected + &SEEN_AT_THE_END.replace("{script}", script);
        assert_eq!(seen, expected, "{ended:?}");
        let moved =
            ["forecast.lua", "forecast_test.lua"].map(|name| project.path("scripts").join(name).exists());
        assert_eq!(moved, [moves_files; 2]);
    }
}

const SEEN_BY_VSCODE: &str = r#"tools: broken never, careful always, count never, done never, guarded sometimes, wait never
errors: 1
progress: c count 0.5 half
log: c count warn odd
called: 3
asked: careful path: "a"
called: changed a
asked: careful path: "a"
failed: -32803 canceled the user did not allow this call to `careful`: not now
failed: -32803 unknown_tool unknown tool `cuont`; did you mean `count`?
failed: -32800 undefined canceled
progress: request count 0.5 half
log: request count warn odd
finished: count 4
text: It is 4.
state: completed
roles: user assistant tool assistant
save
reloaded: 2
exit: 0
"#;

/// Returns the command that runs a client of `tests/editors`. The TypeScript compiler checks the clients first.
fn node(name: &str) -> Command {
    static COMPILED: Once = Once::new();
    COMPILED.call_once(|| {
        let compiled =
            Command::new("node_modules/.bin/tsc").args(["-p", "."]).current_dir(folder()).output().unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stdout));
    });
    let mut command = Command::new("node");
    command.arg(folder().join("built/tests/editors").join(name)).env("XDG_STATE_HOME", STATE);
    command
}

/// The JSON-RPC library of VS Code with `deftool rpc`, and its published types.
#[test]
fn the_library_of_vscode_calls_tools_and_streams_requests() {
    if !are_installed() {
        return;
    }
    let server =
        Server::script([Answer::calls(&[("count", "{\"text\": \"abcd\"}")]), Answer::text("It is 4.")]);
    let project = rpc::project();
    let mut client = node("rpc.js");
    client.arg(env!("CARGO_BIN_EXE_deftool"));
    client.args(["rpc", "--trust", "--endpoint", &server.endpoint()]);
    let mut client = client.current_dir(project.path("")).stdout(Stdio::piped()).spawn().unwrap();
    let mut seen = String::new();
    for line in BufReader::new(client.stdout.take().unwrap()).lines().map(Result::unwrap) {
        if line == "save" {
            project.write("scripts/count.lua", "return function() return 7 end\n");
        }
        // The ID of the request is random.
        let words = line.split(' ').map(|word| if word.starts_with("req_") { "request" } else { word });
        seen += &(words.collect::<Vec<_>>().join(" ") + "\n");
    }
    assert_eq!(seen, SEEN_BY_VSCODE);
    assert!(client.wait().unwrap().success());
}

const SEEN_BY_ACP: &str = r#"agent deftool 1
call careful path: "a"  { path: 'a' }
asked careful path: "a" allow_once allow_always reject_once
update in_progress 
update completed changed a
agent_message_chunk Changed.
stop end_turn
stop cancelled
exit 0
agent deftool 1
user_message_chunk How long is abcd?
call careful path: "a"  { path: 'a' }
update completed changed a
agent_message_chunk Changed.
user_message_chunk How long is abcd?
exit 0
"#;

/// The TypeScript library of the Agent Client Protocol with `deftool acp`.
#[test]
fn the_library_of_acp_sends_prompts_and_loads_the_session() {
    if !are_installed() {
        return;
    }
    let server = Server::script([
        Answer::calls(&[("careful", "{\"path\": \"a\"}")]),
        Answer::text("Changed."),
        Answer::silent(),
    ]);
    let project = rpc::project();
    let mut client = node("acp.js");
    client.arg(project.path("")).arg(env!("CARGO_BIN_EXE_deftool"));
    let ended = client.args(["acp", "--trust", "--endpoint", &server.endpoint()]).output().unwrap();
    let (seen, errors) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert_eq!(seen, SEEN_BY_ACP, "{errors}");
}
