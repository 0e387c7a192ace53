//! One set of files, looked at and loaded again and again.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::cache::Cache;
use super::discover::{is_source, look_at_scripts, resolve_paths, scripts_folder};
use super::load::load_through;
use super::look::{FileLook, Known, Looks};
use super::{Input, Load, LoadOptions, ProjectError};

/// What is loaded, and what was loaded last.
pub(super) struct Loader {
    wanted: Wanted,
    from: PathBuf,
    options: LoadOptions,
    cache: Cache,
    /// What everything looked like when it was last loaded.
    seen: Looks,
    /// Places outside of the listed folders that the last load names.
    named: Vec<PathBuf>,
    /// Files that look as they did and hold something else.
    doubted: HashSet<PathBuf>,
    /// Whether the cache holds what was loaded last.
    is_in_step: bool,
    /// What was read in the last load, if it came to its end, and in the last one that was taken.
    inputs: [Option<Vec<Input>>; 2],
}

/// What is loaded.
pub(super) enum Wanted {
    /// The project at this folder, whatever becomes of it.
    Project(PathBuf),
    /// What these paths mean, seen from a folder.
    Paths(Vec<PathBuf>, PathBuf),
}

/// One look around.
pub(super) struct Scan {
    inputs: Result<Vec<Input>, ProjectError>,
    pub(super) looks: Looks,
    /// What is other than what was loaded, where that is known already.
    different: Option<Vec<(PathBuf, Option<FileLook>)>>,
}

impl Loader {
    /// Names in messages are relative to `from`.
    pub(super) fn new(wanted: Wanted, from: &Path, options: LoadOptions) -> Self {
        Self {
            wanted,
            from: from.to_owned(),
            options,
            cache: Cache::default(),
            seen: Looks::default(),
            named: Vec::new(),
            doubted: HashSet::new(),
            is_in_step: false,
            inputs: [None, None],
        }
    }

    /// From now on a spec file that cannot be read is a finding.
    pub(super) fn keep_going(&mut self) {
        self.cache.keeps_going = true;
    }

    /// Looks at everything.
    pub(super) fn scan(&self) -> Scan {
        let mut looks = Looks::default();
        let inputs = match &self.wanted {
            Wanted::Project(root) => {
                look_around(root, &mut looks);
                Input::of_project(root.clone(), &mut looks).map(|input| vec![input])
            }
            Wanted::Paths(paths, folder) => {
                for path in paths {
                    looks.watch_entry(&folder.join(path));
                }
                resolve_paths(paths, folder, &mut looks)
            }
        };
        for input in inputs.iter().flatten() {
            for root in input.root.iter().filter(|_| matches!(self.wanted, Wanted::Paths(..))) {
                look_around(root, &mut looks);
            }
            // Recorded in `looks`; the load asks for them itself.
            let _ = input.around(&mut looks);
        }
        for path in &self.named {
            looks.name(path);
        }
        Scan { inputs, looks, different: None }
    }

