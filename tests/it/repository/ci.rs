//! The configurations for CI systems run: the examples in `docs/ci.md`, the hooks of pre-commit, the GitHub Action and the
//! GitLab component. Each runs in the repository `examples/ci`.

use std::fs;
use std::path::Path;
use std::process::Command;

use yaml_rust2::{Yaml, YamlLoader};

use crate::support::project::Project;

const VERSION: &str = env!("CARGO_PKG_VERSION");

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
        assert_eq!(run(&broken, line).0, Some(1), "{line}");
        let empty = Project::new();
        fs::remove_dir_all(empty.path("specs")).unwrap();
        assert_ne!(run(&empty, line).0, Some(0), "expected a failure without a project: {line}");
    }
    assert!(count >= 3, "{lines:?}");
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
    // A local hook runs for the files of the published one.
    let files = parse(&hooks, &["files"]);
    for local in yaml_blocks(&read("docs/ci.md")).iter().flat_map(|block| parse(block, &["files"])) {
        assert!(files.contains(&local), "{local}");
    }
}

/// A copy of `examples/ci`, and the environment of a CI job.
struct Job {
    project: Project,
    /// Folders before `PATH`.
    path: String,
}

impl Job {
    fn new() -> Self {
        let project = Project::empty();
        for name in ["specs/words.eld", "scripts/count_words.lua"] {
            project.write(name, read(&format!("examples/ci/{name}")));
        }
        Self { project, path: String::new() }
    }

    /// Breaks the spec, so that `deftool check` fails.
    fn damage(self) -> Self {
        self.project.write("specs/odd.eld", "(defexit :name \"two words\" :description \"d\")\n");
        self
    }

    /// Makes a release whose programs are the built one, in the folder `releases`.
    fn release(&self) {
        let name = format!("deftool-{VERSION}-x86_64-unknown-linux-gnu");
        let start = format!("#!/bin/sh\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_deftool"));
        for program in ["deftool", "deftool-analyze"] {
            self.project.write(&format!("releases/v{VERSION}/{name}/{program}"), &start);
        }
        let line = format!(
            "cd releases/v{VERSION} && chmod +x {name}/deftool* && tar -czf {name}.tar.gz {name} && \
             sha256sum {name}.tar.gz > {name}.tar.gz.sha256"
        );
        assert_eq!(self.shell(&line, &[]).0, Some(0));
    }

    /// Runs a step with these variables as a CI runner does. Returns the exit code and the output.
    fn shell(&self, script: &str, variables: &[(String, String)]) -> (Option<i32>, String) {
        let path = format!("{}{}", self.path, std::env::var("PATH").unwrap());
        let releases = format!("file://{}", self.project.path("releases").display());
        let output = Command::new("bash")
            .args(["-e", "-o", "pipefail", "-c", script])
            .current_dir(self.project.path("."))
            .env("PATH", path)
            .env("DEFTOOL_DOWNLOAD_URL", releases)
            .env("GITHUB_ACTION_PATH", env!("CARGO_MANIFEST_DIR"))
            .env("GITHUB_PATH", self.project.path("path"))
            .env("RUNNER_TEMP", self.project.path("temporary"))
            .envs(variables.iter().cloned())
            .output()
            .unwrap();
        let printed = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(printed).unwrap())
    }
}

/// A step of the action that runs a script.
struct Step {
    name: String,
    script: String,
    /// Environment variables, which are inputs of the action.
    variables: Vec<(String, String)>,
}

fn steps_of_action() -> Vec<Step> {
    let action = YamlLoader::load_from_str(&read("action.yml")).unwrap().remove(0);
    let inputs = &action["inputs"];
    let of_input = |value: &str| {
        let name = value.strip_prefix("${{ inputs.").and_then(|rest| rest.strip_suffix(" }}")).unwrap();
        match &inputs[name]["default"] {
            Yaml::Real(text) | Yaml::String(text) => text.clone(),
            other => panic!("{name}: {other:?}"),
        }
    };
    let steps = action["runs"]["steps"].as_vec().unwrap().iter();
    let with_script = steps.filter_map(|step| Some((step, step["run"].as_str()?)));
    with_script
        .map(|(step, script)| {
            let variables = step["env"].as_hash().into_iter().flatten();
            let variables = variables
                .map(|(name, value)| (name.as_str().unwrap().to_owned(), of_input(value.as_str().unwrap())));
            Step {
                name: step["name"].as_str().unwrap().to_owned(),
                script: script.to_owned(),
                variables: variables.collect(),
            }
        })
        .collect()
}

