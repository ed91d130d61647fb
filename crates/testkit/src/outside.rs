//! Something that a sandbox with a way out can reach, and a place for the engine's networks that is not the host's:
//! Docker's daemon is started in a network namespace of its own, rootful Podman is called in one, and without root
//! Podman makes no network at all.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::net::sockopt::socket_peercred;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::process::Run;
use crate::require;

/// An address that belongs to nobody, for a namespace of our own.
const NOBODYS: &str = "198.51.100.1";

/// A listening socket in the engine's surroundings.
#[derive(Debug)]
pub struct Outside {
    address: SocketAddr,
    listener: TcpListener,
    /// The engine's network namespace, where that is not ours.
    namespace: Option<PathBuf>,
    /// Keeps the namespace, where it is our own.
    holder: Option<Child>,
    /// What a program is started through, to be where the engine's networks are made.
    through: Vec<String>,
}

impl Outside {
    /// Where Docker's daemon is. `gateway` is an address of its that containers can reach.
    ///
    /// # Panics
    /// If there is no such daemon.
    pub fn of_docker(socket: &Path, gateway: IpAddr) -> Self {
        let connection = UnixStream::connect(socket).expect("the daemon listens");
        let peer = socket_peercred(&connection).expect("a local socket");
        let namespace = PathBuf::from(format!("/proc/{}/ns/net", peer.pid.as_raw_nonzero()));
        let listener = within(Some(&namespace), move || TcpListener::bind((gateway, 0)))
            .expect("an address of the daemon's own");
        let address = listener.local_addr().expect("just bound");
        Self { address, listener, namespace: Some(namespace), holder: None, through: Vec::new() }
    }

    /// A namespace of our own for an engine that makes its networks where it is called.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn own(directory: &Path) -> Self {
        let script = format!("ip link set lo up && ip addr add {NOBODYS}/32 dev lo && exec cat");
        let words = ["--net", "--", "sh", "-c", &script];
        let run = Run::new("unshare", directory).variable("PATH", crate::env::PATH).args(words);
        let holder = run.waiting();
        let namespace = PathBuf::from(format!("/proc/{}/ns/net", holder.id()));
        let deadline = Instant::now() + Duration::from_secs(30);
        let listener = loop {
            match within(Some(&namespace), || TcpListener::bind((NOBODYS, 0))) {
                Ok(listener) => break listener,
                Err(error) => assert!(Instant::now() < deadline, "no namespace of our own: {error}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let address = listener.local_addr().expect("just bound");
        let through = vec!["nsenter".to_owned(), format!("--net={}", namespace.display()), "--".to_owned()];
        Self { address, listener, namespace: Some(namespace), holder: Some(holder), through }
    }

    /// This machine's own address, and a device for packets that everybody may open; `None`, said aloud, where
    /// there is none.
    pub fn here(directory: &Path) -> Option<Self> {
        let own = UdpSocket::bind("0.0.0.0:0")
            .and_then(|socket| socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr()));
        let Some(listener) = own.ok().and_then(|address| TcpListener::bind((address.ip(), 0)).ok()) else {
            require::skip("this machine has no address but loopback");
            return None;
        };
        let address = listener.local_addr().expect("just bound");
        let through = if require::is_root() { with_device(directory)? } else { Vec::new() };
        Some(Self { address, listener, namespace: None, holder: None, through })
    }

    /// What can be reached.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A socket of its own in the same surroundings, at the loopback address there.
    ///
    /// # Panics
    /// If loopback is down.
    pub fn loopback(&self) -> TcpListener {
        within(self.namespace.as_deref(), || TcpListener::bind("127.0.0.1:0")).expect("loopback is up")
    }

    /// Whether somebody listens at that address, seen from there.
    pub fn reaches(&self, address: SocketAddr) -> bool {
        let patience = Duration::from_secs(2);
        within(self.namespace.as_deref(), move || TcpStream::connect_timeout(&address, patience)).is_ok()
    }

    /// Answers the next client that says something with these words. One that says nothing has only looked.
    pub fn answers(&self, words: &'static str) -> std::thread::JoinHandle<()> {
        use std::io::{Read as _, Write as _};
        let listener = self.listener.try_clone().expect("one more descriptor");
        std::thread::spawn(move || {
            loop {
                let (mut client, _) = listener.accept().expect("it listens");
                if matches!(client.read(&mut [0; 1024]), Ok(1..)) {
                    client.write_all(words.as_bytes()).ok();
                    return;
                }
            }
        })
    }

    /// `run` where the engine's networks are made.
    pub fn around(&self, run: Run) -> Run {
        run.through(&self.through)
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        if let Some(mut holder) = self.holder.take() {
            holder.kill().ok();
            holder.wait().ok();
        }
    }
}

/// What shows a program a device for packets that everybody may open, in mounts of its own.
fn with_device(directory: &Path) -> Option<Vec<String>> {
    let device = directory.join("tun").display().to_string();
    let script = format!("mknod {device} c 10 200 && chmod 666 {device} && test -e /dev/net/tun");
    let made = Run::new("sh", directory).variable("PATH", crate::env::PATH).args(["-c", &script]).ended();
    if made.code != 0 {
        require::skip("there is no /dev/net/tun");
        return None;
    }
    let show = format!("mount --bind {device} /dev/net/tun && exec \"$@\"");
    let words = ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", &show, "sh"];
    Some(words.map(str::to_owned).into())
}

/// Does something in a network namespace, on a thread that ends with it.
fn within<T: Send + 'static>(
    namespace: Option<&Path>,
    act: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    let Some(namespace) = namespace.map(Path::to_owned) else { return act() };
    let moved = std::thread::spawn(move || {
        let handle = fs_err::File::open(namespace)?;
        move_into_link_name_space(handle.as_fd(), Some(LinkNameSpaceType::Network))?;
        act()
    });
    moved.join().expect("it does not panic")
}
