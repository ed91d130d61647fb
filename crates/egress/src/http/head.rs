//! The head of a request: a line and headers, up to an empty line.

use crate::name::Host;
use crate::rule::port_number;

use super::Body;

/// A request whose head was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    pub method: String,
    pub target: TargetForm,
    /// 0 or 1: the second number of the version.
    pub minor: u8,
    /// From the one `Host` header.
    pub host: Host,
    pub port: Option<u16>,
    pub headers: Vec<Header>,
    pub body: Body,
    /// Whether the client asks for a WebSocket.
    pub is_websocket: bool,
}

/// A header as it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub name: String,
    pub value: Vec<u8>,
}

/// What stands behind the method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetForm {
    /// A path, with its query.
    Origin(String),
    /// A whole URL, as proxies get it.
    Absolute { scheme: Scheme, host: Host, port: Option<u16>, path: String },
    /// A host and a port: `CONNECT`.
    Authority { host: Host, port: u16 },
    /// `OPTIONS *`.
    Asterisk,
}

/// The beginning of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Http,
    /// Which no proxy gets; a client that wants TLS asks for a tunnel.
    Https,
}

/// Why bytes are no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    #[error("the client does not speak HTTP/1")]
    NotHttp,
    #[error("the head of the request is malformed: {0}")]
    Malformed(&'static str),
    #[error("the head of the request is too long")]
    TooLong,
}

const MOST_HEADERS: usize = 256;
const LONGEST_METHOD: usize = 32;
/// About one connection, not about the request: the connection to the server is another one.
const OF_THE_CONNECTION: [&str; 8] = [
    "connection",
    "http2-settings",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

impl RequestHead {
    /// Reads a head that ends with the end of `bytes`, its empty line included.
    pub fn read(bytes: &[u8]) -> Result<Self, HeadError> {
        let wrong = |what| Err(HeadError::Malformed(what));
        let Some(text) = bytes.strip_suffix(b"\r\n\r\n") else { return wrong("it has no end") };
        let mut lines = split_lines(text)?.into_iter();
        let (method, target, minor) = request_line(lines.next().unwrap_or_default())?;
        let headers: Vec<Header> = lines.map(header).collect::<Result<_, _>>()?;
        if headers.len() > MOST_HEADERS {
            return wrong("it has too many headers");
        }
        let (host, port) = match values(&headers, "host")[..] {
            [value] => text_of(value).and_then(authority).ok_or(HeadError::Malformed("`Host` is no host"))?,
            _ => return wrong("it must have one `Host`"),
        };
        let body = body(&headers, minor)?;
        let is_websocket = is_websocket(&headers) && method == "GET" && minor == 1 && body.is_done();
        Ok(Self { method, target, minor, host, port, headers, body, is_websocket })
    }

    /// The bytes for the server, with this target. The connection ends after the answer, unless it becomes a WebSocket.
    pub fn forward(&self, target: &str) -> Vec<u8> {
        let mut bytes = format!("{} {target} HTTP/1.{}\r\n", self.method, self.minor).into_bytes();
        let mut put = |name: &str, value: &[u8]| {
            bytes.extend(name.as_bytes());
            bytes.extend(b": ");
            bytes.extend(value);
            bytes.extend(b"\r\n");
        };
        for header in &self.headers {
            let lower = header.name.to_ascii_lowercase();
            if !OF_THE_CONNECTION.contains(&lower.as_str()) {
                put(&header.name, &header.value);
            }
        }
        if let Body::Chunked(_) = self.body {
            put("Transfer-Encoding", b"chunked");
        }
        if self.is_websocket {
            put("Connection", b"Upgrade");
            put("Upgrade", b"websocket");
        } else {
            put("Connection", b"close");
        }
        bytes.extend(b"\r\n");
        bytes
    }
}

/// Lines that end with CR and LF, without either in them.
fn split_lines(text: &[u8]) -> Result<Vec<&[u8]>, HeadError> {
    let mut lines = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n").unwrap_or(rest.len());
        let line = &rest[..end];
        if line.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return Err(HeadError::Malformed("it has a line that ends in another way"));
        }
        lines.push(line);
        match rest.get(end + 2..) {
            Some(after) => rest = after,
            None => return Ok(lines),
        }
    }
}

fn request_line(line: &[u8]) -> Result<(String, TargetForm, u8), HeadError> {
    let parts: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [method, target, version] = parts[..] else { return Err(HeadError::NotHttp) };
    let minor = match version {
        b"HTTP/1.1" => 1,
        b"HTTP/1.0" => 0,
        _ => return Err(HeadError::NotHttp),
    };
    let method = token(method).filter(|it| it.len() <= LONGEST_METHOD).ok_or(HeadError::NotHttp)?;
    let is_visible = target.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'#');
    let target = Some(target).filter(|_| is_visible).and_then(text_of);
    let form = target.and_then(|target| target_form(method, target));
    form.map(|form| (method.to_owned(), form, minor))
        .ok_or(HeadError::Malformed("its target is no path and no URL"))
}

