//! Hot reload in a storm of saves. `DEFTOOL_SAVES=10000` for more of them; `cargo bench --bench reload` measures.

use crate::support::storm::METHODS;

#[test]
fn no_call_sees_a_broken_or_mixed_version() {
    let saves = std::env::var("DEFTOOL_SAVES").map_or(500, |saves| saves.parse().unwrap());
    for method in METHODS {
        let report = method.run(saves);
        assert!(!report.latencies.is_empty() && report.calls > report.saves);
    }
}
