//! TLS of clients: the handshake, certificates of clients, and certificates that change.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::authority::Authority;
use crate::server::{PATIENCE, Server, Socket, free_port, reply_end, request, wait_until};

/// A client that trusts this authority and shows the certificate of that name.
pub(crate) fn client(authority: &Authority, name: Option<&str>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_file(authority.path("ca.pem")).unwrap();
    roots.add(root).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let Some(name) = name else {
        return builder.with_no_client_auth();
    };
    let certificate = CertificateDer::from_pem_file(authority.path(&format!("{name}.pem")));
    let key = PrivateKeyDer::from_pem_file(authority.path(&format!("{name}.key")));
    builder
        .with_client_auth_cert(vec![certificate.unwrap()], key.unwrap())
        .unwrap()
}

/// A server with a port for each, without certificates of clients, and the address with TLS.
fn start_both(authority: &Authority, auth_clients: &str) -> (Server, SocketAddr) {
    authority.sign("server");
    let (plain, tls) = (free_port().to_string(), free_port());
    let mut flags = authority.flags(tls, "server", auth_clients);
    flags.extend(["--port".to_owned(), plain]);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    (Server::start_with(&flags), ([127, 0, 0, 1], tls).into())
}

/// A connection with TLS.
struct TlsSocket {
    stream: StreamOwned<ClientConnection, TcpStream>,
    received: Vec<u8>,
}

impl TlsSocket {
    fn connect(address: SocketAddr, config: ClientConfig) -> Self {
        Self::over(TcpStream::connect(address).unwrap(), config)
    }

    fn over(stream: TcpStream, config: ClientConfig) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        Self {
            stream: StreamOwned::new(connection, stream),
            received: Vec::new(),
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
        self.stream.flush().unwrap();
    }

    fn receive(&mut self) -> std::io::Result<()> {
        let mut buffer = [0; 64 * 1024];
        match self.stream.read(&mut buffer)? {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => {
                self.received.extend_from_slice(&buffer[..count]);
                Ok(())
            }
        }
    }

    fn reply(&mut self) -> Vec<u8> {
        loop {
            if let Some(end) = reply_end(&self.received, 0) {
                return self.received.drain(..end).collect();
            }
            self.receive().unwrap();
        }
    }

    fn run(&mut self, line: &str) -> String {
        self.send(&request(&line.split(' ').collect::<Vec<_>>()));
        String::from_utf8(self.reply()).unwrap()
    }
}

/// Whether such a client is served.
fn ping(address: SocketAddr, config: ClientConfig) -> Result<(), String> {
    let mut socket = TlsSocket::connect(address, config);
    let spoken = socket.stream.write_all(b"PING\r\n").and_then(|()| {
        while socket.received.len() < 7 {
            socket.receive()?;
        }
        Ok(())
    });
    spoken.map_err(|error| error.to_string())?;
    assert_eq!(socket.received, b"+PONG\r\n");
    Ok(())
}

/// The certificate that the server shows.
fn shown(address: SocketAddr, config: ClientConfig) -> Vec<u8> {
    let mut socket = TlsSocket::connect(address, config);
    assert_eq!(socket.run("PING"), "+PONG\r\n");
    let certificates = socket.stream.conn.peer_certificates().unwrap();
    certificates[0].to_vec()
}

#[test]
fn a_server_may_have_nothing_but_tls() {
    let authority = Authority::new();
    authority.sign("server");
    let port = free_port();
    let mut flags = authority.flags(port, "server", "no");
    flags.extend(["--port".to_owned(), "0".to_owned()]);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let server = Server::start_with(&flags);
    assert_eq!(server.address().port(), port);
    let mut socket = TlsSocket::connect(server.address(), client(&authority, None));
    assert_eq!(
        socket.run("CONFIG GET port"),
        "*2\r\n$4\r\nport\r\n$1\r\n0\r\n"
    );
    let info = socket.run("INFO server");
    assert!(info.contains(&format!("\r\ntcp_port:{port}\r\n")), "{info}");
    let listener = format!("\r\nlistener2:name=tls,bind=127.0.0.1,port={port}\r\n");
    assert!(info.contains(&listener), "{info}");
    assert!(!info.contains("listener0"), "{info}");
    let list = socket.run("CLIENT LIST");
    assert!(
        list.contains(&format!(" laddr=127.0.0.1:{port} ")),
        "{list}"
    );
    // The end is announced, because otherwise it could be an attack.
    socket.send(b"QUIT\r\n");
    assert_eq!(socket.reply(), b"+OK\r\n");
    assert_eq!(socket.stream.read(&mut [0]).unwrap(), 0);
}

