//! Stress test of hot reload: many saves, by all methods that editors and tools use, during continuous calls.
//!
//! Every save has a version number, which is in the spec's description, at both ends of the script and in a module. No
//! call may fail or see two versions within one script, nor within files that are replaced together. At the end, the
//! loaded project must match the disk. Each method reports the time from a save to the first call of the new version.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use deftool_lang::diagnostic::render::render_concise;
use deftool_lang::schema::Arguments;
use deftool_lang::tool::{CallContext, ToolCall, ToolRunner};
use deftool_project::{Generation, GenerationRunner, LiveProject, Trust};
use deftool_script::{RunnerOptions, ScriptRunner};
use serde_json::Value;

/// Maximum wait, chosen for a busy machine.
const TIMEOUT: Duration = deftool_test_support::HANG_LIMIT;

/// A save that takes longer than this may leave an incomplete file that is loaded as it is. That is documented
/// behaviour and not an error. The incomplete version stays until it is replaced.
const SLOW_SAVE: Duration = Duration::from_millis(200);
const SLOW_SAVE_EFFECT: Duration = Duration::from_secs(1);

/// Maximum number of attempts if a save was too slow for a valid result.
const ATTEMPTS: usize = 5;

/// A method of replacing one version with the next.
pub(crate) struct Method {
    pub(crate) name: &'static str,
    /// Creates the first version.
    setup: fn(&Disk),
    save: fn(&Disk, u64),
    /// The files that are replaced atomically.
    consistency: Consistency,
    tools: usize,
    /// Whether the operating system reports the change.
    pub(crate) has_events: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Consistency {
    /// Each file on its own.
    Files,
    /// The script together with its module.
    Scripts,
    /// Spec, script and module together.
    Project,
}

/// The measurements of a method.
pub(crate) struct Report {
    pub(crate) saves: u64,
    /// Times from the last write of a save to the first call of the new version, sorted. Only for saves that were
    /// awaited.
    pub(crate) latencies: Vec<Duration>,
    pub(crate) calls: u64,
}

/// The folders that a method uses.
struct Disk {
    /// The project folder, which is a link in some methods.
    root: PathBuf,
    /// A folder for the targets of links.
    store: PathBuf,
    tools: usize,
}

pub(crate) const METHODS: [Method; 15] = [
    Method::new("truncated and written", |disk| disk.write_all(0), Disk::write_all),
    Method::new(
        "written in pieces",
        |disk| disk.write_all(0),
        |disk, version| {
            disk.each(version, |path, text| {
                in_pieces(&mut fs::File::create(path).unwrap(), text);
            });
        },
    ),
    Method::new(
        "overwritten in place, in pieces",
        |disk| disk.write_all(0),
        |disk, version| {
            disk.each(version, |path, text| {
                let mut file = fs::OpenOptions::new().write(true).open(path).unwrap();
                in_pieces(&mut file, text);
            });
        },
    ),
    Method::new("renamed over", |disk| disk.write_all(0), |disk, version| disk.each(version, replace)),
    Method::new(
        "backup renamed, new file written (vim)",
        |disk| disk.write_all(0),
        |disk, version| {
            disk.each(version, |path, text| {
                let backup = PathBuf::from(format!("{}~", path.display()));
                fs::rename(path, &backup).unwrap();
                let mut file = fs::File::create(path).unwrap();
                file.write_all(text.as_bytes()).unwrap();
                file.sync_all().unwrap();
                drop(file);
                fs::remove_file(backup).unwrap();
            });
        },
    ),
    Method::new(
        "deleted and created again",
        |disk| disk.write_all(0),
        |disk, version| {
            disk.each(version, |path, text| {
                fs::remove_file(path).unwrap();
                pause(20);
                fs::write(path, text).unwrap();
            });
        },
    ),
    Method::new(
        "emptied, filled later",
        |disk| disk.write_all(0),
        |disk, version| {
            disk.each(version, |path, text| {
                fs::write(path, "").unwrap();
                pause(60);
                fs::write(path, text).unwrap();
            });
        },
    ),
    Method::new(
        "new folder, written at once",
        |disk| new_folders(disk, 0),
        |disk, version| {
            fs::remove_dir_all(disk.root.join(format!("specs/d{}", version - 1))).unwrap();
            new_folders(disk, version);
            // The folder is no longer referenced.
            if version > 2 {
                let _ = fs::remove_dir_all(disk.root.join(format!("code{}", version - 2)));
            }
        },
    ),
    Method::new(
        "what a link leads to, written",
        |disk| link_files(disk, 0),
        |disk, version| {
            disk.each(version, |path, text| {
                let target = fs::canonicalize(path).unwrap();
                fs::write(target, text).unwrap();
            });
        },
    ),
    Method::new("file link swapped", |disk| link_files(disk, 0), link_files),
    Method {
        // Not watched: found by the regular scan.
        has_events: false,
        ..Method::new("a link behind a link swapped", |disk| chain_links(disk, 0), chain_links)
    },
    Method {
        consistency: Consistency::Scripts,
        ..Method::new(
            "folder link swapped",
            |disk| {
                disk.write_all(0);
                fs::rename(disk.root.join("scripts"), disk.store.join("scripts-0")).unwrap();
                swap_link(&disk.store.join("scripts-0"), &disk.root.join("scripts"));
            },
            |disk, version| {
                let new = disk.store.join(format!("scripts-{version}"));
                disk.write_scripts(&new, version);
                swap_link(&new, &disk.root.join("scripts"));
                replace(&disk.spec(), &disk.spec_text(version));
                fs::remove_dir_all(disk.store.join(format!("scripts-{}", version - 1))).unwrap();
            },
        )
    },
    Method {
        consistency: Consistency::Project,
        ..Method::new(
            "root link swapped",
            |disk| new_root(disk, 0),
            |disk, version| {
                new_root(disk, version);
                fs::remove_dir_all(disk.store.join(format!("root-{}", version - 1))).unwrap();
            },
        )
    },
    Method {
        consistency: Consistency::Project,
        ..Method::new(
            "root renamed away, another in its place",
            |disk| disk.write_all(0),
            |disk, version| {
                let new = Disk { root: disk.store.join("new"), store: disk.store.clone(), tools: disk.tools };
                new.write_all(version);
                let old = disk.store.join("old");
                fs::rename(&disk.root, &old).unwrap();
                fs::rename(&new.root, &disk.root).unwrap();
                fs::remove_dir_all(old).unwrap();
            },
        )
    },
    Method {
        tools: 100,
        ..Method::new(
            "100 files at once",
            |disk| disk.write_all(0),
            |disk, version| {
                for tool in (0..disk.tools).rev() {
                    fs::write(disk.script(tool), script_text(version)).unwrap();
                }
                fs::write(disk.module(), module_text(version)).unwrap();
                fs::write(disk.spec(), disk.spec_text(version)).unwrap();
            },
        )
    },
];

impl Method {
    const fn new(name: &'static str, setup: fn(&Disk), save: fn(&Disk, u64)) -> Self {
        Self { name, setup, save, consistency: Consistency::Files, tools: 1, has_events: true }
    }

