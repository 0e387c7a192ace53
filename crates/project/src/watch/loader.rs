//! Repeated scanning and loading of one set of files.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::load::{
    Cache, FileStamp, FoundFiles, LoadState, Lookup, Snapshot, find_files, load_with_cache, read_source,
    resolve_paths, scan_scripts,
};
use crate::model::{Input, Load, LoadOptions, Overlay, ProjectError};
use crate::paths::{is_source, scripts_folder};

/// A load target with the state of its last load.
pub(super) struct Loader {
    target: LoadTarget,
    from: PathBuf,
    options: LoadOptions,
    cache: Cache,
    /// The state of the last load, if it can be the start of the next one.
    state: Option<LoadState>,
    /// The snapshot of the last committed load.
    baseline: Arc<Snapshot>,
    /// Paths outside of the scanned folders that the last load refers to.
    referenced: Vec<PathBuf>,
    /// Files with changed content and an unchanged stamp.
    suspects: HashSet<PathBuf>,
    /// Whether the cache matches the last committed load.
    is_cache_current: bool,
    /// The inputs of the current load, if it succeeded, and of the last committed load.
    inputs: [Option<Arc<Vec<Input>>>; 2],
}

/// The files to load.
pub(super) enum LoadTarget {
    /// The project in this folder.
    Project(PathBuf),
    /// These paths, relative to a folder.
    Paths(Vec<PathBuf>, PathBuf),
}

/// The result of a scan.
pub(super) struct Scan {
    inputs: Result<Arc<Vec<Input>>, ProjectError>,
    pub(super) snapshot: Arc<Snapshot>,
    /// The changes since the last load, if the scan was limited to them. `snapshot` is then the one of the last load.
    changed: Option<Vec<(PathBuf, Option<FileStamp>)>>,
}

impl Loader {
    /// Creates a loader. File names in messages are relative to `from`.
    pub(super) fn new(target: LoadTarget, from: &Path, options: LoadOptions) -> Self {
        let mut cache = Cache::default();
        cache.overlay.clone_from(&options.overlay);
        cache.selection.clone_from(&options.selection);
        cache.user.clone_from(&options.user);
        Self {
            target,
            from: from.to_owned(),
            options,
            cache,
            state: None,
            baseline: Arc::default(),
            referenced: Vec::new(),
            suspects: HashSet::new(),
            is_cache_current: false,
            inputs: [None, None],
        }
    }

    /// From now on, reports an unreadable spec file as a finding instead of failing.
    pub(super) fn keep_going(&mut self) {
        self.cache.keeps_going = true;
    }

    /// The texts to use in place of the content of files.
    pub(super) fn overlay(&mut self) -> &mut Overlay {
        &mut self.cache.overlay
    }

    /// Loads the files of the last committed load again, in which only the overlay of `edited` has changed.
    ///
    /// # Errors
    /// If the load fails. The next load must then be a complete one.
    pub(super) fn load_edited(&mut self, edited: &HashSet<PathBuf>) -> Result<Load, ProjectError> {
        let Some(inputs) = self.inputs[1].take() else { return self.load_all() };
        let scan = Scan { inputs: Ok(inputs), snapshot: std::mem::take(&mut self.baseline), changed: None };
        self.load(scan, Some(edited.iter()), HashSet::new())
    }

    /// Returns whether the last scan found the file at `path`.
    pub(super) fn is_listed(&self, path: &Path) -> bool {
        self.baseline.listed.contains_key(path)
    }

    /// Returns whether there is a file at `path`: unsaved, at the last scan or, outside of the scanned folders, on disk.
    pub(super) fn exists(&self, path: &Path) -> bool {
        self.cache.overlay.get(path).is_some()
            || match self.baseline.of(path) {
                Lookup::Present(_) => true,
                Lookup::Absent => false,
                Lookup::Unknown => path.exists(),
            }
    }

