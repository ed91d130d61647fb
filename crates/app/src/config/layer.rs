//! One layer of configuration: what a single source said, each value with its origin. Layers are put on
//! top of each other with [`Layer::or`]; the strongest word wins, and lists add up.

use sandtable_sandbox::model::setting::{Origin, Setting};

use super::key::{Key, Kind};
use super::value::{Raw, ValueError};

pub use super::table::Layer;

impl Layer {
    /// A layer of one setting.
    pub fn of(key: Key, raw: Raw, origin: &Origin) -> Result<Self, ValueError> {
        let mut layer = Self::default();
        layer.set(key, raw, origin)?;
        Ok(layer)
    }

    /// The value of a setting, for people.
    pub fn shown(&self, key: Key) -> String {
        let values: Vec<String> = self.values(key).into_iter().map(|Setting { value, .. }| value).collect();
        match key.kind() {
            _ if values.is_empty() => "nothing".to_owned(),
            Kind::Line => values.join(" "),
            _ => values.join(", "),
        }
    }
}
