//! The sources of a unit, and what they require.

use deftool_script::ScriptUnit;
use luau_analysis::diagnostics::TypeCheckLimits;
use luau_analysis::frontend::resolver::ModuleInfo;
use luau_analysis::{FileResolver, ModuleName, SourceCode, SourceCodeType};
use luau_common::BString;
use luau_syntax::ast::{Expression, ExpressionKind};

/// The environment of test scripts.
pub(crate) const TESTS: &str = "tests";

/// The unit that is analysed.
#[derive(Default)]
pub(crate) struct Files {
    /// The annotated text of the unit.
    text: String,
    unit: Option<ScriptUnit>,
}

impl Files {
    pub(crate) fn set(&mut self, unit: ScriptUnit, text: String) {
        *self = Self { text, unit: Some(unit) };
    }
}

impl FileResolver for Files {
    fn read_source(&mut self, name: &ModuleName) -> Option<SourceCode> {
        let (name, unit) = (name.to_string(), self.unit.as_ref()?);
        let text = if name == unit.file { self.text.as_str() } else { &**unit.text_of(&name)? };
        Some(SourceCode { source: BString::from(text.as_bytes()), kind: SourceCodeType::Module })
    }

    fn resolve_module(
        &mut self,
        context: Option<&ModuleInfo>,
        wanted: Expression<'_>,
        _: &TypeCheckLimits,
    ) -> Option<ModuleInfo> {
        let ExpressionKind::String { value, .. } = wanted.kind() else { return None };
        let wanted = std::str::from_utf8(value.as_bytes()).ok()?;
        let module = self.unit.as_ref()?.required(&context?.name.to_string(), wanted)?;
        Some(ModuleInfo { name: BString::from(module.file.as_bytes()), optional: false })
    }

    fn environment_for_module(&self, _: &ModuleName) -> Option<BString> {
        self.unit.as_ref().filter(|unit| unit.is_test).map(|_| BString::from(TESTS))
    }
}