    /// Runs this method's share of `saves`, or fewer if each one is slow.
    ///
    /// # Panics
    /// If a check fails.
    pub(crate) fn run(&self, saves: u64) -> Report {
        let mut attempts = 1;
        loop {
            if let Some(report) = self.attempt(saves, attempts == ATTEMPTS) {
                return report;
            }
            attempts += 1;
        }
    }

    /// Makes one attempt. Returns `None` if a failure is not valid because a save was too slow.
    fn attempt(&self, saves: u64, is_last: bool) -> Option<Report> {
        let saves = saves / METHODS.len() as u64 / if self.has_events { 1 } else { 10 } + 1;
        let folder = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(folder.path()).unwrap();
        let disk = Disk { root: place.join("root"), store: place.join("store"), tools: self.tools };
        fs::create_dir(&disk.store).unwrap();
        (self.setup)(&disk);
        let project = LiveProject::open(&disk.root, &disk.root, None).unwrap();
        let (newest, calls, stopped) = (AtomicU64::new(0), AtomicU64::new(0), OnceLock::new());
        let mut latencies = Vec::new();
        let mut slow = None::<Instant>;
        let is_valid = std::thread::scope(|scope| {
            let caller = || {
                let _stop = StopOnPanic(&stopped);
                self.call_repeatedly(&project, &newest, &calls, &stopped);
            };
            let callers = [scope.spawn(caller), scope.spawn(caller)];
            let _stop = StopOnPanic(&stopped);
            for version in 1..=saves {
                let began = Instant::now();
                (self.save)(&disk, version);
                if began.elapsed() > SLOW_SAVE {
                    slow = Some(Instant::now());
                }
                // Some saves follow immediately, so that the previous version may never be called.
                if fastrand::bool() || version == saves {
                    let saved = Instant::now();
                    while newest.load(Ordering::Acquire) < version && stopped.get().is_none() {
                        assert!(
                            saved.elapsed() < TIMEOUT,
                            "{}: save {version} is not live, but\n{}",
                            self.name,
                            project.current().describe()
                        );
                        std::thread::sleep(Duration::from_micros(200));
                    }
                    latencies.push(saved.elapsed());
                } else {
                    pause(20);
                }
                if stopped.get().is_some() {
                    break;
                }
            }
            if stopped.get().is_none() {
                wait_for(self.name, &project, &disk);
            }
            let _ = stopped.set(Instant::now());
            let panic = callers.into_iter().filter_map(|caller| caller.join().err()).last();
            let Some(panic) = panic else { return true };
            let is_slow_save =
                slow.zip(stopped.get()).is_some_and(|(slow, seen)| *seen < slow + SLOW_SAVE_EFFECT);
            if is_last || !is_slow_save {
                std::panic::resume_unwind(panic);
            }
            false
        });
        latencies.sort_unstable();
        is_valid.then(|| Report { saves, latencies, calls: calls.into_inner() })
    }

