//! A storm of saves, by every method that editors and tools use, while calls run the whole time.
//!
//! Every save is a version: its number stands in the spec's description, at both ends of the script and in a module. No call
//! may see two versions in one script, or fail; of what is swapped as a whole, nothing may be of another version. In
//! the end what is live is what is on disk. Each method reports how long it was from the save to the first call on new code.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use deftool::diagnostic::render::render_concise;
use deftool::project::{Generation, GenerationRunner, LiveProject, Trust};
use deftool::script::{RunnerOptions, ScriptRunner};
use deftool::tool::{CallContext, ToolCall, ToolRunner};
use serde_json::Value;

/// A machine that has much else to do is this slow.
const LIMIT: Duration = Duration::from_secs(30);

/// A saver that takes longer for one save may have left a file half done for so long that it was taken as it was; that is
/// what a project promises, and no fault. It stays live until it is replaced.
const SLOW: Duration = Duration::from_millis(200);
const LINGERS: Duration = Duration::from_secs(1);

/// So often a method is played whose saver was too slow for what was seen to count.
const TRIES: usize = 5;

/// How one version is saved over the one before it.
pub(crate) struct Method {
    pub(crate) name: &'static str,
    /// What is there at first.
    begin: fn(&Disk),
    save: fn(&Disk, u64),
    /// What is of one version at any moment.
    whole: Whole,
    tools: usize,
    /// Whether the kernel tells of it.
    pub(crate) is_told: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Whole {
    /// Each file.
    Files,
    /// The script and its module.
    Scripts,
    /// Spec, script and module.
    Project,
}

/// What a method took.
pub(crate) struct Report {
    pub(crate) saves: u64,
    /// From the last write of a save to the first call on new code, sorted; of the saves after which it was waited for.
    pub(crate) latencies: Vec<Duration>,
    pub(crate) calls: u64,
}

/// Where a method saves.
struct Disk {
    /// The project; a link in some methods.
    root: PathBuf,
    /// A place for what links lead to.
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
        "backup renamed, written anew (vim)",
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
        "deleted and made anew",
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
            // Nothing names it any more.
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
        // Nobody watches there: found by looking every second.
        is_told: false,
        ..Method::new("a link behind a link swapped", |disk| chain_links(disk, 0), chain_links)
    },
    Method {
        whole: Whole::Scripts,
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
        whole: Whole::Project,
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
        whole: Whole::Project,
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
    const fn new(name: &'static str, begin: fn(&Disk), save: fn(&Disk, u64)) -> Self {
        Self { name, begin, save, whole: Whole::Files, tools: 1, is_told: true }
    }

    /// Saves its share of `saves` by all methods, fewer where each takes long.
    ///
    /// # Panics
    /// When anything was seen that must not be.
    pub(crate) fn run(&self, saves: u64) -> Report {
        let mut tried = 1;
        loop {
            if let Some(report) = self.play(saves, tried == TRIES) {
                return report;
            }
            tried += 1;
        }
    }

    /// One try; `None`: something was seen and does not count.
    fn play(&self, saves: u64, is_last: bool) -> Option<Report> {
        let saves = saves / METHODS.len() as u64 / if self.is_told { 1 } else { 10 } + 1;
        let folder = tempfile::tempdir().unwrap();
        let place = fs::canonicalize(folder.path()).unwrap();
        let disk = Disk { root: place.join("root"), store: place.join("store"), tools: self.tools };
        fs::create_dir(&disk.store).unwrap();
        (self.begin)(&disk);
        let project = LiveProject::open(&disk.root, &disk.root, None).unwrap();
        let (newest, calls, ended) = (AtomicU64::new(0), AtomicU64::new(0), OnceLock::new());
        let mut latencies = Vec::new();
        let mut slow = None::<Instant>;
        let is_played = std::thread::scope(|scope| {
            let caller = || {
                let _ended = OnDrop(&ended);
                self.call_on_and_on(&project, &newest, &calls, &ended);
            };
            let callers = [scope.spawn(caller), scope.spawn(caller)];
            let _ended = OnDrop(&ended);
            for version in 1..=saves {
                let began = Instant::now();
                (self.save)(&disk, version);
                if began.elapsed() > SLOW {
                    slow = Some(Instant::now());
                }
                // Some saves follow at once, and nobody may have called what they replace.
                if fastrand::bool() || version == saves {
                    let saved = Instant::now();
                    while newest.load(Ordering::Acquire) < version && ended.get().is_none() {
                        assert!(
                            saved.elapsed() < LIMIT,
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
                if ended.get().is_some() {
                    break;
                }
            }
            if ended.get().is_none() {
                wait_for(self.name, &project, &disk);
            }
            let _ = ended.set(Instant::now());
            let fault = callers.into_iter().filter_map(|caller| caller.join().err()).last();
            let Some(fault) = fault else { return true };
            let is_void = slow.zip(ended.get()).is_some_and(|(slow, seen)| *seen < slow + LINGERS);
            if is_last || !is_void {
                std::panic::resume_unwind(fault);
            }
            false
        });
        latencies.sort_unstable();
        is_played.then(|| Report { saves, latencies, calls: calls.into_inner() })
    }

    /// Calls whatever is newest, and tells of the newest version that answered.
    fn call_on_and_on(
        &self,
        project: &LiveProject,
        newest: &AtomicU64,
        calls: &AtomicU64,
        ended: &OnceLock<Instant>,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let scripts = Arc::new(ScriptRunner::new(RunnerOptions::default()));
        let mut seen = vec![0; self.tools];
        while ended.get().is_none() {
            // The file that is written last of many, as a rule.
            let tool = if fastrand::bool() { 0 } else { fastrand::usize(..self.tools) };
            let generation = project.current();
            let runner = GenerationRunner {
                generation: Arc::clone(&generation),
                scripts: Arc::clone(&scripts),
                trust: Trust::Everything,
            };
            let name = format!("tool{tool}");
            let call =
                ToolCall { id: String::from("1"), name: name.clone(), arguments: serde_json::Map::new() };
            let answer = runtime.block_on(runner.run(call, CallContext::default()));
            let answer = answer.unwrap_or_else(|error| {
                panic!("{}: generation {}: {error}\n{}", self.name, generation.number, told(&generation))
            });
            let [first, last, module] = [0, 1, 2].map(|index| answer[index].as_u64().unwrap());
            let entry = generation.tool(&name).unwrap().entry();
            let described = entry.definition.pointer("/function/description").and_then(Value::as_str);
            let described: u64 = described.unwrap().trim_start_matches("Version ").parse().unwrap();
            let versions = format!("script {first} to {last}, module {module}, spec {described}");
            assert_eq!(first, last, "{}: half a script: {versions}", self.name);
            if self.whole != Whole::Files {
                assert_eq!(first, module, "{}: mixed: {versions}", self.name);
            }
            if self.whole == Whole::Project {
                assert_eq!(first, described, "{}: mixed: {versions}", self.name);
            }
            assert!(seen[tool] <= first, "{}: back from {} to {first}", self.name, seen[tool]);
            seen[tool] = first;
            if tool == 0 {
                newest.fetch_max(first.min(module).min(described), Ordering::AcqRel);
            }
            calls.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// So that no thread waits for one that failed; it tells when that was.
struct OnDrop<'f>(&'f OnceLock<Instant>);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.set(Instant::now());
        }
    }
}

/// Waits until what is live is what a load of what is on disk gives.
fn wait_for(method: &str, project: &LiveProject, disk: &Disk) {
    let started = Instant::now();
    loop {
        let (live, loaded) = (project.current(), Generation::load(&disk.root, &disk.root, None));
        let (live, loaded) = (described(&live), loaded.map(|loaded| described(&loaded)).unwrap_or_default());
        if live == loaded {
            return;
        }
        assert!(started.elapsed() < LIMIT, "{method}: live is\n{live}\non disk is\n{loaded}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// All that a generation is, but for its number.
pub(crate) fn described(generation: &Generation) -> String {
    let mut text = told(generation);
    for name in generation.tool_names() {
        let loaded = generation.tool(name).unwrap();
        let script = match &loaded.script {
            deftool::project::ScriptState::Ready(script) => {
                let modules = script
                    .modules
                    .iter()
                    .map(|module| format!("{} {}", module.file, String::from_utf8_lossy(&module.source)));
                let modules = modules.collect::<Vec<_>>().join("\n");
                format!("{} {}\n{modules}", script.file, String::from_utf8_lossy(&script.source))
            }
            deftool::project::ScriptState::Broken(error) => error.to_string(),
            deftool::project::ScriptState::None => String::new(),
        };
        text.extend([name, " ", &loaded.entry().definition.to_string(), " ", &script, "\n"]);
    }
    text
}

/// The findings of a generation, and the order of its tools.
fn told(generation: &Generation) -> String {
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

    /// The files of a version, in any order.
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

    /// Where what links lead to is kept: within the project, which they must not leave.
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

/// A spec in a folder that is new, and a script in another.
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

/// From the project to a link elsewhere, and from there to a file.
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
