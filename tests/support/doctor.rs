//! `quoin doctor` as a program, and a judgement of its report.
//!
//! Included by `#[path]` from the test crates that need it.

use std::path::Path;
use std::process::Command;

/// The exit code and the output.
pub(crate) fn doctor(folder: &Path, flags: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_quoin"))
        .arg("doctor")
        .args(flags)
        .current_dir(folder)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    // The progress, if that takes long.
    let is_progress =
        |line: &str| line.contains(": ") && line.ends_with(|last: char| last.is_ascii_digit());
    assert!(complaint.lines().all(is_progress), "{complaint}");
    (output.status.code().unwrap(), said)
}

/// Runs the doctor and expects that it finds nothing wrong. Returns its report.
#[track_caller]
pub(crate) fn healthy(folder: &Path, flags: &[&str]) -> String {
    let (code, said) = doctor(folder, flags);
    expect_healthy(code, &said);
    said
}

/// Expects a report and an exit code that tell of nothing wrong.
///
/// A warning that the disk is nearly full may be among it: that is the machine's, not the code's.
#[track_caller]
pub(crate) fn expect_healthy(code: i32, said: &str) {
    let is_nearly_full =
        |line: &str| line.starts_with("warn  disk ") && line.ends_with("make room");
    let mut wrong = said.lines().filter(|line| !line.starts_with("ok    "));
    match wrong.next() {
        None => assert_eq!(code, 0, "{said}"),
        Some(line) => assert_eq!((code, is_nearly_full(line)), (1, true), "{said}"),
    }
    assert_eq!(wrong.next(), None, "{said}");
}
