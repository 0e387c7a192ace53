//! The answers to requests.

use deftool_script::{Analysed, Definitions, ScriptAnalyzer, ScriptUnit, TypeProblem};
use luau_analysis::CheckResult;
use luau_common::BString;
use luau_config::Mode;

use crate::annotate::Annotated;
use crate::check;
use crate::checker::{Checked, Checker, new_checker};

/// An analyzer that uses Luau's type checker in Rust.
#[derive(Default)]
pub(crate) struct LuauAnalyzer {
    /// The checker with the definitions of the project.
    checker: Option<Checker>,
    /// What the checker has checked.
    checked: Option<Checked>,
}

impl LuauAnalyzer {
    /// Checks a unit. A unit that is the same as the last one is not checked again.
    fn load(&mut self, unit: &ScriptUnit) -> Analysed<(&mut Checker, &Checked, CheckResult)> {
        let checker = self.checker.as_mut().ok_or("the analyzer has no definitions")?;
        let is_current = self.checked.as_ref().is_some_and(|checked| checked.unit == *unit);
        if !is_current {
            let annotated = Annotated::of(&unit.text, &unit.parameters);
            checker.clear();
            checker.file_resolver_mut().set(unit.clone(), annotated.text.clone());
            self.checked = Some(Checked { unit: unit.clone(), annotated });
        }
        let name = BString::from(unit.file.as_bytes());
        let result = checker.check(&name, None).map_err(|error| error.to_string())?;
        let checked = self.checked.as_ref().ok_or("the unit was not checked")?;
        Ok((checker, checked, result))
    }
}

impl ScriptAnalyzer for LuauAnalyzer {
    fn define(&mut self, definitions: &Definitions) -> Analysed<()> {
        (self.checker, self.checked) = (None, None);
        self.checker = Some(new_checker(definitions)?);
        Ok(())
    }

    fn check(&mut self, unit: &ScriptUnit) -> Analysed<Vec<TypeProblem>> {
        if check::mode_of(&unit.text) == Some(Mode::NoCheck) {
            return Ok(Vec::new());
        }
        if let Some(problem) = check::type_function(unit) {
            return Ok(vec![problem]);
        }
        let (checker, checked, result) = self.load(unit)?;
        Ok(check::problems(checker, checked, &result))
    }
}
