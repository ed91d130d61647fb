//! From a permitted target to a connection: one lookup, the addresses that may be dialled, and those alone.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::name::Host;
use crate::verdict::{Denial, Reason, Target};

use super::Gate;
use super::carry::Server;
use super::resolve::LookupError;

/// How long an address is alone before the next one is tried beside it (RFC 8305).
const HEAD_START: Duration = Duration::from_millis(250);

pub(super) async fn dial<'p>(gate: &'p Gate, target: &Target) -> Result<Server, Denial<'p>> {
    let Ok(_one_of_a_few) = gate.dials.acquire().await else {
        return Err(Denial::plain(Reason::Limit));
    };
    let limit = Duration::from_secs(gate.plan.limits.dial_seconds);
    match timeout(limit, lookup_and_connect(gate, target)).await {
        Ok(server) => server,
        Err(_) => Err(Denial::plain(Reason::Unreachable)),
    }
}

async fn lookup_and_connect<'p>(gate: &'p Gate, target: &Target) -> Result<Server, Denial<'p>> {
    let addresses = addresses(gate, target).await?;
    let addresses = alternating(&addresses).map(|ip| SocketAddr::new(ip, target.port)).collect::<Vec<_>>();
    let (stream, address) = fastest(&addresses).await.map_err(|_| Denial::plain(Reason::Unreachable))?;
    let server = Server { stream, address };
    server.stream.set_nodelay(true).map_err(|_| Denial::plain(Reason::Unreachable))?;
    rustix::net::sockopt::set_socket_keepalive(&server.stream, true).ok();
    Ok(server)
}

/// Where a target may be reached. An address was judged as a target already.
async fn addresses<'p>(gate: &'p Gate, target: &Target) -> Result<Vec<IpAddr>, Denial<'p>> {
    let name = match &target.host {
        Host::Address(address) => return Ok(vec![*address]),
        Host::Name(name) => name,
    };
    let found = gate.resolver.lookup(name).await.map_err(|error| match error {
        LookupError::NoSuchName => Denial::plain(Reason::NoSuchHost),
        LookupError::Failed => Denial::plain(Reason::Unreachable),
    })?;
    let mut permitted = Vec::new();
    let mut refused = None;
    for address in found {
        let address = crate::address::canonical(address);
        match gate.plan.resolved(address, target.port) {
            Ok(()) => permitted.push(address),
            Err(denial) => refused = Some(denial),
        }
    }
    match refused {
        Some(denial) if permitted.is_empty() => Err(denial),
        _ if permitted.is_empty() => Err(Denial::plain(Reason::NoSuchHost)),
        _ => Ok(permitted),
    }
}

/// IPv6 and IPv4 in turn, IPv6 first.
fn alternating(addresses: &[IpAddr]) -> impl Iterator<Item = IpAddr> {
    let (mut six, mut four): (Vec<IpAddr>, Vec<IpAddr>) = addresses.iter().rev().partition(|it| it.is_ipv6());
    let mut next_is_six = true;
    std::iter::from_fn(move || {
        let (own, other) = if next_is_six { (&mut six, &mut four) } else { (&mut four, &mut six) };
        next_is_six = !next_is_six;
        own.pop().or_else(|| other.pop())
    })
}

type Attempt<'a> = Pin<Box<dyn Future<Output = io::Result<(TcpStream, SocketAddr)>> + 'a>>;

/// Tries the addresses in order. The next one starts after a while beside those before it, or once one of them has failed.
async fn fastest(addresses: &[SocketAddr]) -> io::Result<(TcpStream, SocketAddr)> {
    let mut waiting = addresses.iter();
    let mut under_way: Vec<Attempt<'_>> = Vec::new();
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    loop {
        match waiting.next() {
            Some(address) => under_way.push(Box::pin(connect(*address))),
            None if under_way.is_empty() => return Err(last),
            None => {}
        }
        match timeout(HEAD_START, any(&mut under_way)).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(error)) => last = error,
            Err(_) => {}
        }
    }
}

async fn connect(address: SocketAddr) -> io::Result<(TcpStream, SocketAddr)> {
    TcpStream::connect(address).await.map(|stream| (stream, address))
}

/// Waits for the first attempt that ends, and removes it.
async fn any(under_way: &mut Vec<Attempt<'_>>) -> io::Result<(TcpStream, SocketAddr)> {
    poll_fn(|context| {
        for index in 0..under_way.len() {
            if let Poll::Ready(result) = under_way[index].as_mut().poll(context) {
                drop(under_way.swap_remove(index));
                return Poll::Ready(result);
            }
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_fails_does_not_hold_up_the_next_one() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(try_in_several_orders());
    }

    async fn try_in_several_orders() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let sound = server.local_addr().expect("an address");
        // Nobody listens at the first port.
        let closed = SocketAddr::from(([127, 0, 0, 1], 1));
        for addresses in [&[sound][..], &[closed, sound], &[sound, closed], &[closed, closed, sound]] {
            assert_eq!(fastest(addresses).await.expect("a connection").1, sound, "{addresses:?}");
        }
        assert!(fastest(&[closed, closed]).await.is_err() && fastest(&[]).await.is_err());
    }

    #[test]
    fn both_families_take_turns() {
        let parse = |text: &&str| text.parse::<IpAddr>().expect("an address");
        let given: Vec<IpAddr> = ["1.1.1.1", "2.2.2.2", "3.3.3.3", "2a00::1"].iter().map(parse).collect();
        let expected: Vec<IpAddr> = ["2a00::1", "1.1.1.1", "2.2.2.2", "3.3.3.3"].iter().map(parse).collect();
        assert_eq!(alternating(&given).collect::<Vec<_>>(), expected);
    }
}
