//! The log of the server: its level, its form and its file.

use std::fs::{File, OpenOptions};
use std::io;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt, reload};

use crate::{LogFormat, LogLevel, Settings};

/// The log cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("logfile {}: {source}", path.display())]
pub struct LogError {
    path: PathBuf,
    source: io::Error,
}

/// The log of this process.
#[derive(Clone)]
pub struct Log {
    level: reload::Handle<LevelFilter, Registry>,
    file: Option<Arc<LogFile>>,
}

impl Log {
    /// Starts the log as configured, on standard error if no file is set. A process has only one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn start(settings: &Settings) -> Result<Self, LogError> {
        let file = settings.logfile.as_deref().map(LogFile::open);
        let file = file.transpose()?.map(Arc::new);
        let writer = match &file {
            Some(file) => BoxMakeWriter::new(Labelled(Arc::clone(file))),
            None => BoxMakeWriter::new(Labelled(io::stderr)),
        };
        // Only terminals get colours.
        let has_colours = file.is_none() && io::stderr().is_terminal();
        let lines = fmt::layer()
            .with_writer(writer)
            .with_ansi(has_colours)
            .with_target(false);
        let lines = match settings.log_format {
            LogFormat::Text => lines.boxed(),
            LogFormat::Json => lines.json().flatten_event(true).boxed(),
        };
        let (filter, level) = reload::Layer::new(settings.log_level.filter());
        tracing_subscriber::registry()
            .with(filter)
            .with(lines)
            .init();
        Ok(Self { level, file })
    }

    /// Whether it goes to a file.
    pub fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// Changes the level.
    pub fn set_level(&self, level: LogLevel) {
        if let Err(error) = self.level.reload(level.filter()) {
            tracing::warn!(%error, "cannot change the log level");
        }
    }

    /// Reopens the log file, because a tool may have moved it. Returns false if the log is not a file.
    ///
    /// # Errors
    /// If it cannot be written. The log then stays in the old file.
    pub fn reopen(&self) -> Result<bool, LogError> {
        match &self.file {
            Some(file) => file.reopen().map(|()| true),
            None => Ok(false),
        }
    }
}

/// Names the two most detailed levels in each line as `loglevel` names them, not as `tracing` does.
struct Labelled<M>(M);

/// A writer of one line.
struct LabelledLine<W> {
    line: W,
    /// The label in the line, and its replacement.
    label: Option<(&'static [u8], &'static [u8])>,
}

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for Labelled<M> {
    type Writer = LabelledLine<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        LabelledLine {
            line: self.0.make_writer(),
            label: None,
        }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Self::Writer {
        let label: Option<(&[u8], &[u8])> = match *metadata.level() {
            Level::DEBUG => Some((b"DEBUG", b"VERBOSE")),
            Level::TRACE => Some((b"TRACE", b"DEBUG")),
            _ => None,
        };
        LabelledLine {
            line: self.0.make_writer_for(metadata),
            label,
        }
    }
}

impl<W: Write> Write for LabelledLine<W> {
    /// Each line is written whole, so nothing before its label can look like a label.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let found = self.label.take().and_then(|(from, to)| {
            let at = bytes.windows(from.len()).position(|part| part == from)?;
            let (before, rest) = bytes.split_at_checked(at)?;
            Some([before, to, rest.get(from.len()..)?].concat())
        });
        match found {
            Some(line) => self.line.write_all(&line).map(|()| bytes.len()),
            None => self.line.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.line.flush()
    }
}

/// A file to which lines are appended.
struct LogFile {
    path: PathBuf,
    file: RwLock<File>,
}

impl LogFile {
    fn open(path: &Path) -> Result<Self, LogError> {
        Ok(Self {
            path: path.to_owned(),
            file: RwLock::new(append(path)?),
        })
    }

    fn reopen(&self) -> Result<(), LogError> {
        let file = append(&self.path)?;
        *self.file.write().unwrap_or_else(PoisonError::into_inner) = file;
        Ok(())
    }
}

impl Write for &LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let file = self.file.read().unwrap_or_else(PoisonError::into_inner);
        (&*file).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Only the owner and the group may read addresses of clients.
fn append(path: &Path) -> Result<File, LogError> {
    let opened = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o640)
        .open(path);
    opened.map_err(|source| LogError {
        path: path.to_owned(),
        source,
    })
}
