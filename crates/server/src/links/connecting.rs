//! Makes links to other servers.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio_rustls::TlsConnector;

use super::handshake::{self, Side, VERSION};
use crate::names::addresses_of;
use quoin_base::limits::SERVER_DEAD_AFTER;
use quoin_base::random::Random;
use quoin_config::RuntimeConfig;
use quoin_layout::ServerRow;
use quoin_resp::wire::reply_reader::encode_request;
use quoin_tls::ClientOptions;

/// Time without a sign of life from the other end before the system sends a probe.
const PROBE_AFTER: Duration = Duration::from_secs(1);
/// Bytes of an answer in the handshake.
const ANSWER_BYTES_MAX: usize = 1024;

/// What is needed to make links.
pub(super) struct Connector {
    /// Where links are served.
    pub(super) runtime: Handle,
    pub(super) config: Arc<RuntimeConfig>,
    pub(super) random: Arc<dyn Random>,
    pub(super) secret: Bytes,
}

/// Either kind of stream.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Duplex for S {}

/// A link after the handshake.
pub(super) struct Connected {
    pub(super) stream: Box<dyn Duplex>,
    /// What has arrived after the handshake.
    pub(super) input: BytesMut,
}

/// Connects to a server, with TLS if both speak it, and proves that both use one store.
pub(super) async fn connect(connector: &Connector, row: &ServerRow) -> io::Result<Connected> {
    let settings = connector.config.settings();
    let speaks_tls = row.tls_port != 0 && settings.tls_port != 0;
    let port = if speaks_tls { row.tls_port } else { row.port };
    if port == 0 {
        return Err(io::Error::other("it has no port that this server can use"));
    }
    let addresses = addresses_of(row.ip.clone(), port).await?;
    let stream = TcpStream::connect(addresses.as_slice()).await?;
    stream.set_nodelay(true)?;
    notice_loss(&stream)?;
    let mut stream: Box<dyn Duplex> = match speaks_tls {
        false => Box::new(stream),
        true => {
            let options = ClientOptions::of_server(&settings.tls);
            let client = Arc::new(options.config().map_err(io::Error::other)?);
            let host = match row.hostname.as_str() {
                "" => &row.ip,
                hostname => hostname,
            };
            let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
            Box::new(TlsConnector::from(client).connect(name, stream).await?)
        }
    };
    let mut input = BytesMut::new();
    let own = handshake::nonce(&*connector.random);
    let answer = ask(&mut stream, &mut input, &own).await?;
    let refused = || io::Error::other("it does not know the secret of this store");
    let (theirs, proof) = answer.split_once(' ').ok_or_else(refused)?;
    let nonces: [&[u8]; 2] = [&own, theirs.as_bytes()];
    if !handshake::is_proof(&connector.secret, Side::Accepting, nonces, proof.as_bytes()) {
        return Err(refused());
    }
    let own = handshake::proof(&connector.secret, Side::Connecting, nonces).ok_or_else(refused)?;
    if ask(&mut stream, &mut input, &own).await? != "OK" {
        return Err(refused());
    }
    Ok(Connected { stream, input })
}

/// Ends the connection if the other end becomes unreachable from here, even if it is alive for all
/// others.
fn notice_loss(stream: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(stream);
    let probes = TcpKeepalive::new()
        .with_time(PROBE_AFTER)
        .with_interval(PROBE_AFTER)
        .with_retries(2);
    socket.set_tcp_keepalive(&probes)?;
    socket.set_tcp_user_timeout(Some(SERVER_DEAD_AFTER))
}

/// Sends a line of the handshake. Returns the status in the reply.
async fn ask(
    stream: &mut Box<dyn Duplex>,
    input: &mut BytesMut,
    word: &Bytes,
) -> io::Result<String> {
    let request = encode_request(&[handshake::NAME.as_bytes(), VERSION.as_bytes(), word]);
    stream.write_all(&request).await?;
    loop {
        if let Some(end) = input.iter().position(|byte| *byte == b'\n') {
            let line = input.split_to(end + 1);
            return match line.trim_ascii_end() {
                [b'+', status @ ..] => Ok(String::from_utf8_lossy(status).into_owned()),
                other => Err(io::Error::other(format!(
                    "it answers: {}",
                    String::from_utf8_lossy(other)
                ))),
            };
        }
        if input.len() > ANSWER_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if stream.read_buf(input).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}
