//! A place between an import and a server, where something can happen at a known moment.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

/// What becomes of what a client has sent.
pub enum Fate {
    Passes,
    /// So many bytes of it arrive, and then the connection breaks.
    BreaksAfter(usize),
}

/// Passes one connection on to a server.
pub struct Between {
    address: SocketAddr,
}

impl Between {
    /// Calls `look` with what the client has sent in one go, before it is passed on.
    pub fn start(
        server: SocketAddr,
        mut look: impl FnMut(&[u8]) -> Fate + Send + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        std::thread::spawn(move || -> io::Result<()> {
            let (mut client, _) = listener.accept()?;
            let mut server = TcpStream::connect(server)?;
            let (mut from_server, mut to_client) = (server.try_clone()?, client.try_clone()?);
            std::thread::spawn(move || -> io::Result<()> {
                io::copy(&mut from_server, &mut to_client)?;
                to_client.shutdown(Shutdown::Both)
            });
            let mut buffer = vec![0; 64 * 1024];
            loop {
                let count = client.read(&mut buffer)?;
                if count == 0 {
                    return server.shutdown(Shutdown::Both);
                }
                match look(&buffer[..count]) {
                    Fate::Passes => server.write_all(&buffer[..count])?,
                    Fate::BreaksAfter(arriving) => {
                        server.write_all(&buffer[..arriving])?;
                        server.shutdown(Shutdown::Write)?;
                        return client.shutdown(Shutdown::Both);
                    }
                }
            }
        });
        Ok(Self { address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Where a word begins in what was sent.
pub fn find(sent: &[u8], word: &str) -> Option<usize> {
    sent.windows(word.len())
        .position(|window| window == word.as_bytes())
}
