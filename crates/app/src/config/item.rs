//! What lists of settings consist of, and the lists that are unlike others.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use sandtable_sandbox::model::container::Port;
use sandtable_sandbox::model::hide::HidePattern;
use sandtable_sandbox::model::setting::Setting;
use sandtable_sandbox::model::spec::{EnvRequest, MountRequest};
use sandtable_sandbox::model::tool::ToolRequest;

use super::form::{Anchor, Form, Item, Many, Words, Written, each, list};
use super::key::Kind;
use super::value::ValueError;
use super::{environment, mount};

/// A path, or the name of something that has paths.
impl Item for PathBuf {
    fn read(written: OsString) -> Result<Self, ValueError> {
        Ok(written.into())
    }

    fn shown(&self) -> String {
        self.display().to_string()
    }

    fn anchor(&mut self, anchor: Anchor<'_>) -> Result<(), ValueError> {
        if !is_name(self) {
            *self = anchor(self)?;
        }
        Ok(())
    }
}

impl Item for ToolRequest {
    fn read(written: OsString) -> Result<Self, ValueError> {
        Ok(text(written)?.parse()?)
    }

    fn same(&self, other: &Self) -> bool {
        self.name == other.name
    }

    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Item for HidePattern {
    fn read(written: OsString) -> Result<Self, ValueError> {
        Ok(text(written)?.parse()?)
    }

    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Item for Port {
    fn read(written: OsString) -> Result<Self, ValueError> {
        Ok(text(written)?.trim().parse()?)
    }

    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Item for String {
    fn read(written: OsString) -> Result<Self, ValueError> {
        text(written)
    }

    fn shown(&self) -> String {
        self.clone()
    }
}

impl Item for MountRequest {
    fn read(written: OsString) -> Result<Self, ValueError> {
        Ok(mount::parse(&written)?)
    }

    fn shown(&self) -> String {
        let target = self.target.as_ref().unwrap_or(&self.source);
        format!("{}:{}:{}", self.source.display(), target.display(), self.access)
    }

    fn anchor(&mut self, anchor: Anchor<'_>) -> Result<(), ValueError> {
        self.source = anchor(&self.source)?;
        Ok(())
    }
}

/// A variable of the command. Its value is never shown.
impl Item for EnvRequest {
    fn read(written: OsString) -> Result<Self, ValueError> {
        Ok(environment::given(&text(written)?)?)
    }

    fn same(&self, other: &Self) -> bool {
        self.name == other.name
    }

    fn shown(&self) -> String {
        self.name.clone()
    }
}

/// Mounts: where two layers name the same place inside, the stronger one's counts.
pub(super) const fn mounts() -> Form<Many<MountRequest>> {
    Form { written: Written { kind: Kind::List, words: Words::Any }, or: added_up, ..list() }
}

/// Files, none of which can be a name.
pub(super) const fn files() -> Form<Many<PathBuf>> {
    Form {
        anchor: |paths, anchor| {
            paths.iter_mut().try_for_each(|path| {
                path.value = anchor(&path.value)?;
                Ok(())
            })
        },
        ..list()
    }
}

/// Variables with their values; of several values for one name the last counts.
pub(super) const fn variables() -> Form<Many<EnvRequest>> {
    Form { read: |raw, origin| Ok(last_of_each(each(raw, origin, EnvRequest::read)?)), ..list() }
}

/// Variables that are passed on where the caller has them.
pub(super) const fn passed() -> Form<Many<EnvRequest>> {
    Form {
        read: |raw, origin| each(raw, origin, |written| Ok(environment::passed(&text(written)?)?)),
        ..list()
    }
}

/// Whether something that is a path or a name is a name.
fn is_name(written: &Path) -> bool {
    !written.as_os_str().as_encoded_bytes().contains(&b'/')
}

fn text(written: OsString) -> Result<String, ValueError> {
    written.into_string().map_err(|_| ValueError::NotText)
}

fn last_of_each(requests: Many<EnvRequest>) -> Many<EnvRequest> {
    let mut kept: Many<EnvRequest> = Vec::new();
    for request in requests {
        kept.retain(|other| other.value.name != request.value.name);
        kept.push(request);
    }
    kept
}

fn added_up(mut strong: Many<MountRequest>, weak: Many<MountRequest>) -> Many<MountRequest> {
    let place = |mount: &Setting<MountRequest>| {
        mount.value.target.clone().unwrap_or_else(|| mount.value.source.clone())
    };
    let taken: Vec<PathBuf> = strong.iter().map(place).collect();
    strong.extend(weak.into_iter().filter(|mount| !taken.contains(&place(mount))));
    strong
}
