//! Real editors with the real binary. `tests/editors/install` installs them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::project::{Project, STATE};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/editors")
}

/// Whether the editors are installed. Only CI requires them.
fn are_installed() -> bool {
    let are_installed = folder().join(".venv/installed").exists();
    if !are_installed {
        let are_required = std::env::var("DEFTOOL_EDITORS").as_deref() == Ok("required");
        assert!(!are_required, "the editors are required and not there: run tests/editors/install");
        let _ = writeln!(std::io::stderr(), "skipped: no editors; tests/editors/install installs them");
    }
    are_installed
}

const SEEN: &str = r#"filetype: eld
diagnostics: 2:29 DT204
fixed: (deftool :name "weather" :description "Get the weather."| :args ((:name "city" :type string :description "The city to look at."))| :accepts [(:city "Paris")])
diagnostics: 
completion: true
hover: `:name`
definition: weather.lua
references: 4
renamed: (deftool :name "weather" :description "Get the weather."| :args ((:name "town" :type string :description "The city to look at."))| :accepts [(:town "Paris")])
script: return function(town) return town end
formatted: (deftool| :name "weather"| :description "Get the weather."| :args ((:name "town" :type string :description "The city to look at."))| :accepts [(:town "Paris")])
symbols: weather
tokens: true
lenses: 3
hint: : string
diagnostics: 1:30 DT420
"#;

const SEEN_WITH_PLUGIN: &str = "command: terminal\nlens: terminal\n";

/// The plugin, and the configuration in `docs/editors.md` without it.
#[test]
fn neovim_shows_findings_completes_renames_and_runs_commands() {
    if !are_installed() {
        return;
    }
    let page = fs::read_to_string(folder().join("../../docs/editors.md")).unwrap();
    let documented = page.split("```lua\n").nth(1).unwrap().split("```").next().unwrap();
    let plugin = folder().join("../../editors/nvim").canonicalize().unwrap();
    for with_plugin in [true, false] {
        let project = Project::empty();
        project.write(
            "specs/a.eld",
            "(deftool :name \"weather\" :description \"Get the weather.\"\n :args ((:name \"city\" :type strng \
             :description \"The city to look at.\"))\n :accepts [(:city \"Paris\")])\n",
        );
        project.write("scripts/weather.lua", "return function(city) return city end\n");
        let init = project.path("init.lua");
        let text =
            if with_plugin { format!("vim.opt.rtp:prepend({plugin:?})") } else { documented.to_owned() };
        fs::write(&init, text).unwrap();
        let binary = Path::new(env!("CARGO_BIN_EXE_deftool")).parent().unwrap();
        let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(folder().join(".venv/bin/neovim"));
        command.args(["--headless", "--clean", "-u"]).arg(init).arg("-S").arg(folder().join("nvim.lua"));
        for home in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"] {
            command.env(home, project.path("home"));
        }
        command.env("XDG_STATE_HOME", STATE).env("PATH", path).env("RESULT", project.path("result"));
        let ended = command.current_dir(project.path("")).output().unwrap();
        let seen = fs::read_to_string(project.path("result")).unwrap_or_else(|_| panic!("{ended:?}"));
        let (with_comments, more) =
            if with_plugin { ("commentstring: ;; %s\n", SEEN_WITH_PLUGIN) } else { ("", "") };
        let expected = SEEN.replacen("diagnostics", &format!("{with_comments}diagnostics"), 1) + more;
        assert_eq!(seen, expected, "{ended:?}");
    }
}