#[test]
fn all_that_works_without_tls_works_with_it() {
    let authority = Authority::new();
    let (server, address) = start_both(&authority, "no");
    let mut socket = TlsSocket::connect(address, client(&authority, None));
    let mut plain = server.connect();
    // Replies and requests that are larger than any buffer.
    let large = "x".repeat(5_000_000);
    assert_eq!(socket.run(&format!("SET large {large}")), "+OK\r\n");
    let expected = format!("$5000000\r\n{large}\r\n");
    assert!(socket.run("GET large") == expected);
    assert!(plain.run("GET large") == expected);
    // Everything is sent before anything is read.
    let mut pipeline = Vec::new();
    for _ in 0..20 {
        pipeline.extend(request(&["GET", "large"]));
    }
    pipeline.extend(request(&["SET", "other", &large]));
    socket.send(&pipeline);
    for _ in 0..20 {
        assert!(socket.reply() == expected.as_bytes());
    }
    assert_eq!(socket.reply(), b"+OK\r\n");
    // A waiting client, while messages arrive.
    socket.send(&request(&["BLPOP", "list", "0"]));
    wait_until("it waits", || {
        plain.run("CLIENT LIST").contains("cmd=blpop")
    });
    assert_eq!(plain.run("RPUSH list a"), ":1\r\n");
    assert_eq!(socket.reply(), b"*2\r\n$4\r\nlist\r\n$1\r\na\r\n");
    socket.run("SUBSCRIBE news");
    assert_eq!(plain.run("PUBLISH news now"), ":1\r\n");
    assert_eq!(
        socket.reply(),
        b"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$3\r\nnow\r\n"
    );
    // It is noticed that a waiting client is gone.
    let mut waiting = TlsSocket::connect(address, client(&authority, None));
    waiting.send(&request(&["BLPOP", "list", "0"]));
    wait_until("it waits", || {
        plain.run("CLIENT LIST").contains("cmd=blpop")
    });
    drop(waiting);
    wait_until("it is gone", || {
        !plain.run("CLIENT LIST").contains("cmd=blpop")
    });
}

#[test]
fn certificates_of_clients_are_asked_for_as_the_setting_says() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    ours.sign("client");
    theirs.sign("client");
    std::fs::copy(theirs.path("client.pem"), ours.path("stranger.pem")).unwrap();
    std::fs::copy(theirs.path("client.key"), ours.path("stranger.key")).unwrap();
    let (server, address) = start_both(&ours, "yes");
    let mut plain = server.connect();
    let who = [Some("client"), None, Some("stranger")];
    for (setting, expected) in [
        ("yes", [true, false, false]),
        ("optional", [true, true, false]),
        ("no", [true, true, true]),
    ] {
        let set = plain.run(&format!("CONFIG SET tls-auth-clients {setting}"));
        assert_eq!(set, "+OK\r\n");
        let served = who.map(|name| ping(address, client(&ours, name)).is_ok());
        assert_eq!(served, expected, "{setting}");
    }
    wait_until("the refused are counted", || {
        plain
            .run("INFO stats")
            .contains("\r\nrejected_connections:3\r\n")
    });
}

#[test]
fn versions_are_those_of_the_setting() {
    let authority = Authority::new();
    let (server, address) = start_both(&authority, "no");
    let version = || {
        let mut socket = TlsSocket::connect(address, client(&authority, None));
        socket.run("PING");
        socket.stream.conn.protocol_version().unwrap()
    };
    assert_eq!(version(), rustls::ProtocolVersion::TLSv1_3);
    let mut plain = server.connect();
    assert_eq!(plain.run("CONFIG SET tls-protocols TLSv1.2"), "+OK\r\n");
    assert_eq!(version(), rustls::ProtocolVersion::TLSv1_2);
    let refusal = plain.run("CONFIG SET tls-protocols TLSv1.1");
    assert!(refusal.contains("'TLSv1.2' and 'TLSv1.3'"), "{refusal}");
}

