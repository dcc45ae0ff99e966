//! Sessions: who has logged in, each with a separate connection. Also limits failed logins.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quoin_base::limits::{
    DASHBOARD_FAILURES_MAX, DASHBOARD_IDLE_MAX, DASHBOARD_SESSION_MAX, DASHBOARD_SESSIONS_MAX,
};
use quoin_base::secret::is_secret;
use quoin_client::Client;

/// How long failed logins count.
const FAILURES_WINDOW_MS: i64 = 60_000;
/// Maximum number of addresses whose failed logins are counted individually.
const ADDRESSES_MAX: usize = 1_024;

/// A session.
pub(crate) struct Session {
    /// The user, as at the login.
    pub(crate) user: String,
    /// The token that each of its forms must repeat.
    pub(crate) form_token: String,
    connection: Mutex<Connection>,
    begun_ms: i64,
    used_ms: AtomicI64,
}

/// The connection of a session.
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// The database that it has selected.
    pub(crate) database: u32,
    /// The outcome of the last action, to show once.
    pub(crate) notice: Option<Notice>,
}

/// The outcome of an action.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    pub(crate) is_error: bool,
    pub(crate) text: String,
}

impl Session {
    pub(crate) fn new(user: String, form_token: String, client: Client, now_ms: i64) -> Self {
        let connection = Connection {
            client,
            database: 0,
            notice: None,
        };
        Self {
            user,
            form_token,
            connection: Mutex::new(connection),
            begun_ms: now_ms,
            used_ms: AtomicI64::new(now_ms),
        }
    }

    /// Its connection. Requests of one session are answered one after another.
    pub(crate) fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a form repeats the token.
    pub(crate) fn has_sent(&self, form_token: &[u8]) -> bool {
        is_secret(self.form_token.as_bytes(), form_token)
    }

    fn is_over(&self, now_ms: i64) -> bool {
        let used_ms = self.used_ms.load(Ordering::Relaxed);
        now_ms - used_ms > ms(DASHBOARD_IDLE_MAX)
            || now_ms - self.begun_ms > ms(DASHBOARD_SESSION_MAX)
    }
}

fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// All sessions, by the secret in their cookie.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<String, Arc<Session>>>);

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session with this cookie. Updates the time of its last use.
    pub(crate) fn find(&self, cookie: &str, now_ms: i64) -> Option<Arc<Session>> {
        let mut sessions = self.lock();
        sessions.retain(|_, session| !session.is_over(now_ms));
        let session = sessions.get(cookie)?;
        session.used_ms.store(now_ms, Ordering::Relaxed);
        Some(Arc::clone(session))
    }

    /// Adds a session. If there are too many, replaces the one that has been idle longest.
    pub(crate) fn add(&self, cookie: String, session: Arc<Session>, now_ms: i64) {
        let mut sessions = self.lock();
        sessions.retain(|_, session| !session.is_over(now_ms));
        if sessions.len() >= DASHBOARD_SESSIONS_MAX {
            let oldest = sessions
                .iter()
                .min_by_key(|(_, session)| session.used_ms.load(Ordering::Relaxed));
            if let Some(oldest) = oldest.map(|(cookie, _)| cookie.clone()) {
                sessions.remove(&oldest);
            }
        }
        sessions.insert(cookie, session);
    }

    /// Ends a session and closes its connection.
    pub(crate) fn end(&self, cookie: &str) {
        self.lock().remove(cookie);
    }
}

/// Counts failed logins, by address and in all.
#[derive(Default)]
pub(crate) struct Failures(Mutex<Counted>);

#[derive(Default)]
struct Counted {
    window: i64,
    of_addresses: HashMap<IpAddr, u32>,
    in_all: u32,
}