fn target_form(method: &str, target: &str) -> Option<TargetForm> {
    if method == "CONNECT" {
        let (host, port) = authority(target)?;
        return Some(TargetForm::Authority { host, port: port? });
    }
    if target == "*" && method == "OPTIONS" {
        return Some(TargetForm::Asterisk);
    }
    if target.starts_with('/') {
        return Some(TargetForm::Origin(target.to_owned()));
    }
    let (scheme, rest) = target.split_once("://")?;
    let scheme = match () {
        () if scheme.eq_ignore_ascii_case("http") => Scheme::Http,
        () if scheme.eq_ignore_ascii_case("https") => Scheme::Https,
        () => return None,
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, port) = authority(&rest[..end])?;
    let path =
        if rest[end..].starts_with('/') { rest[end..].to_owned() } else { format!("/{}", &rest[end..]) };
    Some(TargetForm::Absolute { scheme, host, port, path })
}

/// `host` or `host:port`, without a user in front.
fn authority(text: &str) -> Option<(Host, Option<u16>)> {
    let after_host = text.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match text[after_host..].split_once(':') {
        Some((between, port)) => (&text[..after_host + between.len()], Some(port_number(port)?)),
        None => (text, None),
    };
    // Without brackets there is no IPv6 here, and so no second colon.
    Some((host.parse().ok()?, port))
}

fn header(line: &[u8]) -> Result<Header, HeadError> {
    let wrong = |what| Err(HeadError::Malformed(what));
    let Some(colon) = line.iter().position(|byte| *byte == b':') else { return wrong("a header has no `:`") };
    // Also where a line begins with a space, which once continued the header before it.
    let Some(name) = token(&line[..colon]) else { return wrong("the name of a header is none") };
    let value = trimmed(&line[colon + 1..]);
    if value.iter().any(|byte| (*byte < 0x20 && *byte != b'\t') || *byte == 0x7f) {
        return wrong("a header has control characters");
    }
    Ok(Header { name: name.to_owned(), value: value.to_vec() })
}

/// Without spaces and tabs around it: what else `trim_ascii` removes is no space in HTTP.
fn trimmed(bytes: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = bytes.iter().position(|byte| !is_space(byte)).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|byte| !is_space(byte)).map_or(start, |at| at + 1);
    &bytes[start..end]
}

fn token(bytes: &[u8]) -> Option<&str> {
    let is_fine = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    text_of(bytes).filter(|text| !text.is_empty() && bytes.iter().all(is_fine))
}

fn text_of(bytes: &[u8]) -> Option<&str> {
    str::from_utf8(bytes).ok()
}

fn values<'a>(headers: &'a [Header], name: &str) -> Vec<&'a [u8]> {
    let own = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
    own.map(|header| &header.value[..]).collect()
}

/// One length or one coding, never both and neither twice.
fn body(headers: &[Header], minor: u8) -> Result<Body, HeadError> {
    match (&values(headers, "content-length")[..], &values(headers, "transfer-encoding")[..]) {
        ([], []) => Ok(Body::Length(0)),
        ([length], []) => {
            let digits =
                Some(*length).filter(|it| (1..=18).contains(&it.len()) && it.iter().all(u8::is_ascii_digit));
            let length = digits.and_then(text_of).and_then(|it| it.parse().ok());
            length.map(Body::Length).ok_or(HeadError::Malformed("`Content-Length` is no length"))
        }
        ([], [coding]) if minor == 1 && coding.eq_ignore_ascii_case(b"chunked") => Ok(Body::chunked()),
        ([], _) => Err(HeadError::Malformed("`Transfer-Encoding` is not `chunked`")),
        ([_, _, ..], []) => Err(HeadError::Malformed("it has two lengths")),
        _ => Err(HeadError::Malformed("it has a length and a coding")),
    }
}

fn is_websocket(headers: &[Header]) -> bool {
    let upgrade = values(headers, "upgrade");
    let connection = values(headers, "connection");
    let mut tokens = connection.iter().flat_map(|value| value.split(|byte| *byte == b','));
    matches!(upgrade[..], [value] if value.eq_ignore_ascii_case(b"websocket"))
        && tokens.any(|token| trimmed(token).eq_ignore_ascii_case(b"upgrade"))
}

/// Finds the end of a head in bytes that arrive one after the other.
#[derive(Debug, Default)]
pub struct HeadReader {
    looked_at: usize,
}

impl HeadReader {
    /// The length of the head with its empty line, once it is there. `bytes` is everything since the beginning.
    pub fn end(&mut self, bytes: &[u8], most: usize) -> Option<Result<usize, HeadError>> {
        if bytes.first().is_some_and(|byte| !byte.is_ascii_uppercase()) {
            return Some(Err(HeadError::NotHttp));
        }
        while let Some(byte) = bytes.get(self.looked_at) {
            self.looked_at += 1;
            let so_far = &bytes[..self.looked_at];
            if self.looked_at > most {
                return Some(Err(HeadError::TooLong));
            }
            if *byte == b'\n' && !so_far.ends_with(b"\r\n") {
                return Some(Err(HeadError::Malformed("it has a line that ends in another way")));
            }
            if so_far.ends_with(b"\r\n\r\n") {
                return Some(Ok(self.looked_at));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