#[test]
fn certificates_change_in_a_running_server() {
    let authority = Authority::new();
    let (server, address) = start_both(&authority, "no");
    let show = || shown(address, client(&authority, None));
    let first = show();
    let mut plain = server.connect();
    let mut old = TlsSocket::connect(address, client(&authority, None));
    assert_eq!(old.run("PING"), "+PONG\r\n");

    authority.sign("other");
    let [certificate, key] = ["other.pem", "other.key"].map(|name| authority.text(name));
    let set = [
        "CONFIG",
        "SET",
        "tls-cert-file",
        &certificate,
        "tls-key-file",
        &key,
    ];
    assert_eq!(plain.command(&set), "+OK\r\n");
    let second = show();
    assert_ne!(second, first);

    // A certificate and key that do not match are refused, and nothing changes.
    let server_key = authority.text("server.key");
    let refusal = plain.command(&["CONFIG", "SET", "tls-key-file", &server_key]);
    assert_eq!(
        refusal,
        "-ERR CONFIG SET failed (possibly related to argument 'tls-key-file') - Unable to update \
         TLS configuration. Check server logs.\r\n"
    );
    wait_until("it is in the log", || {
        server.log().contains("this is not the key of")
    });
    let expected = format!("*2\r\n$12\r\ntls-key-file\r\n${}\r\n{key}\r\n", key.len());
    assert_eq!(plain.run("CONFIG GET tls-key-file"), expected);
    assert_eq!(show(), second);

    // A named pipe blocks nobody.
    let pipe = authority.text("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let refusal = plain.command(&["CONFIG", "SET", "tls-cert-file", &pipe]);
    assert!(refusal.contains("Unable to update TLS"), "{refusal}");
    wait_until("it is logged", || {
        server.log().contains("it is not a regular file")
    });

    // SIGHUP reads the same files again, and an invalid one changes nothing.
    authority.sign("other");
    server.signal("HUP");
    wait_until("the third is shown", || show() != second);
    let third = show();
    std::fs::write(&certificate, "no certificate").unwrap();
    server.signal("HUP");
    wait_until("it is logged", || {
        server.log().contains("no certificate in it")
    });
    assert_eq!(show(), third);
    // Connections keep the configuration that they began with.
    assert_eq!(old.run("PING"), "+PONG\r\n");
}

#[test]
fn plain_bytes_at_the_tls_port_end_their_connection_only() {
    let authority = Authority::new();
    let (server, address) = start_both(&authority, "no");
    let mut plain = server.connect();
    let mut confused = Socket::connect(address);
    confused.send("*1\r\n$4\r\nPING\r\n");
    let rest = confused.rest();
    assert!(!rest.contains("PONG"), "{rest:?}");
    let stats = plain.run("INFO stats");
    assert!(stats.contains("\r\nrejected_connections:1\r\n"), "{stats}");
    wait_until("it is in the log", || {
        server.log().contains("no TLS handshake with 127.0.0.1:")
    });
    ping(address, client(&authority, None)).unwrap();
}

#[test]
fn a_client_that_never_shakes_hands_holds_up_nobody_and_is_disconnected() {
    let authority = Authority::new();
    let (server, address) = start_both(&authority, "no");
    let mut plain = server.connect();
    let mut connected = 0;
    let mut silent: Vec<Socket> = Vec::new();
    // More than there are slots for handshakes. They have ten seconds, so a slow machine may need
    // another try.
    wait_until("a client is served beside them", || {
        silent = (0..300).map(|_| Socket::connect(address)).collect();
        connected += silent.len();
        for socket in &mut silent[1..] {
            // Half a record of a handshake.
            socket.send([22, 3, 1, 2, 0, 1]);
        }
        ping(address, client(&authority, None)).unwrap();
        let list = plain.run("CLIENT LIST");
        silent.iter().all(|socket| {
            let port = socket.local_address().port();
            list.contains(&format!(" addr=127.0.0.1:{port} "))
        })
    });
    assert_eq!(
        plain.run("CLIENT KILL 127.0.0.1:1"),
        "-ERR No such client\r\n"
    );
    for socket in &mut silent {
        assert_eq!(socket.rest(), "");
    }
    let port = silent[1].local_address().port();
    let list = plain.run("CLIENT LIST");
    assert!(!list.contains(&format!(" addr=127.0.0.1:{port} ")));
    wait_until("they are counted", || {
        plain
            .run("INFO stats")
            .contains(&format!("\r\nrejected_connections:{connected}\r\n"))
    });
    wait_until("it is logged", || server.log().contains("it took too long"));
}

#[test]
fn clients_that_stall_in_their_handshakes_hold_up_only_their_own_address() {
    let authority = Authority::new();
    let (_server, address) = start_both(&authority, "no");
    let config = Arc::new(client(&authority, None));
    // More than there are slots in total. Each sends its whole first message, and no more.
    let stalled: Vec<TcpStream> = (0..300)
        .map(|_| {
            let name = ServerName::try_from("127.0.0.1").unwrap();
            let mut connection = ClientConnection::new(Arc::clone(&config), name).unwrap();
            let mut stream = TcpStream::connect(address).unwrap();
            connection.write_tls(&mut stream).unwrap();
            stream
        })
        .collect();
    let begun = Instant::now();
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let other_address: SocketAddr = ([127, 0, 0, 2], 0).into();
    socket.bind(&other_address.into()).unwrap();
    socket.connect(&address.into()).unwrap();
    let mut other = TlsSocket::over(socket.into(), client(&authority, None));
    assert_eq!(other.run("PING"), "+PONG\r\n");
    // The stalled ones have ten seconds.
    assert!(
        begun.elapsed() < Duration::from_secs(8),
        "{:?}",
        begun.elapsed()
    );
    drop(stalled);
}

/// The output of redis-cli for a command. `None` if it has no TLS.
fn redis_cli(address: SocketAddr, options: &[&str], command: &[&str]) -> Option<String> {
    let help = Command::new("redis-cli").arg("--help").output();
    let has_tls = help.is_ok_and(|help| {
        let text = [help.stdout, help.stderr].concat();
        String::from_utf8_lossy(&text).contains("--tls ")
    });
    if !has_tls {
        // Written past the capture of a passing test's output.
        let _ = writeln!(
            std::io::stderr(),
            "redis-cli is not tried: none with TLS is installed"
        );
        return None;
    }
    let (ip, port) = (address.ip().to_string(), address.port().to_string());
    let said = Command::new("redis-cli")
        .args(["--tls", "-h", &ip, "-p", &port])
        .args(options)
        .args(command)
        .output()
        .unwrap();
    let text = [said.stdout, said.stderr].concat();
    Some(String::from_utf8(text).unwrap())
}

#[test]
fn redis_cli_speaks_tls_with_the_server() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    ours.sign("client");
    theirs.sign("client");
    let (_server, address) = start_both(&ours, "yes");
    let [ca, cert, key] = ["ca.pem", "client.pem", "client.key"].map(|name| ours.text(name));
    let with_certificate = ["--cacert", &ca, "--cert", &cert, "--key", &key];
    let cli = |options: &[&str], command: &[&str]| redis_cli(address, options, command);
    let Some(pong) = cli(&with_certificate, &["PING"]) else {
        return;
    };
    assert_eq!(pong, "PONG\n");
    let large = "x".repeat(100_000);
    assert_eq!(
        cli(&with_certificate, &["SET", "large", &large]).unwrap(),
        "OK\n"
    );
    assert_eq!(
        cli(&with_certificate, &["GET", "large"]).unwrap(),
        format!("{large}\n")
    );
    // Without a certificate, with a stranger's certificate, and with a server that is a stranger.
    let (their_ca, their_cert, their_key) = (
        theirs.text("ca.pem"),
        theirs.text("client.pem"),
        theirs.text("client.key"),
    );
    for options in [
        ["--cacert", &ca].as_slice(),
        &["--cacert", &ca, "--cert", &their_cert, "--key", &their_key],
        &["--cacert", &their_ca, "--cert", &cert, "--key", &key],
    ] {
        let said = cli(options, &["PING"]).unwrap();
        assert!(
            !said.contains("PONG") && !said.is_empty(),
            "{options:?}: {said}"
        );
    }
}

