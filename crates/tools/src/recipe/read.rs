//! Reading TOML with every complaint at its place.
//!
//! The table is parsed with positions first. What is the same in all steps is then taken off each, and the rest is read as
//! what its `action` says.

use sandtable_sandbox::model::tool::{ToolName, ToolRequest, ToolVersion};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, ValueDeserializer};

use super::action::{Action, COMPOSITES, Composite, PRIMITIVES};
use super::error::{Place, RecipeError};
use super::when::When;
use super::{FORMAT, Recipe, RecipeDownload, RecipeProvides, RecipeStep, RecipeVerify};
use crate::plan::download::{Download, FileName, PackageName, Registry, Sha256};
use crate::plan::step::Step;

/// Everything but the steps.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    format: Spanned<u32>,
    name: ToolName,
    version: ToolVersion,
    description: String,
    /// For people who read the recipe.
    #[serde(default, rename = "homepage")]
    _homepage: Option<String>,
    #[serde(default, rename = "reason")]
    _reason: Option<String>,
    dependencies: Option<Vec<ToolRequest>>,
    #[serde(default)]
    extra_dependencies: Vec<ToolRequest>,
    #[serde(default)]
    download: Vec<DownloadTable>,
    verify: Option<RecipeVerify>,
    #[serde(default)]
    provides: RecipeProvides,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DownloadTable {
    source: Registry,
    name: PackageName,
    version: String,
    file: FileName,
    url: Option<String>,
    sha256: Sha256,
    size: Option<u64>,
    #[serde(default)]
    when: When,
}

pub(super) fn recipe(text: &str) -> Result<Recipe, RecipeError> {
    let complain = |error: toml::de::Error| RecipeError::at(text, error.span(), error.message());
    let mut table = DeTable::parse(text).map_err(complain)?;
    let steps = table.get_mut().remove("steps");
    let head = Head::deserialize(Deserializer::from(table)).map_err(complain)?;
    if *head.format.get_ref() != FORMAT {
        let message = format!("format {} is not known here, only {FORMAT}", head.format.get_ref());
        return Err(RecipeError::at(text, Some(head.format.span()), message));
    }
    let steps = match steps.map(|steps| (steps.span(), steps.into_inner())) {
        None => Vec::new(),
        Some((_, DeValue::Array(items))) => {
            items.into_iter().map(|item| step(text, item)).collect::<Result<_, _>>()?
        }
        Some((span, _)) => return Err(RecipeError::at(text, Some(span), "`steps` is a list of tables")),
    };
    Ok(Recipe {
        name: head.name,
        version: head.version,
        description: head.description,
        dependencies: head.dependencies,
        extra_dependencies: head.extra_dependencies,
        downloads: head.download.into_iter().map(DownloadTable::split).collect(),
        steps,
        verify: head.verify,
        provides: head.provides,
    })
}

impl DownloadTable {
    fn split(self) -> RecipeDownload {
        let Self { source, name, version, file, url, sha256, size, when } = self;
        RecipeDownload { download: Download { source, name, version, file, url, sha256, size }, when }
    }
}

fn step(text: &str, item: Spanned<DeValue<'_>>) -> Result<RecipeStep, RecipeError> {
    let span = item.span();
    let DeValue::Table(mut table) = item.into_inner() else {
        return Err(RecipeError::at(text, Some(span), "a step is a table"));
    };
    let when = take(text, &mut table, "when")?.unwrap_or_default();
    let dependencies = take(text, &mut table, "dependencies")?;
    let extra_dependencies = take(text, &mut table, "extra_dependencies")?.unwrap_or_default();
    let Some(word) = table.get("action") else {
        return Err(RecipeError::at(text, Some(span), "a step needs an `action`"));
    };
    let (word_span, word) = (word.span(), word.get_ref().as_str().unwrap_or("").to_owned());
    let copy = table.clone();
    let whole = Spanned::new(span.clone(), DeValue::Table(table));
    let complain = |error: toml::de::Error| {
        let place = blame(&copy, error.message()).unwrap_or_else(|| span.clone());
        RecipeError::at(text, Some(place), format!("{word}: {}", error.message()))
    };
    let action = if COMPOSITES.contains(&word.as_str()) {
        Composite::deserialize(ValueDeserializer::from(whole)).map(Action::Composite).map_err(complain)?
    } else if PRIMITIVES.contains(&word.as_str()) {
        let step = Step::deserialize(ValueDeserializer::from(whole)).map_err(complain)?;
        Action::Primitive(Box::new(step))
    } else {
        let known = [PRIMITIVES, COMPOSITES].concat().join("`, `");
        let message = format!("unknown action `{word}`; one of `{known}`");
        return Err(RecipeError::at(text, Some(word_span), message));
    };
    Ok(RecipeStep { action, when, dependencies, extra_dependencies, place: Place::of(text, span.start) })
}

/// Takes a key off a table and reads its value.
fn take<T: for<'a> Deserialize<'a>>(
    text: &str,
    table: &mut DeTable<'_>,
    key: &str,
) -> Result<Option<T>, RecipeError> {
    let Some(value) = table.remove(key) else { return Ok(None) };
    let span = value.span();
    let complain = |error: toml::de::Error| {
        RecipeError::at(text, error.span().or(Some(span)), format!("`{key}`: {}", error.message()))
    };
    T::deserialize(ValueDeserializer::from(value)).map(Some).map_err(complain)
}

/// Where the first thing is that a message quotes: a key, or a text somewhere below.
fn blame(table: &DeTable<'_>, message: &str) -> Option<std::ops::Range<usize>> {
    let quoted = message.split('`').nth(1)?;
    table.iter().find_map(|(key, value)| {
        if key.get_ref().as_ref() == quoted { Some(key.span()) } else { blame_value(value, quoted) }
    })
}

fn blame_value(value: &Spanned<DeValue<'_>>, quoted: &str) -> Option<std::ops::Range<usize>> {
    match value.get_ref() {
        DeValue::String(text) if text.as_ref() == quoted => Some(value.span()),
        DeValue::Array(items) => items.iter().find_map(|item| blame_value(item, quoted)),
        DeValue::Table(table) => blame(table, &format!("`{quoted}`")),
        _ => None,
    }
}
