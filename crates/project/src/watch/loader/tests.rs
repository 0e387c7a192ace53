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
    let findings =
        load.findings.iter().map(|finding| format!("{} {finding:?}", render_concise(finding, &load.sources)));
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
    const SPECS: [&str; 20] = [
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
