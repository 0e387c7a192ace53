//! The budget for calls of normal tools.

use deftool_lang::spec::BudgetUnit;
use serde::{Deserialize, Serialize};

/// The remaining budget. Exit calls are free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    unit: BudgetUnit,
    left: u32,
}

impl Budget {
    /// Creates a full budget.
    pub fn new(unit: BudgetUnit, units: u32) -> Self {
        Self { unit, left: units }
    }

    /// The number of units left.
    pub fn left(self) -> u32 {
        self.left
    }

    /// The unit of the budget.
    pub fn unit(self) -> BudgetUnit {
        self.unit
    }

    /// Returns how many calls may run of a reply with `calls` normal calls.
    pub(super) fn affords(self, calls: usize) -> usize {
        match self.unit {
            BudgetUnit::Iteration if self.left > 0 => calls,
            BudgetUnit::Iteration => 0,
            BudgetUnit::Call => calls.min(self.left as usize),
        }
    }

    /// Pays for one answered call. Returns whether the budget changed.
    pub(super) fn pay_call(&mut self) -> bool {
        self.pay(BudgetUnit::Call)
    }

    /// Pays for a reply whose calls are all answered. Returns whether the budget changed.
    pub(super) fn pay_iteration(&mut self) -> bool {
        self.pay(BudgetUnit::Iteration)
    }

    fn pay(&mut self, unit: BudgetUnit) -> bool {
        let pays = self.unit == unit && self.left > 0;
        self.left -= u32::from(pays);
        pays
    }
}