    /// Looks at these files only, where they are what they were, files that are read or others that are not: then
    /// nothing else is another for their sake. `None`: everything has to be looked at.
    pub(super) fn glance<'p>(&self, paths: impl Iterator<Item = &'p PathBuf>) -> Option<Scan> {
        // A link is a file in two places.
        let inputs = self.inputs[1].as_ref().filter(|_| self.seen.targets.is_empty())?;
        let mut different = Vec::new();
        for path in paths {
            let found = std::fs::symlink_metadata(path).ok();
            if found.as_ref().is_some_and(|found| !found.is_file()) {
                return None;
            }
            match (self.seen.listed.get(path), found) {
                (Some(before), Some(found)) => {
                    let look = FileLook::of(&found);
                    if look != *before {
                        different.push((path.clone(), Some(look)));
                    }
                }
                (None, found) => {
                    let is_new = found.is_some() && is_source(path);
                    let is_known = self.seen.folders.contains_key(path) || self.seen.named.contains_key(path);
                    if is_new || is_known {
                        return None;
                    }
                }
                (Some(_), None) => return None,
            }
        }
        let mut looks = self.seen.clone();
        for (path, look) in &different {
            looks.listed.extend(look.map(|look| (path.clone(), look)));
        }
        Some(Scan { inputs: Ok(inputs.clone()), looks, different: Some(different) })
    }

    /// The files that are other than what was loaded. Files that may have changed without looking otherwise are read
    /// for it: those of `written`, or all.
    pub(super) fn differences(
        &mut self,
        scan: &Scan,
        written: Option<&HashSet<PathBuf>>,
    ) -> Vec<(PathBuf, Option<FileLook>)> {
        let looks = &scan.looks;
        let mut different = scan.different.clone().unwrap_or_else(|| looks.differences(&self.seen));
        // Of a folder that is another every file may be.
        let written = written.filter(|written| !written.iter().any(|path| looks.folders.contains_key(path)));
        self.doubted.extend(self.cache.doubtful(written));
        let known: HashSet<&PathBuf> = different.iter().map(|(path, _)| path).collect();
        let doubted: Vec<&PathBuf> = self.doubted.iter().filter(|path| !known.contains(path)).collect();
        for path in doubted {
            if let Known::There(look) = looks.of(path) {
                different.push((path.clone(), Some(look)));
            }
        }
        different
    }

    /// Loads what `scan` found, but for the files that are `held`. `changed`: all that is other than what was loaded;
    /// `None`: nobody knows.
    pub(super) fn load<'p>(
        &mut self,
        scan: Scan,
        changed: Option<impl Iterator<Item = &'p PathBuf>>,
        held: HashSet<PathBuf>,
    ) -> Result<Load, ProjectError> {
        // What a load that was worth nothing left in the cache is other than what was loaded.
        let changed = changed.filter(|_| std::mem::replace(&mut self.is_in_step, false));
        self.cache.begin(scan.looks, changed, held);
        self.inputs[0] = None;
        let inputs = scan.inputs?;
        let load = load_through(&mut self.cache, &inputs, &self.from, &self.options)?;
        self.inputs[0] = Some(inputs);
        Ok(load)
    }

    /// Loads everything as it is now.
    ///
    /// # Errors
    /// When it fails.
    pub(super) fn load_all(&mut self) -> Result<Load, ProjectError> {
        self.load(self.scan(), None::<std::iter::Empty<_>>, HashSet::new())
    }

    /// After a load: the files that it relies on and that are not as they were before it, but for those that were held.
    pub(super) fn torn(&self) -> Vec<PathBuf> {
        let torn = self.cache.torn();
        self.cache.forget(&torn);
        torn
    }

    /// Whether the file is part of what is loaded.
    pub(super) fn has(&self, path: &Path) -> bool {
        self.cache.has(path)
    }

    /// After a load that is taken: everything was seen but for what was `held`. Whether a file was read that holds
    /// other than before.
    pub(super) fn taken(&mut self, held: &HashSet<PathBuf>) -> bool {
        let has_news = self.cache.end();
        self.doubted.retain(|path| held.contains(path));
        self.named = self.cache.named();
        let mut seen = self.cache.take_looks();
        seen.named = self.named.iter().map(|path| (path.clone(), self.cache.look(path))).collect();
        for path in held {
            match self.seen.listed.remove(path) {
                Some(look) => drop(seen.listed.insert(path.clone(), look)),
                None => drop(seen.listed.remove(path)),
            }
        }
        self.seen = seen;
        self.is_in_step = self.inputs[0].is_some();
        // What is held may have been missing when the inputs were listed.
        self.inputs[1] = self.inputs[0].take().filter(|_| held.is_empty());
        has_news
    }
}