#[test]
fn a_server_without_a_valid_certificate_does_not_start() {
    let authority = Authority::new();
    authority.sign("server");
    std::fs::write(authority.path("server.key"), "no key").unwrap();
    let flags = authority.flags(free_port(), "server", "no");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let folder = tempfile::tempdir().unwrap();
    let refusal = Server::start_in(folder.path(), &flags).err().unwrap();
    assert!(refusal.contains("cannot set up TLS: "), "{refusal}");
    assert!(refusal.contains("no private key in it"), "{refusal}");
}

#[test]
fn clients_of_sentinel_with_tls_get_the_port_with_tls() {
    let authority = Authority::new();
    authority.sign("server");
    let (tls, sentinel) = (free_port(), free_port());
    let mut flags = authority.flags(tls, "server", "no");
    for (name, value) in [
        ("--sentinel-tls-port", sentinel.to_string()),
        ("--announce-hostname", "localhost".to_owned()),
    ] {
        flags.extend([name.to_owned(), value]);
    }
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let _server = Server::start_with(&flags);
    let address = ([127, 0, 0, 1], sentinel).into();
    let mut socket = TlsSocket::connect(address, client(&authority, None));
    assert_eq!(
        socket.run("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster"),
        format!("*2\r\n$9\r\nlocalhost\r\n$5\r\n{tls}\r\n")
    );
}

