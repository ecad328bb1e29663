//! Reads a request, and says whether it was meant for this relay.
//!
//! A web page elsewhere can make a browser ask its own host name and let that name resolve to the relay's address (DNS
//! rebinding): it would read accounts and addresses. Such a request has that name in `Host`. So only requests to these
//! hosts are answered:
//!
//! ```text
//! 127.0.0.1, [::1], 10.0.0.5, …     any address: a page can't make one its own name
//! localhost, *.localhost            resolved to loopback by browsers themselves
//! a name in `hosts` of [http]       what the relay is called
//! no Host at all, HTTP/1.0          no browser: they all send it
//! ```

use std::net::IpAddr;

/// Headers of a request.
const HEADERS_MAX: usize = 64;

/// The parts of a request that we use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    pub(super) method: String,
    /// Without the query.
    pub path: String,
    /// The text after `?`.
    pub(super) query: String,
    host: Option<String>,
}

/// The state of the bytes received so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Read {
    Whole(HttpRequest),
    /// The beginning of one.
    Part,
    Bad,
}

/// Reads a request from its first byte on.
pub(super) fn read(bytes: &[u8]) -> Read {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Read::Part,
        Err(_) => return Read::Bad,
    }
    let mut hosts = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
    let host = hosts.next().map(|header| String::from_utf8_lossy(header.value).into_owned());
    // RFC 9112, 3.2: exactly one, but for HTTP/1.0, which does not know it.
    if hosts.next().is_some() || (host.is_none() && request.version != Some(0)) {
        return Read::Bad;
    }
    let path = request.path.unwrap_or_default();
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let method = request.method.unwrap_or_default().to_owned();
    Read::Whole(HttpRequest { method, path: path.to_owned(), query: query.to_owned(), host })
}

impl HttpRequest {
    /// The value of a parameter of the query; empty if it has none.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let mut parameters = self.query.split('&').map(|one| one.split_once('=').unwrap_or((one, "")));
        parameters.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// The name or address by which the relay was asked, without the port.
    pub(super) fn host(&self) -> Option<&str> {
        self.host.as_deref().map(|host| without_port(host.trim()))
    }

    /// Whether the request means this relay, which also has these names.
    pub(super) fn is_ours(&self, names: &[String]) -> bool {
        let Some(host) = &self.host else { return true };
        let host = without_port(host.trim());
        let name = host.strip_suffix('.').unwrap_or(host);
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        let is_local = is("localhost") || name.to_ascii_lowercase().ends_with(".localhost");
        is_local || host.parse::<IpAddr>().is_ok() || names.iter().any(|listed| is(listed))
    }
}

/// `db1` of `db1:3308`, `::1` of `[::1]:3308`; anything else stays unchanged and matches no name.
fn without_port(host: &str) -> &str {
    let is_port = |port: &str| port.bytes().all(|digit| digit.is_ascii_digit());
    if let Some((address, rest)) = host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        let is_fit = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
        return if is_fit { address } else { host };
    }
    match host.split_once(':') {
        Some((name, port)) if is_port(port) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Read {
        read(text.as_bytes())
    }

    #[test]
    fn only_one_host_is_ours() {
        let names = ["relay.example.com".to_owned()];
        for (host, ours) in [
            ("127.0.0.1", true),
            ("127.0.0.1:3308", true),
            ("[::1]:3308", true),
            ("10.1.2.3:80", true),
            ("localhost:3308", true),
            ("LOCALHOST.", true),
            ("db1.localhost", true),
            ("relay.example.com:3308", true),
            ("Relay.Example.Com.", true),
            ("attacker.example.com:3308", false),
            ("relay.example.com.attacker.example", false),
            ("127.0.0.1.attacker.example", false),
            ("notlocalhost", false),
            ("localhost:attacker.example", false),
            ("[::1]attacker.example", false),
            ("", false),
        ] {
            let Read::Whole(request) = request(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")) else {
                panic!("{host}");
            };
            assert_eq!(request.is_ours(&names), ours, "{host:?}");
        }
    }

    #[test]
    fn a_request_is_whole_part_or_none() {
        let whole = "GET /healthz?verbose HTTP/1.1\r\nHost: a\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(request(&whole[..end]), Read::Part, "{end}");
        }
        let expected = HttpRequest {
            method: "GET".into(),
            path: "/healthz".into(),
            query: "verbose".into(),
            host: Some("a".into()),
        };
        assert_eq!(request(whole), Read::Whole(expected));
        assert_eq!(request("GET / HTTP/1.1\r\n\r\n"), Read::Bad);
        assert_eq!(request("GET / HTTP/1.1\r\nHost: localhost\r\nhost: b\r\n\r\n"), Read::Bad);
        assert_eq!(request("\x16\x03\x01"), Read::Bad);
        assert!(matches!(request("GET / HTTP/1.0\r\n\r\n"), Read::Whole(request) if request.is_ours(&[])));
    }
}