/// The target of the release is that of the machine on which the tests of packages run.
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
#[test]
fn the_github_action_installs_a_release_and_reports_findings() {
    for (mut job, expected) in [(Job::new(), 0), (Job::new().damage(), 1)] {
        job.release();
        fs::create_dir(job.project.path("temporary")).unwrap();
        for Step { name, script, variables } in steps_of_action() {
            let (code, printed) = job.shell(&script, &variables);
            match name.as_str() {
                "Install deftool" => {
                    assert!(code == Some(0) && printed.contains("installed deftool"), "{printed}");
                    job.path = format!("{}:", fs::read_to_string(job.project.path("path")).unwrap().trim());
                }
                "Annotate the lines" => {
                    assert_eq!(code, Some(expected), "{printed}");
                    assert_eq!(
                        printed.contains("::error file=specs/odd.eld,line=1"),
                        expected == 1,
                        "{printed}"
                    );
                }
                _ => assert_eq!(code, Some(0), "{name}: {printed}"),
            }
        }
        let report = fs::read_to_string(job.project.path("temporary/deftool.sarif")).unwrap();
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        let results = report["runs"][0]["results"].as_array().unwrap();
        assert_eq!(results.is_empty(), expected == 0, "{results:?}");
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
#[test]
fn a_damaged_release_is_not_installed() {
    let job = Job::new();
    job.release();
    let archive = format!("releases/v{VERSION}/deftool-{VERSION}-x86_64-unknown-linux-gnu.tar.gz");
    assert_eq!(job.shell(&format!("printf damaged >> {archive}"), &[]).0, Some(0));
    let installed = job.shell("sh $GITHUB_ACTION_PATH/packaging/install.sh --to bin", &[]);
    assert!(
        installed.0 == Some(1) && installed.1.contains("checksum of the download is wrong"),
        "{installed:?}"
    );
    let missing = job.shell("sh $GITHUB_ACTION_PATH/packaging/install.sh --to bin --version 9.9.9", &[]);
    assert!(missing.0 == Some(1) && missing.1.contains("cannot download"), "{missing:?}");
    assert!(!job.project.path("bin").exists());
}

/// A release or a target folder that would make the installer use or overwrite other files.
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
#[test]
fn the_installer_uses_only_the_archive_and_follows_no_links() {
    const PACK: &str = "tar -czf $NAME.tar.gz $NAME && sha256sum $NAME.tar.gz > $NAME.tar.gz.sha256";
    for (prepare, expected) in [
        ("true", "installed deftool"),
        // The only checksum is that of a different file.
        (
            "printf damaged >> $NAME.tar.gz; sha256sum /dev/null > $NAME.tar.gz.sha256",
            "the checksum file does not name deftool-",
        ),
        ("sha256sum /dev/null >> $NAME.tar.gz.sha256", "the checksum file does not name deftool-"),
        (
            "ln -sf $ROOT/victim $NAME/deftool; PACK",
            "deftool in the archive is not a file; nothing was installed",
        ),
        ("rm $NAME/deftool; PACK", "the archive has no deftool; nothing was installed"),
        ("rm $NAME/deftool-analyze; PACK", "the archive has no deftool-analyze; nothing was installed"),
        // The folder of the archive is a link to a folder with a program.
        (
            "mv $NAME $ROOT/elsewhere; ln -s $ROOT/elsewhere $NAME; PACK",
            "the archive has no deftool; nothing was installed",
        ),
        ("mkdir $ROOT/bin; ln -s $ROOT/victim $ROOT/bin/.deftool.new", "installed deftool"),
        ("mkdir $ROOT/bin; ln -s $ROOT/victim $ROOT/bin/deftool", "installed deftool"),
        ("mkdir -p $ROOT/bin $ROOT/folder; ln -s $ROOT/folder $ROOT/bin/deftool", "/bin/deftool is a folder"),
    ] {
        let job = Job::new();
        job.release();
        job.project.write("victim", "untouched");
        let root = job.project.path("").canonicalize().unwrap();
        let name = format!("deftool-{VERSION}-x86_64-unknown-linux-gnu");
        let variables = [("NAME", name), ("ROOT", root.display().to_string())];
        let variables = variables.map(|(name, value)| (name.to_owned(), value));
        let prepare = format!("cd releases/v{VERSION}; {}", prepare.replace("PACK", PACK));
        assert_eq!(job.shell(&prepare, &variables).0, Some(0), "{prepare}");
        let (code, printed) = job.shell("sh $GITHUB_ACTION_PATH/packaging/install.sh --to bin", &[]);
        assert!(printed.contains(expected), "{prepare}: {printed}");
        let is_installed = expected.starts_with("installed");
        assert_eq!(code, Some(i32::from(!is_installed)), "{prepare}: {printed}");
        let installed = job.project.path("bin/deftool").symlink_metadata();
        assert_eq!(installed.is_ok_and(|about| about.is_file()), is_installed, "{prepare}");
        assert_eq!(fs::read_to_string(job.project.path("victim")).unwrap(), "untouched", "{prepare}");
        // No temporary file is left.
        let left = fs::read_dir(job.project.path("bin")).into_iter().flatten().flatten();
        let left = left.filter(|entry| entry.file_type().unwrap().is_file()).count();
        assert_eq!(left, 2 * usize::from(is_installed), "{prepare}");
    }
}

#[test]
fn the_gitlab_component_reports_findings_as_tests() {
    let component = YamlLoader::load_from_str(&read("templates/check.yml")).unwrap();
    let [spec, job] = component.as_slice() else { panic!("expected inputs and a job") };
    let inputs = spec["spec"]["inputs"].as_hash().unwrap();
    let fill = |line: &str| {
        inputs.keys().filter_map(Yaml::as_str).fold(line.to_owned(), |line, name| {
            let (Yaml::String(value) | Yaml::Real(value)) = &spec["spec"]["inputs"][name]["default"] else {
                panic!("{name} has no default");
            };
            line.replace(&format!("$[[ inputs.{name} ]]"), value)
        })
    };
    let lines: Vec<String> =
        job["deftool"]["script"].as_vec().unwrap().iter().map(|line| fill(line.as_str().unwrap())).collect();
    let [install, check] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!(*install, format!("pip install --quiet deftool=={VERSION}"));
    let report = job["deftool"]["artifacts"]["reports"]["junit"].as_str().unwrap();
    for (project, expected) in [(Job::new(), 0), (Job::new().damage(), 1)] {
        assert_eq!(run(&project.project, check).0, Some(expected));
        let report = fs::read_to_string(project.project.path(report)).unwrap();
        assert_eq!(report.contains("<failure"), expected == 1, "{report}");
    }
}

/// The workflow needs tools that are not here; the scripts that it runs are tested by `packaging/test`.
#[test]
fn the_release_workflow_runs_scripts_that_exist() {
    let scripts = parse(&read(".github/workflows/release.yml"), &["run"]).join("\n");
    for script in ["packaging/build", "packaging/test", "packaging/install.sh"] {
        assert!(scripts.contains(script), "{scripts}");
        assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(script).exists());
    }
}

#[test]
fn all_files_name_the_current_version() {
    for (name, line) in [
        ("pyproject.toml", format!("version = \"{VERSION}\"")),
        ("pyproject.toml", format!("dependencies = [\"deftool=={VERSION}\"]")),
        ("action.yml", format!("default: {VERSION}")),
        ("templates/check.yml", format!("default: {VERSION}")),
        ("packaging/install.sh", format!("version={VERSION}")),
        ("docs/ci.md", format!("OWNER/deftool@v{VERSION} ")),
        ("docs/ci.md", format!("rev: v{VERSION}")),
        ("examples/ci/.github/workflows/specs.yml", format!("OWNER/deftool@v{VERSION} ")),
        ("examples/ci/.gitlab-ci.yml", format!("OWNER/deftool/check@v{VERSION} ")),
        ("examples/ci/.pre-commit-config.yaml", format!("rev: v{VERSION}")),
    ] {
        assert!(read(name).contains(&line), "{name} does not contain {line}");
    }
}
