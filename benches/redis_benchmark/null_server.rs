//! A server that does nothing: to each request it writes the same bytes. What it reaches is what redis-benchmark and the
//! kernel leave to any server.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How redis-benchmark begins, before its load.
const ASKS_SETTINGS: &[u8] = b"*3\r\n$6\r\nCONFIG\r\n";

/// The bytes of a request, all of one length, and its reply.
#[derive(Clone)]
pub(crate) struct Exchange {
    pub(crate) request_bytes: usize,
    pub(crate) reply: Vec<u8>,
}

/// One thread serves all connections, as Redis does. It ends with the program.
pub(crate) struct NullServer {
    address: SocketAddr,
    exchange: Arc<Mutex<Exchange>>,
}

impl NullServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let exchange = Arc::new(Mutex::new(Exchange {
            request_bytes: usize::MAX,
            reply: Vec::new(),
        }));
        let known = Arc::clone(&exchange);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, known.lock().unwrap().clone()));
                }
            });
        });
        Self { address, exchange }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What connections from now on are answered.
    pub(crate) fn answer(&self, exchange: Exchange) {
        *self.exchange.lock().unwrap() = exchange;
    }
}

async fn serve(mut stream: TcpStream, exchange: Exchange) {
    stream.set_nodelay(true).unwrap();
    let mut bytes = vec![0; 64 * 1024];
    let mut replies = Vec::new();
    let mut pending = 0;
    while let Ok(count @ 1..) = stream.read(&mut bytes).await {
        replies.clear();
        if bytes.starts_with(ASKS_SETTINGS) && pending == 0 {
            replies.extend_from_slice(b"-ERR no settings\r\n");
        } else {
            pending += count;
            while pending >= exchange.request_bytes {
                pending -= exchange.request_bytes;
                replies.extend_from_slice(&exchange.reply);
            }
        }
        if stream.write_all(&replies).await.is_err() {
            return;
        }
    }
}
