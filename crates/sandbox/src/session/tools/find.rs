//! Tools that are there already. Nothing is fetched and nothing is made.

use super::error::Error;
use super::{Workshop, root};
use crate::model::tool::ProvidedDep;
use crate::tools::depot::Depot;
use crate::tools::plan::Plan;

/// What `plan` makes and what that needs when it is used, nearest first; nothing if any of it is missing.
pub fn find(workshop: &Workshop, plan: &Plan) -> Result<Option<Vec<ProvidedDep>>, Error> {
    let search = Search { workshop, depot: Depot::new(workshop.depot.clone()), root: &workshop.root.seen()? };
    let mut found = Vec::new();
    Ok(search.add(plan, &mut found)?.then_some(found))
}

struct Search<'a> {
    workshop: &'a Workshop,
    depot: Depot,
    root: &'a root::Seen,
}

impl Search<'_> {
    /// Whether everything of `plan` was there.
    fn add(&self, plan: &Plan, found: &mut Vec<ProvidedDep>) -> Result<bool, Error> {
        let key = self.root.key(&self.workshop.asked(plan));
        let Some(tool) = self.depot.find(plan, key)? else { return Ok(false) };
        if !found.contains(&tool) {
            found.push(tool);
        }
        let needed = plan.dependencies.iter().filter(|plan_of| plan.provides.needs.contains(&plan_of.name));
        for dependency in needed {
            if !self.add(dependency, found)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
