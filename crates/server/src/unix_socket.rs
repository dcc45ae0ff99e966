//! The Unix socket of the settings: its file, before and after the server.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream as Probe;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::{UnixListener, UnixStream};

use super::error::ServerError;
use quoin_base::limits::LISTEN_BACKLOG;

/// The path of a Unix socket that does not exist yet. Its file is made when it listens and not before:
/// another start takes a file on which nobody listens for one that a dead server has left.
pub(super) struct SocketPath {
    path: PathBuf,
    permissions: u32,
}

impl SocketPath {
    /// Checks that the path can be used. Changes nothing.
    ///
    /// # Errors
    /// If a server listens there, or something else has the path.
    pub(super) fn check(path: &Path, permissions: u32) -> Result<Self, ServerError> {
        let free = Self {
            path: path.to_owned(),
            permissions,
        };
        match is_stale(path) {
            Ok(_) => Ok(free),
            Err(source) => Err(free.error(source)),
        }
    }

    /// Makes the socket's file, and lets clients connect. A file that a dead server has left there is
    /// replaced.
    ///
    /// # Errors
    /// If a server listens there, or something else has the path.
    pub(super) fn listen(self) -> Result<UnixSocket, ServerError> {
        self.try_listen().map_err(|source| self.error(source))
    }

    fn try_listen(&self) -> io::Result<UnixSocket> {
        let path = &self.path;
        if is_stale(path)? {
            fs::remove_file(path)?;
        }
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.bind(&SockAddr::unix(path)?)?;
        let file = SocketFile::of(path)?;
        // Before it listens: nobody may connect with other permissions.
        if self.permissions != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(self.permissions))?;
        }
        let backlog = i32::try_from(LISTEN_BACKLOG).unwrap_or(i32::MAX);
        socket.listen(backlog)?;
        Ok(UnixSocket {
            path: path.display().to_string().into(),
            listener: UnixListener::from_std(socket.into())?,
            _file: file,
        })
    }

    fn error(&self, source: io::Error) -> ServerError {
        ServerError::UnixSocket {
            path: self.path.clone(),
            source,
        }
    }
}

/// A Unix socket on which the server listens. Its file is removed with this value.
pub(super) struct UnixSocket {
    listener: UnixListener,
    path: Arc<str>,
    _file: SocketFile,
}

impl UnixSocket {
    /// Its path, as the settings name it.
    pub(super) fn path(&self) -> &Arc<str> {
        &self.path
    }

    /// The next connection. Cancel-safe.
    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.listener.accept().await?.0)
    }
}

/// The file of a socket, which is removed with this value unless another has taken its place.
struct SocketFile {
    path: PathBuf,
    /// Device and number.
    identity: (u64, u64),
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            identity: identity(path)?,
        })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            // It may be gone, or the folder may be read-only by now: the next start removes it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Whether there is a socket on which nobody listens. An error if anything else is there.
fn is_stale(path: &Path) -> io::Result<bool> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        other => other?,
    };
    if !metadata.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "there is a file that is no socket",
        ));
    }
    match Probe::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(true),
        Err(error) => Err(error),
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(path: &Path, permissions: u32) -> Result<UnixSocket, ServerError> {
        SocketPath::check(path, permissions)?.listen()
    }

    #[tokio::test]
    async fn a_socket_that_is_left_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quoin.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let listening = listen(&path, 0o700).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop(listening);
        assert!(!path.exists());

        let _other = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let error = listen(&path, 0).err().unwrap().to_string();
        assert!(error.contains("another program"), "{error}");
        assert!(path.exists());
        fs::remove_file(&path).unwrap();

        fs::write(&path, "precious").unwrap();
        assert!(listen(&path, 0).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }

    #[tokio::test]
    async fn a_start_that_fails_leaves_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quoin.sock");
        drop(SocketPath::check(&path, 0).unwrap());
        assert!(!path.exists());
        let first = SocketPath::check(&path, 0).unwrap();
        let second = SocketPath::check(&path, 0).unwrap();
        let listening = first.listen().unwrap();
        let error = second.listen().err().unwrap().to_string();
        assert!(error.contains("another program"), "{error}");
        assert!(Probe::connect(&path).is_ok());
        drop(listening);
    }

    #[tokio::test]
    async fn the_file_of_a_successor_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quoin.sock");
        let listening = listen(&path, 0).unwrap();
        fs::rename(&path, folder.path().join("old")).unwrap();
        let successor = listen(&path, 0).unwrap();
        drop(listening);
        assert!(path.exists());
        drop(successor);
        assert!(!path.exists());
    }
}
