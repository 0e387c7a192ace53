//! Emacs and Neovim in a terminal in Chromium. `tests/editors/vscode/install` installs the terminal.

use std::path::Path;

use deftool_test_support::server::{Answer, Server};
use serde_json::{Value, json};

use super::{are_installed, path_with_deftool, vscode};
use crate::support::project::Project;

const SPEC: &str = r#"(deftool :name "forecast" :description "Get the weather of the next days."
 :args ((:name "city" :type string :description "The city to look at.")
        (:name "days" :type strng :description "The number of days.")))

(deftool :name "weather" :description "Get the weather."
 :args ((:name "city" :type string :description "The city to look at."))
 :confirm t)
"#;

/// The project is in a folder of its own, whose name is in the pictures.
fn project() -> Project {
    let project = Project::empty();
    project.write("tools/specs/weather.eld", SPEC);
    project.write("tools/scripts/weather.lua", "return function(city) return \"sunny in \" .. city end\n");
    project.write("tools/scripts/forecast.lua", "return function(city, days) return days .. city end\n");
    project
}

/// Runs a program, types keys and waits for texts on the screen. With `UPDATE_EXPECT=1`, also takes a picture for the
/// documentation.
fn drive(project: &Project, picture: &str, steps: &Value, program: &Path, arguments: &[&str]) {
    let file = vscode::pictures().map(|folder| folder.join(picture)).unwrap_or_default();
    let mut driver = vscode::driver("terminal.js");
    driver.arg(file).arg(steps.to_string()).arg(program).args(arguments);
    driver.current_dir(project.path("tools")).env("PATH", path_with_deftool());
    for home in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"] {
        driver.env(home, project.path("home"));
    }
    vscode::run(&mut driver);
}

#[test]
fn emacs_shows_a_finding_beside_a_worker_that_asks_for_approval() {
    if !are_installed() || !vscode::is_installed() {
        return;
    }
    let server = Server::script([Answer::calls(&[("weather", "{\"city\": \"Paris\"}")])]);
    let project = project();
    let setup = super::emacs::documented_setup();
    let arguments = format!("(setq deftool-rpc-arguments '(\"--endpoint\" {:?}))", server.endpoint());
    project.write("init.el", format!("{setup}(require 'deftool-chat)\n{arguments}\n"));
    let steps = json!([
        { "wait": "strng" },
        { "type": "\u{1b}xdeftool-run\r", "wait": "Prompt:" },
        { "type": "What is the weather in Paris?\r", "wait": "[Allow] [Refuse]" },
        { "type": "\u{18}o\u{1b}xflymake-goto-next-error\r", "wait": "unknown type `strng`" },
    ]);
    drive(
        &project,
        "emacs.png",
        &steps,
        Path::new("emacs"),
        &["-nw", "-Q", "-l", "../init.el", "specs/weather.eld"],
    );
}

#[test]
fn neovim_shows_a_finding_and_completes_a_key() {
    if !are_installed() || !vscode::is_installed() {
        return;
    }
    let project = project();
    let plugin = super::folder().join("../../editors/nvim").canonicalize().unwrap();
    project.write(
        "init.lua",
        format!(
            "vim.opt.rtp:prepend({plugin:?})\nvim.diagnostic.config({{ virtual_text = true, update_in_insert = true }})\n"
        ),
    );
    let steps = json!([
        { "wait": "unknown type `strng`" },
        // The one key that matches is inserted.
        { "type": "7G$i :effe\u{18}\u{f}", "wait": ":confirm t :effect" },
        { "type": " pure :a\u{18}\u{f}", "wait": ":allow" },
        { "wait": "unknown type `strng`" },
    ]);
    let neovim = super::folder().join(".venv/bin/neovim");
    drive(&project, "neovim.png", &steps, &neovim, &["--clean", "-u", "../init.lua", "specs/weather.eld"]);
}
