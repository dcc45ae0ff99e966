//! Frameworks that pip and npm do not have. They run if the machine has them: from Debian's
//! packages, or from where `RUBYLIB` points.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process;

/// Of a program that only loads a library.
const PROBE_TIMEOUT: Duration = Duration::from_secs(60);

/// A framework that the machine may have.
pub struct Framework {
    /// A program that succeeds if the framework is installed.
    probe: &'static [&'static str],
    interpreter: &'static str,
    /// In this folder.
    script: &'static str,
}

pub const LARAVEL: Framework = Framework {
    probe: &["php", "-r", "require 'Illuminate/autoload.php'; new Redis;"],
    interpreter: "python3",
    script: "python/run_laravel.py",
};

pub const RESQUE: Framework = Framework {
    probe: &["ruby", "-e", "require 'resque'"],
    interpreter: "ruby",
    script: "ruby/run_resque.rb",
};

pub const SIDEKIQ: Framework = Framework {
    probe: &["ruby", "-e", "require 'sidekiq'"],
    interpreter: "ruby",
    script: "ruby/run_sidekiq.rb",
};

impl Framework {
    /// The program that runs its scenario. The error says what is missing.
    pub fn command(&self) -> Result<Vec<OsString>, String> {
        let mut probe = Command::new(self.probe[0]);
        probe.args(&self.probe[1..]);
        process::run(&mut probe, PROBE_TIMEOUT)?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/frameworks")
            .join(self.script);
        Ok(vec![self.interpreter.into(), script.into()])
    }
}
