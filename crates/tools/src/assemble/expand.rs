//! Words in braces: `{version}`, `{install_dir}`, and `{dep:NAME}` for the place of a dependency.
//!
//! Everything else in braces is left as it is, since makefiles and patterns have braces of their own; but a word that begins
//! like one of ours and is none is an error rather than a surprise.

use serde_json::Value;

use super::super::plan::{Plan, Step};

/// Why a text could not be expanded.
#[derive(Debug, thiserror::Error)]
pub enum ExpandError {
    #[error("`{{dep:{0}}}` names no dependency")]
    Dependency(String),
    #[error("what the expansion gives is refused")]
    Refused(#[source] serde_json::Error),
}

/// Expands the texts of a plan, but not those of its dependencies, which are expanded already.
pub(super) fn plan(plan: &mut Plan) -> Result<(), ExpandError> {
    let words = Words {
        version: plan.version.to_string(),
        place: plan.place().to_string(),
        dependencies: plan
            .dependencies
            .iter()
            .map(|it| (it.name.to_string(), it.place().to_string()))
            .collect(),
    };
    let mut steps = Vec::new();
    for step in &plan.steps {
        let mut value = serde_json::to_value(step).map_err(ExpandError::Refused)?;
        words.value(&mut value)?;
        steps.push(serde_json::from_value::<Step>(value).map_err(ExpandError::Refused)?);
    }
    plan.steps = steps;
    for value in plan.provides.env.values_mut() {
        *value = words.text(value)?;
    }
    for verify in &mut plan.verify {
        for text in verify.command.iter_mut().chain(&mut verify.patterns) {
            *text = words.text(text)?;
        }
    }
    Ok(())
}

struct Words {
    version: String,
    place: String,
    dependencies: Vec<(String, String)>,
}

impl Words {
    fn value(&self, value: &mut Value) -> Result<(), ExpandError> {
        match value {
            Value::String(text) => *text = self.text(text)?,
            Value::Array(items) => items.iter_mut().try_for_each(|item| self.value(item))?,
            Value::Object(fields) => fields.values_mut().try_for_each(|field| self.value(field))?,
            _ => {}
        }
        Ok(())
    }

    fn text(&self, text: &str) -> Result<String, ExpandError> {
        let mut result = text.replace("{version}", &self.version).replace("{install_dir}", &self.place);
        for (name, place) in &self.dependencies {
            result = result.replace(&format!("{{dep:{name}}}"), place);
        }
        match result.split_once("{dep:").and_then(|(_, rest)| rest.split_once('}')) {
            Some((name, _)) => Err(ExpandError::Dependency(name.to_owned())),
            None => Ok(result),
        }
    }
}
