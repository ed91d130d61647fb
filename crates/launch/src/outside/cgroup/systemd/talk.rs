//! The conversation with a manager: who we are, what we want, and waiting until it is done.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::geteuid;

use super::Error;
use super::message::{Request, SERIAL};
use super::parse::{Kind, Malformed, Message};
use crate::sys::network::peer;

/// How long a manager may take. It answers in milliseconds; one that hangs must not hang us.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest line of the greeting.
const LINE: usize = 512;
/// How much of what it says is repeated to the user.
const SHOWN: usize = 300;

/// Asks the manager behind `socket` for a scope with this process in it, and waits until it is there.
pub(super) fn start_scope(socket: &Path, request: &Request<'_>) -> Result<(), Error> {
    let mut line = Line::to(socket)?;
    line.greet()?;
    line.send(&request.encoded())?;
    line.wait_for(request.unit)
}

/// A connection, and until when it may take.
#[derive(Debug)]
struct Line {
    stream: UnixStream,
    end: Instant,
}

impl Line {
    fn to(path: &Path) -> Result<Self, Error> {
        let connected = UnixStream::connect(path);
        let stream = connected.map_err(|source| Error::Connect { path: path.to_owned(), source })?;
        let peer = peer(&stream).map_err(|error| Error::Broken(error.into()))?;
        if !peer.uid.is_root() && peer.uid != geteuid() {
            return Err(Error::Stranger { path: path.to_owned() });
        }
        Ok(Self { stream, end: Instant::now() + PATIENCE })
    }

    /// Says who we are, which the kernel confirms.
    fn greet(&mut self) -> Result<(), Error> {
        // The number as text, each letter of it in hexadecimal digits: those of decimal digits are `3` and itself.
        let uid: String = geteuid().as_raw().to_string().chars().flat_map(|digit| ['3', digit]).collect();
        self.send(format!("\0AUTH EXTERNAL {uid}\r\n").as_bytes())?;
        if !self.line()?.starts_with(b"OK ") {
            return Err(Error::NotLetIn);
        }
        self.send(b"BEGIN\r\n")
    }

    /// One line of the greeting, byte by byte, so that nothing behind it is taken.
    fn line(&mut self) -> Result<Vec<u8>, Error> {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            if line.len() == LINE {
                return Err(Malformed::Rule("a line without an end").into());
            }
            let mut byte = [0];
            self.hurry()?;
            self.stream.read_exact(&mut byte).map_err(Error::Broken)?;
            line.extend(byte);
        }
        Ok(line)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.hurry()?;
        self.stream.write_all(bytes).map_err(Error::Broken)
    }

    /// Waits for the answer, and for the end of the job it speaks of.
    fn wait_for(&mut self, unit: &str) -> Result<(), Error> {
        let (mut accepted, mut started) = (false, false);
        while !(accepted && started) {
            self.hurry()?;
            let message = Message::read(&mut self.stream)?;
            if let Some((of, result)) = message.ended_job()? {
                match result.as_str() {
                    _ if of != unit => {}
                    "done" => started = true,
                    _ => return Err(Error::Job { result: shown(&result) }),
                }
            } else if message.answers == Some(SERIAL) {
                match message.kind {
                    Kind::Return => accepted = true,
                    _ => return Err(refusal(&message)?),
                }
            }
        }
        Ok(())
    }

    /// Lets the next read and write take no longer than what is left of the time.
    fn hurry(&self) -> Result<(), Error> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Error::Broken(std::io::ErrorKind::TimedOut.into()));
        }
        let set = self.stream.set_read_timeout(Some(left));
        set.and_then(|()| self.stream.set_write_timeout(Some(left))).map_err(Error::Broken)
    }
}

fn refusal(message: &Message) -> Result<Error, Error> {
    let name = shown(message.error.as_deref().unwrap_or("no reason given"));
    Ok(Error::Refused { name, text: shown(&message.text()?) })
}

