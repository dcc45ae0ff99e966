//! A proxy for connections between clients and a server, so that they can be cut.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use rand::RngExt;
use rand::rngs::StdRng;

/// A port that stays the same when the server behind it is killed and restarted.
pub struct Proxy {
    address: SocketAddr,
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Where the server listens, if it runs.
    target: Mutex<Option<SocketAddr>>,
    links: Mutex<Vec<Arc<Link>>>,
    is_stopped: AtomicBool,
}

struct Link {
    client: TcpStream,
    server: TcpStream,
    /// The next reply is lost and the connection with it.
    loses_reply: AtomicBool,
    is_cut: AtomicBool,
}

impl Link {
    fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

impl Proxy {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Inner::default());
        let accepting = Arc::clone(&inner);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if accepting.is_stopped.load(Ordering::Relaxed) {
                    return;
                }
                accepting.link(client);
            }
        });
        Self { address, inner }
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends new connections to this server. Without a target they are closed at once.
    pub fn lead_to(&self, target: Option<SocketAddr>) {
        *self.inner.target.lock().unwrap() = target;
    }

    /// Cuts about one in `one_in` connections: at once, or so that one more command arrives and its
    /// reply is lost. Returns how many.
    pub fn cut(&self, one_in: u32, random: &mut StdRng) -> u64 {
        let mut links = self.inner.links.lock().unwrap();
        links.retain(|link| !link.is_cut.load(Ordering::Relaxed));
        let mut count = 0;
        for link in links.iter() {
            if random.random_range(0..one_in) == 0 {
                count += 1;
                if random.random() {
                    link.cut();
                } else {
                    link.loses_reply.store(true, Ordering::Relaxed);
                }
            }
        }
        count
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.inner.is_stopped.store(true, Ordering::Relaxed);
        for link in self.inner.links.lock().unwrap().iter() {
            link.cut();
        }
        // Wakes the thread that accepts.
        drop(TcpStream::connect(self.address));
    }
}

impl Inner {
    fn link(&self, client: TcpStream) {
        let target = *self.target.lock().unwrap();
        let Some(Ok(server)) = target.map(TcpStream::connect) else {
            return;
        };
        let _ = client.set_nodelay(true);
        let _ = server.set_nodelay(true);
        let link = Arc::new(Link {
            client,
            server,
            loses_reply: AtomicBool::new(false),
            is_cut: AtomicBool::new(false),
        });
        let mut links = self.links.lock().unwrap();
        links.retain(|link| !link.is_cut.load(Ordering::Relaxed));
        links.push(Arc::clone(&link));
        let answering = Arc::clone(&link);
        thread::spawn(move || {
            pump(&link.client, &link.server, || false);
            link.cut();
        });
        thread::spawn(move || {
            let is_lost = || answering.loses_reply.load(Ordering::Relaxed);
            pump(&answering.server, &answering.client, is_lost);
            answering.cut();
        });
    }
}

/// Copies until either end is closed, or the connection is cut.
fn pump(mut from: &TcpStream, mut to: &TcpStream, is_lost: impl Fn() -> bool) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        match from.read(&mut buffer) {
            Ok(count) if count > 0 && !is_lost() => {
                if to.write_all(&buffer[..count]).is_err() {
                    return;
                }
            }
            _ => return,
        }
    }
}
