//! Answers requests: a session's pages, the login, and static files.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use crate::frame;
use crate::history::History;
use crate::host::Host;
use crate::login::Entrance;
use crate::pages;
use crate::request::{Asked, own_path};
use crate::response::{asset, document, plain, protect, see, set_cookie};
use crate::sessions::Session;
use crate::view::{Answer, NoPage, View};

const STYLE: &str = include_str!("assets/style.css");
const SCRIPT: &str = include_str!("assets/script.js");
const ICON: &str = include_str!("assets/icon.svg");

/// The dashboard of a server.
pub struct Dashboard {
    host: Arc<dyn Host>,
    history: Arc<History>,
    entrance: Entrance,
}

impl Dashboard {
    /// The dashboard of this server at this port, with charts of this history.
    pub fn new(host: impl Host, history: Arc<History>, port: u16, is_https: bool) -> Self {
        let host: Arc<dyn Host> = Arc::new(host);
        Self {
            entrance: Entrance::new(Arc::clone(&host), port, is_https),
            host,
            history,
        }
    }

    /// Answers a request of a browser at this address.
    pub async fn answer(
        self: &Arc<Self>,
        from: SocketAddr,
        request: Request<Incoming>,
    ) -> Response<String> {
        let is_head = request.method() == Method::HEAD;
        let Some(asked) = Asked::read(from, request).await else {
            return plain(StatusCode::PAYLOAD_TOO_LARGE, "the form is too large");
        };
        let asked = Arc::new(asked);
        let (dashboard, of_page) = (Arc::clone(self), Arc::clone(&asked));
        let answered = tokio::task::spawn_blocking(move || dashboard.respond(&of_page)).await;
        let mut response = answered.unwrap_or_else(|error| {
            tracing::error!(%error, "a page of the dashboard failed");
            // The session's connection may have unread replies.
            self.entrance.end_session(&asked);
            plain(
                StatusCode::INTERNAL_SERVER_ERROR,
                "this page failed: see the log of the server",
            )
        });
        protect(&mut response);
        if is_head {
            response.body_mut().clear();
        }
        response
    }

    fn respond(&self, asked: &Asked) -> Response<String> {
        match asked.path.as_str() {
            "/style.css" => return asset("text/css; charset=utf-8", STYLE),
            "/script.js" => return asset("text/javascript; charset=utf-8", SCRIPT),
            "/icon.svg" => return asset("image/svg+xml", ICON),
            _ => {}
        }
        match asked.method {
            Method::GET | Method::HEAD => {}
            Method::POST if asked.is_of_another_site() => return self.forged(asked),
            Method::POST => {}
            _ => {
                let mut response = plain(
                    StatusCode::METHOD_NOT_ALLOWED,
                    "only GET and POST are allowed",
                );
                let allowed = HeaderValue::from_static("GET, HEAD, POST");
                response.headers_mut().insert(ALLOW, allowed);
                return response;
            }
        }
        if asked.path == "/login" {
            return self.entrance.login(asked);
        }
        match self.entrance.session_of(asked) {
            Ok((session, cookie)) => {
                let mut response = self.in_session(asked, &session);
                if let Some(cookie) = cookie {
                    set_cookie(&mut response, &cookie);
                }
                response
            }
            Err(response) => *response,
        }
    }

    /// Answers requests that need a session.
    fn in_session(&self, asked: &Asked, session: &Arc<Session>) -> Response<String> {
        let is_post = asked.method == Method::POST;
        if is_post && !session.has_sent(asked.form.bytes("token")) {
            return self.forged(asked);
        }
        match asked.path.as_str() {
            "/logout" if is_post => return self.entrance.logout(asked),
            "/theme" if is_post => return self.set_theme(asked),
            _ => {}
        }
        let history = self.history.samples();
        let mut connection = session.connection();
        let mut view = View {
            asked,
            session,
            connection: &mut connection,
            host: &*self.host,
            history: &history,
            now_ms: self.host.now_ms(),
        };
        let answer = view.select().and_then(|()| pages::answer(&mut view));
        let theme = frame::theme_of(asked.cookie(frame::THEME_COOKIE));
        let (status, page) = match answer {
            Ok(Answer::Page(page)) => (StatusCode::OK, page),
            Ok(Answer::See(path)) => return see(&path),
            Err(NoPage::Lost) => {
                drop(connection);
                self.entrance.end_session(asked);
                return self.entrance.to_login(asked, true);
            }
            Err(NoPage::Refused(line)) => {
                let body = frame::refusal("The server refused this", &line);
                (StatusCode::FORBIDDEN, pages::without_place("Refused", body))
            }
            Err(NoPage::Missing(what)) => {
                let body = frame::refusal("Not found", &what);
                (
                    StatusCode::NOT_FOUND,
                    pages::without_place("Not found", body),
                )
            }
        };
        let notice = connection.notice.take();
        let here = match asked.query_text.as_str() {
            "" => asked.path.clone(),
            query => format!("{}?{query}", asked.path),
        };
        let html = frame::page(&page, session, theme, notice.as_ref(), &here);
        let mut response = document(html);
        *response.status_mut() = status;
        response
    }

    fn set_theme(&self, asked: &Asked) -> Response<String> {
        let theme = frame::theme_of(Some(asked.form.text("theme")));
        let mut response = see(own_path(asked.form.text("next")));
        let cookie = self
            .entrance
            .cookie(frame::THEME_COOKIE, theme, "; Max-Age=31536000");
        set_cookie(&mut response, &cookie);
        response
    }

    /// The response to a form that was not sent from a page of this session.
    fn forged(&self, asked: &Asked) -> Response<String> {
        let theme = frame::theme_of(asked.cookie(frame::THEME_COOKIE));
        let body = maud::html! {
            p.notice.error { "This form does not belong to your session. Nothing was changed." }
            p { a href="/" { "Back to the dashboard" } }
        };
        let mut response = document(frame::bare("Refused", theme, &body));
        *response.status_mut() = StatusCode::FORBIDDEN;
        response
    }
}
