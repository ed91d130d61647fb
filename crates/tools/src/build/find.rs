//! Tools that are there already. Nothing is fetched and nothing is made.

use sandtable_sandbox::model::tool::ProvidedDep;

use super::error::Error;
use super::root::image_digest;
use super::{Workshop, key_on};
use crate::depot::Depot;
use crate::plan::Plan;

/// What `plan` makes and what that needs when it is used, nearest first; nothing if any of it is missing.
pub fn find(workshop: &Workshop, plan: &Plan) -> Result<Option<Vec<ProvidedDep>>, Error> {
    search(workshop, &workshop.root.seen()?.digest, plan)
}

/// The same for tools that were made on the image with that id.
pub fn find_on_image(workshop: &Workshop, id: &str, plan: &Plan) -> Result<Option<Vec<ProvidedDep>>, Error> {
    search(workshop, &image_digest(id), plan)
}

fn search(workshop: &Workshop, root: &str, plan: &Plan) -> Result<Option<Vec<ProvidedDep>>, Error> {
    let search = Search { workshop, depot: Depot::new(workshop.depot.clone()), root };
    let mut found = Vec::new();
    Ok(search.add(plan, &mut found)?.then_some(found))
}

struct Search<'a> {
    workshop: &'a Workshop,
    depot: Depot,
    /// What the root file system is known by.
    root: &'a str,
}

impl Search<'_> {
    /// Whether everything of `plan` was there.
    fn add(&self, plan: &Plan, found: &mut Vec<ProvidedDep>) -> Result<bool, Error> {
        let key = key_on(self.root, &self.workshop.asked(plan));
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
