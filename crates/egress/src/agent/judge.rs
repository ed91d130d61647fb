//! Whether a signature is given. The keys of hosts are compared as they are; who holds a key of a host is for the caller to
//! know, from the user's `known_hosts`.

use super::message::{AgentKey, Bind};
use super::signed::{Login, Signed};

/// What the user allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentPolicy {
    /// Keys that the sandbox sees, and that sign for it.
    pub keys: Vec<Vec<u8>>,
    /// Hosts at which it may log in.
    pub hosts: Vec<AllowedHost>,
    /// Purposes for which it may sign messages: `git`.
    pub namespaces: Vec<String>,
}

/// A host by its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHost {
    pub name: String,
    /// Any user, if there is none.
    pub user: Option<String>,
    pub keys: Vec<Vec<u8>>,
}

/// What a signature was given for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    Login { host: String, user: String },
    Message { namespace: String },
}

/// Why a signature is refused. The codes in the texts are for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignDenial {
    #[error("the key is not one that the sandbox may use")]
    Key,
    #[error("the data is neither a login nor a signed message")]
    Data,
    #[error("the signature is asked for with another key than the data names")]
    OtherKey,
    #[error("signatures for the namespace `{0}` are not allowed")]
    Namespace(String),
    #[error("the client did not say which host it is connected to")]
    Unbound,
    #[error("the client is connected to several hosts, or to one through another")]
    Forwarded,
    #[error("the login is for another connection than the one to the host")]
    OtherSession,
    #[error("the login is for another host than the one that is connected")]
    OtherHost,
    #[error("no allowed host has this key, or not for the user `{0}`")]
    Host(String),
}

/// One connection of a client: what it has said about the host.
#[derive(Debug, Default)]
pub struct AgentSession {
    bound: Option<Bind>,
    /// Something that cannot be undone: no login is signed any more.
    is_spoilt: bool,
}

impl AgentSession {
    /// Notes which host a client is connected to. `verify` says whether the signature of the host is sound; whether the
    /// client is told that it was accepted is the result.
    pub fn bind(&mut self, bind: Bind, verify: impl Fn(&Bind) -> bool) -> bool {
        let is_sound = !bind.is_forwarding && self.bound.is_none() && !self.is_spoilt && verify(&bind);
        if is_sound {
            self.bound = Some(bind);
        } else {
            self.is_spoilt = true;
        }
        is_sound
    }

    /// Whether a key signs this data.
    pub fn sign(&self, policy: &AgentPolicy, key: &[u8], data: &[u8]) -> Result<Purpose, SignDenial> {
        if !policy.keys.iter().any(|own| own == key) {
            return Err(SignDenial::Key);
        }
        match Signed::read(data).ok_or(SignDenial::Data)? {
            Signed::Message { namespace } if policy.namespaces.contains(&namespace) => {
                Ok(Purpose::Message { namespace })
            }
            Signed::Message { namespace } => Err(SignDenial::Namespace(namespace)),
            Signed::Login(login) if login.key != key => Err(SignDenial::OtherKey),
            Signed::Login(login) => self.login(policy, login),
        }
    }

    fn login(&self, policy: &AgentPolicy, login: Login) -> Result<Purpose, SignDenial> {
        if self.is_spoilt {
            return Err(SignDenial::Forwarded);
        }
        let bound = self.bound.as_ref().ok_or(SignDenial::Unbound)?;
        if bound.session != login.session {
            return Err(SignDenial::OtherSession);
        }
        if login.host_key.is_some_and(|key| key != bound.host_key) {
            return Err(SignDenial::OtherHost);
        }
        let is_allowed = |host: &&AllowedHost| {
            host.keys.contains(&bound.host_key) && host.user.as_ref().is_none_or(|user| *user == login.user)
        };
        match policy.hosts.iter().find(is_allowed) {
            Some(host) => Ok(Purpose::Login { host: host.name.clone(), user: login.user }),
            None => Err(SignDenial::Host(login.user)),
        }
    }
}

impl AgentPolicy {
    /// The keys that the sandbox sees, out of those that there are.
    pub fn visible<'k>(&self, keys: &'k [AgentKey]) -> impl Iterator<Item = &'k AgentKey> {
        keys.iter().filter(|key| self.keys.contains(&key.blob))
    }
}

#[cfg(test)]
mod tests;
