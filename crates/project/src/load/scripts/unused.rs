//! Script files that no tool uses: leftovers, and candidates for tools without a script.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_lang::diagnostic::Severity;
use deftool_lang::spec::{Tool, nearest};
use deftool_lang::text::{Location, SourceFile, Span};

use super::file::read_script;
use crate::load::cache::{Cache, key_of};
use crate::load::extent::Extent;
use crate::load::model::{Slot, users_of};
use crate::load::snapshot::Snapshot;
use crate::model::Load;
use crate::paths::{display_name, folders_with_scripts, is_test_script, lib_folder, scripts_folder};
use crate::rules::unused_script;

/// Unused files, with the stems of their names.
type Unused = BTreeMap<PathBuf, String>;

/// The unused files of `scripts/` in each project, and those that the user named.
#[derive(Clone, Default)]
pub(crate) struct UnusedScripts {
    by_root: HashMap<PathBuf, Unused>,
    /// The projects whose unused files are reported. Those of others are only candidates for tools without a script.
    whole: HashSet<PathBuf>,
    /// These are reported even in a project with errors.
    named: HashMap<PathBuf, Unused>,
}

impl UnusedScripts {
    /// Searches for the files without one of `users`, by the keys of their paths.
    pub(super) fn of(users: &BTreeSet<(u64, Slot)>, extent: &Extent<'_>, snapshot: &Snapshot) -> Self {
        let is_file = |path: &PathBuf| snapshot.listed.get(path).is_some_and(|stamp| stamp.is_file);
        // Test scripts are not used by tools.
        let is_unused = |path: &PathBuf| {
            users_of(users, key_of(path)).next().is_none() && !is_test_script(path) && is_file(path)
        };
        let unused_in = |folder: &Path, is_wanted: &dyn Fn(&PathBuf) -> bool| -> Unused {
            let listed = snapshot.scripts.get(folder).into_iter().flatten();
            let unused = listed.filter(|path| is_unused(path) && is_wanted(path));
            unused.map(|path| (path.clone(), stem(path))).collect()
        };
        let of_project = |&root: &&Path| (root.to_owned(), unused_in(&scripts_folder(root), &|_| true));
        let of_named = |root: &Path| {
            // Modules may be waiting for their first tool.
            let (lib, of_scripts) = (lib_folder(root), folders_with_scripts(root));
            let is_inside = |folder: &&PathBuf| of_scripts.iter().any(|scripts| folder.starts_with(scripts));
            let is_wanted = |path: &PathBuf| !path.starts_with(&lib) && extent.names(path);
            let folders = snapshot.scripts.keys().filter(is_inside);
            (root.to_owned(), folders.flat_map(|folder| unused_in(folder, &is_wanted)).collect())
        };
        Self {
            by_root: extent.known.iter().map(of_project).collect(),
            whole: extent.whole.iter().map(|root| root.to_path_buf()).collect(),
            named: extent.script_roots().into_iter().map(of_named).collect(),
        }
    }

    /// Returns the projects whose other scripts are checked, too.
    pub(super) fn roots(&self) -> impl Iterator<Item = &Path> {
        self.whole.iter().chain(self.named.keys()).map(PathBuf::as_path)
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

    /// Reports the remaining files, unless the project has errors that may be the cause, and the named files.
    pub(super) fn report(self, cache: &Cache, load: &mut Load, from: &Path) {
        let mut unused = self.by_root;
        unused.retain(|root, _| {
            self.whole.contains(root)
                && !load.findings.iter().any(|finding| {
                    finding.severity == Severity::Error
                        && load.root_of(finding.primary.source) == Some(root.as_path())
                })
        });
        for (root, files) in unused.into_iter().chain(self.named) {
            let root: Arc<Path> = Arc::from(root);
            for (file, stem) in files {
                let read = read_script(cache, &root, &file, from);
                let text = read.map_or_else(|_| String::new(), |read| read.text());
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