    /// Calls the latest generation repeatedly and records the latest version that answered.
    fn call_repeatedly(
        &self,
        project: &LiveProject,
        newest: &AtomicU64,
        calls: &AtomicU64,
        stopped: &OnceLock<Instant>,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let scripts = Arc::new(ScriptRunner::new(RunnerOptions::default()));
        let mut seen = vec![0; self.tools];
        while stopped.get().is_none() {
            // Tool 0 is usually written last.
            let tool = if fastrand::bool() { 0 } else { fastrand::usize(..self.tools) };
            let generation = project.current();
            let runner = GenerationRunner {
                generation: Arc::clone(&generation),
                scripts: Arc::clone(&scripts),
                trust: Trust::Everything,
            };
            let name = format!("tool{tool}");
            let call =
                ToolCall { id: String::from("1"), name: name.clone(), arguments: Arguments::default() };
            let answer = runtime.block_on(runner.run(call, CallContext::default()));
            let output = answer.unwrap_or_else(|error| {
                panic!(
                    "{}: generation {}: {error}\n{}",
                    self.name,
                    generation.number,
                    findings_and_tools(&generation)
                )
            });
            let [first, last, module] = [0, 1, 2].map(|index| output.value[index].as_u64().unwrap());
            let entry = generation.tool(&name).unwrap().entry();
            let described = entry.definition.pointer("/function/description").and_then(Value::as_str);
            let described: u64 = described.unwrap().trim_start_matches("Version ").parse().unwrap();
            let versions = format!("script {first} to {last}, module {module}, spec {described}");
            assert_eq!(first, last, "{}: mixed versions in one script: {versions}", self.name);
            if self.consistency != Consistency::Files {
                assert_eq!(first, module, "{}: mixed versions: {versions}", self.name);
            }
            if self.consistency == Consistency::Project {
                assert_eq!(first, described, "{}: mixed versions: {versions}", self.name);
            }
            assert!(seen[tool] <= first, "{}: version went back from {} to {first}", self.name, seen[tool]);
            seen[tool] = first;
            if tool == 0 {
                newest.fetch_max(first.min(module).min(described), Ordering::AcqRel);
            }
            calls.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// Stops the other threads when one panics, and records the time.
struct StopOnPanic<'f>(&'f OnceLock<Instant>);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.set(Instant::now());
        }
    }
}