/// The scripts of the project at `root`, and where it would be seen that one of its folders is another.
fn look_around(root: &Path, looks: &mut Looks) {
    for folder in [root.to_owned(), root.join("specs"), scripts_folder(root)] {
        looks.watch_entry(&folder);
        looks.follow_link(&folder);
    }
    look_at_scripts(root, looks);
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::diagnostic::render::render_concise;
    use crate::project::{ScriptState, load};

    /// All that a load says, in order.
    fn described(load: &Load) -> String {
        let findings = load.findings.iter().map(|finding| render_concise(finding, &load.sources));
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
            format!("{} {} {}: {script}", load.sources.describe(at(tool)), tool.name.value, tool.valid)
        });
        let sources = load.sources.iter().map(|(_, file)| format!("{} {}", file.name, file.text.len()));
        findings.chain(tools).chain(sources).collect::<Vec<_>>().join("\n")
    }

    fn at(tool: &crate::spec::Tool) -> crate::text::Location {
        crate::text::Location { source: tool.source, span: tool.span }
    }

    /// Some file systems have a coarse clock: a file that was written twice may look as it did.
    #[test]
    fn a_file_that_looks_the_same_and_holds_something_else_is_another_until_it_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("specs/a.eld");
        fs::create_dir(path.parent().unwrap()).unwrap();
        let spec = |name: &str| format!("(defexit :name \"{name}\" :description \"d\")");
        fs::write(&path, spec("a")).unwrap();
        let wanted = Wanted::Project(folder.path().to_owned());
        let mut loader = Loader::new(wanted, folder.path(), LoadOptions::default());
        loader.load_all().unwrap();
        loader.taken(&HashSet::new());
        fs::write(&path, spec("b")).unwrap();
        loader.seen = loader.scan().looks;
        loader.cache.pretend_to_have_read(&path);
        let scan = loader.scan();
        assert!(loader.differences(&scan, Some(&HashSet::new())).is_empty());
        // Found once, it is known until it is loaded.
        for written in [None, Some(&HashSet::new())] {
            let different = loader.differences(&scan, written);
            let different: Vec<_> = different.iter().map(|(path, _)| path).collect();
            assert_eq!(different, [&path]);
        }
        let load = loader.load(scan, Some([path.clone()].iter()), HashSet::new()).unwrap();
        assert!(loader.taken(&HashSet::new()));
        assert_eq!(load.tools[0].tool.name.value, "b");
        let scan = loader.scan();
        assert!(loader.differences(&scan, None).is_empty());
    }

    /// What a load that was worth nothing read is still new.
    #[test]
    fn a_load_that_is_not_taken_is_no_load() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("specs/a.eld");
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        let wanted = Wanted::Project(folder.path().to_owned());
        let mut loader = Loader::new(wanted, folder.path(), LoadOptions::default());
        loader.load_all().unwrap();
        assert!(loader.taken(&HashSet::new()));
        fs::write(&path, "(defexit :name \"a\" :description \"d\")").unwrap();
        for _ in 0..2 {
            let scan = loader.scan();
            let changed = loader.differences(&scan, None);
            assert_eq!(changed.len(), 1);
            loader.load(scan, Some(changed.iter().map(|(path, _)| path)), HashSet::new()).unwrap();
        }
        assert!(loader.taken(&HashSet::new()));
        loader.load_all().unwrap();
        assert!(!loader.taken(&HashSet::new()));
    }

    /// A file that was away, and held back for it, is read when it is back.
    #[test]
    fn a_file_that_was_held_back_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("specs/a.eld");
        fs::create_dir(path.parent().unwrap()).unwrap();
        let spec = "(defexit :name \"a\" :description \"d\")";
        fs::write(&path, spec).unwrap();
        let wanted = Wanted::Project(folder.path().to_owned());
        let mut loader = Loader::new(wanted, folder.path(), LoadOptions::default());
        loader.load_all().unwrap();
        loader.taken(&HashSet::new());
        fs::remove_file(&path).unwrap();
        let held = HashSet::from([path.clone()]);
        loader.load(loader.scan(), Some(held.iter()), held.clone()).unwrap();
        loader.taken(&held);
        fs::write(&path, spec).unwrap();
        let scan = loader.glance(held.iter()).unwrap_or_else(|| loader.scan());
        assert_eq!(loader.differences(&scan, Some(&held)).len(), 1);
        let load = loader.load(scan, Some(held.iter()), HashSet::new()).unwrap();
        assert_eq!(load.tools.len(), 1);
    }

    /// What is told once of a file that several tools share is told of another when the one no longer uses it.
    #[test]
    fn what_tools_share_is_told_while_one_of_them_uses_it() {
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
        let wanted = Wanted::Project(root.to_owned());
        let options = LoadOptions { with_scripts: true, ..LoadOptions::default() };
        let mut loader = Loader::new(wanted, root, options);
        loader.load_all().unwrap();
        loader.taken(&HashSet::new());
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
            loader.taken(&HashSet::new());
            let whole =
                load(&[Input::of_project(root.to_owned(), &mut Looks::default()).unwrap()], root).unwrap();
            assert_eq!(described(&cached), described(&whole), "after {file}");
        }
    }

    /// Whatever is done to a project, a load that takes over what it can finds what a load of everything finds.
    #[test]
    fn a_load_through_a_cache_is_a_load() {
        const SPECS: [&str; 9] = [
            "",
            "(deftool :name \"g\" :description \"d\" :script \"other/d.lua\")",
            "(deftool :name \"a\" :description \"d\")\n(deftool :name \"b\" :description \"d\")",
            "(deftool :name \"b\" :description \"d\" :allow (:read [\"x\"]))",
            "(deftool :name \"c\" :description \"d\" :args ((:name \"x\" :type string :description \"d\")))",
            "(deftool :name \"c\" :description \"d\"",
            "(deftool :name \"d\" :description \"d\" :script \"other/d.lua\")\n(defexit :name \"e\" :description \"d\")",
            "(deflint :allow [unused-script])\n;; deftool: allow(missing-script)\n(deftool :name \"f\" :description \"d\")",
            "(defworker :name \"w\" :tools [\"a\" \"z\"] :system \"s\")",
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
        let wanted = Wanted::Project(root.to_owned());
        let options = LoadOptions { with_scripts: true, ..LoadOptions::default() };
        let mut loader = Loader::new(wanted, root, options);
        let (mut kept, mut glances) = (0, 0);
        for round in 0..400 {
            let edits = random.usize(1..3);
            let edited: Vec<PathBuf> =
                (0..edits).map(|_| edit(root, &mut random, &[&SPECS, &SCRIPTS, &MODULES])).collect();
            // Both ways of looking lead to the same.
            let glance = if random.bool() { loader.glance(edited.iter()) } else { None };
            glances += usize::from(glance.is_some());
            let scan = glance.unwrap_or_else(|| loader.scan());
            let held = HashSet::new();
            let before = loader.cache.tools.len();
            let changed = loader.differences(&scan, None);
            let changed = changed.iter().map(|(path, _)| path);
            let cached = loader.load(scan, Some(changed), held.clone()).unwrap();
            assert!(loader.torn().is_empty());
            loader.taken(&held);
            kept += before;
            let whole =
                load(&[Input::of_project(root.to_owned(), &mut Looks::default()).unwrap()], root).unwrap();
            assert_eq!(described(&cached), described(&whole), "after edit {round}");
            let scan = loader.scan();
            assert!(loader.differences(&scan, None).is_empty(), "{round}");
        }
        assert!(kept > 200, "nothing was ever taken over");
        assert!(glances > 10, "everything was always looked at: {glances}");
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
        let text = texts[kind][random.usize(..texts[kind].len())];
        match random.usize(..60) {
            0..10 => drop(fs::remove_file(&path)),
            #[cfg(unix)]
            10 => {
                let elsewhere = root.join(format!("beside-{}", random.u32(..)));
                fs::write(&elsewhere, text).unwrap();
                let _ = fs::remove_file(&path);
                std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
            }
            _ => {
                let beside = root.join("beside");
                fs::write(&beside, text).unwrap();
                fs::rename(beside, &path).unwrap();
            }
        }
        path
    }
}
