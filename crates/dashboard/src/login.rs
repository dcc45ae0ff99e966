//! Login and logout: AUTH on a connection of the session's own.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::{Method, Response, StatusCode};
use maud::html;

use quoin_client::{Client, ClientError};

use crate::frame;
use crate::host::Host;
use crate::request::{Asked, own_path, url};
use crate::response::{document, plain, see, set_cookie};
use crate::sessions::{Failures, Session, Sessions};

/// The user of clients that do not log in.
const DEFAULT_USER: &str = "default";
/// Longest time until the server answers a command.
const REPLY_MAX: Duration = Duration::from_secs(20);
/// How the connections are called in CLIENT LIST.
const CLIENT_NAME: &str = "quoin-dashboard";

/// Why there is no session.
enum NoLogin {
    /// The server's line.
    Refused(String),
    /// The connection failed.
    Failed(String),
}

impl From<io::Error> for NoLogin {
    fn from(error: io::Error) -> Self {
        NoLogin::Failed(error.to_string())
    }
}

impl From<ClientError> for NoLogin {
    fn from(error: ClientError) -> Self {
        NoLogin::Failed(error.to_string())
    }
}

/// A session, with its cookie if that is new.
type Found = (Arc<Session>, Option<String>);

/// Lets browsers in, and keeps their sessions.
pub(crate) struct Entrance {
    host: Arc<dyn Host>,
    sessions: Sessions,
    failures: Failures,
    /// Whether browsers connect with HTTPS.
    is_https: bool,
    /// The name of the cookie with a session's secret. Servers on different ports of one host need
    /// different names.
    session_cookie: String,
}

impl Entrance {
    /// The entrance of a dashboard at this port.
    pub(crate) fn new(host: Arc<dyn Host>, port: u16, is_https: bool) -> Self {
        Self {
            host,
            sessions: Sessions::default(),
            failures: Failures::default(),
            is_https,
            session_cookie: format!("quoin-session-{port}"),
        }
    }

    /// The session of a request. If the user `default` needs no password, begins a new one.
    /// Otherwise returns the response that redirects to the login.
    pub(crate) fn session_of(&self, asked: &Asked) -> Result<Found, Box<Response<String>>> {
        let now_ms = self.host.now_ms();
        let known = asked.cookie(&self.session_cookie);
        if let Some(session) = known.and_then(|cookie| self.sessions.find(cookie, now_ms)) {
            return Ok((session, None));
        }
        // A form of a session that has ended must not act in a new one.
        let may_begin = asked.method != Method::POST && asked.is_by_address();
        if may_begin && let Ok(found) = self.begin(asked, None) {
            return Ok(found);
        }
        Err(Box::new(self.to_login(asked, known.is_some())))
    }

    /// The response that redirects to the login, and from there back.
    pub(crate) fn to_login(&self, asked: &Asked, is_over: bool) -> Response<String> {
        let next = match (&asked.method, asked.query_text.as_str()) {
            (&Method::POST, _) => "/".to_owned(),
            (_, "") => asked.path.clone(),
            (_, query) => format!("{}?{query}", asked.path),
        };
        let mut fields = vec![("next", next.as_bytes())];
        if is_over {
            fields.push(("over", b"1"));
        }
        let mut response = see(&url("/login", &fields));
        if is_over {
            let cookie = self.cookie(&self.session_cookie, "", "; Max-Age=0");
            set_cookie(&mut response, &cookie);
        }
        response
    }

