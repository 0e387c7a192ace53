//! Stress test of hot reload with many saves. `DEFTOOL_SAVES=10000` sets their number. `cargo bench --bench reload`
//! measures the latency.

use deftool_test_support::step;

use crate::support::storm::METHODS;

#[test]
fn no_call_sees_a_broken_or_mixed_version() {
    let saves = std::env::var("DEFTOOL_SAVES").map_or(500 / step(20) as u64, |saves| saves.parse().unwrap());
    for method in METHODS {
        let report = method.run(saves);
        assert!(!report.latencies.is_empty() && report.calls > report.saves);
    }
}
