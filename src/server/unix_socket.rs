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
use crate::limits::LISTEN_BACKLOG;

/// A Unix socket that is bound. Nobody can connect until it listens.
pub(super) struct BoundSocket {
    socket: Socket,
    file: SocketFile,
}

impl BoundSocket {
    /// Makes the socket's file. One that a dead server has left there is replaced.
    ///
    /// # Errors
    /// If a server listens there, or something else has the path.
    pub(super) fn take(path: &Path, permissions: u32) -> Result<Self, ServerError> {
        let fail = |source| ServerError::UnixSocket {
            path: path.to_owned(),
            source,
        };
        remove_stale(path).map_err(fail)?;
        let bound = || {
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            socket.set_nonblocking(true)?;
            socket.bind(&SockAddr::unix(path)?)?;
            let file = SocketFile::of(path)?;
            // Before it listens: nobody may connect with other permissions.
            if permissions != 0 {
                fs::set_permissions(path, fs::Permissions::from_mode(permissions))?;
            }
            Ok(Self { socket, file })
        };
        bound().map_err(fail)
    }

    /// Lets clients connect.
    pub(super) fn listen(self) -> Result<UnixSocket, ServerError> {
        let path = self.file.path.clone();
        let listen = || {
            let backlog = i32::try_from(LISTEN_BACKLOG).unwrap_or(i32::MAX);
            self.socket.listen(backlog)?;
            Ok(UnixSocket {
                path: self.file.path.display().to_string().into(),
                listener: UnixListener::from_std(self.socket.into())?,
                _file: self.file,
            })
        };
        listen().map_err(|source| ServerError::UnixSocket { path, source })
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

/// Removes a socket on which nobody listens.
fn remove_stale(path: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    if !metadata.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "there is a file that is no socket",
        ));
    }
    match Probe::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_is_left_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quoin.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let bound = BoundSocket::take(&path, 0o700).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop(bound);
        assert!(!path.exists());

        let _other = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let error = BoundSocket::take(&path, 0).err().unwrap().to_string();
        assert!(error.contains("another program"), "{error}");
        assert!(path.exists());
        fs::remove_file(&path).unwrap();

        fs::write(&path, "precious").unwrap();
        assert!(BoundSocket::take(&path, 0).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn the_file_of_a_successor_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quoin.sock");
        let bound = BoundSocket::take(&path, 0).unwrap();
        fs::rename(&path, folder.path().join("old")).unwrap();
        let successor = BoundSocket::take(&path, 0).unwrap();
        drop(bound);
        assert!(path.exists());
        drop(successor);
        assert!(!path.exists());
    }
}