    /// Shows the login, or logs in.
    pub(crate) fn login(&self, asked: &Asked) -> Response<String> {
        if asked.method != Method::POST {
            // Without a password there is nothing to enter. If the server refuses this browser, its
            // error says why.
            let refusal = match asked.is_by_address().then(|| self.begin(asked, None)) {
                Some(Ok((_, cookie))) => {
                    let mut response = see(own_path(asked.query.text("next")));
                    if let Some(cookie) = cookie {
                        set_cookie(&mut response, &cookie);
                    }
                    return response;
                }
                Some(Err(NoLogin::Refused(line))) if line.starts_with("DENIED") => Some(denial()),
                Some(Err(NoLogin::Failed(why))) => Some(why),
                _ if !asked.query.text("over").is_empty() => {
                    Some("Your session has ended. Log in again.".to_owned())
                }
                _ => None,
            };
            return self.login_page(asked, asked.query.text("next"), refusal.as_deref());
        }
        let next = own_path(asked.form.text("next"));
        let from = asked.from.ip();
        let now_ms = self.host.now_ms();
        if !self.failures.admit(from, now_ms) {
            let why = "Too many failed logins. Wait a minute.";
            let mut response = self.login_page(asked, next, Some(why));
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            return response;
        }
        let user = match asked.form.text("user") {
            "" => DEFAULT_USER,
            user => user,
        };
        match self.begin(asked, Some((user, asked.form.bytes("password")))) {
            Ok((_, cookie)) => {
                self.failures.succeeded(from, now_ms);
                // A browser has only one session.
                self.end_session(asked);
                let mut response = see(next);
                if let Some(cookie) = cookie {
                    set_cookie(&mut response, &cookie);
                }
                response
            }
            Err(why) => {
                let (status, why) = match why {
                    NoLogin::Refused(line) if line.starts_with("WRONGPASS") => (
                        StatusCode::UNAUTHORIZED,
                        "Wrong user or password.".to_owned(),
                    ),
                    NoLogin::Refused(line) if line.starts_with("DENIED") => {
                        (StatusCode::FORBIDDEN, denial())
                    }
                    NoLogin::Refused(line) => (StatusCode::FORBIDDEN, line),
                    NoLogin::Failed(why) => (StatusCode::SERVICE_UNAVAILABLE, why),
                };
                let mut response = self.login_page(asked, next, Some(&why));
                *response.status_mut() = status;
                response
            }
        }
    }

    /// Begins a session with a user and password, or as the user that needs none.
    fn begin(&self, asked: &Asked, login: Option<(&str, &[u8])>) -> Result<Found, NoLogin> {
        let mut client = Client::on_socket(self.host.connect(asked.from)?, REPLY_MAX)?;
        let user = login.map_or(DEFAULT_USER, |(user, _)| user);
        let reply = match login {
            Some((user, password)) => client.call(&[b"AUTH", user.as_bytes(), password])?,
            // Any reply except NOAUTH means that the client is authenticated.
            None => client.call(&["PING"])?,
        };
        let line = reply.error_text().unwrap_or_default();
        let is_admitted = match login {
            Some(_) => reply.is_ok(),
            None => line.is_empty() || line.starts_with("NOPERM"),
        };
        if !is_admitted {
            return Err(NoLogin::Refused(line.into_owned()));
        }
        // If the user may not do this, the client has no name.
        client.call(&["CLIENT", "SETNAME", CLIENT_NAME])?;
        let (secret, form_token) = (self.host.secret()?, self.host.secret()?);
        let now_ms = self.host.now_ms();
        let session = Arc::new(Session::new(user.to_owned(), form_token, client, now_ms));
        let cookie = self.cookie(&self.session_cookie, &secret, "");
        self.sessions.add(secret, Arc::clone(&session), now_ms);
        Ok((session, Some(cookie)))
    }

    /// Ends the session of a request, and closes its connection.
    pub(crate) fn end_session(&self, asked: &Asked) {
        let cookie = asked.cookie(&self.session_cookie);
        self.sessions.end(cookie.unwrap_or_default());
    }

    /// Ends the session at its user's request.
    pub(crate) fn logout(&self, asked: &Asked) -> Response<String> {
        self.end_session(asked);
        let mut response = see("/login");
        let cookie = self.cookie(&self.session_cookie, "", "; Max-Age=0");
        set_cookie(&mut response, &cookie);
        response
    }

    /// A cookie that only requests of the dashboard's own pages carry.
    pub(crate) fn cookie(&self, name: &str, value: &str, more: &str) -> String {
        let secure = if self.is_https { "; Secure" } else { "" };
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{more}")
    }

    fn login_page(&self, asked: &Asked, next: &str, refusal: Option<&str>) -> Response<String> {
        if asked.path != "/login" {
            return plain(StatusCode::NOT_FOUND, "no such page");
        }
        let user = asked.form.text("user");
        let body = html! {
            form.login method="post" action="/login" {
                input type="hidden" name="next" value=(own_path(next));
                @if let Some(refusal) = refusal { p.notice.error role="alert" { (refusal) } }
                label { "User" input name="user" value=(user) placeholder=(DEFAULT_USER) autocomplete="username"
                    autocapitalize="none" spellcheck="false" autofocus[user.is_empty()]; }
                label { "Password" input name="password" type="password" autocomplete="current-password"
                    autofocus[!user.is_empty()]; }
                button.primary type="submit" { "Log in" }
            }
            p.hint { "An ACL user of this server. Leave empty for " code { "default" } "." }
        };
        let theme = frame::theme_of(asked.cookie(frame::THEME_COOKIE));
        document(frame::bare("Log in", theme, &body))
    }
}

fn denial() -> String {
    "Protected mode: this server has no password, so it only serves browsers on its own machine. Set requirepass."
        .to_owned()
}
