//! Script files that no tool runs: what a tool without its script may have meant, or what is left over.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::Load;
use super::read::display_name;
use super::rules::unused_script;
use super::scripts::{read_bytes, script_places};
use crate::diagnostic::Severity;
use crate::spec::{Tool, nearest};
use crate::text::{Location, SourceFile, Span};

/// The files of `scripts/` that no tool runs, of each project that was read whole.
pub(super) struct SpareScripts {
    of_root: HashMap<PathBuf, BTreeSet<PathBuf>>,
}

impl SpareScripts {
    pub(super) fn of(load: &Load, whole: &HashSet<&PathBuf>) -> Self {
        let mut of_root = HashMap::new();
        for &root in whole {
            let absolute = std::path::absolute(root).unwrap_or_else(|_| root.clone());
            of_root.insert(absolute.clone(), scripts_in(&absolute));
        }
        let is_any = of_root.values().any(|files: &BTreeSet<PathBuf>| !files.is_empty());
        for loaded in load.tools.iter().filter(|_| is_any) {
            let Some(root) = load.roots.get(&loaded.tool.source) else { continue };
            let root = std::path::absolute(root).unwrap_or_else(|_| root.clone());
            if let Some(files) = of_root.get_mut(&root) {
                for place in script_places(&root, &loaded.tool) {
                    files.remove(&place);
                }
            }
        }
        Self { of_root }
    }

    /// The file that a tool without a script may have meant; it is spare no longer.
    pub(super) fn take_near(&mut self, root: &Path, tool: &Tool) -> Option<PathBuf> {
        let files = self.of_root.get_mut(root)?;
        let wanted = match &tool.script {
            Some(path) => stem(Path::new(&path.value)),
            None => tool.name.value.clone(),
        };
        let stems: Vec<(String, PathBuf)> = files.iter().map(|file| (stem(file), file.clone())).collect();
        let near = nearest(&wanted, stems.iter().map(|(stem, _)| stem.as_str()))?;
        let (_, file) = stems.iter().find(|(stem, _)| stem == near)?;
        files.take(file)
    }

    /// Tells of those that are left, where no error may be why.
    pub(super) fn tell(self, load: &mut Load, from: &Path) {
        for (root, files) in self.of_root {
            let is_of_root = |source| {
                load.roots
                    .get(&source)
                    .is_some_and(|of| std::path::absolute(of).is_ok_and(|absolute| absolute == root))
            };
            let is_broken = load
                .findings
                .iter()
                .any(|finding| finding.severity == Severity::Error && is_of_root(finding.primary.source));
            if is_broken {
                continue;
            }
            for file in files {
                let text = read_bytes(&file).unwrap_or_default();
                let text = String::from_utf8_lossy(&text).into_owned();
                let first_line = text.lines().next().map_or(0, str::len);
                let source = load.sources.add(SourceFile::new(display_name(&file, from), text));
                load.roots.insert(source, root.clone());
                let at = Location { source, span: Span::new(0, first_line) };
                load.findings.push(unused_script::finding(at, &stem(&file)));
            }
        }
    }
}

/// The scripts beside `specs/`, not those in folders below.
fn scripts_in(root: &Path) -> BTreeSet<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root.join("scripts")) else { return BTreeSet::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.filter(|path| is_script(path) && path.is_file()).collect()
}

fn is_script(path: &Path) -> bool {
    let is_hidden = stem(path).starts_with('.');
    !is_hidden && path.extension().is_some_and(|extension| extension == "lua" || extension == "luau")
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
