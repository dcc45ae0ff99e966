//! A browser's request: path, fields, cookies, and origin.

use std::net::{IpAddr, SocketAddr};

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{COOKIE, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::{Method, Request};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode, percent_encode};

use quoin_base::limits::DASHBOARD_REQUEST_BYTES_MAX;

/// Fields of a query or of a form. Values are bytes, because names of keys are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields(Vec<(String, Vec<u8>)>);

impl Fields {
    /// Reads `name=value&…`, with `%` and two digits for a byte, and `+` for a space.
    pub(crate) fn parse(text: &[u8]) -> Self {
        let decode = |part: &[u8]| {
            let spaced: Vec<u8> = part
                .iter()
                .map(|byte| if *byte == b'+' { b' ' } else { *byte })
                .collect();
            percent_decode(&spaced).collect::<Vec<u8>>()
        };
        let pairs = text
            .split(|byte| *byte == b'&')
            .filter(|pair| !pair.is_empty());
        let fields = pairs.map(|pair| {
            let mut parts = pair.splitn(2, |byte| *byte == b'=');
            let name = decode(parts.next().unwrap_or_default());
            let value = decode(parts.next().unwrap_or_default());
            (String::from_utf8_lossy(&name).into_owned(), value)
        });
        Self(fields.collect())
    }

    /// The first value of a field; empty if it is missing.
    pub(crate) fn bytes(&self, name: &str) -> &[u8] {
        let mut fields = self.0.iter();
        let found = fields.find(|(known, _)| known == name);
        found.map_or(&[], |(_, value)| value)
    }

    /// The same as text; empty if it is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        std::str::from_utf8(self.bytes(name)).unwrap_or_default()
    }

    /// The same as a number.
    pub(crate) fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        self.text(name).parse().ok()
    }
}

/// A path with fields.
pub(crate) fn url(path: &str, fields: &[(&str, &[u8])]) -> String {
    let mut url = path.to_owned();
    for (place, (name, value)) in fields.iter().enumerate() {
        url.push(if place == 0 { '?' } else { '&' });
        url.push_str(name);
        url.push('=');
        url.extend(percent_encode(value, NON_ALPHANUMERIC));
    }
    url
}

/// A path of the dashboard, or its first page: a link must not lead elsewhere.
pub(crate) fn own_path(path: &str) -> &str {
    let is_own = path.starts_with('/')
        && !path.starts_with("//")
        && path
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_own { path } else { "/" }
}

/// A request.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The browser, or a proxy before it.
    pub(crate) from: SocketAddr,
    /// GET, HEAD or POST.
    pub(crate) method: Method,
    pub(crate) path: String,
    /// The query as received.
    pub(crate) query_text: String,
    pub(crate) query: Fields,
    /// The form of a POST.
    pub(crate) form: Fields,
    headers: HeaderMap,
}

impl Asked {
    /// Reads a request with its form. `None` if the form is too large or does not arrive.
    pub(crate) async fn read(from: SocketAddr, request: Request<Incoming>) -> Option<Self> {
        let (head, body) = request.into_parts();
        let form = match head.method {
            Method::POST => {
                let limited = Limited::new(body, DASHBOARD_REQUEST_BYTES_MAX);
                Fields::parse(&limited.collect().await.ok()?.to_bytes())
            }
            _ => Fields::default(),
        };
        let query_text = head.uri.query().unwrap_or_default().to_owned();
        Some(Self {
            from,
            method: head.method,
            path: head.uri.path().to_owned(),
            query: Fields::parse(query_text.as_bytes()),
            query_text,
            form,
            headers: head.headers,
        })
    }

    fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// A cookie.
    pub(crate) fn cookie(&self, name: &str) -> Option<&str> {
        let all = self.headers.get_all(COOKIE).into_iter();
        let pairs = all.filter_map(|line| line.to_str().ok());
        let mut pairs = pairs.flat_map(|line| line.split(';'));
        pairs.find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
    }

