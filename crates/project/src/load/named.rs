//! Scripts that the user named.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::model::Input;
use crate::paths::identity;

/// The scripts that the user named.
#[derive(Default)]
pub(super) struct NamedScripts<'i> {
    /// The files by identity, each with its project and the path as it was named.
    pub(super) files: HashMap<PathBuf, (&'i Path, &'i PathBuf)>,
}

impl<'i> NamedScripts<'i> {
    pub(super) fn of(inputs: &'i [Input]) -> Self {
        let of_input = |input: &'i Input| {
            let root = input.root.as_deref();
            root.into_iter()
                .flat_map(|root| input.scripts.iter().map(move |path| (identity(path), (root, path))))
        };
        Self { files: inputs.iter().flat_map(of_input).collect() }
    }

    /// Returns the projects of the scripts.
    pub(super) fn roots(&self) -> HashSet<&'i Path> {
        self.files.values().map(|(root, _)| *root).collect()
    }

    pub(super) fn contains(&self, path: &Path) -> bool {
        !self.files.is_empty() && self.files.contains_key(&identity(path))
    }
}
