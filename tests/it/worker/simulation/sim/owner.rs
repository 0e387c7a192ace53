//! Actions of the worker's owner: reload, restart, stop, readiness check.

use std::sync::Arc;
use std::time::Duration;

use super::super::invariants::Invariant;
use super::super::ledger::END_GRACE;
use super::super::tools::Generation;
use super::Simulation;

impl Simulation {
    pub(in super::super) fn reload(&self) {
        let mut tools = self.tools.lock().unwrap();
        let next = Arc::new(Generation::new(self.plan.seed, tools.0.number + 1));
        *tools = (next, Arc::clone(&tools.0));
        drop(tools);
        self.trace(|| String::from("the tools are reloaded"));
        self.count("reload");
    }

    pub(in super::super) fn restart(&self) {
        let now = self.now();
        let mut ledger = self.ledger();
        // Requests without an open exchange continue.
        let mut hit = 0;
        for case in ledger.cases.values_mut().filter(|case| case.open > 0) {
            case.restarted = true;
            case.must_end(now + END_GRACE, "the end by a restart");
            hit += 1;
        }
        let spared = ledger.cases.values().filter(|case| !case.is_over && !case.restarted).count();
        ledger.count("restart");
        for (count, feature) in
            [(hit, "restart: fails open exchanges"), (spared, "restart: spares other requests")]
        {
            if count > 0 {
                ledger.count(feature);
            }
        }
        drop(ledger);
        self.trace(|| String::from("the worker is restarted"));
        self.facade().restart();
        self.observe();
    }

    pub(in super::super) fn stop(&self) {
        let now = self.now();
        let mut ledger = self.ledger();
        for case in ledger.cases.values_mut().filter(|case| !case.is_over) {
            case.stopped = true;
            case.must_end(now + END_GRACE, "the end by a stop");
        }
        ledger.was_stopped = true;
        ledger.drains.stop();
        ledger.count("stop");
        drop(ledger);
        self.trace(|| String::from("the worker is stopped"));
        self.facade().stop();
        self.observe();
    }

    /// The worker probes whether the server is ready.
    pub(in super::super) fn begin_probe(&self) -> (Duration, Result<(), String>) {
        let mut dice = self.probes.lock().unwrap();
        let after = if dice.chance(50) { Duration::ZERO } else { dice.ms(0..5_000) };
        let answer = if dice.chance(60) { Ok(()) } else { Err(String::from("nobody is there")) };
        (after, answer)
    }

    pub(in super::super) fn end_probe(&self, answer: &Result<(), String>) {
        self.trace(|| format!("the server is probed: {answer:?}"));
        let mut ledger = self.ledger();
        ledger.is_unready = answer.is_err();
        ledger.count(if answer.is_ok() { "probe: ready" } else { "probe: not ready" });
    }

    /// Checks the reported readiness.
    pub(in super::super) fn check_ready(&self, is_ready: bool) {
        let mut ledger = self.ledger();
        let expected = !ledger.is_unready && !ledger.was_stopped;
        ledger.check(Invariant::Status, is_ready == expected, || {
            format!("the worker reports ready: {is_ready}, expected {expected}")
        });
    }
}
