//! What a signature is asked for.

use super::message::Fields;

/// The two kinds of data that a key may sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signed {
    /// A login at a host (RFC 4252, section 7).
    Login(Login),
    /// A file, commit or tag (`PROTOCOL.sshsig` of OpenSSH).
    Message { namespace: String },
}

/// A login by public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    pub session: Vec<u8>,
    pub user: String,
    pub key: Vec<u8>,
    /// The host's key, where the client says it in what is signed.
    pub host_key: Option<Vec<u8>>,
}

const USERAUTH_REQUEST: u8 = 50;
const MESSAGE_MAGIC: &[u8] = b"SSHSIG";
/// A digest: at least as long as one of SHA-1, at most as one of SHA-512.
const SESSION: std::ops::RangeInclusive<usize> = 20..=64;

impl Signed {
    /// Reads data that is to be signed; `None` if it is of neither kind.
    pub fn read(data: &[u8]) -> Option<Self> {
        match data.strip_prefix(MESSAGE_MAGIC) {
            Some(rest) => message(Fields(rest)),
            None => login(Fields(data)).map(Self::Login),
        }
    }
}

fn login(mut rest: Fields<'_>) -> Option<Login> {
    let session = rest.string().filter(|it| SESSION.contains(&it.len()))?.to_vec();
    let is_request = rest.byte()? == USERAUTH_REQUEST;
    let user = text(rest.string()?)?;
    let is_connection = rest.string()? == b"ssh-connection";
    let is_bound = match rest.string()? {
        b"publickey" => false,
        b"publickey-hostbound-v00@openssh.com" => true,
        _ => return None,
    };
    let has_signature = rest.boolean()?;
    let _algorithm = rest.string()?;
    let key = rest.string()?.to_vec();
    let host_key = if is_bound { Some(rest.string()?.to_vec()) } else { None };
    let is_whole = is_request && is_connection && has_signature && rest.0.is_empty();
    is_whole.then_some(Login { session, user, key, host_key })
}

fn message(mut rest: Fields<'_>) -> Option<Signed> {
    let namespace = text(rest.string()?).filter(|text| !text.is_empty())?;
    let reserved = rest.string()?;
    let digest = match rest.string()? {
        b"sha256" => 32,
        b"sha512" => 64,
        _ => return None,
    };
    let is_sound = reserved.is_empty() && rest.string()?.len() == digest && rest.0.is_empty();
    is_sound.then_some(Signed::Message { namespace })
}

/// Names of users and namespaces are plain.
fn text(bytes: &[u8]) -> Option<String> {
    let is_plain = bytes.len() <= 256 && bytes.iter().all(u8::is_ascii_graphic);
    is_plain.then(|| String::from_utf8_lossy(bytes).into_owned())
}
