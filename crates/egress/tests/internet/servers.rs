//! The internet: servers on every address and a resolver, all of which write down what reaches them.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

pub(crate) const RESOLVER: &str = "9.9.9.9:53";
pub(crate) const ALLOWED: &str = "93.184.216.34";
pub(crate) const OTHER: &str = "151.101.1.6";
pub(crate) const SIX: &str = "2a00:1450::7";
/// Whose server asks TLS clients for a second message.
pub(crate) const RETRYING: &str = "93.184.216.77";
/// Whose server neither reads nor answers.
pub(crate) const SILENT: &str = "93.184.216.66";

/// Something that reached the internet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Seen {
    /// Name and type of a question.
    Question(String, u16),
    Connection(SocketAddr),
    /// What a server without TLS, or the TLS server after its handshake, was sent.
    Bytes(SocketAddr, String),
}

type Log = Arc<Mutex<Vec<Seen>>>;

pub(crate) struct Internet {
    log: Log,
    /// The certificate that clients trust.
    pub(crate) authority: CertificateDer<'static>,
}

impl Internet {
    pub(crate) fn start() -> Self {
        let log = Log::default();
        let (authority, config, retrying) = certificates();
        for port in [80, 443, 22, 5432, 8443, 853, 40_000] {
            let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).unwrap();
            let (log, configs) = (log.clone(), (Arc::clone(&config), Arc::clone(&retrying)));
            std::thread::spawn(move || {
                while let Ok((stream, _)) = listener.accept() {
                    let (log, configs) = (log.clone(), configs.clone());
                    std::thread::spawn(move || serve(stream, &log, configs));
                }
            });
        }
        let socket = UdpSocket::bind(RESOLVER).unwrap();
        let questions = log.clone();
        std::thread::spawn(move || resolve(&socket, &questions));
        Self { log, authority }
    }

    /// Everything since the last look, after a moment for what is on its way.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        std::thread::sleep(Duration::from_millis(100));
        std::mem::take(&mut self.log.lock().unwrap())
    }

    /// Lets a name that changes its mind believe that it was asked before.
    pub(crate) fn ask_again(&self, name: &str) {
        self.log.lock().unwrap().push(Seen::Question(name.to_owned(), 1));
    }

    /// The requests, without the rest.
    pub(crate) fn requests(&self) -> Vec<String> {
        let text = |seen| if let Seen::Bytes(_, text) = seen { Some(text) } else { None };
        self.seen().into_iter().filter_map(text).collect()
    }
}

/// Answers by name; a name that counts changes its mind with every question.
fn addresses(name: &str, asked_before: usize) -> Option<Vec<IpAddr>> {
    let parse = |texts: &[&str]| Some(texts.iter().map(|text| text.parse().unwrap()).collect());
    match name {
        "allowed.example" | "also.allowed.example" | "db.example" => parse(&[ALLOWED]),
        "other.example" | "redirected.example" => parse(&[OTHER]),
        "retrying.example" => parse(&[RETRYING]),
        "silent.example" => parse(&[SILENT]),
        "six.example" => parse(&[SIX]),
        "both.example" => parse(&[SIX, ALLOWED]),
        "private.example" => parse(&["10.1.2.3"]),
        "lan.example" => parse(&["10.20.1.1"]),
        "metadata.example" => parse(&["169.254.169.254"]),
        "own.example" => parse(&[super::world::OWN]),
        "mapped.example" => {
            parse(&["::ffff:127.0.0.1", "::1", "fe80::1", "64:ff9b::7f00:1", "2002:7f00:1::"])
        }
        "mixed.example" => parse(&["127.0.0.1", "169.254.169.254", ALLOWED, "10.0.0.1"]),
        "rebinding.example" if asked_before == 0 => parse(&[ALLOWED]),
        "loopback.example" | "rebinding.example" => parse(&["127.0.0.1"]),
        _ => None,
    }
}

fn resolve(socket: &UdpSocket, log: &Log) {
    let mut bytes = [0; 1500];
    while let Ok((length, from)) = socket.recv_from(&mut bytes) {
        let question = &bytes[..length];
        let (name, end) = name_of(question);
        let kind = u16::from_be_bytes([question[end], question[end + 1]]);
        let asked = Seen::Question(name.clone(), kind);
        let before = {
            let mut log = log.lock().unwrap();
            log.push(asked);
            log.iter().filter(|it| matches!(it, Seen::Question(other, 1) if *other == name)).count() - 1
        };
        let found = addresses(&name, if kind == 1 { before } else { 0 });
        let code = if found.is_some() { 0x80 } else { 0x83 };
        let records: Vec<Vec<u8>> = found.into_iter().flatten().filter_map(|it| record(it, kind)).collect();
        let mut answer = question[..2].to_vec();
        answer.extend([0x81, code, 0, 1, 0, u8::try_from(records.len()).unwrap(), 0, 0, 0, 0]);
        answer.extend(&question[12..end + 4]);
        answer.extend(records.concat());
        socket.send_to(&answer, from).unwrap();
    }
}

