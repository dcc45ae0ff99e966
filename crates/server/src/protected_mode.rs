//! Protected mode: without a password, only clients of this machine are served (Redis:
//! `clientAcceptHandler`). And warnings at the start about addresses that others can reach.

use std::net::IpAddr;

use crate::addresses::Endpoint;
use quoin_acl::Users;
use quoin_config::{RuntimeConfig, Settings};
use quoin_tls::AuthClients;

/// The error for other clients, from Redis 7.2.
pub(super) const DENIED: &str = "-DENIED Redis is running in protected mode because protected mode \
    is enabled and no password is set for the default user. In this mode connections are only \
    accepted from the loopback interface. If you want to connect from external computers to Redis \
    you may adopt one of the following solutions: 1) Just disable protected mode sending the \
    command 'CONFIG SET protected-mode no' from the loopback interface by connecting to Redis from \
    the same host the server is running, however MAKE SURE Redis is not publicly accessible from \
    internet if you do so. Use CONFIG REWRITE to make this change permanent. 2) Alternatively you \
    can just disable the protected mode by editing the Redis configuration file, and setting the \
    protected mode option to 'no', and then restarting the server. 3) If you started the server \
    manually just for testing, restart it with the '--protected-mode no' option. 4) Set up an \
    authentication password for the default user. NOTE: You only need to do one of the above \
    things in order for the server to start accepting connections from the outside.\r\n";

/// Whether protected mode refuses this client: it is on another machine, and the user `default` needs no
/// password.
pub(super) fn is_denied(config: &RuntimeConfig, users: &Users, client: &Endpoint) -> bool {
    config.live.protected_mode()
        && !client.is_local()
        && users.default_user().definition().needs_no_password()
}

/// Also IPv4 addresses that are mapped to IPv6.
fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

/// Warns at the start about everything that clients of other machines can reach.
pub(super) fn warn(settings: &Settings, users: &Users) {
    for line in warnings(settings, users) {
        tracing::warn!("{line}");
    }
}

