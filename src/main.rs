//! The `quoin` program.

use std::io::Write;
use std::process::ExitCode;

use quoin::config::{self, Invocation, LogLevel};

fn main() -> ExitCode {
    match config::parse(std::env::args_os(), std::env::vars_os()) {
        Ok(Invocation::Run(loaded)) => {
            start_log(loaded.settings.log_level);
            print(&loaded.describe())
        }
        Ok(Invocation::CheckConfig(loaded)) => print(&loaded.describe()),
        Ok(Invocation::Print(text)) => print(&text),
        Err(error) => {
            // Nobody may be reading the standard error: the exit code is left then.
            let _ = writeln!(std::io::stderr(), "quoin: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// Writes to the standard output. A reader that has gone (`quoin --help | head -1`) is no fault.
fn print(text: &str) -> ExitCode {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// Starts the log, which goes to the standard error.
fn start_log(level: LogLevel) {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(level.filter())
        .with_target(false)
        .init();
}