fn record(address: IpAddr, kind: u16) -> Option<Vec<u8>> {
    let data = match (address, kind) {
        (IpAddr::V4(address), 1) => address.octets().to_vec(),
        (IpAddr::V6(address), 28) => address.octets().to_vec(),
        _ => return None,
    };
    let length = u8::try_from(data.len()).unwrap();
    let kind = u8::try_from(kind).unwrap();
    Some([&[0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 0, 0, length][..], &data].concat())
}

/// The name of a question, and where it ends.
fn name_of(question: &[u8]) -> (String, usize) {
    let (mut labels, mut at) = (Vec::new(), 12);
    while question[at] != 0 {
        let end = at + 1 + usize::from(question[at]);
        labels.push(String::from_utf8_lossy(&question[at + 1..end]).into_owned());
        at = end;
    }
    (labels.join("."), at + 1)
}

type Configs = (Arc<ServerConfig>, Arc<ServerConfig>);

fn serve(mut stream: TcpStream, log: &Log, (config, retrying): Configs) {
    let address = SocketAddr::new(
        stream.local_addr().unwrap().ip().to_canonical(),
        stream.local_addr().unwrap().port(),
    );
    log.lock().unwrap().push(Seen::Connection(address));
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let keep = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        log.lock().unwrap().push(Seen::Bytes(address, text));
    };
    match address.port() {
        _ if address.ip().to_string() == SILENT => std::thread::sleep(Duration::from_mins(1)),
        443 | 8443 => {
            let config = if address.ip().to_string() == RETRYING { retrying } else { config };
            let mut tls = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
            answer(&mut tls, keep);
        }
        80 => answer(&mut stream, keep),
        // The others send back what they get; one of them asks TLS clients to begin again before that.
        port => {
            let mut bytes = [0; 4096];
            if port == 40_000 && address.ip().to_string() == RETRYING {
                let read = stream.read(&mut bytes).unwrap();
                keep(&bytes[..read]);
                stream.write_all(&super::hello::retry()).unwrap();
            }
            while let Ok(read) = stream.read(&mut bytes) {
                if bytes.starts_with(b"early") {
                    // And closes although there is more to read.
                    stream.write_all(b"bye").ok();
                    return;
                }
                if read == 0 || stream.write_all(&bytes[..read]).is_err() {
                    return;
                }
                keep(&bytes[..read]);
            }
        }
    }
}

/// Reads what comes for a moment, and answers it as if it were one request.
fn answer<S: std::io::Read + std::io::Write>(stream: &mut S, keep: impl Fn(&[u8])) {
    let mut request = Vec::new();
    let mut bytes = [0; 4096];
    while !is_complete(&request) && !request.starts_with(b"POST /early") {
        match stream.read(&mut bytes) {
            Ok(read) if read > 0 => request.extend(&bytes[..read]),
            _ => break,
        }
    }
    if request.is_empty() {
        return;
    }
    keep(&request);
    let text = String::from_utf8_lossy(&request);
    if text.contains("Upgrade: websocket") {
        stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\n\r\n").ok();
        while let Ok(read) = stream.read(&mut bytes) {
            if read == 0 || stream.write_all(&bytes[..read]).is_err() {
                return;
            }
            keep(&bytes[..read]);
        }
        return;
    }
    let body =
        if text.starts_with("GET /large") { "x".repeat(3 << 20) } else { "hello from outside".to_owned() };
    let status = match () {
        () if text.starts_with("GET /moved") => "302 Found\r\nLocation: http://redirected.example/",
        () if text.starts_with("GET /info/refs") => "404 Not Found",
        () => "200 OK",
    };
    let length = body.len();
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    stream.write_all(answer.as_bytes()).ok();
    stream.flush().ok();
}

fn is_complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
    match length {
        Some(length) => body.len() >= length,
        None => !head.contains("chunked") || body.ends_with("0\r\n\r\n"),
    }
}

/// An authority, and servers with a certificate for every name, of which one wants another key exchange than clients offer
/// first.
fn certificates() -> (CertificateDer<'static>, Arc<ServerConfig>, Arc<ServerConfig>) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, "test authority");
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let names: Vec<String> =
        ["*.example", "*.allowed.example", "allowed.example", "other.example", "retrying.example"]
            .map(str::to_owned)
            .to_vec();
    let names = [
        names,
        ["six.example", "both.example", "mixed.example", "rebinding.example"].map(str::to_owned).to_vec(),
    ]
    .concat();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    let config = |groups: Vec<&'static dyn rustls::crypto::SupportedKxGroup>| {
        let provider =
            rustls::crypto::CryptoProvider { kx_groups: groups, ..rustls::crypto::ring::default_provider() };
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key);
        Arc::new(config.unwrap())
    };
    let usual = rustls::crypto::ring::default_provider().kx_groups;
    let last = vec![*usual.last().unwrap()];
    (issuer.der().clone(), config(usual), config(last))
}
