//! Script files that no tool runs: what a tool without its script may have meant, or what is left over.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Load;
use super::discover::{is_test_script, scripts_in};
use super::read::display_name;
use super::rules::unused_script;
use super::scripts::{read_bytes, script_places};
use crate::diagnostic::Severity;
use crate::spec::{Tool, nearest};
use crate::text::{Location, SourceFile, Span};

/// The files of `scripts/` that no tool runs with their names, of each project that was read whole.
pub(super) struct SpareScripts {
    of_root: HashMap<PathBuf, BTreeMap<PathBuf, String>>,
}

impl SpareScripts {
    pub(super) fn of(load: &Load, whole: &HashSet<&Path>) -> Self {
        let with_stem = |path: PathBuf| (path.clone(), stem(&path));
        // Tests run by themselves.
        let is_spare = |path: &PathBuf| !is_test_script(path);
        let files = |root: &Path| scripts_in(root).into_iter().filter(is_spare).map(with_stem).collect();
        let mut of_root: HashMap<_, BTreeMap<_, _>> =
            whole.iter().map(|root| ((*root).to_owned(), files(root))).collect();
        for loaded in &load.tools {
            let Some(root) = load.root_of(loaded.tool.source) else { continue };
            if let Some(files) = of_root.get_mut(root).filter(|files| !files.is_empty()) {
                for place in script_places(root, &loaded.tool) {
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
        let near = nearest(&wanted, files.values().map(String::as_str))?;
        let file = files.iter().find(|(_, stem)| *stem == near)?.0.clone();
        files.remove_entry(&file).map(|(file, _)| file)
    }

    /// Tells of those that are left, where no error may be why.
    pub(super) fn tell(self, load: &mut Load, from: &Path) {
        for (root, files) in self.of_root {
            let is_broken = load.findings.iter().any(|finding| {
                finding.severity == Severity::Error
                    && load.root_of(finding.primary.source) == Some(root.as_path())
            });
            if is_broken {
                continue;
            }
            let root: Arc<Path> = Arc::from(root);
            for (file, stem) in files {
                let text = read_bytes(&file).unwrap_or_default();
                let text = String::from_utf8_lossy(&text).into_owned();
                let first_line = text.lines().next().map_or(0, str::len);
                let source = load.sources.add(SourceFile::new(display_name(&file, from), text));
                load.roots.insert(source, Arc::clone(&root));
                let at = Location { source, span: Span::new(0, first_line) };
                load.findings.push(unused_script::finding(at, &stem));
            }
        }
    }
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
