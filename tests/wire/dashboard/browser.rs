//! A browser without graphics: requests with a cookie, and the responses.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::server::{PATIENCE, Server};

/// A browser, as far as the server can tell.
pub(super) struct Browser {
    pub(super) address: SocketAddr,
    pub(super) host: String,
    pub(super) cookie: Option<String>,
}

/// A response.
pub(super) struct Page {
    pub(super) status: u16,
    head: String,
    pub(super) body: String,
}

impl Page {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// The token that the page's forms must repeat.
    pub(super) fn token(&self) -> String {
        let (_, behind) = self.body.split_once("name=\"token\" value=\"").unwrap();
        behind.split('"').next().unwrap().to_owned()
    }
}

impl Browser {
    pub(super) fn of(server: &Server) -> Self {
        let log = server.log();
        let (_, behind) = log.split_once("the dashboard is at http://").unwrap();
        let host = behind.split('/').next().unwrap().to_owned();
        Self {
            address: host.parse().unwrap(),
            host,
            cookie: None,
        }
    }

    pub(super) fn ask(&mut self, method: &str, path: &str, form: &str, headers: &str) -> Page {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let cookie = self
            .cookie
            .iter()
            .map(|cookie| format!("Cookie: a=b; {cookie}\r\n"));
        let cookie: String = cookie.collect();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{cookie}{headers}Content-Length: {}\r\n\r\n{form}",
            self.host,
            form.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        let page = Page {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_owned(),
            body: body.to_owned(),
        };
        if let Some(cookie) = page.header("set-cookie") {
            let pair = cookie.split(';').next().unwrap();
            self.cookie = (!pair.ends_with('=')).then(|| pair.to_owned());
        }
        page
    }

    pub(super) fn get(&mut self, path: &str) -> Page {
        self.ask("GET", path, "", "")
    }

    pub(super) fn post(&mut self, path: &str, form: &str) -> Page {
        self.ask("POST", path, form, "")
    }

    pub(super) fn log_in(&mut self, user: &str, password: &str) -> Page {
        self.post(
            "/login",
            &format!("user={user}&password={password}&next=%2Fqueues"),
        )
    }
}

pub(super) fn server_with(flags: &[&str]) -> Server {
    let mut all = vec!["--dashboard-address", "127.0.0.1:0"];
    all.extend(flags);
    Server::start_with(&all)
}
