//! How much of the projects a load reads and reports.
//!
//! A project that the user named is reported completely. Of a project with a file that the user named, only that file is
//! reported, but its other specs are read: findings depend on the names and scripts of the whole project.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::model::Input;
use crate::paths::identity;

/// The projects of a load, and the scripts that the user named.
#[derive(Default)]
pub(super) struct Extent<'i> {
    /// The projects that are reported completely.
    pub(super) whole: HashSet<&'i Path>,
    /// The projects of which all specs are read: those in `whole`, and those with files that the user named.
    pub(super) known: HashSet<&'i Path>,
    /// The scripts that the user named, by identity, each with its project and the path as it was named.
    pub(super) scripts: HashMap<PathBuf, (&'i Path, &'i PathBuf)>,
}

impl<'i> Extent<'i> {
    /// `is_check`: whether the other specs of named spec files are read. Those of named scripts always are, because they
    /// determine the tools of the scripts.
    pub(super) fn of(inputs: &'i [Input], is_check: bool) -> Self {
        let mut extent = Self::default();
        for input in inputs {
            let Some(root) = input.root.as_deref() else { continue };
            if input.whole_project {
                extent.whole.insert(root);
            }
            // A project that cannot be read has no files.
            let has_named = !input.scripts.is_empty() || is_check && !input.files.is_empty();
            if input.whole_project || has_named {
                extent.known.insert(root);
            }
            extent.scripts.extend(input.scripts.iter().map(|path| (identity(path), (root, path))));
        }
        extent
    }

    /// Returns whether all projects are reported as far as they are read.
    pub(super) fn reports_all(&self) -> bool {
        self.known.len() == self.whole.len()
    }

    /// Returns the projects of the scripts that the user named.
    pub(super) fn script_roots(&self) -> HashSet<&'i Path> {
        self.scripts.values().map(|(root, _)| *root).collect()
    }

    /// Returns whether the user named this script.
    pub(super) fn names(&self, script: &Path) -> bool {
        !self.scripts.is_empty() && self.scripts.contains_key(&identity(script))
    }
}