    /// Returns the text of a file: unsaved, as the last load read it or, if it is in no load, on disk.
    pub(super) fn text(&self, path: &Path) -> Option<Arc<str>> {
        let on_disk = || read_source(path).ok()?.into_text().map(Arc::from);
        self.cache.text(path).or_else(on_disk)
    }

    /// Returns the files of the project that have one of these extensions, on disk or unsaved.
    pub(super) fn find_files(&self, extensions: &[&str]) -> FoundFiles {
        let LoadTarget::Project(root) = &self.target else { return FoundFiles::default() };
        let mut found = find_files(root, extensions);
        found.add_unsaved(&self.cache.overlay, extensions);
        found
    }

    /// Returns the scripts that the last scan found in `scripts/` itself.
    pub(super) fn scripts(&self) -> &[PathBuf] {
        let found = match &self.target {
            LoadTarget::Project(root) => self.baseline.scripts.get(&scripts_folder(root)),
            LoadTarget::Paths(..) => None,
        };
        found.map_or(&[], Vec::as_slice)
    }

    /// Scans all files.
    pub(super) fn scan(&self) -> Scan {
        let mut snapshot = Snapshot::with_stamps();
        let inputs = match &self.target {
            LoadTarget::Project(root) => {
                scan_project(root, &self.options, &mut snapshot);
                Input::of_project(root.clone(), &mut snapshot).map(|mut input| {
                    input.add_unsaved(&self.cache.overlay, &mut snapshot);
                    vec![input]
                })
            }
            LoadTarget::Paths(paths, folder) => {
                for path in paths {
                    snapshot.watch_entry(&folder.join(path));
                }
                resolve_paths(paths, folder, &mut snapshot)
            }
        };
        for input in inputs.iter().flatten() {
            for root in input.root.iter().filter(|_| matches!(self.target, LoadTarget::Paths(..))) {
                scan_project(root, &self.options, &mut snapshot);
            }
            // Only the side effect on `snapshot` is needed. The load determines the files itself.
            let _ = input.other_specs(&mut snapshot);
        }
        for path in &self.referenced {
            snapshot.add_referenced(path);
        }
        Scan { inputs: inputs.map(Arc::new), snapshot: Arc::new(snapshot), changed: None }
    }

