//! What becomes of the table of settings.

/// Defines [`Key`](super::key::Key), [`Layer`](super::layer::Layer) and what they know of each setting. A row is
///
/// ```text
/// /// Help, first paragraph for `-h`
/// Key: place.field as Type { names, place in help and default; how values are read, joined, shown and narrowed }
/// ```
///
/// where `place` says where a finished value goes: into the `spec`, its `limits` or its `container`, into the `output` of the
/// command, or nowhere else than into the `layer`, whose field has the same name.
macro_rules! settings {
    ($(
        $(#[doc = $doc:literal])+
        $key:ident:
            $(spec.$spec:ident)? $(limits.$limit:ident)? $(container.$container:ident)?
            $(output.$output:ident)? $(layer.$own:ident)?
            as $type:ty { $row:expr; $form:expr }
    )+) => {
        /// A setting.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Key {
            $($(#[doc = $doc])+ $key,)+
        }

        /// What one source said, or several that were put on top of each other.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Layer {
            $($(#[doc = $doc])+
            pub $($spec)? $($limit)? $($container)? $($output)? $($own)?: $type,)+
        }

        /// How the values of each setting are treated.
        struct Forms {
            $($($spec)? $($limit)? $($container)? $($output)? $($own)?: Form<$type>,)+
        }

        static FORMS: Forms = Forms {
            $($($spec)? $($limit)? $($container)? $($output)? $($own)?: $form,)+
        };

        impl Key {
            pub const ALL: &'static [Self] = &[$(Self::$key,)+];

            pub fn row(self) -> &'static Row {
                match self {
                    $(Self::$key => {
                        static ROW: Row = $row;
                        &ROW
                    })+
                }
            }

            /// The setting's own variable.
            pub fn variable(self) -> &'static str {
                match self {
                    $(Self::$key => {
                        const ROW: Row = $row;
                        const NAME: &[u8] =
                            &variable::<{ OWN_PREFIX.len() + ROW.word.len() }>(OWN_PREFIX, ROW.word);
                        const { text(NAME) }
                    })+
                }
            }

            /// How it is written, whatever it means.
            pub fn form(self) -> &'static Written {
                match self {
                    $(Self::$key =>
                        &FORMS.$($spec)? $($limit)? $($container)? $($output)? $($own)?.written,)+
                }
            }

            /// What a project's file may do with it, in words.
            pub fn rule(self) -> String {
                match self {
                    $(Self::$key =>
                        (FORMS.$($spec)? $($limit)? $($container)? $($output)? $($own)?.narrow.rule)(),)+
                }
            }

            pub(super) fn documentation(self) -> &'static [&'static str] {
                match self {
                    $(Self::$key => &[$($doc),+],)+
                }
            }
        }

        impl Layer {
            /// Reads one value into its place.
            pub fn set(&mut self, key: Key, raw: Raw, origin: &Origin) -> Result<(), ValueError> {
                match key {
                    $(Key::$key => self.$($spec)? $($limit)? $($container)? $($output)? $($own)? =
                        (FORMS.$($spec)? $($limit)? $($container)? $($output)? $($own)?.read)(raw, origin)?,)+
                }
                Ok(())
            }

            /// This layer on top of a weaker one.
            #[must_use]
            pub fn or(self, weaker: Self) -> Self {
                Self {
                    $($($spec)? $($limit)? $($container)? $($output)? $($own)?:
                        (FORMS.$($spec)? $($limit)? $($container)? $($output)? $($own)?.or)(
                            self.$($spec)? $($limit)? $($container)? $($output)? $($own)?,
                            weaker.$($spec)? $($limit)? $($container)? $($output)? $($own)?,
                        ),)+
                }
            }

            /// The values of a setting, for people, and who set each; never the value of a variable.
            pub fn values(&self, key: Key) -> Vec<Setting<String>> {
                match key {
                    $(Key::$key => (FORMS.$($spec)? $($limit)? $($container)? $($output)? $($own)?.values)(
                        &self.$($spec)? $($limit)? $($container)? $($output)? $($own)?,
                    ),)+
                }
            }

            /// Makes the paths of a setting absolute.
            pub(super) fn anchor(&mut self, key: Key, anchor: Anchor<'_>) -> Result<(), ValueError> {
                match key {
                    $(Key::$key => (FORMS.$($spec)? $($limit)? $($container)? $($output)? $($own)?.anchor)(
                        &mut self.$($spec)? $($limit)? $($container)? $($output)? $($own)?,
                        anchor,
                    ),)+
                }
            }

            /// Whether a setting of this layer allows more than that of `without`.
            pub(super) fn widens(&self, key: Key, without: &Self) -> bool {
                match key {
                    $(Key::$key => (FORMS.$($spec)? $($limit)? $($container)? $($output)? $($own)?.narrow.widened)(
                        &without.$($spec)? $($limit)? $($container)? $($output)? $($own)?,
                        &self.$($spec)? $($limit)? $($container)? $($output)? $($own)?,
                    ),)+
                }
            }

            /// The request that these settings make.
            pub(super) fn spec(self) -> Spec {
                Spec {
                    $($($spec: self.$spec.settled(),)?)+
                    limits: Limits { $($($limit: self.$limit.settled(),)?)+ },
                    container: ContainerRequest { $($($container: self.$container.settled(),)?)+ debug: None },
                }
            }

            /// What a command shows, and where.
            pub(super) fn output(self) -> Output {
                Output { $($($output: self.$output.settled(),)?)+ }
            }
        }
    };
}

pub(super) use settings;
