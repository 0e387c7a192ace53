//! The check of many scripts.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::model::{Definitions, ScriptUnit, TypeProblem};
use super::process::AnalyzerProcess;
use super::{Analysed, ScriptAnalyzer};

/// Scripts for each process: it takes longer to start one than to check a few scripts.
const UNITS_PER_PROCESS: usize = 8;

/// Checks `units` against `definitions` with the analyzer `program`, on all processors. The results are in the order of
/// the units. `limit`: the time limit per unit, usually [`TYPE_LIMIT`](super::TYPE_LIMIT).
pub fn check_types(
    program: &Path,
    definitions: &Definitions,
    units: &[ScriptUnit],
    limit: Duration,
) -> Vec<Analysed<Vec<TypeProblem>>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(vec![None; units.len()]);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let processes = processors.min(units.len().div_ceil(UNITS_PER_PROCESS));
    std::thread::scope(|scope| {
        for _ in 0..processes {
            scope.spawn(|| {
                let mut analyzer = AnalyzerProcess::new(program.to_owned(), limit);
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(unit) = units.get(index) else { return };
                    let result = analyzer.define(definitions).and_then(|()| analyzer.check(unit));
                    if let Some(slot) = deftool_process::lock(&done).get_mut(index) {
                        *slot = Some(result);
                    }
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let lost = || Err(String::from("the analyzer was not started"));
    done.into_iter().map(|result| result.unwrap_or_else(lost)).collect()
}