#[test]
fn sentinel_may_speak_tls_alone() {
    let authority = Authority::new();
    authority.sign("server");
    let sentinel = free_port();
    let mut flags = authority.flags(0, "server", "no");
    flags.extend(["--sentinel-tls-port".to_owned(), sentinel.to_string()]);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let server = Server::start_with(&flags);
    let address = ([127, 0, 0, 1], sentinel).into();
    let mut socket = TlsSocket::connect(address, client(&authority, None));
    let port = server.address().port();
    assert_eq!(
        socket.run("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster"),
        format!("*2\r\n$9\r\n127.0.0.1\r\n$5\r\n{port}\r\n")
    );
}

#[test]
fn clients_of_cluster_with_tls_get_the_port_with_tls_and_show_certificates() {
    let authority = Authority::new();
    authority.sign("server");
    authority.sign("client");
    let (cluster, cluster_tls) = (free_port(), free_port());
    // Without the other port for TLS.
    let mut flags = authority.flags(0, "server", "yes");
    for (name, port) in [
        ("--cluster-port", cluster),
        ("--cluster-tls-port", cluster_tls),
    ] {
        flags.extend([name.to_owned(), port.to_string()]);
    }
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let _server = Server::start_with(&flags);
    let address = ([127, 0, 0, 1], cluster_tls).into();
    let mut socket = TlsSocket::connect(address, client(&authority, Some("client")));
    let slots = socket.run("CLUSTER SLOTS");
    assert!(
        slots.contains(&format!("$9\r\n127.0.0.1\r\n:{cluster_tls}\r\n")),
        "{slots}"
    );
    let shards = socket.run("CLUSTER SHARDS");
    assert!(
        shards.contains(&format!("$8\r\ntls-port\r\n:{cluster_tls}\r\n")),
        "{shards}"
    );
    let mut plain = Socket::connect(([127, 0, 0, 1], cluster).into());
    let slots = plain.run("CLUSTER SLOTS");
    assert!(slots.contains(&format!("\r\n:{cluster}\r\n")), "{slots}");
    assert!(ping(address, client(&authority, Some("client"))).is_ok());
    assert!(ping(address, client(&authority, None)).is_err());
}
