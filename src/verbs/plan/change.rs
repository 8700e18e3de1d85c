//! What a change causes: the plan with it, and the one without, on the same trust (`plan --base`).
//!
//! Objects, Servings and templates are read twice: where the change begins and here. The Kitchen is that of the
//! reference in both, so that no change vouches for itself; what the change would make easier to pass is told.

use crate::error::Failure;
use crate::load;
use crate::model::id::CommitId;
use crate::model::kitchen::Kitchen;
use crate::model::world::{Holds, Loaded, Problem, World};
use crate::policy::decide::weakened::find_weakenings;
use crate::run::{Decided, Known, Read, Setup, Source, SourcePlace, decide_on, read_world};
use git_commits::{Below, Local, Points, Snapshot};
use std::sync::Arc;

/// Where the change is.
pub struct Change<'a> {
    /// The checkout that holds it.
    pub local: &'a Local,
    /// Where it begins, where it ends, and whose trust counts.
    pub points: &'a Points,
    /// Whether that checkout is the GitOps repository, too: its own commits are read, not those that it follows.
    pub gitops: bool,
}

/// Both plans.
pub struct Both {
    /// With the change.
    pub here: Decided,
    /// Without it.
    pub without: Decided,
    /// What the change makes easier to pass; foreign text.
    pub weakened: Vec<String>,
}

/// Decides with the change and without it.
///
/// # Errors
/// A repository cannot be read.
pub fn decide_change(
    setup: &mut Setup<'_>,
    change: &Change<'_>,
    known: &mut Known,
    progress: &mut dyn FnMut(&str),
) -> Result<Both, Failure> {
    let Points { tip, fork, head, .. } = change.points;
    progress("reading the change");
    let followed = if change.gitops { None } else { Some(setup.repository.read_snapshot(setup.branch)?) };
    let snapshot = |commit| match &followed {
        Some(snapshot) => Ok(snapshot.copy_fresh()),
        None => change.local.read_snapshot(commit, setup.branch),
    };
    let (here, start, trusted) = (snapshot(head)?, snapshot(fork)?, snapshot(tip)?);
    // A cluster is read once: what moves there meanwhile is not the change's doing.
    for source in &mut setup.sources {
        if let SourcePlace::Cluster(cluster) = &source.place {
            source.place = SourcePlace::Snapshot(Arc::new(cluster.fetch_all(setup.runtime)));
        }
    }
    let on_disk = setup.sources.clone();
    let mut here = read_snapshot(setup, here, progress);
    setup.sources = move_sources(&on_disk, change, fork)?;
    let mut start = read_snapshot(setup, start, progress);
    let kitchen = if tip == fork {
        ReferenceKitchen::from_world(&start.world)
    } else {
        setup.sources = move_sources(&on_disk, change, tip)?;
        ReferenceKitchen::from_world(&read_world(setup, &trusted, progress).0)
    };
    let weakened = find_weakenings(&start.world, &here.world);
    kitchen.put_into(&mut here.world);
    kitchen.put_into(&mut start.world);
    setup.sources = move_sources(&on_disk, change, fork)?;
    let without = decide_on(setup, start, known, progress)?;
    setup.sources = on_disk;
    let here = decide_on(setup, here, known, progress)?;
    Ok(Both { here, without, weakened })
}

fn read_snapshot(setup: &Setup<'_>, snapshot: Snapshot, progress: &mut dyn FnMut(&str)) -> Read {
    let gitops = load::read_gitops(&snapshot, snapshot.head.clone());
    let (world, listed) = read_world(setup, &snapshot, progress);
    Read { snapshot, gitops, world, listed }
}

/// The sources as they are at a commit; one outside of the checkout is no part of the change.
fn move_sources(sources: &[Source], change: &Change<'_>, commit: &CommitId) -> Result<Vec<Source>, Failure> {
    let moved = |source: &Source| {
        let SourcePlace::Folder(name, path) = &source.place else { return Ok(source.clone()) };
        let Some(prefix) = change.local.resolve_inside(path) else { return Ok(source.clone()) };
        let snapshot = change.local.read_snapshot(commit, "")?;
        let below = Below { snapshot, prefix, name: name.clone() };
        Ok(Source { place: SourcePlace::Commit(Arc::new(below)), ..source.clone() })
    };
    sources.iter().map(moved).collect()
}

/// The Kitchen of the reference, or what is wrong with it.
struct ReferenceKitchen {
    kitchen: Option<Loaded<Kitchen>>,
    problems: Vec<Problem>,
}

impl ReferenceKitchen {
    fn from_world(world: &World) -> Self {
        let mut problems = Vec::new();
        // Without a Kitchen, whatever holds everything may have held it.
        if world.kitchen.is_none() {
            problems.extend(world.problems.iter().filter(|p| p.holds == Holds::Everything).cloned());
        }
        Self { kitchen: world.kitchen.clone(), problems }
    }

    fn put_into(&self, world: &mut World) {
        world.kitchen.clone_from(&self.kitchen);
        for problem in &self.problems {
            if !world
                .problems
                .iter()
                .any(|p| p.failure.format_sentence() == problem.failure.format_sentence())
            {
                world.problems.push(problem.clone());
            }
        }
    }
}
