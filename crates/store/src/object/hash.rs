//! Naming an object: the hash over its kind, its length and its bytes.

use sha1_checked::Digest as _;

use super::ObjectKind;
use crate::id::{HashKind, ObjectId};

/// Somebody made content whose SHA-1 equals that of other content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the content was made to collide with another under SHA-1, and is refused")]
pub struct Collision;

/// The hash of an object that arrives in pieces.
#[derive(Debug)]
pub struct Hasher(State);

#[derive(Debug)]
enum State {
    Sha1(Box<sha1_checked::Sha1>),
    Sha256(sha2::Sha256),
}

impl Hasher {
    /// For an object of `size` bytes, of which none has been seen yet.
    pub fn new(hash: HashKind, kind: ObjectKind, size: u64) -> Self {
        let mut hasher = Self::bare(hash);
        hasher.announce(kind, size);
        hasher
    }

    /// For bytes that are no object, such as the whole of a pack.
    pub fn bare(hash: HashKind) -> Self {
        Self(match hash {
            HashKind::Sha1 => State::Sha1(Box::new(sha1_checked::Sha1::new())),
            HashKind::Sha256 => State::Sha256(sha2::Digest::new()),
        })
    }

    /// For a checksum, which guards against accidents alone: it need not look for collisions and is quicker.
    pub fn checksum(hash: HashKind) -> Self {
        match hash {
            HashKind::Sha1 => {
                let plain = sha1_checked::Sha1::builder().detect_collision(false).build();
                Self(State::Sha1(Box::new(plain)))
            }
            HashKind::Sha256 => Self::bare(hash),
        }
    }

    /// What git puts before the bytes of an object.
    fn announce(&mut self, kind: ObjectKind, size: u64) {
        self.update(format!("{kind} {size}\0").as_bytes());
    }

    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Sha1(state) => state.update(bytes),
            State::Sha256(state) => sha2::Digest::update(state, bytes),
        }
    }

    pub fn finish(self) -> Result<ObjectId, Collision> {
        match self.0 {
            State::Sha1(state) => {
                let result = state.try_finalize();
                if result.has_collision() {
                    return Err(Collision);
                }
                Ok(ObjectId::from_bytes(result.hash()).expect("a SHA-1 has 20 bytes"))
            }
            State::Sha256(state) => {
                Ok(ObjectId::from_bytes(&sha2::Digest::finalize(state)).expect("a SHA-256 has 32 bytes"))
            }
        }
    }
}

/// The same id for content that was looked over before: whether it is what it was, without asking whether somebody made
/// it to collide. Several times as quick, where the processor knows SHA-1.
pub(crate) fn hash_again(hash: HashKind, kind: ObjectKind, data: &[u8]) -> Result<ObjectId, Collision> {
    finish(Hasher::checksum(hash), kind, data)
}

/// The id of an object.
pub fn hash(hash: HashKind, kind: ObjectKind, data: &[u8]) -> Result<ObjectId, Collision> {
    finish(Hasher::bare(hash), kind, data)
}

fn finish(mut hasher: Hasher, kind: ObjectKind, data: &[u8]) -> Result<ObjectId, Collision> {
    hasher.announce(kind, data.len() as u64);
    hasher.update(data);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_git() {
        let id = |kind, data: &[u8]| hash(kind, ObjectKind::Blob, data).unwrap().to_string();
        assert_eq!(id(HashKind::Sha1, b""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(
            id(HashKind::Sha256, b""),
            "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"
        );
        let tree = hash(HashKind::Sha1, ObjectKind::Tree, b"").unwrap();
        assert_eq!(tree.to_string(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
    }

    #[test]
    fn hashed_again_it_has_the_same_name() {
        let data: Vec<u8> = (0..=255).cycle().take(5000).collect();
        for kind in [HashKind::Sha1, HashKind::Sha256] {
            for length in [0, 1, 50, 55, 56, 63, 64, 4096, 5000] {
                let both = [hash, hash_again].map(|hash| hash(kind, ObjectKind::Blob, &data[..length]));
                assert_eq!(both[0], both[1], "{kind:?} {length}");
            }
        }
    }
}