    /// Whether the browser says that another site's page sent this. Then it must not change
    /// anything.
    pub(crate) fn is_of_another_site(&self) -> bool {
        let fetch_site = self.header(HeaderName::from_static("sec-fetch-site"));
        if fetch_site.is_some_and(|site| site != "same-origin" && site != "none") {
            return true;
        }
        let host = self.header(HOST).unwrap_or_default();
        let origin = self.header(ORIGIN);
        origin.is_some_and(|origin| origin.split_once("://").is_none_or(|(_, of)| of != host))
    }

    /// Whether the browser uses an address or `localhost`, not a name that others could point to this machine.
    pub(crate) fn is_by_address(&self) -> bool {
        let host = self.header(HOST).unwrap_or_default();
        let is_address = |text: &str| {
            let text = text.trim_start_matches('[').trim_end_matches(']');
            text.eq_ignore_ascii_case("localhost") || text.parse::<IpAddr>().is_ok()
        };
        let is_port = |port: &str| port.bytes().all(|digit| digit.is_ascii_digit());
        is_address(host)
            || host
                .rsplit_once(':')
                .is_some_and(|(name, port)| is_address(name) && is_port(port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn asked(headers: &[(&'static str, &'static str)]) -> Asked {
        let pairs = headers.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        Asked {
            from: ([127, 0, 0, 1], 5_000).into(),
            method: Method::GET,
            path: "/".to_owned(),
            query_text: String::new(),
            query: Fields::default(),
            form: Fields::default(),
            headers: pairs.collect(),
        }
    }

    #[test]
    fn any_bytes_pass_through_a_url() {
        let name: Vec<u8> = (0..=255).collect();
        let url = url("/queue", &[("db", b"3"), ("key", &name)]);
        let (_, query) = url.split_once('?').unwrap();
        let fields = Fields::parse(query.as_bytes());
        assert_eq!(fields.bytes("key"), name);
        assert_eq!(fields.number("db"), Some(3));
        assert_eq!(fields.bytes("other"), b"");
    }

    #[test]
    fn a_form_of_a_browser_is_read() {
        let fields = Fields::parse(b"user=a+b&password=%2B%3D%26&&empty");
        assert_eq!(fields.text("user"), "a b");
        assert_eq!(fields.text("password"), "+=&");
        assert_eq!(fields.text("empty"), "");
    }

    #[test]
    fn a_cookie_is_found_among_others() {
        let asked = asked(&[("cookie", "a=1; quoin=xyz;b=2")]);
        assert_eq!(asked.cookie("quoin"), Some("xyz"));
        assert_eq!(asked.cookie("quo"), None);
        assert_eq!(asked.cookie("b"), Some("2"));
    }

    #[test]
    fn requests_of_other_sites_are_known() {
        for other in [
            [("host", "q:1"), ("origin", "http://evil.example")],
            [("host", "q:1"), ("origin", "null")],
            [("host", "q:1"), ("origin", "http://q:2")],
            [("host", "q:1"), ("sec-fetch-site", "cross-site")],
            [("host", "q:1"), ("sec-fetch-site", "same-site")],
        ] {
            assert!(asked(&other).is_of_another_site(), "{other:?}");
        }
        for own in [
            &[("host", "q:1"), ("origin", "https://q:1")][..],
            &[("host", "q:1"), ("sec-fetch-site", "same-origin")],
            &[("host", "q:1")],
        ] {
            assert!(!asked(own).is_of_another_site(), "{own:?}");
        }
    }

    #[test]
    fn a_name_is_no_address() {
        for host in [
            "127.0.0.1:8379",
            "[::1]:8379",
            "localhost",
            "LOCALHOST:1",
            "::1",
        ] {
            assert!(asked(&[("host", host)]).is_by_address(), "{host}");
        }
        for host in [
            "evil.example:8379",
            "localhost.evil.example",
            "",
            "127.0.0.1.nip.io:80",
        ] {
            assert!(!asked(&[("host", host)]).is_by_address(), "{host}");
        }
    }

    #[test]
    fn no_link_leads_elsewhere() {
        assert_eq!(own_path("/queue?key=a%20b"), "/queue?key=a%20b");
        for foreign in [
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "",
            "/a\r\nb",
            "/\t/evil",
        ] {
            assert_eq!(own_path(foreign), "/", "{foreign}");
        }
    }
}
