//! Clients that say exactly what they are told to.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::world::NAMESERVER;

/// Longer than anything a gate may take to answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// A question to a nameserver as raw bytes, asked again as resolvers do.
pub(crate) fn ask_bytes(server: &str, question: &[u8]) -> Option<Vec<u8>> {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    socket.connect(server).unwrap();
    let mut bytes = [0; 2000];
    (0..3).find_map(|_| {
        socket.send(question).unwrap();
        socket.recv(&mut bytes).ok().map(|length| bytes[..length].to_vec())
    })
}

pub(crate) fn question(name: &str, kind: u16) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.').filter(|label| !label.is_empty()) {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.bytes());
    }
    bytes.push(0);
    bytes.extend(kind.to_be_bytes());
    bytes.extend([0, 1]);
    bytes
}

/// The address of a name inside; `None` if it does not exist.
pub(crate) fn address(name: &str) -> Option<Ipv4Addr> {
    let answer = ask_bytes(NAMESERVER, &question(name, 1)).expect("an answer");
    let count = u16::from_be_bytes([answer[6], answer[7]]);
    let last: [u8; 4] = answer[answer.len() - 4..].try_into().unwrap();
    (count == 1).then(|| last.into())
}

/// A connection to a name, by its address inside.
pub(crate) fn connect(name: &str, port: u16) -> TcpStream {
    connect_to((address(name).unwrap_or_else(|| panic!("{name} has no address")), port))
}

pub(crate) fn connect_to(address: impl ToSocketAddrs) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// What comes back until the end, which may be a reset; how long that took.
pub(crate) fn read_all(stream: &mut TcpStream) -> (Vec<u8>, Duration) {
    let begun = Instant::now();
    let mut all = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => break,
            Ok(read) => all.extend(&bytes[..read]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                all.extend(b"<reset>");
                break;
            }
            Err(error) => panic!("no end: {error}, after {}", String::from_utf8_lossy(&all)),
        }
    }
    (all, begun.elapsed())
}

/// Sends bytes to a name and reads the answer.
pub(crate) fn say(name: &str, port: u16, bytes: &[u8]) -> String {
    say_to((address(name).unwrap_or_else(|| panic!("{name} has no address")), port).into(), bytes)
}

pub(crate) fn say_to(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = connect_to(address);
    stream.write_all(bytes).unwrap();
    String::from_utf8_lossy(&read_all(&mut stream).0).into_owned()
}

/// A request without TLS.
pub(crate) fn get(name: &str, path: &str) -> String {
    say(name, 80, format!("GET {path} HTTP/1.1\r\nHost: {name}\r\n\r\n").as_bytes())
}

/// A request over TLS to an address, for a name: the answer, or the error of the client.
pub(crate) fn get_tls(
    address: SocketAddr,
    name: &str,
    authority: &CertificateDer<'static>,
) -> Result<String, String> {
    let stream = connect_to(address);
    over_tls(stream, name, authority)
}

pub(crate) fn over_tls(
    stream: TcpStream,
    name: &str,
    authority: &CertificateDer<'static>,
) -> Result<String, String> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server = ServerName::try_from(name.to_owned()).unwrap();
    let client = ClientConnection::new(Arc::new(config), server).unwrap();
    let mut tls = StreamOwned::new(client, stream);
    let request = format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n");
    tls.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
    let mut answer = Vec::new();
    match tls.read_to_end(&mut answer) {
        // The server ends without saying so in TLS.
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => Err(error.to_string()),
        _ => Ok(String::from_utf8_lossy(&answer).into_owned()),
    }
}

/// The same by name.
pub(crate) fn get_secure(name: &str, authority: &CertificateDer<'static>) -> Result<String, String> {
    get_tls((address(name).expect("an address"), 443).into(), name, authority)
}
