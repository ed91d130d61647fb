//! The recipes that come with the program. They are what implicit dependencies may be.
//!
//! Each is a TOML file like any other recipe, pinned by name, version and hash. Where a registry is, its client knows; no file
//! here does.

use std::sync::LazyLock;

use super::recipe::Recipe;

macro_rules! recipes {
    ($($name:literal),* $(,)?) => {
        /// Name and text of each.
        const TEXTS: &[(&str, &str)] = &[$(($name, include_str!(concat!($name, ".toml")))),*];
    };
}

recipes! {
    "cmake", "go", "just", "make", "meson", "ninja", "node", "patchelf", "pkg-config", "rust", "uv", "zig",
}

static RECIPES: LazyLock<Vec<Recipe>> = LazyLock::new(|| {
    let parse = |(name, text): &(&str, &str)| {
        Recipe::parse(text).unwrap_or_else(|error| panic!("{name}.toml, which a test reads: {error}"))
    };
    TEXTS.iter().map(parse).collect()
});

/// All of them, in the order of their names.
pub fn recipes() -> &'static [Recipe] {
    &RECIPES
}

/// The texts of all of them, for whoever wants to read one.
pub fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    TEXTS.iter().copied()
}
