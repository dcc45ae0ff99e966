//! The `quoin` program.

use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

mod cli;

use crate::cli::Invocation;
use quoin_base::random::SystemRandom;
use quoin_client::Beside;
use quoin_config::logging::Log;
use quoin_config::{ConfigError, LoadedSettings, Settings};
use quoin_tools::backup;
use quoin_tools::compact;
use quoin_tools::doctor;
use quoin_tools::export;
use quoin_tools::import;
use quoin_tools::ping;
use quoin_tools::queues::{self, QueuesError};
use quoin_tools::top;

fn main() -> ExitCode {
    match cli::parse(std::env::args_os(), std::env::vars_os()) {
        Ok(Invocation::Run(loaded)) => serve(loaded),
        Ok(Invocation::CheckConfig(loaded)) => print(&loaded.describe()),
        Ok(Invocation::Translate(error)) => translate(&error),
        Ok(Invocation::Doctor(loaded, options, beside)) => doctor(&loaded, options, &beside),
        Ok(Invocation::Backup(loaded, options)) => report(backup::make(&loaded, &options)),
        Ok(Invocation::Restore(options)) if options.follows => follow(&options),
        Ok(Invocation::Restore(options)) => report(backup::restore(&options)),
        Ok(Invocation::Compact(loaded)) => report(compact::run(&loaded)),
        Ok(Invocation::Ping(loaded, beside)) => report(ping::run(&loaded, &beside)),
        Ok(Invocation::Import(options)) => import(&options),
        Ok(Invocation::Export(options)) => export(&options),
        Ok(Invocation::Queues(options)) => queues(&options),
        Ok(Invocation::Top(options)) => ended(top::run(&options)),
        Ok(Invocation::Print(text)) => print(&text),
        Err(error) => {
            // The standard error may be closed. The exit code remains.
            let _ = writeln!(std::io::stderr(), "quoin: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// Prints the settings of a redis.conf as a settings file, and why they are not used directly.
fn translate(error: &ConfigError) -> ExitCode {
    if let ConfigError::RedisConf { toml, .. } = error {
        print(toml);
    }
    let _ = writeln!(std::io::stderr(), "quoin: {error}");
    ExitCode::from(error.exit_code())
}

/// Runs the server until it is told to stop.
fn serve(loaded: LoadedSettings) -> ExitCode {
    let failed = |error: &dyn Display| {
        let _ = writeln!(std::io::stderr(), "quoin: {error}");
        ExitCode::FAILURE
    };
    let log = match Log::start(&loaded.settings) {
        Ok(log) => log,
        Err(error) => return failed(&error),
    };
    match quoin_server::run(loaded, &log) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Also write the error to the log file, where operators look.
            if log.is_file() {
                tracing::error!("{error}");
            }
            failed(&error)
        }
    }
}

/// Runs `quoin import` and prints its result.
fn import(options: &import::Options) -> ExitCode {
    match import::run(options, &SystemRandom, run_server) {
        Ok(counts) => {
            let printed = print(&format!("{counts}\n"));
            if counts.is_complete() {
                printed
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "quoin: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a server that `quoin import` needs, until it is told to stop.
fn run_server(loaded: LoadedSettings) -> Result<(), String> {
    let log = Log::start(&loaded.settings).map_err(|error| error.to_string())?;
    quoin_server::run(loaded, &log).map_err(|error| error.to_string())
}

/// Runs `quoin restore --follow`, which writes a log, because it may run for long.
fn follow(options: &backup::RestoreOptions) -> ExitCode {
    match Log::start(&Settings::default()) {
        Ok(_) => report(backup::follow(options)),
        Err(error) => report(Err::<&str, _>(error)),
    }
}

/// Runs `quoin export` and prints its result.
fn export(options: &export::Options) -> ExitCode {
    let exported = export::run(options);
    let is_complete = exported.as_ref().is_ok_and(export::Report::is_complete);
    let printed = report(exported);
    match is_complete {
        true => printed,
        false => ExitCode::FAILURE,
    }
}

/// Runs `quoin queues`, which prints results as it finds them.
fn queues(options: &queues::Options) -> ExitCode {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    match queues::run(options, &mut out) {
        // A closed pipe (`quoin queues | head -1`) is no error.
        Err(QueuesError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        done => ended(done),
    }
}

/// Prints a tool's error, if there is one.
fn ended<E: Display>(done: Result<(), E>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "quoin: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a tool's result or error.
fn report<T: Display, E: Display>(done: Result<T, E>) -> ExitCode {
    match done {
        Ok(done) => print(&format!("{done}\n")),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "quoin: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs `quoin doctor` and prints each finding at once.
fn doctor(loaded: &LoadedSettings, options: doctor::Options, beside: &Beside) -> ExitCode {
    let checked = doctor::run(loaded, options, beside, &mut |line| {
        print(&format!("{line}\n"));
    });
    match checked {
        Ok(worst) => ExitCode::from(worst.exit_code()),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "quoin: {error}");
            ExitCode::from(doctor::Level::Fail.exit_code())
        }
    }
}

/// Writes to the standard output. A closed pipe (`quoin --help | head -1`) is no error.
fn print(text: &str) -> ExitCode {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}