/// Waits until the loaded project equals a fresh load from disk.
fn wait_for(method: &str, project: &LiveProject, disk: &Disk) {
    let started = Instant::now();
    loop {
        let (live, loaded) = (project.current(), Generation::load(&disk.root, &disk.root, None));
        let (live, loaded) = (described(&live), loaded.map(|loaded| described(&loaded)).unwrap_or_default());
        if live == loaded {
            return;
        }
        assert!(started.elapsed() < TIMEOUT, "{method}: loaded project:\n{live}\non disk:\n{loaded}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Renders a generation as text, without its number.
pub(crate) fn described(generation: &Generation) -> String {
    let mut text = findings_and_tools(generation);
    for name in generation.tool_names() {
        let loaded = generation.tool(name).unwrap();
        let script = match &loaded.script {
            deftool_project::ScriptState::Ready(script) => {
                let modules = script
                    .modules
                    .iter()
                    .map(|module| format!("{} {}", module.file, String::from_utf8_lossy(&module.source)));
                let modules = modules.collect::<Vec<_>>().join("\n");
                format!("{} {}\n{modules}", script.file, String::from_utf8_lossy(&script.source))
            }
            deftool_project::ScriptState::Broken(error) => error.to_string(),
            deftool_project::ScriptState::None => String::new(),
        };
        text.extend([name, " ", &loaded.entry().definition.to_string(), " ", &script, "\n"]);
    }
    text
}

/// Renders the findings and the tool order of a generation.
fn findings_and_tools(generation: &Generation) -> String {
    let load = &generation.load;
    let findings = load.findings.iter().map(|finding| render_concise(finding, &load.sources));
    let tools = load.tools.iter().map(|loaded| loaded.tool.name.value.clone());
    findings.chain(tools).collect::<Vec<_>>().join("\n") + "\n"
}

fn pause(most_ms: u64) {
    std::thread::sleep(Duration::from_micros(fastrand::u64(..most_ms * 1000)));
}

fn script_text(version: u64) -> String {
    let filler = "-- what a script is made of, so that it is longer than one read or write\n".repeat(200);
    format!(
        "local first = {version:08}\nlocal module = require(\"./lib/shared\")\n{filler}local last = {version:08}\n\
         return function() return {{ first, last, module }} end\n"
    )
}

fn module_text(version: u64) -> String {
    format!("return {version:08}\n")
}

impl Disk {
    fn spec(&self) -> PathBuf {
        self.root.join("specs/tools.eld")
    }

    fn script(&self, tool: usize) -> PathBuf {
        self.root.join(format!("scripts/tool{tool}.lua"))
    }

    fn module(&self) -> PathBuf {
        self.root.join("scripts/lib/shared.lua")
    }

    fn spec_text(&self, version: u64) -> String {
        let tool = |tool| format!("(deftool :name \"tool{tool}\" :description \"Version {version:08}\")\n");
        (0..self.tools).map(tool).collect()
    }

    /// Calls `save` for each file of a version.
    fn each(&self, version: u64, mut save: impl FnMut(&Path, &str)) {
        let mut files: Vec<_> =
            (0..self.tools).map(|tool| (self.script(tool), script_text(version))).collect();
        files.push((self.module(), module_text(version)));
        files.push((self.spec(), self.spec_text(version)));
        fastrand::shuffle(&mut files);
        for (path, text) in files {
            save(&path, &text);
        }
    }

    fn write_all(&self, version: u64) {
        self.each(version, |path, text| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        });
    }

    fn write_scripts(&self, folder: &Path, version: u64) {
        fs::create_dir_all(folder.join("lib")).unwrap();
        fs::write(folder.join("lib/shared.lua"), module_text(version)).unwrap();
        for tool in 0..self.tools {
            fs::write(folder.join(format!("tool{tool}.lua")), script_text(version)).unwrap();
        }
    }

    /// Returns the folder for targets of links. It is inside the project, because links must not leave it.
    fn linked_store(&self) -> PathBuf {
        let store = self.root.join(".store");
        fs::create_dir_all(&store).unwrap();
        store
    }
}

fn in_pieces(file: &mut fs::File, text: &str) {
    for piece in text.as_bytes().chunks(text.len() / 3 + 1) {
        file.write_all(piece).unwrap();
        pause(8);
    }
}

fn replace(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    fs::write(&beside, text).unwrap();
    fs::rename(beside, path).unwrap();
}

fn swap_link(target: &Path, link: &Path) {
    let beside = link.with_extension("new");
    std::os::unix::fs::symlink(target, &beside).unwrap();
    fs::rename(beside, link).unwrap();
}

/// Creates a spec in a new folder and a script in another new folder.
fn new_folders(disk: &Disk, version: u64) {
    let code = disk.root.join(format!("code{version}"));
    fs::create_dir_all(&code).unwrap();
    fs::write(code.join("tool.lua"), script_text(version).replace("./lib/", "../scripts/lib/")).unwrap();
    if version == 0 {
        fs::create_dir_all(disk.module().parent().unwrap()).unwrap();
    }
    fs::write(disk.module(), module_text(version)).unwrap();
    let specs = disk.root.join(format!("specs/d{version}"));
    fs::create_dir_all(&specs).unwrap();
    let text = disk.spec_text(version);
    let text = text.replace(":description", &format!(":script \"code{version}/tool.lua\" :description"));
    fs::write(specs.join("tools.eld"), text).unwrap();
}

fn link_files(disk: &Disk, version: u64) {
    disk.each(version, |path, text| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let name = format!("{version}-{}", path.file_name().unwrap().to_str().unwrap());
        let target = disk.linked_store().join(&name);
        fs::write(&target, text).unwrap();
        swap_link(&target, path);
    });
}

/// Creates a link to another link, which leads to the file.
fn chain_links(disk: &Disk, version: u64) {
    disk.each(version, |path, text| {
        let store = disk.linked_store();
        let (links, files) = (store.join("links"), store.join(format!("files-{version}")));
        fs::create_dir_all(&links).unwrap();
        fs::create_dir_all(&files).unwrap();
        let name = path.file_name().unwrap();
        fs::write(files.join(name), text).unwrap();
        swap_link(&files.join(name), &links.join(name));
        if version == 0 {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            swap_link(&links.join(name), path);
        }
    });
}

fn new_root(disk: &Disk, version: u64) {
    let new = disk.store.join(format!("root-{version}"));
    Disk { root: new.clone(), store: disk.store.clone(), tools: disk.tools }.write_all(version);
    swap_link(&new, &disk.root);
}