impl Failures {
    fn lock(&self, now_ms: i64) -> MutexGuard<'_, Counted> {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let window = now_ms.div_euclid(FAILURES_WINDOW_MS);
        if counted.window != window {
            *counted = Counted {
                window,
                ..Counted::default()
            };
        }
        counted
    }

    /// Whether this address may try another login. If so, it counts as failed until
    /// [`Self::succeeded`], so that concurrent logins cannot bypass the limit.
    pub(crate) fn admit(&self, from: IpAddr, now_ms: i64) -> bool {
        let (of_address_max, in_all_max) = DASHBOARD_FAILURES_MAX;
        let mut counted = self.lock(now_ms);
        let from = network(from);
        let of_address = counted.of_addresses.get(&from).copied().unwrap_or(0);
        let is_new = of_address == 0;
        let is_crowded = is_new && counted.of_addresses.len() >= ADDRESSES_MAX;
        if of_address >= of_address_max || counted.in_all >= in_all_max || is_crowded {
            return false;
        }
        counted.in_all += 1;
        counted.of_addresses.insert(from, of_address + 1);
        true
    }

    /// The login that was admitted last from this address has succeeded.
    pub(crate) fn succeeded(&self, from: IpAddr, now_ms: i64) {
        let mut counted = self.lock(now_ms);
        counted.in_all = counted.in_all.saturating_sub(1);
        if let Some(count) = counted.of_addresses.get_mut(&network(from)) {
            *count = count.saturating_sub(1);
        }
    }
}

/// An IPv4 address, or the first half of an IPv6 address, because one host may have the whole
/// second half.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn session(now_ms: i64) -> Arc<Session> {
        let (own, _) = UnixStream::pair().unwrap();
        let client = Client::on_socket(own, Duration::from_secs(1)).unwrap();
        Arc::new(Session::new(
            "a".to_owned(),
            "abc".to_owned(),
            client,
            now_ms,
        ))
    }

    #[test]
    fn an_idle_session_ends_and_so_does_an_old_one() {
        let sessions = Sessions::default();
        sessions.add("x".to_owned(), session(0), 0);
        let idle_ms = ms(DASHBOARD_IDLE_MAX);
        assert!(sessions.find("x", idle_ms).is_some());
        assert!(sessions.find("x", 2 * idle_ms).is_some());
        assert!(sessions.find("x", 3 * idle_ms + 1).is_none());
        sessions.add("y".to_owned(), session(0), 0);
        let mut now_ms = 0;
        while now_ms <= ms(DASHBOARD_SESSION_MAX) {
            assert!(sessions.find("y", now_ms).is_some());
            now_ms += idle_ms;
        }
        assert!(sessions.find("y", now_ms).is_none());
    }

    #[test]
    fn one_session_more_ends_the_one_that_was_idle_longest() {
        let sessions = Sessions::default();
        for number in 0..DASHBOARD_SESSIONS_MAX as i64 {
            sessions.add(number.to_string(), session(number), number);
        }
        sessions.find("0", 1_000);
        sessions.add("more".to_owned(), session(1_001), 1_001);
        assert!(sessions.find("1", 1_001).is_none());
        for kept in ["0", "2", "more"] {
            assert!(sessions.find(kept, 1_001).is_some(), "{kept}");
        }
        sessions.end("0");
        assert!(sessions.find("0", 1_001).is_none());
    }

    #[test]
    fn a_form_must_repeat_the_token() {
        let session = session(0);
        assert!(session.has_sent(b"abc"));
        for other in [&b""[..], b"ab", b"abd", b"abcd"] {
            assert!(!session.has_sent(other));
        }
    }

    #[test]
    fn an_address_may_fail_a_few_times_a_minute() {
        let failures = Failures::default();
        let (of_address_max, in_all_max) = DASHBOARD_FAILURES_MAX;
        let ip = |number: u32| IpAddr::V4(number.into());
        for _ in 0..of_address_max {
            assert!(failures.admit(ip(1), 0));
        }
        assert!(!failures.admit(ip(1), 59_999));
        assert!(failures.admit(ip(2), 0));
        assert!(failures.admit(ip(1), 60_000));
        failures.succeeded(ip(1), 60_000);
        for number in 0..in_all_max {
            assert!(failures.admit(ip(100 + number), 60_000));
        }
        assert!(!failures.admit(ip(3), 60_000));
    }
}
