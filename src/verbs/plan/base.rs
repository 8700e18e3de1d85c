//! `plan --base REF`: where the change lies, whose settings count, and what of two plans is its doing.

use super::change::{Both, Change, decide_change};
use crate::error::{At, Failure, FailureKind};
use crate::report::Output;
use crate::report::preview::Against;
use crate::run::Known;
use crate::settings::{Registry, Settings};
use crate::verbs::flags::Common;
use crate::verbs::plan::PlanFlags;
use crate::verbs::setup;
use crate::verbs::setup::{Access, Opened, Outside, wrap_failure};
use crate::verbs::shown::Shown;
use git_commits::{Local, Points};
use std::path::{Path, PathBuf};

/// Opens with the settings of `reference`, and decides with the change and without it.
///
/// # Errors
/// There is no checkout, the reference is unknown, its settings are wrong, or something cannot be read.
pub fn show_against_base(
    common: &Common,
    args: &PlanFlags,
    reference: &str,
    outside: &Outside,
    output: &mut Output,
) -> Result<(Opened, Shown), Vec<Failure>> {
    let home = Home::find_home(common, reference, outside)?;
    let opened = Opened::open_with(home.settings.clone(), common, outside, Access::Read)?;
    let (local, points) = find_change(&home, &opened, reference, outside).map_err(wrap_failure)?;
    let root = opened.repository.root().and_then(|root| root.canonicalize().ok());
    let gitops = root.is_some_and(|root| root == local.root());
    let mut setup = opened.make_setup(Access::Read, args.allow_removals);
    // A dump of the cluster is evidence: no change brings its own.
    let stand_in = match &setup.observed {
        Some((name, path)) => read_observed(&local, &points, name, path).map_err(wrap_failure)?,
        None => None,
    };
    if let Some((name, file)) = &stand_in {
        setup.observed = Some((name.clone(), file.path().to_owned()));
    }
    let change = Change { local: &local, points: &points, gitops };
    let Both { here, without, weakened } =
        decide_change(&mut setup, &change, &mut Known::default(), &mut |text| output.show_progress(text))
            .map_err(wrap_failure)?;
    drop(setup);
    let mut base = Against {
        reference: reference.to_owned(),
        commit: points.tip.to_string(),
        weakened,
        notes: home.notes,
        ..Against::default()
    };
    base.weakened.extend(home.weakened);
    base.notes.extend(describe_distance(&local, &points, reference));
    let templates = |d: &'_ crate::run::Decided| {
        (d.gitops.application_template.clone(), d.gitops.serving_template.clone())
    };
    if templates(&here) != templates(&without) {
        base.notes.push("a template changes: every file that is rendered by it may".to_owned());
    }
    if gitops && local.is_dirty() {
        base.notes.push("what is not committed in the GitOps repository is not seen".to_owned());
    }
    Ok((opened, Shown::from_change(here, without, base)))
}

/// The settings that count, and what the change does to them.
struct Home {
    /// The checkout that holds the settings file, and what the reference is there.
    place: Option<(Local, Points)>,
    /// Why it has no such reference.
    unknown: Option<Failure>,
    settings: Settings,
    weakened: Vec<String>,
    notes: Vec<String>,
}

impl Home {
    fn find_home(common: &Common, reference: &str, outside: &Outside) -> Result<Self, Vec<Failure>> {
        let file = setup::find_settings_file(common, outside).map_err(wrap_failure)?;
        let folder = file.as_deref().and_then(Path::parent).filter(|f| !f.as_os_str().is_empty());
        let local = Local::open_around(folder.unwrap_or(&outside.working), &outside.environment);
        let (place, unknown) = match local.map(|local| (local.resolve_points(reference), local)) {
            Some((Ok(points), local)) => (Some((local, points)), None),
            Some((Err(failure), _)) => (None, Some(failure.into())),
            None => (None, None),
        };
        let mut home =
            Self { place, unknown, settings: Settings::default(), weakened: Vec::new(), notes: Vec::new() };
        let inside = match (&home.place, &file) {
            (Some((local, points)), Some(file)) => {
                local.resolve_inside(file).map(|path| (local, points, path, file))
            }
            _ => None,
        };
        let Some((local, points, path, file)) = inside else {
            home.settings = setup::read_settings(common, outside, Access::Read)?;
            return Ok(home);
        };
        let name = format!("{} of {reference}", file.display());
        let read = local
            .read_snapshot(&points.tip, "")
            .map_err(|e| wrap_failure(e.into()))?
            .read_file(&path)
            .map_err(|lost| {
                wrap_failure(
                    Failure::new(FailureKind::Repository, "unreadable", lost.why)
                        .with_place(At::from_file(name.clone())),
                )
            })?;
        let folder = file.parent().unwrap_or(Path::new(""));
        let user = outside.environment.find_home();
        let parse = |bytes: &[u8], name: &str| Settings::parse(bytes, name, folder, user.as_deref());
        let own = std::fs::read(file).ok();
        let settings = match &read {
            Some(bytes) => parse(bytes, &name)?,
            None => Settings::default(),
        };
        if own != read {
            let shown = file.display();
            home.notes.push(format!("{shown} is another than that of {reference}, which counts here"));
            match parse(own.as_deref().unwrap_or_default(), &shown.to_string()) {
                Ok(own) => home.weakened = describe_weaker(&settings, &own),
                Err(wrong) => home.notes.extend(wrong.iter().map(|w| format!("{shown} is wrong: {w}"))),
            }
        }
        home.settings = settings;
        Ok(home)
    }
}

