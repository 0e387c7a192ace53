//! Script files that no tool runs: what a tool without its script may have meant, or what is left over.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Load;
use super::cache::MOST_OF_SCRIPT;
use super::discover::{is_test_script, scripts_folder};
use super::look::Looks;
use super::read::{display_name, read_regular};
use super::rules::unused_script;
use super::scripts::{KeptTool, script_places};
use crate::diagnostic::Severity;
use crate::spec::{Tool, nearest};
use crate::text::{Location, SourceFile, Span};

/// The files of `scripts/` that no tool runs with their names, of each project that was read whole.
pub(super) struct SpareScripts {
    of_root: HashMap<PathBuf, BTreeMap<PathBuf, String>>,
}

impl SpareScripts {
    pub(super) fn of(load: &Load, tools: &[Option<KeptTool>], whole: &HashSet<&Path>, looks: &Looks) -> Self {
        let mut taken: HashSet<&Path> = HashSet::new();
        // Of broken tools, and of those whose script is not looked for, too.
        let mut others = Vec::new();
        for (loaded, kept) in load.tools.iter().zip(tools) {
            match kept {
                Some(kept) => taken.extend(kept.places.iter().map(PathBuf::as_path)),
                None => others.extend(
                    load.root_of(loaded.tool.source)
                        .into_iter()
                        .flat_map(|root| script_places(root, &loaded.tool)),
                ),
            }
        }
        taken.extend(others.iter().map(PathBuf::as_path));
        let mut of_root: HashMap<_, BTreeMap<_, _>> = HashMap::new();
        for &root in whole {
            let listed = looks.scripts.get(&scripts_folder(root)).into_iter().flatten();
            let is_file = |path: &&PathBuf| looks.listed.get(*path).is_some_and(|look| look.is_file);
            // Tests run by themselves.
            let is_spare = |path: &&PathBuf| !taken.contains(path.as_path()) && !is_test_script(path);
            let spare = listed.filter(is_spare).filter(is_file);
            of_root.insert(root.to_owned(), spare.map(|path| (path.clone(), stem(path))).collect());
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
                let read = read_regular(&file, MOST_OF_SCRIPT).map(|read| read.bytes);
                let text = String::from_utf8_lossy(&read.unwrap_or_default()).into_owned();
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
