//! Certificates of X.509 version 1, and keys with a password, as made by OpenSSL: src/tls/fixtures.

use std::time::Duration;

use rustls::pki_types::UnixTime;

use super::*;
use crate::files;
use crate::version_1::{Version1, provider};

/// The password of the keys that have one.
const PASSWORD: &str = "secret";

fn fixture(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/fixtures");
    folder.join(name)
}

fn server(certificate: &str, key: &str, auth_clients: AuthClients) -> ServerOptions {
    ServerOptions {
        certificate_file: Some(fixture(certificate)),
        key_file: Some(fixture(key)),
        ca_file: Some(fixture("ca.pem")),
        auth_clients,
        ..ServerOptions::default()
    }
}

/// A client that asks for the server's certificate, and shows its own.
fn client(server: &ServerOptions, certificate: &str, key: &str) -> ClientOptions {
    ClientOptions {
        certificate_file: Some(fixture(certificate)),
        key_file: Some(fixture(key)),
        ..ClientOptions::beside(server)
    }
}

#[test]
fn certificates_of_version_1_are_accepted_from_both_sides() {
    for version in Version::ALL {
        for (certificate, key) in [
            ("version-1-rsa.pem", "rsa.key"),
            ("version-1-ec.pem", "ec.key"),
        ] {
            for auth_clients in [AuthClients::Yes, AuthClients::Optional, AuthClients::No] {
                let server = ServerOptions {
                    versions: vec![version],
                    ..server(certificate, key, auth_clients)
                };
                speak(&server, &client(&server, "version-1-ec.pem", "ec.key")).unwrap();
                speak(&server, &client(&server, "version-1-rsa.pem", "rsa.key")).unwrap();
            }
        }
    }
}

#[test]
fn certificates_of_version_1_by_other_authorities_are_refused() {
    for version in Version::ALL {
        let server = ServerOptions {
            versions: vec![version],
            ..server("version-1-rsa.pem", "rsa.key", AuthClients::Yes)
        };
        let stranger = client(&server, "version-1-stranger.pem", "ec.key");
        speak(&server, &stranger).unwrap_err();
        let other = ServerOptions {
            ca_file: Some(fixture("other.pem")),
            ..server.clone()
        };
        speak(&other, &stranger).unwrap();
        speak(&other, &client(&server, "version-1-ec.pem", "ec.key")).unwrap_err();
    }
}

#[test]
fn a_certificate_of_version_1_holds_for_its_time_and_as_it_was_signed() {
    let [certificate] = &files::certificates(&fixture("version-1-ec.pem")).unwrap()[..] else {
        panic!("not one certificate");
    };
    let authorities = files::authorities(Some(&fixture("ca.pem")), None).unwrap();
    let provider = provider();
    let algorithms = provider.signature_verification_algorithms.all;
    let refusal = |certificate: &rustls::pki_types::CertificateDer, at_s| {
        let now = UnixTime::since_unix_epoch(Duration::from_secs(at_s));
        let read = Version1::read(certificate)?;
        let verified = read.verify(&authorities.roots, now, algorithms);
        Some(verified.err().map(|error| format!("{error:?}")))
    };
    let year_2050 = 2_524_608_000;
    assert_eq!(refusal(certificate, year_2050), Some(None));
    let refused = |text: &str| Some(Some(text.to_owned()));
    assert_eq!(refusal(certificate, 0), refused("NotValidYet"));
    assert_eq!(refusal(certificate, 2 * year_2050), refused("Expired"));
    // Whichever byte is changed, it is no longer such a certificate, or its signature is wrong.
    for at in 0..certificate.len() {
        let mut bytes = certificate.to_vec();
        bytes[at] ^= 1;
        let changed = refusal(&bytes.into(), year_2050);
        assert_ne!(changed, Some(None), "byte {at}");
    }
}

#[test]
fn a_tool_that_asks_for_a_name_says_that_version_1_has_none() {
    let server = server("version-1-rsa.pem", "rsa.key", AuthClients::No);
    let tool = ClientOptions {
        ca_file: Some(fixture("ca.pem")),
        ..ClientOptions::default()
    };
    let refusal = speak(&server, &tool).unwrap_err();
    assert!(refusal.contains("X.509 version 1"), "{refusal}");
    assert!(refusal.contains("-extfile"), "{refusal}");
}

#[test]
fn the_key_of_another_certificate_is_told() {
    let options = server("version-1-ec.pem", "rsa.key", AuthClients::No);
    let refusal = server_config(&options).unwrap_err().to_string();
    for part in ["rsa.key", "version-1-ec.pem", "this is not the key of"] {
        assert!(refusal.contains(part), "{refusal}");
    }
}

#[test]
fn keys_with_a_password_are_decrypted() {
    for key in [
        "ec-aes.key",
        "ec-aes-sha1.key",
        "ec-des3.key",
        "ec-scrypt.key",
    ] {
        let with = |password: Option<&str>| {
            let options = ServerOptions {
                key_password: password.map(|password| Password(password.to_owned())),
                ..server("version-1-ec.pem", key, AuthClients::No)
            };
            let told = server_config(&options).map(drop);
            (options, told.map_err(|error| error.to_string()))
        };
        let (options, told) = with(Some(PASSWORD));
        told.unwrap();
        speak(&options, &ClientOptions::beside(&options)).unwrap();
        assert!(!format!("{options:?}").contains(PASSWORD));
        let told = with(Some("another")).1.unwrap_err();
        assert!(
            told.contains(key) && told.contains("is not that of the key"),
            "{told}"
        );
        let told = with(None).1.unwrap_err();
        assert!(
            told.contains(key) && told.contains("tls-key-file-pass"),
            "{told}"
        );
    }
}

#[test]
fn keys_that_cannot_be_decrypted_are_told_with_a_remedy() {
    for (key, cause) in [
        ("ec-old.key", "an old form of OpenSSL"),
        ("ec-pkcs12.key", "cannot be decrypted"),
        ("ec-costly.key", "more than 10000000 iterations"),
    ] {
        let options = ServerOptions {
            key_password: Some(Password(PASSWORD.to_owned())),
            ..server("version-1-ec.pem", key, AuthClients::No)
        };
        let told = server_config(&options).unwrap_err().to_string();
        for part in [key, cause, "openssl pkcs8 -topk8"] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
}
