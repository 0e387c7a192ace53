//! The answers to requests.

use deftool_script::{
    Analysed, Definitions, Description, Inlay, NameToken, NameUses, OutlineItem, Place, ScriptAnalyzer,
    ScriptUnit, Signatures, Suggestions, TypeProblem,
};
use luau_analysis::CheckResult;
use luau_common::BString;
use luau_config::Mode;

use crate::annotate::Annotated;
use crate::check;
use crate::checker::{Checked, Checker, new_checker};
use crate::{complete, describe, inlays, names, outline, signature, tokens};

/// Maximum length of a text that is checked completely for each completion, in bytes. In longer ones, only the statement
/// at the position is checked, which is faster and finds less.
const MAX_FULL_CHECK: usize = 12 << 10;

/// Maximum length of an edit since the last full check after which a statement is checked alone, in bytes.
const MAX_EDIT: usize = 2 << 10;

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

    /// Checks a unit for a request of an editor, which gets no findings.
    fn load_safe(&mut self, unit: &ScriptUnit) -> Analysed<(&mut Checker, &Checked)> {
        refuse_type_functions(unit)?;
        let (checker, checked, _) = self.load(unit)?;
        Ok((checker, checked))
    }

    /// Returns whether the unit differs from the checked one only in a part of its text.
    fn is_edited(&self, unit: &ScriptUnit) -> bool {
        self.checked.as_ref().is_some_and(|checked| {
            let text = std::sync::Arc::clone(&checked.unit.text);
            (1..=MAX_EDIT).contains(&edited_length(&text, &unit.text))
                && checked.unit == ScriptUnit { text, ..unit.clone() }
        })
    }
}

/// Returns the length of the part in which two texts differ, in the longer one.
fn edited_length(one: &str, other: &str) -> usize {
    let same = |(one, other): &(u8, u8)| one == other;
    let start = one.bytes().zip(other.bytes()).take_while(same).count();
    let most = one.len().min(other.len()) - start;
    let end = one.bytes().rev().zip(other.bytes().rev()).take(most).take_while(same).count();
    one.len().max(other.len()) - start - end
}

fn refuse_type_functions(unit: &ScriptUnit) -> Analysed<()> {
    check::type_function(unit).map_or(Ok(()), |problem| Err(problem.message))
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
    fn complete(&mut self, unit: &ScriptUnit, offset: usize) -> Analysed<Suggestions> {
        if unit.text.len() > MAX_FULL_CHECK && self.is_edited(unit) {
            refuse_type_functions(unit)?;
            let annotated = Annotated::of(&unit.text, &unit.parameters);
            let checker = self.checker.as_mut().ok_or("the analyzer has no definitions")?;
            let found = complete::in_changed(checker, unit, &annotated, annotated.position_of(offset))?;
            // The types that a string must have are often known only to a full check.
            if !found.in_string || !found.items.is_empty() {
                return Ok(found);
            }
        }
        let (checker, checked) = self.load_safe(unit)?;
        Ok(complete::in_checked(checker, unit, checked.annotated.position_of(offset)))
    }

    fn describe(&mut self, unit: &ScriptUnit, offset: usize) -> Analysed<Option<Description>> {
        let (checker, checked) = self.load_safe(unit)?;
        Ok(describe::describe(checker, checked, offset))
    }

    fn signatures(&mut self, unit: &ScriptUnit, offset: usize) -> Analysed<Option<Signatures>> {
        let (checker, checked) = self.load_safe(unit)?;
        Ok(signature::signatures(checker, checked, offset))
    }

    fn uses(&mut self, unit: &ScriptUnit, offset: usize) -> Analysed<Option<NameUses>> {
        if let Some(local) = names::local_uses(unit, offset) {
            return Ok(Some(local));
        }
        let (checker, checked) = self.load_safe(unit)?;
        Ok(names::member_uses_at(checker, checked, offset))
    }

    fn member_uses(&mut self, unit: &ScriptUnit, definition: &Place) -> Analysed<Vec<(usize, usize)>> {
        let (checker, checked) = self.load_safe(unit)?;
        Ok(names::member_uses(checker, checked, definition))
    }

    fn outline(&mut self, unit: &ScriptUnit) -> Analysed<Vec<OutlineItem>> {
        Ok(outline::outline(unit))
    }

    fn inlays(&mut self, unit: &ScriptUnit) -> Analysed<Vec<Inlay>> {
        let (checker, checked) = self.load_safe(unit)?;
        Ok(inlays::inlays(checker, checked))
    }

    fn tokens(&mut self, unit: &ScriptUnit) -> Analysed<Vec<NameToken>> {
        Ok(tokens::tokens(unit))
    }
}
