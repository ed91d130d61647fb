//! Names that a rule permits, looked up outside: in the machine's file of hosts, then by its nameservers. A name is asked
//! for once as long as its answer lasts.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::dns::stub::{self, Family, Found, StubError};
use crate::name::HostName;

use super::together::both;

/// The machine's own list of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostsFile(HashMap<HostName, Vec<IpAddr>>);

impl HostsFile {
    /// Reads the form of `/etc/hosts`; lines that are none are passed over.
    pub fn read(text: &str) -> Self {
        let mut hosts: HashMap<HostName, Vec<IpAddr>> = HashMap::new();
        for line in text.lines() {
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            let Some(address) = words.next().and_then(|word| word.parse::<IpAddr>().ok()) else { continue };
            for name in words.filter_map(|word| word.parse::<HostName>().ok()) {
                hosts.entry(name).or_default().push(address);
            }
        }
        Self(hosts)
    }
}

/// Why a name has no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LookupError {
    NoSuchName,
    /// No nameserver answered, or none answered soundly.
    Failed,
}

type Looked = Result<Vec<IpAddr>, LookupError>;

pub(super) struct Resolver {
    nameservers: Vec<SocketAddr>,
    hosts: HostsFile,
    known: RefCell<HashMap<HostName, (Instant, Looked)>>,
    /// Each lookup has sockets of its own.
    lookups: Semaphore,
}

const MOST_LOOKUPS: usize = 16;
/// Answers that are kept.
const MOST_KNOWN: usize = 1024;
const SHORTEST_LIFE: u32 = 1;
const LONGEST_LIFE: u32 = 60;
const ROUNDS: usize = 2;
const PATIENCE: Duration = Duration::from_secs(2);
const LONGEST_DATAGRAM: usize = 4096;

impl Resolver {
    pub(super) fn new(nameservers: Vec<SocketAddr>, hosts: HostsFile) -> Self {
        Self { nameservers, hosts, known: RefCell::default(), lookups: Semaphore::new(MOST_LOOKUPS) }
    }

    pub(super) async fn lookup(&self, name: &HostName) -> Looked {
        if let Some(looked) = self.known(name) {
            return looked;
        }
        let Ok(_one_of_a_few) = self.lookups.acquire().await else { return Err(LookupError::Failed) };
        self.look_up(name).await
    }

    /// The same for a question of the sandbox, which is not worth waiting for others: `None` if it would have to.
    pub(super) async fn lookup_at_once(&self, name: &HostName) -> Option<Looked> {
        if let Some(looked) = self.known(name) {
            return Some(looked);
        }
        let _one_of_a_few = self.lookups.try_acquire().ok()?;
        Some(self.look_up(name).await)
    }

    fn known(&self, name: &HostName) -> Option<Looked> {
        if let Some(addresses) = self.hosts.0.get(name) {
            return Some(Ok(addresses.clone()));
        }
        let known = self.known.borrow();
        known.get(name).filter(|(until, _)| Instant::now() < *until).map(|(_, looked)| looked.clone())
    }

    async fn look_up(&self, name: &HostName) -> Looked {
        // Another one may have asked while this one waited.
        if let Some(looked) = self.known(name) {
            return looked;
        }
        let (four, six) = both(self.ask(name, Family::V4), self.ask(name, Family::V6)).await;
        let live = [&four, &six].map(|it| it.as_ref().map_or(SHORTEST_LIFE, |found| found.seconds_to_live));
        let looked = joined(four, six);
        self.keep(name, live[0].min(live[1]).clamp(SHORTEST_LIFE, LONGEST_LIFE), &looked);
        looked
    }

    fn keep(&self, name: &HostName, seconds: u32, looked: &Looked) {
        let mut known = self.known.borrow_mut();
        if known.len() >= MOST_KNOWN {
            let now = Instant::now();
            known.retain(|_, (until, _)| now < *until);
        }
        if known.len() < MOST_KNOWN {
            let until = Instant::now() + Duration::from_secs(seconds.into());
            known.insert(name.clone(), (until, looked.clone()));
        }
    }

    /// Asks one nameserver after the other, and all of them a second time.
    async fn ask(&self, name: &HostName, family: Family) -> Result<Found, StubError> {
        let mut last = StubError::Malformed;
        for server in self.nameservers.iter().cycle().take(self.nameservers.len() * ROUNDS) {
            match timeout(PATIENCE, ask_one(*server, name, family)).await {
                Ok(Ok(Err(StubError::NoSuchName))) => return Err(StubError::NoSuchName),
                Ok(Ok(Err(error))) => last = error,
                Ok(Ok(Ok(found))) => return Ok(found),
                Ok(Err(_)) | Err(_) => {}
            }
        }
        Err(last)
    }
}

fn joined(four: Result<Found, StubError>, six: Result<Found, StubError>) -> Looked {
    let all: Vec<IpAddr> = [&four, &six].into_iter().flatten().flat_map(|it| it.addresses.clone()).collect();
    match (four, six) {
        _ if !all.is_empty() => Ok(all),
        // A name without addresses of one kind, about which the other kind cannot be asked, may have some.
        (Ok(_) | Err(StubError::NoSuchName), Ok(_) | Err(StubError::NoSuchName)) => {
            Err(LookupError::NoSuchName)
        }
        _ => Err(LookupError::Failed),
    }
}

/// A socket of its own for each question, so that its port is as hard to guess as its number.
async fn ask_one(
    server: SocketAddr,
    name: &HostName,
    family: Family,
) -> io::Result<Result<Found, StubError>> {
    let mut id = [0; 2];
    rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty())?;
    let id = u16::from_be_bytes(id);
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    let query = stub::query(id, name, family);
    socket.send(&query).await?;
    let mut bytes = vec![0; LONGEST_DATAGRAM];
    loop {
        let length = socket.recv(&mut bytes).await?;
        match stub::read(&bytes[..length], id, name, family) {
            Err(StubError::Foreign) => {}
            Err(StubError::Truncated) => {
                let bytes = ask_by_stream(server, &query).await?;
                return Ok(stub::read(&bytes, id, name, family));
            }
            read => return Ok(read),
        }
    }
}

async fn ask_by_stream(server: SocketAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(query.len()).expect("a question is short");
    stream.write_all(&[&length.to_be_bytes()[..], query].concat()).await?;
    let mut answer = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_hosts_is_read_as_the_c_library_reads_it() {
        let hosts = HostsFile::read(
            "127.0.0.1 localhost\n10.0.0.7\tDB.example db # 1.2.3.4 x.y\n#9.9.9.9 z.y\n::1 db\nnonsense\n",
        );
        let of = |name: &str| hosts.0.get(&name.parse().expect("a name")).map(Vec::len);
        assert_eq!([of("db.example"), of("db"), of("localhost")], [Some(1), Some(2), Some(1)]);
        assert_eq!([of("x.y"), of("z.y"), of("nonsense")], [None, None, None]);
    }
}
