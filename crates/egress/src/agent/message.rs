//! Messages between a client and an ssh-agent.

/// What a client may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentRequest {
    /// The list of keys.
    Identities,
    Sign {
        key: Vec<u8>,
        data: Vec<u8>,
        flags: u32,
    },
    /// Which host the connection leads to that the signatures will be for.
    Bind(Bind),
}

/// `session-bind@openssh.com`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    pub host_key: Vec<u8>,
    pub session: Vec<u8>,
    /// Of the session, by the host key. It has to be checked before anything is believed.
    pub signature: Vec<u8>,
    pub is_forwarding: bool,
}

/// A key that an ssh-agent holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentKey {
    pub blob: Vec<u8>,
    pub comment: Vec<u8>,
}

/// Why bytes are no message that may be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("the message is empty or longer than 256 KiB")]
    Length,
    #[error("the message is malformed")]
    Malformed,
    #[error("requests of type {0} are not allowed")]
    Type(u8),
    #[error("this extension is not allowed")]
    Extension,
}

/// As long as OpenSSH accepts.
const LONGEST: usize = 256 * 1024;
const IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN: u8 = 13;
const EXTENSION: u8 = 27;
const BIND: &[u8] = b"session-bind@openssh.com";
/// More keys than anyone has.
const MOST_KEYS: u32 = 1024;

/// The answer to what is refused, with its length.
pub const FAILURE: [u8; 5] = [0, 0, 0, 1, 5];
/// The answer to a bind that is accepted.
pub const SUCCESS: [u8; 5] = [0, 0, 0, 1, 6];

/// The message at the beginning of `bytes` and its length with the four bytes before it; `None` while it is not complete.
pub fn frame(bytes: &[u8]) -> Option<Result<(&[u8], usize), FrameError>> {
    let length = u32::from_be_bytes(*bytes.first_chunk()?);
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    if length == 0 || length > LONGEST {
        return Some(Err(FrameError::Length));
    }
    bytes.get(4..4 + length).map(|message| Ok((message, 4 + length)))
}

/// Reads what a client asks.
pub fn request(message: &[u8]) -> Result<AgentRequest, FrameError> {
    let (&kind, rest) = message.split_first().ok_or(FrameError::Length)?;
    let mut rest = Fields(rest);
    let read = match kind {
        IDENTITIES => Some(AgentRequest::Identities),
        SIGN => sign(&mut rest),
        EXTENSION if rest.string() == Some(BIND) => bind(&mut rest),
        EXTENSION => return Err(FrameError::Extension),
        kind => return Err(FrameError::Type(kind)),
    };
    read.filter(|_| rest.0.is_empty()).ok_or(FrameError::Malformed)
}

fn sign(rest: &mut Fields<'_>) -> Option<AgentRequest> {
    let (key, data) = (rest.string()?.to_vec(), rest.string()?.to_vec());
    Some(AgentRequest::Sign { key, data, flags: rest.number()? })
}

fn bind(rest: &mut Fields<'_>) -> Option<AgentRequest> {
    Some(AgentRequest::Bind(Bind {
        host_key: rest.string()?.to_vec(),
        session: rest.string()?.to_vec(),
        signature: rest.string()?.to_vec(),
        is_forwarding: rest.boolean()?,
    }))
}

/// Reads the list of keys that an ssh-agent answers with.
pub fn identities(message: &[u8]) -> Option<Vec<AgentKey>> {
    let (&IDENTITIES_ANSWER, rest) = message.split_first()? else { return None };
    let mut rest = Fields(rest);
    let count = rest.number().filter(|count| *count <= MOST_KEYS)?;
    let key = |_| Some(AgentKey { blob: rest.string()?.to_vec(), comment: rest.string()?.to_vec() });
    let keys = (0..count).map(key).collect::<Option<_>>()?;
    rest.0.is_empty().then_some(keys)
}

/// The list of these keys for a client, with its length.
pub fn identities_answer<'a>(keys: impl IntoIterator<Item = &'a AgentKey>) -> Vec<u8> {
    let (mut body, mut count) = (Vec::new(), 0_u32);
    for key in keys {
        count += 1;
        for field in [&key.blob, &key.comment] {
            body.extend(length(field.len()));
            body.extend(field);
        }
    }
    let mut message = length(1 + 4 + body.len()).to_vec();
    message.push(IDENTITIES_ANSWER);
    message.extend(count.to_be_bytes());
    message.extend(body);
    message
}

fn length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).expect("what was read in a message is shorter than one").to_be_bytes()
}

/// The fields of a message, from the left.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// Only the two values that have a meaning.
    pub(super) fn boolean(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(super) fn number(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(usize::try_from(length).ok()?)
    }
}
