//! Script files that no tool uses: leftovers, and candidates for tools without a script.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_lang::diagnostic::Severity;
use deftool_lang::spec::{Tool, nearest};
use deftool_lang::text::{Location, SourceFile, Span};

use super::file::script_candidates;
use crate::load::cache::key_of;
use crate::load::model::CachedTool;
use crate::load::read::{Known, MAX_SCRIPT_READ, read_regular};
use crate::load::snapshot::Snapshot;
use crate::model::Load;
use crate::paths::{display_name, is_test_script, scripts_folder};
use crate::rules::unused_script;

/// The unused files of `scripts/`, for each project that is read completely.
pub(super) struct UnusedScripts {
    by_root: HashMap<PathBuf, BTreeMap<PathBuf, String>>,
}

impl UnusedScripts {
    pub(super) fn of(
        load: &Load,
        tools: &[Option<CachedTool>],
        whole: &HashSet<&Path>,
        snapshot: &Snapshot,
    ) -> Self {
        // The keys of the paths that a tool uses or would use.
        let mut taken: HashSet<u64> = HashSet::new();
        for (loaded, cached) in load.tools.iter().zip(tools) {
            if let Some(cached) = cached {
                taken.extend(&cached.keys);
            } else if let Some(root) = load.root_of(loaded.tool.source) {
                // A broken tool, or one without a script lookup.
                taken.extend(script_candidates(root, &loaded.tool).iter().map(|path| key_of(path)));
            }
        }
        let mut by_root: HashMap<_, BTreeMap<_, _>> = HashMap::new();
        for &root in whole {
            let listed = snapshot.scripts.get(&scripts_folder(root)).into_iter().flatten();
            let is_file = |path: &&PathBuf| snapshot.listed.get(*path).is_some_and(|stamp| stamp.is_file);
            // Test scripts are not used by tools.
            let is_unused = |path: &&PathBuf| !taken.contains(&key_of(path)) && !is_test_script(path);
            let unused = listed.filter(is_unused).filter(is_file);
            by_root.insert(root.to_owned(), unused.map(|path| (path.clone(), stem(path))).collect());
        }
        Self { by_root }
    }

    /// Returns the projects that are read completely.
    pub(super) fn roots(&self) -> impl Iterator<Item = &Path> {
        self.by_root.keys().map(PathBuf::as_path)
    }

    /// Removes and returns the unused file with the most similar name to the script of `tool`.
    pub(super) fn take_near(&mut self, root: &Path, tool: &Tool) -> Option<PathBuf> {
        let files = self.by_root.get_mut(root)?;
        let expected = match &tool.script {
            Some(path) => stem(Path::new(&path.value)),
            None => tool.name.value.clone(),
        };
        let near = nearest(&expected, files.values().map(String::as_str))?;
        let file = files.iter().find(|(_, stem)| *stem == near)?.0.clone();
        files.remove_entry(&file).map(|(file, _)| file)
    }

    /// Reports the remaining files, unless the project has errors that may be the cause.
    pub(super) fn report(self, load: &mut Load, from: &Path) {
        for (root, files) in self.by_root {
            let is_broken = load.findings.iter().any(|finding| {
                finding.severity == Severity::Error
                    && load.root_of(finding.primary.source) == Some(root.as_path())
            });
            if is_broken {
                continue;
            }
            let root: Arc<Path> = Arc::from(root);
            for (file, stem) in files {
                let read = read_regular(&file, Known::Nothing, MAX_SCRIPT_READ).map(|read| read.bytes);
                let text = String::from_utf8_lossy(&read.unwrap_or_default()).into_owned();
                let first_line = text.lines().next().map_or(0, str::len);
                let source = load.add_source(SourceFile::new(display_name(&file, from), text), Some(&root));
                let at = Location { source, span: Span::new(0, first_line) };
                load.findings.push(unused_script::finding(at, &stem));
            }
        }
    }
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
