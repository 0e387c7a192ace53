//! `deftool check` reports no findings for the projects under `examples/`.

use std::path::Path;
use std::process::Command;

#[test]
fn every_example_checks_strictly() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut count = 0;
    for entry in
        std::fs::read_dir(folder).unwrap().flatten().filter(|entry| entry.path().join("specs").is_dir())
    {
        count += 1;
        let output = Command::new(env!("CARGO_BIN_EXE_deftool"))
            .args(["check", "--strict"])
            .arg(entry.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    assert!(count > 0);
}
