//! Paths in files that we write. They may be any bytes: hexadecimal.

use sandtable_store::hex;

fn unhex<E: serde::de::Error>(text: &str) -> Result<Vec<u8>, E> {
    hex::decode(text).ok_or_else(|| E::custom("not hexadecimal"))
}

pub(crate) mod hex_path {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::hex::encode(path.as_os_str().as_bytes()))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        let text = String::deserialize(from)?;
        Ok(PathBuf::from(OsString::from_vec(super::unhex(&text)?)))
    }
}

pub(crate) mod hex_paths {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    use std::path::PathBuf;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(|path| super::hex::encode(path.as_os_str().as_bytes())))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        texts.iter().map(|text| Ok(PathBuf::from(OsString::from_vec(super::unhex(text)?)))).collect()
    }
}

pub(crate) mod hex_rel {
    use sandtable_store::RelPath;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(path: &RelPath, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::hex::encode(path.as_bytes()))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<RelPath, D::Error> {
        let bytes = super::unhex(&String::deserialize(from)?)?;
        if bytes.is_empty() {
            return Ok(RelPath::root());
        }
        RelPath::new(bytes).map_err(serde::de::Error::custom)
    }
}