/// A word of systemd's, fit for a line of ours.
fn shown(text: &str) -> String {
    text.chars().take(SHOWN).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::thread;

    use super::*;

    const UNIT: &str = "a.scope";

    /// A manager that says `greeting` to every client, then `messages`, and goes.
    fn asked(greeting: &'static str, messages: Vec<Vec<u8>>) -> Result<(), String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("private");
        let listener = UnixListener::bind(&path).unwrap();
        let manager = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(greeting.as_bytes()).unwrap();
            for message in messages {
                stream.write_all(&message).unwrap();
            }
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut heard = Vec::new();
            // The client may have closed without reading everything.
            let _cut_off = stream.read_to_end(&mut heard);
            heard
        });
        let answer = start_scope(&path, &Request { unit: UNIT, slice: None });
        let heard = manager.join().unwrap();
        assert!(heard.starts_with(b"\0AUTH EXTERNAL 3"), "{heard:?}");
        answer.map_err(|error| error.to_string())
    }

    /// A message whose body is texts, behind a number where the signature starts with one.
    fn message(kind: u8, fields: &[u8], texts: &[&str]) -> Vec<u8> {
        let mut body = if kind == 4 { vec![7, 0, 0, 0] } else { Vec::new() };
        for text in texts {
            body.resize(body.len().next_multiple_of(4), 0);
            body.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
            body.extend(text.as_bytes());
            body.push(0);
        }
        let mut bytes = vec![b'l', kind, 1, 1];
        for number in [body.len(), 9, fields.len()] {
            bytes.extend(u32::try_from(number).unwrap().to_le_bytes());
        }
        bytes.extend(fields);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.extend(body);
        bytes
    }

    fn accepted() -> Vec<u8> {
        message(2, b"\x05\x01u\0\x01\0\0\0\x08\x01g\0\x01o\0", &["/job/7"])
    }

    fn ended(unit: &str, result: &str) -> Vec<u8> {
        let fields = b"\x03\x01s\0\x0a\0\0\0JobRemoved\0\0\0\0\0\0\x08\x01g\0\x04uoss\0";
        message(4, fields, &["/job/7", unit, result])
    }

    #[test]
    fn a_scope_is_there_when_its_job_has_ended() {
        let ok = "OK 0123456789abcdef0123456789abcdef\r\n";
        assert_eq!(asked(ok, vec![accepted(), ended("b.scope", "failed"), ended(UNIT, "done")]), Ok(()));
        assert_eq!(asked(ok, vec![ended(UNIT, "done"), accepted()]), Ok(()), "in either order");
        let failed = asked(ok, vec![accepted(), ended(UNIT, "failed")]).unwrap_err();
        assert_eq!(failed, "starting the scope ended with `failed`");
        let gone = asked(ok, vec![accepted()]).unwrap_err();
        assert!(
            gone.starts_with("it sent something that cannot be understood: the connection ended"),
            "{gone}"
        );
    }

    #[test]
    fn a_refusal_is_repeated_in_its_own_words() {
        let fields = b"\x04\x01s\0\x03\0\0\0a.b\0\0\0\0\0\x05\x01u\0\x01\0\0\0\x08\x01g\0\x01s\0";
        let refused = asked("OK 1\r\n", vec![message(3, fields, &["not\u{1b}[31m you\n"])]).unwrap_err();
        assert_eq!(refused, "it says: not [31m you  (a.b)");
        assert_eq!(asked("REJECTED EXTERNAL\r\n", Vec::new()).unwrap_err(), "it did not let us in");
        let endless = asked("OK ", vec![vec![b'x'; 600]]).unwrap_err();
        assert_eq!(endless, "it sent something that cannot be understood: a line without an end");
        let nobody = start_scope(Path::new("/nowhere"), &Request { unit: UNIT, slice: None }).unwrap_err();
        assert!(nobody.to_string().starts_with("its socket `/nowhere` cannot be reached"), "{nobody}");
    }
}