/// The checkout that the change lies in: the one with the sources, whose folders the settings (which no change
/// can choose for itself) and the flags name.
fn find_change(
    home: &Home,
    opened: &Opened,
    reference: &str,
    outside: &Outside,
) -> Result<(Local, Points), Failure> {
    let folders = opened.list_source_paths();
    let own = opened.repository.root().into_iter().filter(|_| opened.needs_repository());
    for folder in folders.into_iter().chain(own) {
        if let Some(local) = Local::open_around(&find_nearest_folder(&folder), &outside.environment) {
            let points = local.resolve_points(reference)?;
            return Ok((local, points));
        }
    }
    if let Some((local, _)) = &home.place
        && let Some(local) = Local::open_around(local.root(), &outside.environment)
    {
        let points = local.resolve_points(reference)?;
        return Ok((local, points));
    }
    Err(home.unknown.clone().unwrap_or_else(|| {
        Failure::new(
            FailureKind::Usage,
            "no-checkout",
            "neither the sources nor the settings lie in a checkout",
        )
        .with_object(format!("--base {reference}"))
        .with_hint("run it in a checkout of the change; a bare repository or a URL has no files of a change")
    }))
}

/// The folder that is there: of a file its own, of one that the change removes the one above.
fn find_nearest_folder(path: &Path) -> PathBuf {
    path.ancestors()
        .find(|p| p.is_dir())
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
        .into()
}

fn read_observed(
    local: &Local,
    points: &Points,
    name: &str,
    path: &Path,
) -> Result<Option<(String, tempfile::NamedTempFile)>, Failure> {
    let Some(inside) = local.resolve_inside(path) else { return Ok(None) };
    let failed = |cause: String| {
        Failure::new(FailureKind::Repository, "unreadable", cause).with_place(At::from_file(name))
    };
    let bytes = local.read_snapshot(&points.tip, "")?.read_file(&inside).map_err(|lost| failed(lost.why))?;
    let Some(bytes) = bytes else { return Ok(None) };
    let io = |e: std::io::Error| failed(format!("making a temporary file: {e}"));
    let file = tempfile::NamedTempFile::new().map_err(io)?;
    std::fs::write(file.path(), bytes).map_err(io)?;
    Ok(Some((name.to_owned(), file)))
}

fn describe_distance(local: &Local, points: &Points, reference: &str) -> Vec<String> {
    match points.behind {
        Some(0) => Vec::new(),
        Some(n) => vec![format!(
            "{} lacks {n} commits of {reference}: what they change is not in this preview",
            local.root().file_name().unwrap_or_default().to_string_lossy()
        )],
        None => vec![format!(
            "no commit in common with {reference} is in this clone, so all that differs counts as the change; fetch more of the history"
        )],
    }
}

/// What settings make easier, compared with those of the reference; foreign text.
fn describe_weaker(base: &Settings, own: &Settings) -> Vec<String> {
    let mut out = Vec::new();
    let mut say = |text: String| out.push(format!("settings: {text}"));
    if base.argocd.require_observation && !own.argocd.require_observation {
        say("argocd.requireObservation is off".to_owned());
    }
    let raised = |base: Option<usize>, own: Option<usize>| match (base, own) {
        (Some(base), Some(own)) => own > base,
        (Some(_), None) => true,
        (None, _) => false,
    };
    if raised(base.limits.max_removals, own.limits.max_removals)
        || (base.limits.max_removals.is_none() && own.limits.max_removals.is_some_and(|n| n > 5))
    {
        say("limits.maxRemovals is raised".to_owned());
    }
    if raised(base.limits.max_promotions, own.limits.max_promotions) {
        say("limits.maxPromotions is raised".to_owned());
    }
    for kind in own.evidence.layer_media_types.iter().filter(|t| !base.evidence.layer_media_types.contains(t))
    {
        say(format!("evidence.layerMediaTypes admits {kind}"));
    }
    if own.evidence.rescan > base.evidence.rescan {
        say("evidence.rescan is longer".to_owned());
    }
    let none = Registry::default();
    for (host, registry) in &own.registries {
        let before = base.registries.get(host).unwrap_or(&none);
        if registry.plain_http && !before.plain_http {
            say(format!("{host} is read over plain HTTP"));
        }
        let place = |r: &Registry| (r.mirror.clone(), r.layout.clone(), r.ca_file.clone());
        if place(registry) != place(before) {
            say(format!("{host} is read from another place, or by another authority"));
        }
    }
    if own.sources != base.sources {
        say("other sources are read".to_owned());
    }
    out
}
