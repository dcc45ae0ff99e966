//! The dashboard in Chromium. tests/wire/dashboard.rs has what needs no browser.

use std::io::Write;
use std::process::Command;
use std::time::Duration;

use crate::packages::Packages;
use crate::server::Server;
use crate::{is_all, process};

/// Longer than it takes on a slow machine.
const TIMEOUT: Duration = Duration::from_secs(300);
/// The browser, from Debian's package.
const CHROMIUM: &str = "/usr/bin/chromium";

#[test]
fn the_dashboard_works_in_a_browser() {
    let installed = match std::path::Path::new(CHROMIUM).exists() {
        true => Packages::Node.install().map_err(str::to_owned),
        false => Err(format!("there is no {CHROMIUM}")),
    };
    let installed = match installed {
        Ok(installed) => installed,
        Err(missing) if !is_all() => {
            // Written past the capture of a passing test's output.
            let _ = writeln!(
                std::io::stderr(),
                "the dashboard is not tried in a browser: {missing}"
            );
            return;
        }
        Err(missing) => panic!("the dashboard is not tried in a browser: {missing}"),
    };
    let server = Server::start_with(&[
        "--dashboard-address",
        "127.0.0.1:0",
        "--requirepass",
        "secret",
    ]);
    let log = server.log();
    let (_, behind) = log.split_once("the dashboard is at ").unwrap();
    let address = behind.split_whitespace().next().unwrap();
    let profiles = tempfile::tempdir().unwrap();
    let command = installed.command("dashboard.mjs");
    let mut script = Command::new(&command[0]);
    script.arg(&command[1]).arg(address);
    script
        .arg(server.address().port().to_string())
        .arg(profiles.path());
    process::run(&mut script, TIMEOUT).unwrap();
}
