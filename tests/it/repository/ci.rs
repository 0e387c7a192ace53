//! The CI configurations in `docs/ci.md` and `.pre-commit-hooks.yaml` are valid YAML, and their deftool commands run.

use std::fs;
use std::path::Path;
use std::process::Command;

use yaml_rust2::{Yaml, YamlLoader};

use crate::support::project::Project;

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

fn yaml_blocks(page: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while lines.by_ref().any(|line| line == "```yaml") {
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        blocks.push(block.join("\n"));
    }
    blocks
}

/// Collects the values of these keys at any depth; for a list, its items.
fn values(yaml: &Yaml, keys: &[&str], found: &mut Vec<String>) {
    match yaml {
        Yaml::Hash(hash) => {
            for (key, value) in hash {
                if key.as_str().is_some_and(|key| keys.contains(&key)) {
                    found.extend(value.as_str().map(str::to_owned));
                    found.extend(
                        value.as_vec().into_iter().flatten().filter_map(Yaml::as_str).map(str::to_owned),
                    );
                }
                values(value, keys, found);
            }
        }
        Yaml::Array(items) => items.iter().for_each(|item| values(item, keys, found)),
        _ => {}
    }
}

fn parse(text: &str, keys: &[&str]) -> Vec<String> {
    let documents = YamlLoader::load_from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(documents.len(), 1);
    let mut found = Vec::new();
    values(&documents[0], keys, &mut found);
    found
}

/// Runs a command line in a project, with the built binary first in `PATH`. Returns the exit code and the output.
fn run(project: &Project, line: &str) -> (Option<i32>, String) {
    let folder = Path::new(env!("CARGO_BIN_EXE_deftool")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    // CI runners use the same options.
    let output = Command::new("bash")
        .args(["-e", "-o", "pipefail", "-c", line])
        .current_dir(project.path("."))
        .env("PATH", path)
        .output()
        .unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(printed).unwrap())
}

#[test]
fn commands_on_the_ci_page_run() {
    let blocks = yaml_blocks(&read("docs/ci.md"));
    let lines: Vec<String> =
        blocks.iter().flat_map(|block| parse(block, &["run", "script", "entry"])).collect();
    let mut count = 0;
    for line in lines.iter().filter(|line| line.starts_with("deftool ")) {
        count += 1;
        let clean = Project::new();
        assert_eq!(run(&clean, line).0, Some(0), "{line}: {}", run(&clean, line).1);
        let broken = Project::new();
        broken.write("specs/odd.eld", "(defexit :name \"two words\" :description: \"d\")\n");
        // Only the step that writes the report must succeed, so that the next step uploads it.
        let expected = i32::from(!line.contains("|| test $? = 1"));
        assert_eq!(run(&broken, line).0, Some(expected), "{line}");
        let empty = Project::new();
        fs::remove_dir_all(empty.path("specs")).unwrap();
        assert_ne!(run(&empty, line).0, Some(0), "expected a failure without a project: {line}");
    }
    assert!(count >= 5, "{lines:?}");
}

#[test]
fn pre_commit_hooks_use_existing_commands() {
    let hooks = read(".pre-commit-hooks.yaml");
    let ids = parse(&hooks, &["id"]);
    let entries = parse(&hooks, &["entry"]);
    assert_eq!(ids.len(), entries.len());
    let project = Project::new();
    for entry in entries {
        let known = run(&project, &format!("{entry} --help"));
        assert!(known.0 == Some(0), "{entry}: {}", known.1);
    }
    let local: Vec<String> =
        yaml_blocks(&read("docs/ci.md")).iter().flat_map(|block| parse(block, &["id"])).collect();
    for id in ids {
        assert!(local.contains(&id), "docs/ci.md does not show the hook {id}");
    }
}
