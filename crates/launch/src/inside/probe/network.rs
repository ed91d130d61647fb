//! Ways out: sockets of the host, its network, and socket families that are kernel surface.

use std::ffi::OsString;
use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use sandtable_protocol::report::Control::{self, NetworkNamespace, NoCapabilities, RootView, Seccomp};

use super::finding::{describe, name};
use super::procfs::bytes;
use super::{Attempt, Finding, Probe};
use crate::sys::probe::socket;

const OWN: &[Control] = &[NetworkNamespace];

pub(super) const PROBES: &[Probe] = &[
    family("af-packet", &["box/P21", "box/N1"], |_| opened(libc::AF_PACKET, libc::SOCK_RAW, 0)),
    family("af-alg", &["box/P21"], |_| opened(libc::AF_ALG, libc::SOCK_SEQPACKET, 0)),
    family("af-vsock", &["box/P21"], |_| opened(libc::AF_VSOCK, libc::SOCK_STREAM, 0)),
    family("af-key", &["box/P21"], |_| opened(libc::AF_KEY, libc::SOCK_RAW, 2)),
    family("af-xdp", &["box/P21"], |_| opened(libc::AF_XDP, libc::SOCK_RAW, 0)),
    family("af-tipc", &["box/P21"], |_| opened(libc::AF_TIPC, libc::SOCK_STREAM, 0)),
    family("af-bluetooth", &["box/P21"], |_| opened(libc::AF_BLUETOOTH, libc::SOCK_RAW, 1)),
    family("af-netfilter", &["box/P21"], |_| {
        opened(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_NETFILTER)
    }),
    family("af-uevent", &["box/P21"], |_| {
        opened(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_KOBJECT_UEVENT)
    }),
    probe("raw-ip", &["box/N1", "box/N10"], &[NoCapabilities], |_| {
        opened(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP)
    }),
    probe("sctp", &["box/N10"], &[Seccomp], |_| opened(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_SCTP)),
    probe("abstract-socket", &["box/P10", "box/P12"], OWN, abstract_socket),
    probe("path-socket", &["box/P11", "box/P12"], &[RootView], path_socket),
    probe("connect-loopback", &["box/N17"], OWN, connect),
    probe("tcp-out", &["box/N1"], OWN, connect),
    probe("udp-out", &["box/N10"], OWN, udp_out),
    probe("dns", &["box/N10"], OWN, udp_out),
    probe("icmp", &["box/N10"], OWN, icmp),
    probe("interfaces", &["box/N1", "box/N20"], OWN, interfaces),
    probe("own-loopback", &["box/N17"], &[], |_| own_loopback()),
];

const fn probe(
    name: &'static str,
    attacks: &'static [&'static str],
    claims: &'static [Control],
    steps: fn(&[OsString]) -> Finding,
) -> Probe {
    Probe { name, attacks, claims, attempt: Attempt::Steps(steps) }
}

const fn family(
    name: &'static str,
    attacks: &'static [&'static str],
    steps: fn(&[OsString]) -> Finding,
) -> Probe {
    probe(name, attacks, &[Seccomp], steps)
}

fn opened(family: i32, kind: i32, protocol: i32) -> Finding {
    match socket(family, kind, protocol) {
        Ok(()) => Finding::leak("a socket was made"),
        Err(errno) => Finding::blocked(name(errno)),
    }
}

/// `NAME`: an abstract socket on which the host listens.
fn abstract_socket(args: &[OsString]) -> Finding {
    let Some(name) = args.first() else { return Finding::unsupported("needs a name") };
    let connected = std::os::unix::net::SocketAddr::from_abstract_name(name.as_encoded_bytes())
        .and_then(|address| UnixStream::connect_addr(&address));
    Finding::of_io(connected, "connected")
}

/// `PATH…`: sockets in the file system on which the host listens.
fn path_socket(args: &[OsString]) -> Finding {
    let reached: Vec<String> = args
        .iter()
        .filter(|path| UnixStream::connect(Path::new(path)).is_ok())
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    Finding::leak_if_any(&reached, format!("none of {}", args.len()))
}

/// `ADDRESS:PORT`.
fn connect(args: &[OsString]) -> Finding {
    match address(args) {
        Some(address) => {
            Finding::of_io(TcpStream::connect_timeout(&address, Duration::from_secs(2)), "connected")
        }
        None => Finding::unsupported("needs an address and a port"),
    }
}

/// `ADDRESS:PORT`: a datagram that the network accepts has left.
fn udp_out(args: &[OsString]) -> Finding {
    let Some(address) = address(args) else { return Finding::unsupported("needs an address and a port") };
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    Finding::of_io(
        UdpSocket::bind(any).and_then(|socket| socket.send_to(b"probe", address)),
        "a datagram left",
    )
}

/// `ADDRESS:PORT`: an echo request through the unprivileged kind of socket, else through a raw one.
fn icmp(args: &[OsString]) -> Finding {
    use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto};
    let Some(address) = address(args) else { return Finding::unsupported("needs an address and a port") };
    let echo = [8, 0, 0xf7, 0xff, 0, 0, 0, 0];
    let try_with = |kind| -> io::Result<usize> {
        let socket = rustix::net::socket(AddressFamily::INET, kind, Some(ipproto::ICMP))?;
        Ok(sendto(socket, &echo, SendFlags::empty(), &address)?)
    };
    let sent = try_with(SocketType::DGRAM).or_else(|_| try_with(SocketType::RAW));
    Finding::of_io(sent, "an echo request left")
}

/// Any interface besides loopback, or any address or route that is not loopback's.
fn interfaces(_: &[OsString]) -> Finding {
    let text = |path: &str| bytes(Path::new(path), 1 << 16).map(|b| String::from_utf8_lossy(&b).into_owned());
    let devices = match text("/proc/net/dev") {
        Ok(devices) => devices,
        Err(error) => return Finding::blocked(describe(&error)),
    };
    let names = devices.lines().skip(2).filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
    let mut found: Vec<String> = names.filter(|name| *name != "lo").map(Into::into).collect();
    let routes = text("/proc/net/route").unwrap_or_default();
    found.extend(
        routes
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().nth(1))
            .map(|to| format!("route {to}")),
    );
    Finding::leak_if_any(&found, "loopback only")
}

/// A server and its client in the same sandbox must find each other.
fn own_loopback() -> Finding {
    let met = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| TcpStream::connect_timeout(&listener.local_addr()?, Duration::from_secs(2)));
    Finding::of_work(met, "connected")
}

fn address(args: &[OsString]) -> Option<SocketAddr> {
    args.first()?.to_str()?.parse().ok()
}