    /// Scans only these paths. Returns `None` if a full scan is necessary: a path was added or removed, is not a
    /// regular file, or is outside of the scanned folders.
    pub(super) fn scan_changed<'p>(&self, paths: impl Iterator<Item = &'p PathBuf>) -> Option<Scan> {
        // A linked file has two paths.
        let inputs = self.inputs[1].as_ref().filter(|_| self.baseline.targets.is_empty())?;
        let mut changed = Vec::new();
        for path in paths {
            let found = std::fs::symlink_metadata(path).ok();
            if found.as_ref().is_some_and(|found| !found.is_file()) {
                return None;
            }
            match (self.baseline.listed.get(path), found) {
                (Some(before), Some(found)) => {
                    let stamp = FileStamp::of(&found);
                    if stamp != *before {
                        changed.push((path.clone(), Some(stamp)));
                    }
                }
                (None, found) => {
                    let is_new = found.is_some() && is_source(path);
                    let is_known = self.baseline.folders.contains_key(path)
                        || self.baseline.referenced.contains_key(path);
                    if is_new || is_known {
                        return None;
                    }
                }
                (Some(_), None) => return None,
            }
        }
        let (inputs, snapshot) = (Ok(Arc::clone(inputs)), Arc::clone(&self.baseline));
        Some(Scan { inputs, snapshot, changed: Some(changed) })
    }

    /// Returns the files that changed since the last load. Also reads the files in `written`, or all of them, if
    /// their content may have changed without a new stamp.
    pub(super) fn differences(
        &mut self,
        scan: &Scan,
        written: Option<&HashSet<PathBuf>>,
    ) -> Vec<(PathBuf, Option<FileStamp>)> {
        let snapshot = &scan.snapshot;
        let mut changed = scan.changed.clone().unwrap_or_else(|| snapshot.differences(&self.baseline));
        // If a folder changed, any file in it may have changed, so all files are read.
        let written =
            written.filter(|written| !written.iter().any(|path| snapshot.folders.contains_key(path)));
        self.suspects.extend(self.cache.find_undetected(written));
        let known: HashSet<&PathBuf> = changed.iter().map(|(path, _)| path).collect();
        let suspects: Vec<&PathBuf> = self.suspects.iter().filter(|path| !known.contains(path)).collect();
        for path in suspects {
            if let Lookup::Present(stamp) = snapshot.of(path) {
                changed.push((path.clone(), Some(stamp)));
            }
        }
        changed
    }

    /// Loads the result of a scan without the `deferred` files. `changed`: all files that changed since the last load,
    /// or `None` if unknown.
    pub(super) fn load<'p>(
        &mut self,
        scan: Scan,
        changed: Option<impl Iterator<Item = &'p PathBuf>>,
        deferred: HashSet<PathBuf>,
    ) -> Result<Load, ProjectError> {
        // A discarded load leaves newer entries in the cache, so `changed` is not complete.
        let changed = changed.filter(|_| std::mem::replace(&mut self.is_cache_current, false));
        self.cache.begin(scan.snapshot, scan.changed.unwrap_or_default(), changed, deferred);
        self.inputs[0] = None;
        // After a load that fails, the next one is complete.
        let mut state = self.state.take();
        let inputs = scan.inputs?;
        let load = load_with_cache(&mut self.cache, &mut state, &inputs, &self.from, &self.options)?;
        (self.state, self.inputs[0]) = (state, Some(inputs));
        Ok(load)
    }

    /// Loads all files in their current state.
    ///
    /// # Errors
    /// If the load fails.
    pub(super) fn load_all(&mut self) -> Result<Load, ProjectError> {
        self.load(self.scan(), None::<std::iter::Empty<_>>, HashSet::new())
    }

    /// Returns the files that changed during the load, without the deferred ones, and drops their cache entries.
    pub(super) fn torn(&self) -> Vec<PathBuf> {
        let torn = self.cache.torn();
        self.cache.forget(&torn);
        torn
    }

    /// Returns whether the file is part of the load.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.cache.has(path)
    }

    /// Accepts the last load: its snapshot becomes the baseline, except for the `deferred` files. Returns whether any
    /// file's content changed.
    pub(super) fn commit(&mut self, deferred: &HashSet<PathBuf>) -> bool {
        let uses_same_files = self.state.as_ref().is_some_and(LoadState::uses_same_files);
        let has_changes = self.cache.end(uses_same_files);
        self.suspects.retain(|path| deferred.contains(path));
        if !uses_same_files {
            self.referenced = self.cache.referenced();
        }
        let referenced = self.referenced.iter().map(|path| (path.clone(), self.cache.stamp(path))).collect();
        let stamp_before = |path| (path, self.baseline.listed.get(path).copied());
        let before: Vec<_> = deferred.iter().map(stamp_before).collect();
        // The snapshot of the load may be the baseline.
        self.baseline = Arc::default();
        let mut baseline = self.cache.take_snapshot();
        baseline.referenced = referenced;
        for (path, stamp) in before {
            match stamp {
                Some(stamp) => drop(baseline.listed.insert(path.clone(), stamp)),
                None => drop(baseline.listed.remove(path)),
            }
        }
        self.baseline = Arc::new(baseline);
        self.is_cache_current = self.inputs[0].is_some();
        // A deferred file may have been missing when the inputs were listed.
        self.inputs[1] = self.inputs[0].take().filter(|_| deferred.is_empty());
        has_changes
    }
}

