//! How often the model may call normal tools.

use serde::{Deserialize, Serialize};

use crate::spec::BudgetUnit;

/// A budget and what is left of it. Exit calls cost nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    unit: BudgetUnit,
    left: u32,
}

impl Budget {
    /// A full budget.
    pub fn new(unit: BudgetUnit, units: u32) -> Self {
        Self { unit, left: units }
    }

    /// Units left.
    pub fn left(self) -> u32 {
        self.left
    }

    /// What a unit pays for.
    pub fn unit(self) -> BudgetUnit {
        self.unit
    }

    /// How many calls of a reply with `calls` normal calls may run.
    pub(super) fn affords(self, calls: usize) -> usize {
        match self.unit {
            BudgetUnit::Iteration if self.left > 0 => calls,
            BudgetUnit::Iteration => 0,
            BudgetUnit::Call => calls.min(self.left as usize),
        }
    }

    /// Pays for one answered call; whether anything changed.
    pub(super) fn pay_call(&mut self) -> bool {
        self.pay(BudgetUnit::Call)
    }

    /// Pays for a reply all of whose calls are answered; whether anything changed.
    pub(super) fn pay_iteration(&mut self) -> bool {
        self.pay(BudgetUnit::Iteration)
    }

    fn pay(&mut self, unit: BudgetUnit) -> bool {
        let pays = self.unit == unit && self.left > 0;
        self.left -= u32::from(pays);
        pays
    }
}
