//! What one layer says to container engines.

use sandtable_sandbox::model::container::{Build, ContainerRequest, FlagGuard, Port};
use sandtable_sandbox::model::image::{ImageRef, Pull};
use sandtable_sandbox::model::setting::{Origin, Setting};

use super::key::Key;
use super::value::{Raw, ValueError};

/// The part of a layer that container engines read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerLayer {
    pub image: Option<Setting<ImageRef>>,
    pub pull: Option<Setting<Pull>>,
    pub flags: Option<Vec<Setting<String>>>,
    pub flag_guard: Option<Setting<FlagGuard>>,
    pub ports: Option<Vec<Setting<Port>>>,
    pub build: Option<Setting<Build>>,
    pub proxy: Option<Setting<Vec<String>>>,
    pub debug: Option<Setting<Port>>,
    pub support: Option<Setting<String>>,
}

impl ContainerLayer {
    /// Reads one value into its place.
    pub(super) fn set(&mut self, key: Key, raw: Raw, origin: &Origin) -> Result<(), ValueError> {
        let here = || origin.clone();
        match key {
            Key::Image => self.image = Some(Setting::new(raw.word()?, here())),
            Key::Pull => self.pull = Some(Setting::new(raw.word()?, here())),
            Key::Build => {
                let build = if raw.switch()? { Build::Project } else { Build::No };
                self.build = Some(Setting::new(build, here()));
            }
            Key::ProxyCommand => self.proxy = Some(Setting::new(command(raw)?, here())),
            Key::EngineFlags => self.flags = Some(all(raw, origin, Ok)?),
            Key::AllowFlags => {
                let guard = if raw.switch()? { FlagGuard::Allow } else { FlagGuard::Refuse };
                self.flag_guard = Some(Setting::new(guard, here()));
            }
            Key::Publish => self.ports = Some(all(raw, origin, |word| Ok(word.trim().parse()?))?),
            Key::SupportUrl => {
                let text = raw.text()?.into_string().map_err(|_| ValueError::NotText)?;
                if !text.starts_with("https://") || text.chars().any(char::is_whitespace) {
                    return Err(ValueError::Address(text));
                }
                self.support = Some(Setting::new(text, here()));
            }
            other => unreachable!("`{}` is no setting of containers", other.word()),
        }
        Ok(())
    }

    /// This layer on top of `weaker`.
    pub(super) fn or(self, weaker: Self) -> Self {
        Self {
            image: self.image.or(weaker.image),
            pull: self.pull.or(weaker.pull),
            flags: self.flags.or(weaker.flags),
            flag_guard: self.flag_guard.or(weaker.flag_guard),
            ports: self.ports.or(weaker.ports),
            build: self.build.or(weaker.build),
            proxy: self.proxy.or(weaker.proxy),
            debug: self.debug.or(weaker.debug),
            support: self.support.or(weaker.support),
        }
    }

    /// The value of a setting, for people.
    pub(super) fn shown(&self, key: Key) -> String {
        let text = match key {
            Key::Image => self.image.as_ref().map(|image| image.value.to_string()),
            Key::Pull => self.pull.as_ref().map(|pull| pull.value.to_string()),
            Key::EngineFlags => listed(self.flags.as_deref()),
            Key::AllowFlags => {
                self.flag_guard.as_ref().map(|guard| (guard.value == FlagGuard::Allow).to_string())
            }
            Key::Build => self.build.as_ref().map(|build| (build.value == Build::Project).to_string()),
            Key::ProxyCommand => self.proxy.as_ref().map(|proxy| proxy.value.join(" ")),
            Key::Publish => listed(self.ports.as_deref()),
            _ => self.support.as_ref().map(|support| support.value.clone()),
        };
        text.unwrap_or_else(|| "nothing".to_owned())
    }

    /// What the library is asked for; an absent word leaves its default.
    pub(super) fn request(self) -> ContainerRequest {
        let default = ContainerRequest::default();
        ContainerRequest {
            pull: self.pull.unwrap_or(default.pull),
            flags: self.flags.unwrap_or_default(),
            flag_guard: self.flag_guard.unwrap_or(default.flag_guard),
            ports: self.ports.unwrap_or_default(),
            build: self.build.unwrap_or(default.build),
            proxy: self.proxy,
            debug: self.debug,
            support: self.support.unwrap_or(default.support),
        }
    }
}

/// The words of a command, which has at least one.
fn command(raw: Raw) -> Result<Vec<String>, ValueError> {
    let text = |word: std::ffi::OsString| word.into_string().map_err(|_| ValueError::NotText);
    let words = raw.list()?.into_iter().map(text).collect::<Result<Vec<String>, _>>()?;
    if words.first().is_none_or(String::is_empty) { Err(ValueError::NoCommand) } else { Ok(words) }
}

fn listed<T: ToString>(settings: Option<&[Setting<T>]>) -> Option<String> {
    let texts: Vec<String> = settings?.iter().map(|setting| setting.value.to_string()).collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

fn all<T>(
    raw: Raw,
    origin: &Origin,
    read: impl Fn(String) -> Result<T, ValueError>,
) -> Result<Vec<Setting<T>>, ValueError> {
    let one = |item: std::ffi::OsString| {
        let word = item.into_string().map_err(|_| ValueError::NotText)?;
        Ok(Setting::new(read(word)?, origin.clone()))
    };
    raw.list()?.into_iter().map(one).collect()
}