/// Scans the scripts of the project at `root` and watches the project folders themselves. If only some tools are loaded,
/// the snapshot contains only the scripts that they refer to.
fn scan_project(root: &Path, options: &LoadOptions, snapshot: &mut Snapshot) {
    for folder in [root.to_owned(), root.join("specs"), scripts_folder(root)] {
        snapshot.watch_entry(&folder);
        snapshot.follow_link(&folder);
    }
    // A link above the project may be replaced.
    snapshot.has_hidden_changes |= std::fs::canonicalize(root).is_ok_and(|target| target != root);
    if options.selection.is_all() {
        scan_scripts(root, snapshot);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Instant;

    use deftool_lang::diagnostic::render::render_concise;

    use deftool_lang::schema::Target;
    use deftool_lang::spec::ToolSelection;

    use super::*;
    use crate::generation::Generation;
    use crate::{ScriptState, load, load_with};

    /// Renders a load as text: findings, tools and sources in order, with all spans.
    fn described(load: &Load) -> String {
        let findings = load
            .findings
            .iter()
            .map(|finding| format!("{} {finding:?}", render_concise(finding, &load.sources)));
        let tools = load.tools.iter().map(|loaded| {
            let tool = &loaded.tool;
            let script = match &loaded.script {
                ScriptState::None => String::from("none"),
                ScriptState::Broken(error) => error.to_string(),
                ScriptState::Ready(script) => {
                    let modules = script.modules.iter().map(|module| (&module.file, module.source.len()));
                    let modules = modules.collect::<Vec<_>>();
                    format!("{} {} {modules:?} {:?}", script.file, script.source.len(), script.permissions)
                }
            };
            format!("{} {:?} {tool:?}: {script}", load.sources.describe(at(tool)), loaded.shadowed_by)
        });
        let asks = load.asks().into_iter().map(|ask| format!("{ask:?}"));
        let sources = load.sources.iter().map(|(_, file)| format!("{} {}", file.name, file.text.len()));
        findings.chain(tools).chain(asks).chain(sources).collect::<Vec<_>>().join("\n")
    }

    /// Returns the tools of a generation, each with its parameters and its script.
    fn scripts_of(generation: &Generation) -> Vec<String> {
        let tools = generation.tools().map(|loaded| {
            let script = match &loaded.script {
                ScriptState::Ready(script) => String::from_utf8_lossy(&script.source).into_owned(),
                ScriptState::None => String::from("none"),
                ScriptState::Broken(error) => error.to_string(),
            };
            format!("{} {}: {script}", loaded.tool.name.value, loaded.tool.arguments.len())
        });
        tools.collect()
    }

    fn at(tool: &deftool_lang::spec::Tool) -> deftool_lang::text::Location {
        deftool_lang::text::Location { source: tool.source, span: tool.span }
    }

    /// Some file systems have coarse timestamps: two writes in a row may leave the same stamp.
    #[test]
    fn a_change_without_a_new_stamp_is_found_until_it_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("specs/a.eld");
        fs::create_dir(path.parent().unwrap()).unwrap();
        let spec = |name: &str| format!("(defexit :name \"{name}\" :description \"d\")");
        fs::write(&path, spec("a")).unwrap();
        let target = LoadTarget::Project(folder.path().to_owned());
        let mut loader = Loader::new(target, folder.path(), LoadOptions::default());
        loader.load_all().unwrap();
        loader.commit(&HashSet::new());
        fs::write(&path, spec("b")).unwrap();
        loader.baseline = loader.scan().snapshot;
        loader.cache.set_stamp_to_current(&path);
        let scan = loader.scan();
        assert!(loader.differences(&scan, Some(&HashSet::new())).is_empty());
        // A change that was found once is reported until it is loaded.
        for written in [None, Some(&HashSet::new())] {
            let changed = loader.differences(&scan, written);
            let changed: Vec<_> = changed.iter().map(|(path, _)| path).collect();
            assert_eq!(changed, [&path]);
        }
        let load = loader.load(scan, Some([path.clone()].iter()), HashSet::new()).unwrap();
        assert!(loader.commit(&HashSet::new()));
        assert_eq!(load.tools[0].tool.name.value, "b");
        let scan = loader.scan();
        assert!(loader.differences(&scan, None).is_empty());
    }

    /// Files that a discarded load read still count as changed.
    #[test]
    fn a_discarded_load_does_not_hide_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("specs/a.eld");
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        let target = LoadTarget::Project(folder.path().to_owned());
        let mut loader = Loader::new(target, folder.path(), LoadOptions::default());
        loader.load_all().unwrap();
        assert!(loader.commit(&HashSet::new()));
        fs::write(&path, "(defexit :name \"a\" :description \"d\")").unwrap();
        for _ in 0..2 {
            let scan = loader.scan();
            let changed = loader.differences(&scan, None);
            assert_eq!(changed.len(), 1);
            loader.load(scan, Some(changed.iter().map(|(path, _)| path)), HashSet::new()).unwrap();
        }
        assert!(loader.commit(&HashSet::new()));
        loader.load_all().unwrap();
        assert!(!loader.commit(&HashSet::new()));
    }

    /// A file that was deleted and deferred is read when it is back.
    #[test]
    fn a_deferred_file_is_loaded_when_it_is_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("specs/a.eld");
        fs::create_dir(path.parent().unwrap()).unwrap();
        let spec = "(defexit :name \"a\" :description \"d\")";
        fs::write(&path, spec).unwrap();
        let target = LoadTarget::Project(folder.path().to_owned());
        let mut loader = Loader::new(target, folder.path(), LoadOptions::default());
        loader.load_all().unwrap();
        loader.commit(&HashSet::new());
        fs::remove_file(&path).unwrap();
        let deferred = HashSet::from([path.clone()]);
        loader.load(loader.scan(), Some(deferred.iter()), deferred.clone()).unwrap();
        loader.commit(&deferred);
        fs::write(&path, spec).unwrap();
        let scan = loader.scan_changed(deferred.iter()).unwrap_or_else(|| loader.scan());
        assert_eq!(loader.differences(&scan, Some(&deferred)).len(), 1);
        let load = loader.load(scan, Some(deferred.iter()), HashSet::new()).unwrap();
        assert_eq!(load.tools.len(), 1);
    }

    /// A finding in a shared file is reported for one tool. When that tool stops using the file, the finding is
    /// reported for another tool.
    #[test]
    fn a_finding_in_a_shared_file_is_reported_while_a_tool_uses_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for folder in ["specs", "scripts/lib", "other"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let shared = |name: &str| {
            format!(r#"(deftool :name "{name}" :description "Does it." :script "other/shared.lua")"#)
        };
        let requires = "local m = require('./lib/m') return function() return m end";
        for (file, text) in [
            ("specs/1.eld", &*shared("one")),
            ("specs/2.eld", &*shared("two")),
            ("specs/3.eld", r#"(deftool :name "three" :description "Does it.")"#),
            ("specs/4.eld", r#"(deftool :name "four" :description "Does it.")"#),
            ("other/shared.lua", "return function() return nowhere end"),
            ("scripts/three.lua", requires),
            ("scripts/four.lua", requires),
            ("scripts/lib/m.lua", "require('./m') return nowhere"),
        ] {
            fs::write(root.join(file), text).unwrap();
        }
        let target = LoadTarget::Project(root.to_owned());
        let options = LoadOptions { with_scripts: true, ..LoadOptions::default() };
        let mut loader = Loader::new(target, root, options);
        loader.load_all().unwrap();
        loader.commit(&HashSet::new());
        for (file, text) in [
            ("specs/1.eld", "; gone"),
            ("scripts/three.lua", "return function() end"),
            ("scripts/four.lua", "return function() return require end"),
            ("specs/2.eld", "; gone"),
        ] {
            fs::write(root.join(file), text).unwrap();
            let scan = loader.scan();
            let changed = loader.differences(&scan, None);
            let changed = changed.iter().map(|(path, _)| path);
            let cached = loader.load(scan, Some(changed), HashSet::new()).unwrap();
            loader.commit(&HashSet::new());
            let whole =
                load(&[Input::of_project(root.to_owned(), &mut Snapshot::default()).unwrap()], root).unwrap();
            assert_eq!(described(&cached), described(&whole), "after {file}");
        }
    }

    #[test]
    fn an_incremental_load_equals_a_full_load() {
        let targets = vec![Target::OpenAiStrict, Target::Gemini];
        compare_incremental_loads(LoadOptions { targets, ..LoadOptions::default() }, [200, 100]);
    }

    #[test]
    fn an_incremental_load_of_some_tools_equals_a_full_load_of_them() {
        let selection = ToolSelection::named("b");
        compare_incremental_loads(LoadOptions { selection, ..LoadOptions::default() }, [20, 10]);
    }

    /// After random edits, an incremental load has the same result as a full load. `least`: the expected numbers of reused
    /// tools, and of loads made from the load before.
    fn compare_incremental_loads(options: LoadOptions, least: [usize; 2]) {
        const SPECS: [&str; 23] = [
            "",
            ";; Moves what follows.",
            "\n\n",
            "(deftool :name \"A\" :description \"d\" :args ((:name \"x\" :type \"string\") (:name \"y\" :typ strng)))",
            "(deftool :name \"a\" :description \"d\" :descripton \"d\" :targets (:gemni (:description \"d\")))",
            ";; deftool: skip\n(deftool :name \"b\" :description \"d\")",
            "(deftool :name \"b\" :description \"d\" :args ((:name \"x\" :type string :pattern \"\\d\")) :accepts [(:x 1)])",
            "(deftool :name \"c\" :description \"d\" :command [\"ls\" \"{x}\"] :args ((:name \"x\" :type string)) :confirm (:when (:x \"a\")))",
            "(deftool :name \"h\" :description \"d\" :returns (:type string :maxLength 900000))",
            "  (deftool :name \"c\" :description \"d\" :unknown 1) 12 13",
            "(defexit :name \"B\" :description \"d\" :targets (:gemini (:description \"e\")))",
            "(defworker :name \"w\" :exit-tools [\"e\" \"b\"] :max-result \"1KiB\")",
            "(deftool :name \"g\" :description \"d\" :script \"other/d.lua\")",
            "(deftool :name \"a\" :description \"d\")\n(deftool :name \"b\" :description \"d\")",
            "(deftool :name \"b\" :description \"d\" :allow (:read [\"x\"]))",
            "(deftool :name \"c\" :description \"d\" :args ((:name \"x\" :type string :description \"d\")))",
            "(deftool :name \"c\" :description \"d\"",
            "(deftool :name \"d\" :description \"d\" :script \"other/d.lua\")\n(defexit :name \"e\" :description \"d\")",
            "(defproject :allow [unused-script])\n;; deftool: allow(missing-script)\n(deftool :name \"f\" :description \"d\")",
            "(defworker :name \"w\" :tools [\"a\" \"z\"] :system \"s\")",
            "(deftool :name \"c\" :description \"d\" :args ((:name \"x\" :type string))
               :asks [(\"p\" :call (:x (any \"a\" 1)) :ignore (y)) (\"p\" :call t) (\"q\" :call (:x (optional \"d\")) :history [(a :call (:x 1) :result \"r\")])])",
            "(defask :prompt \"p\" :calls [(c :call (:x \"a\")) (gone :call t)])\n(defask :prompt \"r\" :call none)",
            "(defask :prompt \"r\" :calls [(c :call (:x (schema :type string :pattern \"(\"))) (b :call (:z 1))])",
        ];
        const SCRIPTS: [&str; 10] = [
            "return function() return nowhere end",
            "require('./lib/m') require('./lib/n') return function() end",
            "return function() return 1 end",
            "return function(x) return x end",
            "return function(",
            "return require('./lib/m')",
            "local m = require('./lib/m') return function() return m end",
            "local n, m = require('./lib/n'), require('./lib/m') return function() end",
            "local l = require('./lib/deep/l') return function() end",
            "",
        ];
        const MODULES: [&str; 6] = [
            "return 1",
            "return (",
            "return require('./n')",
            "return require('../m')",
            "local x = 1",
            "return nowhere",
        ];
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join("specs")).unwrap();
        let mut random = fastrand::Rng::with_seed(7);
        let target = LoadTarget::Project(root.to_owned());
        let options = LoadOptions { with_scripts: true, ..options };
        let mut loader = Loader::new(target, root, options.clone());
        let (mut reused, mut reused_loads, mut partial_scans) = (0, 0, 0);
        let mut generation = Generation::first(Load::default(), Instant::now());
        for round in 0..400 {
            let edits = random.usize(1..3);
            let edited: Vec<PathBuf> =
                (0..edits).map(|_| edit(root, &mut random, &[&SPECS, &SCRIPTS, &MODULES])).collect();
            // Partial and full scans have the same result.
            let partial = if random.bool() { loader.scan_changed(edited.iter()) } else { None };
            partial_scans += usize::from(partial.is_some());
            let scan = partial.unwrap_or_else(|| loader.scan());
            let deferred = HashSet::new();
            let before = loader.cache.tool_count();
            let changed = loader.differences(&scan, None);
            let changed = changed.iter().map(|(path, _)| path);
            let cached = loader.load(scan, Some(changed), deferred.clone()).unwrap();
            assert!(loader.torn().is_empty());
            loader.commit(&deferred);
            reused += before;
            reused_loads += usize::from(loader.state.as_ref().is_some_and(LoadState::is_reused));
            let inputs = [Input::of_project(root.to_owned(), &mut Snapshot::default()).unwrap()];
            let whole = load_with(&inputs, root, &options).unwrap();
            assert_eq!(described(&cached), described(&whole), "after edit {round}");
            let after = |load| Generation::after(&generation, load, Instant::now(), |_| true).0;
            let (next, expected) = (after(cached), after(whole));
            assert_eq!(next.changes, expected.changes, "after edit {round}");
            assert_eq!(scripts_of(&next), scripts_of(&expected), "after edit {round}");
            generation = next;
            let scan = loader.scan();
            assert!(loader.differences(&scan, None).is_empty(), "{round}");
        }
        assert!(reused > least[0], "too few tools were reused: {reused}");
        assert!(reused_loads > least[1], "too few loads were made from the last one: {reused_loads}");
        assert!(partial_scans > 10, "too few partial scans: {partial_scans}");
    }

    fn edit(root: &Path, random: &mut fastrand::Rng, texts: &[&[&str]; 3]) -> PathBuf {
        const PLACES: [(&str, usize); 16] = [
            ("specs/1.eld", 0),
            ("specs/2.eld", 0),
            ("specs/deep/3.eld", 0),
            ("scripts/a.lua", 1),
            ("scripts/a.luau", 1),
            ("scripts/b.lua", 1),
            ("scripts/c.lua", 1),
            ("scripts/e.lua", 1),
            ("scripts/f.lua", 1),
            ("scripts/unused.lua", 1),
            ("other/d.lua", 1),
            ("scripts/lib/m.lua", 2),
            ("scripts/lib/m.luau", 2),
            ("scripts/lib/n.lua", 2),
            ("scripts/lib/deep/l.lua", 2),
            ("scripts/lib/k.lua", 2),
        ];
        let (name, kind) = PLACES[random.usize(..PLACES.len())];
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Several forms in a file, which later edits move, also to other files.
        let count = if kind == 0 { random.usize(1..5) } else { 1 };
        let text: Vec<&str> = (0..count).map(|_| texts[kind][random.usize(..texts[kind].len())]).collect();
        let text = text.join("\n");
        match random.usize(..60) {
            0..10 => drop(fs::remove_file(&path)),
            #[cfg(unix)]
            10 => {
                let target = root.join(format!("beside-{}", random.u32(..)));
                fs::write(&target, &text).unwrap();
                let _ = fs::remove_file(&path);
                std::os::unix::fs::symlink(&target, &path).unwrap();
            }
            _ => {
                let temporary = root.join("beside");
                fs::write(&temporary, text).unwrap();
                fs::rename(temporary, &path).unwrap();
            }
        }
        path
    }
}
