//! What a root file system says about itself.

use super::FAMILIES;
use crate::plan::LinuxFamily;

/// The word in `VARIANT_ID` by which a root file system says that it only carries a family's package manager.
const EMULATED: &str = "emulated";

/// An `os-release`, as far as it matters here. It may come from anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Release {
    /// The family, if it says so and we know it.
    pub family: Option<LinuxFamily>,
    /// What it calls itself; nothing where it does not.
    pub name: String,
    /// Whether it says that it is an emulation.
    pub emulated: bool,
}

impl Release {
    pub fn read(text: &str) -> Self {
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            line.unwrap_or_default().trim().trim_matches(['"', '\'']).to_owned()
        };
        let (id, like) = (value("ID"), value("ID_LIKE"));
        let family = std::iter::once(id.as_str()).chain(like.split(' ')).find_map(|word| {
            let of = |family: &&super::Family| family.ids.iter().any(|id| id == word);
            FAMILIES.family.iter().find(of).map(|family| family.name)
        });
        let name = ["PRETTY_NAME", "NAME", "ID"].map(value).into_iter().find(|name| !name.is_empty());
        Self { family, name: name.unwrap_or_default(), emulated: value("VARIANT_ID") == EMULATED }
    }
}
