//! PID 1 of a container: the same server as on the native engine, in a sandbox that a container engine has
//! built around it.
//!
//! The engine starts our executable in any image, with a directory mounted that holds one socket, the *door*.
//! PID 1 connects to it once; the supervisor takes that one connection and removes the door before anything
//! else of the image runs. Over the connection come the terms ([`sandtable_protocol::terms::Terms`]) and the descriptors PID 1 goes on
//! using, then every command as on the native engine. What the engine was asked for is not believed: PID 1
//! confines itself as far as it can without privileges, and reads back what holds.

mod confine;
mod verify;

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};
use sandtable_protocol::step::Step;
use sandtable_protocol::wire::{Ask, Failure, Tell, WireError};

use crate::inside::init;
use crate::step::Context as _;
use crate::sys::process::exit_now;
use crate::transport;

/// Is PID 1 of a container until its supervisor is gone. `door` is the socket's path inside, `environment`
/// what the image and the engine set: every command gets it below its own.
pub fn serve(door: &Path, mut environment: Vec<OsString>) -> ! {
    let socket = match transport::connect(door) {
        Ok(socket) => socket,
        Err(errno) => {
            let words = format!("sandtable: no supervisor at `{}`: {errno}\n", door.display());
            let _unheard = rustix::io::write(rustix::stdio::stderr(), words.as_bytes());
            exit_now(125)
        }
    };
    match begin(&socket) {
        Ok(Begun { report, listener, port, search }) => {
            put_first(&mut environment, &search);
            let handed: Vec<BorrowedFd<'_>> = port.iter().map(OwnedFd::as_fd).collect();
            if transport::send(&socket, &Tell::Ready(report.clone()), &handed).is_ok() {
                drop(port);
                init::serve(init::Seat { supervisor: socket, listener, report, environment })
            }
        }
        Err(failure) => {
            let _unheard = transport::send(&socket, &Tell::Failed(failure), &[]);
        }
    }
    exit_now(125)
}

/// What PID 1 has once it is confined.
struct Begun {
    report: sandtable_protocol::report::Report,
    listener: OwnedFd,
    /// Handed to the supervisor with the report.
    port: Option<OwnedFd>,
    /// What comes first on PATH.
    search: Vec<String>,
}

/// Takes the terms, confines this process by them, and reads back what holds.
fn begin(socket: &OwnedFd) -> Result<Begun, Failure> {
    let lost = |error: WireError| Failure { step: Step::HearTerms(error.to_string()), errno: 0 };
    let frame = transport::receive::<Ask>(socket).map_err(lost)?;
    let mut descriptors = frame.descriptors.into_iter();
    let (Ask::Adopt(terms), Some(listener), Some(lock)) =
        (frame.message, descriptors.next(), descriptors.next())
    else {
        return Err(Failure { step: Step::UnderstandTerms, errno: 0 });
    };
    let port = terms.port.map(local_listener).transpose()?;
    let keep: Vec<BorrowedFd<'_>> =
        [socket, &listener, &lock].into_iter().chain(&port).map(OwnedFd::as_fd).collect();
    let confined = confine::confine(&terms, &keep)?;
    let report = verify::observe(&terms, &confined, &keep);
    // Held as long as this process lives: the lock of the layer.
    std::mem::forget(lock);
    Ok(Begun { report, listener, port, search: terms.search })
}

/// Listens at `port` of loopback, in the network of this container.
fn local_listener(port: u16) -> Result<OwnedFd, Failure> {
    let listen = || -> Result<OwnedFd, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        bind(&socket, &SocketAddr::from(([127, 0, 0, 1], port)))?;
        listen(&socket, 128)?;
        Ok(socket)
    };
    listen().context(|| Step::Listen(port))
}

/// Puts directories before those that PATH has.
fn put_first(environment: &mut [OsString], search: &[String]) {
    let path = environment.iter_mut().find(|pair| pair.as_encoded_bytes().starts_with(b"PATH="));
    if let (Some(pair), false) = (path, search.is_empty()) {
        let mut first = OsString::from(format!("PATH={}:", search.join(":")));
        first.push(OsStr::from_bytes(&pair.as_encoded_bytes()[b"PATH=".len()..]));
        *pair = first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_come_before_what_the_image_has() {
        let before = || vec![OsString::from("HOME=/"), OsString::from("PATH=/usr/bin:/bin")];
        let mut environment = before();
        put_first(&mut environment, &["/opt/a/bin".to_owned(), "/opt/b".to_owned()]);
        assert_eq!(environment, ["HOME=/", "PATH=/opt/a/bin:/opt/b:/usr/bin:/bin"]);
        let mut environment = before();
        put_first(&mut environment, &[]);
        assert_eq!(environment, before());
    }
}
