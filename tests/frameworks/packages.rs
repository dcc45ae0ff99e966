//! Packages from pip and npm, at the versions of this folder's files, installed once into the
//! target folder.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::{is_all, process};

/// Of all packages on a slow machine.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(600);

/// Packages that are installed together. Frameworks that need different versions of a client
/// library cannot share a folder.
#[derive(Clone, Copy)]
pub enum Packages {
    /// The few, and their dependencies.
    Python,
    /// What needs redis-py 8.
    MorePython,
    /// What needs an older redis-py.
    OlderPython,
    /// What needs a still older one.
    OldestPython,
    Node,
}

/// Installed packages.
pub struct Installed {
    /// The program that runs scripts with them.
    interpreter: PathBuf,
    scripts: PathBuf,
}

impl Installed {
    /// Runs a script with an argument, which may say what to try.
    pub fn command(&self, script: &str) -> Vec<OsString> {
        let mut words = script.split(' ');
        let file = self.scripts.join(words.next().unwrap());
        let words = words.map(OsString::from);
        self.command_of(file.as_os_str())
            .into_iter()
            .chain(words)
            .collect()
    }

    /// Runs a script that may be elsewhere.
    pub fn command_of(&self, script: &OsStr) -> Vec<OsString> {
        vec![self.interpreter.clone().into(), script.to_owned()]
    }

    /// Copies a script to the others.
    pub fn copy(&self, script: &Path) -> PathBuf {
        let copy = self.scripts.join(script.file_name().unwrap());
        std::fs::copy(script, &copy).unwrap();
        copy
    }
}

impl Packages {
    /// Installs them if necessary. The error says in one line what is missing.
    ///
    /// # Panics
    /// If a registry answers, but the packages cannot be installed.
    pub fn install(self) -> Result<&'static Installed, &'static str> {
        static INSTALLED: [OnceLock<Result<Installed, String>>; 5] = [const { OnceLock::new() }; 5];
        let installed = INSTALLED[self as usize].get_or_init(|| match self {
            Self::Python => python("requirements.txt"),
            Self::MorePython => python("requirements-more.txt"),
            Self::OlderPython => python("requirements-older.txt"),
            Self::OldestPython => python("requirements-oldest.txt"),
            Self::Node => node(),
        });
        installed.as_ref().map_err(String::as_str)
    }
}

fn sources(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/frameworks")
        .join(folder)
}

/// A virtual environment with the packages of a file.
fn python(requirements: &str) -> Result<Installed, String> {
    let scripts = sources("python");
    let requirements = scripts.join(requirements);
    let name = requirements.file_stem().unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let python = folder.join("bin/python");
    let wanted = std::fs::read_to_string(&requirements).unwrap();
    install_once(&folder, &wanted, || {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(&folder);
        process::run(&mut venv, INSTALL_TIMEOUT).map_err(|said| {
            format!("python3 makes no virtual environment: {}", last_line(&said))
        })?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--no-input"])
            .args([
                "--disable-pip-version-check",
                "--retries",
                "1",
                "--requirement",
            ])
            .arg(&requirements);
        process::run(&mut pip, INSTALL_TIMEOUT).map_err(|said| {
            let unreachable = ["from versions: none", "onnectionError", "does not end"];
            refusal("pip", &said, &unreachable)
        })
    })?;
    Ok(Installed {
        interpreter: python,
        scripts,
    })
}

/// A folder with the packages of package.json (the few are its dependencies, the others its
/// development dependencies) and the scripts, which find packages only from there.
fn node() -> Result<Installed, String> {
    let sources = sources("node");
    let name = if is_all() { "node-all" } else { "node" };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let wanted = std::fs::read_to_string(sources.join("package.json")).unwrap();
    install_once(&folder, &wanted, || {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("package.json"), &wanted).unwrap();
        let mut npm = Command::new("npm");
        npm.current_dir(&folder)
            .args(["install", "--no-audit", "--no-fund", "--no-package-lock"])
            .args(["--fetch-retries", "1", "--fetch-timeout", "30000"])
            .args((!is_all()).then_some("--omit=dev"));
        process::run(&mut npm, INSTALL_TIMEOUT).map_err(|said| {
            let unreachable = [
                "No such file",
                "ENOTFOUND",
                "EAI_AGAIN",
                "ECONN",
                "ETIMEDOUT",
                "does not end",
            ];
            refusal("npm", &said, &unreachable)
        })
    })?;
    for entry in std::fs::read_dir(&sources).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
    }
    Ok(Installed {
        interpreter: "node".into(),
        scripts: folder,
    })
}

/// Installs what is `wanted` into a folder, unless an earlier run has.
fn install_once(
    folder: &Path,
    wanted: &str,
    install: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let mark = folder.join("installed");
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let _ = std::fs::remove_dir_all(folder);
    install()?;
    std::fs::write(mark, wanted).unwrap();
    Ok(())
}

/// Why nothing is installed. A registry that answers, but not with the packages, is a failure.
fn refusal(installer: &str, said: &str, unreachable: &[&str]) -> String {
    assert!(
        unreachable.iter().any(|sign| said.contains(sign)),
        "{installer} cannot install: {said}"
    );
    format!("{installer} reaches no registry: {}", last_line(said))
}

fn last_line(text: &str) -> &str {
    text.trim().lines().last().unwrap_or_default()
}
