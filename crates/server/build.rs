//! Names the commit that the program is built from, as `BUILD_COMMIT`: 40 hexadecimal digits, or
//! nothing if unknown. A checkout has it in git's files, an archive made by git in the file COMMIT,
//! and a Cargo package in a file that Cargo adds. `BUILD_SHORT_COMMIT` is the form shown to people.
//! Cargo sets both for tests too, so their names differ from those of settings.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Digits of a commit that people are shown.
const SHORT_DIGITS: usize = 10;

fn main() {
    // Cargo's default, any changed file of the package, would run this too often.
    println!("cargo:rerun-if-changed=build.rs");
    let crate_folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let commit = of_repository(&crate_folder.join("../.."))
        .or_else(|| after(&crate_folder.join("COMMIT"), ""))
        .or_else(|| after(&crate_folder.join(".cargo_vcs_info.json"), "\"sha1\": \""));
    let short = commit
        .as_ref()
        .and_then(|digits| digits.get(..SHORT_DIGITS));
    println!(
        "cargo:rustc-env=BUILD_SHORT_COMMIT={}",
        short.unwrap_or("unknown")
    );
    println!(
        "cargo:rustc-env=BUILD_COMMIT={}",
        commit.unwrap_or_default()
    );
}

/// The commit that is checked out in `folder`. Reads git's files, because git may be missing or refuse a
/// folder of another user.
fn of_repository(folder: &Path) -> Option<String> {
    let mut git = folder.join(".git");
    // In a linked work tree or a submodule, it is a file that names the folder.
    if git.is_file() {
        let text = fs::read_to_string(&git).ok()?;
        git = folder.join(text.strip_prefix("gitdir:")?.trim());
    }
    let head = read_watched(&git.join("HEAD"))?;
    let Some(branch) = head.strip_prefix("ref:").map(str::trim) else {
        return commit(&head);
    };
    // Work trees share their branches.
    let common = match fs::read_to_string(git.join("commondir")) {
        Ok(path) => git.join(path.trim()),
        Err(_) => git.clone(),
    };
    let packed = || {
        let text = read_watched(&common.join("packed-refs"))?;
        let line = text
            .lines()
            .find(|line| line.ends_with(&format!(" {branch}")))?;
        commit(line)
    };
    let loose = read_watched(&common.join(branch));
    loose.as_deref().and_then(commit).or_else(packed)
}

/// The commit in a file, after the first occurrence of this text.
fn after(path: &Path, text: &str) -> Option<String> {
    let file = fs::read_to_string(path).ok()?;
    let (_, behind) = file.split_once(text)?;
    commit(behind)
}

/// Reads a file, and makes Cargo run this script again when the file changes.
fn read_watched(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    println!("cargo:rerun-if-changed={}", path.display());
    Some(text)
}

/// The commit at the beginning of a text.
fn commit(text: &str) -> Option<String> {
    let digits: String = text.chars().take_while(char::is_ascii_hexdigit).collect();
    (digits.len() == 40).then_some(digits)
}
