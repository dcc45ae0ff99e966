//! A proxy between an import and a server, where something can happen at a known moment.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What happens to what a client has sent.
pub enum Fate {
    Passes,
    /// This many bytes of it arrive, and then the connection breaks.
    BreaksAfter(usize),
}

/// Passes one connection on to a server.
pub struct Between {
    address: SocketAddr,
    answered_bytes_max: Arc<AtomicUsize>,
}

impl Between {
    /// Calls `inspect` with what the client has sent together, before passing it on.
    pub fn start(
        server: SocketAddr,
        mut inspect: impl FnMut(&[u8]) -> Fate + Send + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let answered_bytes_max = Arc::new(AtomicUsize::new(0));
        let largest = Arc::clone(&answered_bytes_max);
        std::thread::spawn(move || -> io::Result<()> {
            let (mut client, _) = listener.accept()?;
            let mut server = TcpStream::connect(server)?;
            let (mut from_server, mut to_client) = (server.try_clone()?, client.try_clone()?);
            let answered = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&answered);
            std::thread::spawn(move || -> io::Result<()> {
                let mut buffer = vec![0; 64 * 1024];
                loop {
                    let count = from_server.read(&mut buffer)?;
                    if count == 0 {
                        return to_client.shutdown(Shutdown::Both);
                    }
                    let sum = counted.fetch_add(count, Ordering::SeqCst) + count;
                    largest.fetch_max(sum, Ordering::SeqCst);
                    to_client.write_all(&buffer[..count])?;
                }
            });
            let mut buffer = vec![0; 64 * 1024];
            loop {
                let count = client.read(&mut buffer)?;
                if count == 0 {
                    return server.shutdown(Shutdown::Both);
                }
                answered.store(0, Ordering::SeqCst);
                match inspect(&buffer[..count]) {
                    Fate::Passes => server.write_all(&buffer[..count])?,
                    Fate::BreaksAfter(arriving) => {
                        server.write_all(&buffer[..arriving])?;
                        server.shutdown(Shutdown::Write)?;
                        return client.shutdown(Shutdown::Both);
                    }
                }
            }
        });
        Ok(Self {
            address,
            answered_bytes_max,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The largest reply, in bytes, to what the client had sent together.
    pub fn answered_bytes_max(&self) -> usize {
        self.answered_bytes_max.load(Ordering::SeqCst)
    }
}

/// Where a word begins in what was sent.
pub fn find(sent: &[u8], word: &str) -> Option<usize> {
    sent.windows(word.len())
        .position(|window| window == word.as_bytes())
}