fn warnings(settings: &Settings, users: &Users) -> Vec<String> {
    let mut lines = Vec::new();
    let reachable: Vec<String> = settings
        .bind
        .iter()
        .filter(|ip| !is_loopback(**ip))
        .map(ToString::to_string)
        .collect();
    let has_plain_port = settings.tcp_port().is_some() || settings.cluster_port != 0;
    let is_listening = has_plain_port || settings.tls_port != 0 || settings.cluster_tls_port != 0;
    // Clients that must have a certificate are known.
    let admits_strangers = has_plain_port || settings.tls.auth_clients != AuthClients::Yes;
    let has_sentinel_port = settings.sentinel_port != 0 || settings.sentinel_tls_port != 0;
    if (is_listening || has_sentinel_port) && !reachable.is_empty() {
        let reachable = reachable.join(", ");
        let needs_no_password = users.default_user().definition().needs_no_password();
        if settings.protected_mode && needs_no_password {
            lines.push(format!(
                "listening on {reachable} without a password: protected mode refuses clients from \
                 other machines. Set requirepass to let them in"
            ));
        } else if is_listening && admits_strangers && !users.requires_authentication() {
            lines.push(format!(
                "WARNING: anybody who can reach {reachable} can read and change all data: there \
                 is no password, and protected-mode is off. Set requirepass"
            ));
        }
    }
    if let Some(address) = settings.metrics_address
        && !is_loopback(address.ip())
    {
        lines.push(format!(
            "anybody who can reach {address} can read the metrics: they are not protected by a \
             password"
        ));
    }
    if let Some(address) = settings.dashboard_place()
        && !is_loopback(address.ip())
    {
        if !users.requires_authentication() && !settings.protected_mode {
            lines.push(format!(
                "WARNING: anybody who can reach {address} can read and change all data on the dashboard: there is no \
                 password, and protected-mode is off. Set requirepass"
            ));
        } else if !settings.dashboard_tls {
            lines.push(format!(
                "passwords cross the network to the dashboard at {address} as plain text: set dashboard-tls"
            ));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use quoin_acl::{Defaults, Definition};
    use quoin_config::{DashboardAddress, LoadedSettings};

    fn config(changes: &[(&[u8], &[u8])]) -> RuntimeConfig {
        let config = RuntimeConfig::new(LoadedSettings::defaults());
        config.set(changes).unwrap();
        config
    }

    fn client(address: &str) -> Endpoint {
        Endpoint::Tcp((address.parse::<IpAddr>().unwrap(), 5_000).into())
    }

    /// Users with only `default`, which has this password or needs none.
    fn users(password: Option<&str>) -> Users {
        let mut default = Definition::unrestricted();
        default.set_only_password(password.map(str::as_bytes));
        Users::new(default)
    }

    #[test]
    fn by_default_only_clients_of_this_machine_are_let_in() {
        let (config, users) = (config(&[]), users(None));
        for local in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert!(!is_denied(&config, &users, &client(local)), "{local}");
        }
        for other in ["192.0.2.7", "0.0.0.1", "2001:db8::1", "::ffff:192.0.2.7"] {
            assert!(is_denied(&config, &users, &client(other)), "{other}");
        }
    }

    #[test]
    fn a_password_lets_others_in_and_so_does_the_setting() {
        let other = client("192.0.2.7");
        assert!(!is_denied(&config(&[]), &users(Some("secret")), &other));
        let open = config(&[(b"protected-mode", b"no")]);
        assert!(!is_denied(&open, &users(None), &other));
    }

    #[test]
    fn a_client_of_the_unix_socket_is_of_this_machine() {
        let socket = Endpoint::Unix("/run/quoin.sock".into());
        assert!(!is_denied(&config(&[]), &users(None), &socket));
    }

    #[test]
    fn what_is_open_to_others_is_told() {
        let mut settings = LoadedSettings::defaults().settings;
        let open = users(None);
        assert!(warnings(&settings, &open).is_empty());
        settings.bind.push([0, 0, 0, 0].into());
        let lines = warnings(&settings, &open);
        assert!(
            matches!(lines.as_slice(), [line] if line.contains("on 0.0.0.0 without a password: protected")),
            "{lines:?}"
        );
        // Protected mode holds on the ports of Sentinel too.
        let mut sentinel = settings.clone();
        (sentinel.port, sentinel.sentinel_port) = (0, 26379);
        assert_eq!(warnings(&sentinel, &open), lines);
        settings.protected_mode = false;
        let lines = warnings(&settings, &open);
        assert!(
            matches!(lines.as_slice(), [line] if line.contains("change all data")),
            "{lines:?}"
        );
        settings.port = 0;
        settings.tls_port = 6380;
        assert!(warnings(&settings, &open).is_empty());
        settings.tls.auth_clients = AuthClients::Optional;
        assert_eq!(warnings(&settings, &open).len(), 1);
        let closed = users(Some("secret"));
        assert!(warnings(&settings, &closed).is_empty());
        // The user's state counts, not the setting that its password comes from.
        let off = Definition::unrestricted().with_rules(&["off"], Defaults::default());
        assert!(warnings(&settings, &Users::new(off.unwrap())).is_empty());
        settings.metrics_address = "0.0.0.0:9121".parse().ok();
        let lines = warnings(&settings, &closed);
        assert!(lines.join("").contains("0.0.0.0:9121"));
        settings.metrics_address = None;
        settings.dashboard_address = DashboardAddress::At(([0, 0, 0, 0], 8379).into());
        let lines = warnings(&settings, &closed);
        assert!(
            matches!(lines.as_slice(), [line] if line.contains("plain text: set dashboard-tls")),
            "{lines:?}"
        );
        let lines = warnings(&settings, &open).join("");
        assert!(lines.contains("all data on the dashboard"), "{lines}");
        settings.dashboard_tls = true;
        assert!(warnings(&settings, &closed).is_empty());
    }
}
