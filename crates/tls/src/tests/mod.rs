mod forms;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{ServerConnection, StreamOwned};

use super::*;

/// An authority, and what it has signed, as files in a folder.
struct Authority {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let folder = tempfile::tempdir().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        fs::write(folder.path().join("ca.pem"), certificate.pem()).unwrap();
        let issuer = Issuer::new(params, key);
        Self { folder, issuer }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A certificate for this machine, with its key in another file.
    fn sign(&self, name: &str) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let files = (
            self.path(&format!("{name}.pem")),
            self.path(&format!("{name}.key")),
        );
        fs::write(&files.0, certificate.pem()).unwrap();
        fs::write(&files.1, key.serialize_pem()).unwrap();
        files
    }

    fn server(&self, auth_clients: AuthClients) -> ServerOptions {
        let (certificate_file, key_file) = self.sign("server");
        ServerOptions {
            certificate_file: Some(certificate_file),
            key_file: Some(key_file),
            ca_file: Some(self.path("ca.pem")),
            auth_clients,
            ..ServerOptions::default()
        }
    }

    fn client(&self) -> ClientOptions {
        let (certificate_file, key_file) = self.sign("client");
        ClientOptions {
            ca_file: Some(self.path("ca.pem")),
            certificate_file: Some(certificate_file),
            key_file: Some(key_file),
            ..ClientOptions::default()
        }
    }
}

/// Whether a client gets a reply from such a server.
fn speak(server: &ServerOptions, client: &ClientOptions) -> Result<(), String> {
    let config = server_config(server).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let connection = ServerConnection::new(config).unwrap();
        let mut stream = StreamOwned::new(connection, listener.accept().unwrap().0);
        let mut byte = [0];
        let _ = stream.read_exact(&mut byte);
        let _ = stream.write_all(&byte);
        let _ = stream.flush();
    });
    let stream = TcpStream::connect(address).unwrap();
    let mut stream = client.wrap("127.0.0.1", stream).unwrap();
    let mut byte = [0];
    let spoken = stream
        .write_all(b"x")
        .and_then(|()| stream.read_exact(&mut byte))
        .map_err(|error| error.to_string());
    drop(stream);
    serving.join().unwrap();
    spoken.map(|()| assert_eq!(&byte, b"x"))
}

#[test]
fn clients_are_judged_as_the_options_say() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let known = ours.client();
    let nameless = ClientOptions {
        certificate_file: None,
        key_file: None,
        ..known.clone()
    };
    let stranger = ClientOptions {
        ca_file: known.ca_file.clone(),
        ..theirs.client()
    };
    for (auth_clients, expected) in [
        (AuthClients::Yes, [true, false, false]),
        (AuthClients::Optional, [true, true, false]),
        (AuthClients::No, [true, true, true]),
    ] {
        let server = ours.server(auth_clients);
        let spoken = [&known, &nameless, &stranger].map(|client| speak(&server, client).is_ok());
        assert_eq!(spoken, expected, "{auth_clients:?}");
    }
}

#[test]
fn a_tool_beside_a_server_asks_for_its_certificate() {
    let ours = Authority::new();
    for auth_clients in [AuthClients::Yes, AuthClients::No] {
        let server = ours.server(auth_clients);
        let tool = ClientOptions::beside(&server);
        speak(&server, &tool).unwrap();
        let (other, _) = ours.sign("other");
        let misled = ClientOptions {
            server_file: Some(other),
            ..tool
        };
        let refusal = speak(&server, &misled).unwrap_err();
        assert!(
            refusal.contains("ApplicationVerificationFailure"),
            "{refusal}"
        );
    }
}

#[test]
fn a_server_of_another_authority_is_refused() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let refusal = speak(&theirs.server(AuthClients::No), &ours.client()).unwrap_err();
    // Both authorities have the same name, so only the signature differs.
    let reasons = ["UnknownIssuer", "BadSignature"];
    let is_known = reasons.iter().any(|reason| refusal.contains(reason));
    assert!(is_known, "{refusal}");
}

#[test]
fn authorities_may_be_in_a_folder() {
    let ours = Authority::new();
    let folder = ours.path("authorities");
    fs::create_dir(&folder).unwrap();
    fs::copy(ours.path("ca.pem"), folder.join("0.pem")).unwrap();
    fs::write(folder.join("README"), "not a certificate").unwrap();
    let server = ServerOptions {
        ca_file: None,
        ca_dir: Some(folder),
        ..ours.server(AuthClients::Yes)
    };
    speak(&server, &ours.client()).unwrap();
}

#[test]
fn what_is_wrong_with_files_is_said() {
    let ours = Authority::new();
    let good = ours.server(AuthClients::Yes);
    let write = |name: &str, text: &str| -> Option<PathBuf> {
        fs::write(ours.path(name), text).unwrap();
        Some(ours.path(name))
    };
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let other_key = Some(ours.sign("other").1);
    let no_file = Some(Path::new("/nonexistent/x.pem").to_owned());
    for (expected, server) in [
        (
            "tls-cert-file is not set",
            ServerOptions {
                certificate_file: None,
                ..good.clone()
            },
        ),
        (
            "tls-key-file is not set",
            ServerOptions {
                key_file: None,
                ..good.clone()
            },
        ),
        (
            "tls-auth-clients needs",
            ServerOptions {
                ca_file: None,
                ..good.clone()
            },
        ),
        (
            "cannot read /nonexistent/x.pem: No such file",
            ServerOptions {
                key_file: no_file,
                ..good.clone()
            },
        ),
        (
            "no certificate in it",
            ServerOptions {
                certificate_file: write("a", "x"),
                ..good.clone()
            },
        ),
        (
            "no private key in it",
            ServerOptions {
                key_file: write("b", "x"),
                ..good.clone()
            },
        ),
        (
            "the key has a password. Set tls-key-file-pass",
            ServerOptions {
                key_file: write("c", encrypted),
                ..good.clone()
            },
        ),
        (
            "BadEncoding",
            ServerOptions {
                certificate_file: write("d", broken),
                ..good.clone()
            },
        ),
        (
            "other.key: this is not the key of the first certificate in ",
            ServerOptions {
                key_file: other_key,
                ..good.clone()
            },
        ),
        (
            "BadEncoding",
            ServerOptions {
                ca_file: write("e", broken),
                ..good.clone()
            },
        ),
    ] {
        let error = server_config(&server).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    server_config(&good).unwrap();
}
