//! The unit of a file, and the types of the project.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deftool_lang::spec::Tool;
use deftool_project::{display_name, is_test_script};
use deftool_script::{
    Definitions, MAX_MODULES, ModuleText, ScriptUnit, find_requires, module_path, tool_types,
};

use crate::project::{Language, Project};

/// Maximum length of all modules of a unit, in bytes.
const MAX_MODULE_TEXT: usize = 1 << 20;

/// The types of a project for its scripts.
pub struct ScriptTypes {
    /// The tools that they were made from.
    tools: Vec<Arc<Tool>>,
    definitions: Definitions,
    /// The types of the parameters of each tool's script.
    parameters: HashMap<String, Vec<Option<String>>>,
}

impl ScriptTypes {
    /// Creates the types of a project.
    pub fn of(project: &Project) -> Self {
        let tools: Vec<Arc<Tool>> =
            project.load().tools.iter().map(|loaded| Arc::clone(&loaded.tool)).collect();
        let types = tool_types(tools.iter().map(AsRef::as_ref));
        let parameters =
            types.iter().map(|types| (types.tool().name.value.clone(), types.parameters())).collect();
        Self { definitions: Definitions::of(tools.iter().map(AsRef::as_ref)), parameters, tools }
    }

    /// Returns whether the tools of the project are still the same.
    pub fn is_current(&self, project: &Project) -> bool {
        let tools = &project.load().tools;
        tools.len() == self.tools.len()
            && tools.iter().zip(&self.tools).all(|(loaded, tool)| Arc::ptr_eq(&loaded.tool, tool))
    }

    /// Returns the definitions for an analyzer.
    pub fn definitions(&self) -> &Definitions {
        &self.definitions
    }
}

/// Returns the unit of a script, module or test script. Returns `None` for other files.
pub fn script_unit(project: &Project, types: &ScriptTypes, path: &Path) -> Option<ScriptUnit> {
    if Language::of(path) != Some(Language::Script) {
        return None;
    }
    let file = display_name(path, project.root());
    // Offsets would be those of a different text.
    let text = project.text(path).filter(|text| !text.starts_with('\u{FEFF}'))?;
    let tool = project.tools_of_script(path).next();
    let parameters = tool.and_then(|loaded| types.parameters.get(&loaded.tool.name.value));
    Some(ScriptUnit {
        modules: modules(project, &file, &text).into(),
        parameters: parameters.cloned().unwrap_or_default(),
        is_test: tool.is_none() && is_test_script(path),
        file,
        text,
    })
}

/// Returns the modules that a source requires, directly or indirectly. A source that does not compile has modules, too.
fn modules(project: &Project, file: &str, text: &str) -> Vec<ModuleText> {
    let mut found: Vec<ModuleText> = Vec::new();
    let mut length = 0;
    let mut pending = VecDeque::from([(file.to_owned(), Arc::<str>::from(text))]);
    while let Some((file, text)) = pending.pop_front() {
        for require in find_requires(text.as_bytes()) {
            let module = require.path.and_then(|wanted| module_path(&file, &wanted).ok());
            let Some(module) = module.and_then(|module| find_module(project, &module)) else { continue };
            length += module.text.len();
            let is_known = found.iter().any(|known| known.file == module.file);
            if is_known || found.len() == MAX_MODULES || length > MAX_MODULE_TEXT {
                continue;
            }
            pending.push_back((module.file.clone(), Arc::clone(&module.text)));
            found.push(module);
        }
    }
    found
}

/// Returns the module with this path, which is relative to the project and has no extension.
fn find_module(project: &Project, module: &str) -> Option<ModuleText> {
    // The folders of a project that may contain modules.
    if !module.starts_with("scripts/") && !module.starts_with("specs/") {
        return None;
    }
    let candidates = ["lua", "luau"].map(|extension| format!("{module}.{extension}"));
    candidates.into_iter().find_map(|file| {
        let path: PathBuf = project.root().join(&file);
        let text = project.exists(&path).then(|| project.text(&path))??;
        Some(ModuleText { file, text })
    })
}
