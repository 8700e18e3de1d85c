//! `prepare`: a Preparation of an artifact that a pipeline pushed and signed.

mod artifact;

use crate::error::{At, Failure, FailureKind};
use crate::model::id::{Digest, OrderRef, PreparationName};
use crate::model::naming::build_preparation_path;
use crate::model::order::Mode;
use crate::model::preparation::{Preparation, Prepared};
use crate::model::world::{Holds, Loaded};
use crate::policy::resolve::{self, Case};
use crate::render::preparation;
use crate::report::{Output, escape, names};
use crate::run::{self, Read};
use crate::verbs::flags::Common;
use crate::verbs::formats::ObjectFormat;
use crate::verbs::setup;
use crate::verbs::setup::{Access, Opened, Outside, wrap_failure};
use crate::verbs::values::{ArtifactArg, OrderArg};
use crate::verbs::verify::artifact::Named;
use artifact::{Made, PrepareWish};
use clap::Args;
use kube_yaml::parse;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// Make a Preparation of an artifact that a CI pipeline pushed and signed
#[derive(Debug, Args)]
#[command(after_help = "\
Its evidence is read first, as a promotion reads it. The same artifact gives the same bytes whenever it is prepared;
a file that is there is never overwritten.

Examples:
  expedite prepare registry.shop.example:5000/shop/web:1.5.0 --order shop/web           prints it
  expedite prepare registry.shop.example:5000/shop/web@sha256:5d41… --order shop/web --into objects/preparations
  expedite prepare … --order shop/web --base-digest sha256:9f86…                        what two stages have in common
  expedite prepare … --order shop/web --repo https://git.shop.example/shop/gitops.git   Order and Kitchen from there
  expedite prepare … --order shop/web -n shop -o name

Exit status: 0 made, or there already; 5 its evidence is missing or invalid, or another file is in its place; 1 something
could not be read.")]
pub struct Prepare {
    /// HOST/REPOSITORY@sha256:… or HOST/REPOSITORY:TAG
    #[arg(value_name = "REF", value_parser = ArtifactArg::parse)]
    pub reference: ArtifactArg,
    /// For this Order, NAMESPACE/NAME: its provenance has to name it
    #[arg(long, value_name = "ORDER", value_parser = OrderArg::parse)]
    pub order: OrderArg,
    /// Its name [default: the Order's and the digest's first 12 digits]
    #[arg(long, value_name = "NAME", value_parser = PreparationName::parse)]
    pub name: Option<PreparationName>,
    /// What it was rendered from; signed provenance has to list it [default: the annotation org.opencontainers.image.base.digest]
    #[arg(long, value_name = "DIGEST", value_parser = Digest::parse)]
    pub base_digest: Option<Digest>,
    /// Write FOLDER/NAMESPACE/NAME.yaml, and print its path; nothing where it is among the objects already
    #[arg(long, value_name = "FOLDER")]
    pub into: Option<PathBuf>,
    /// Verify nothing: signature, base and time are your word; run reads the evidence all the same
    #[arg(long)]
    pub skip_evidence: bool,
    /// How it is printed [default: yaml]
    #[arg(short, long, value_enum)]
    pub output: Option<ObjectFormat>,
}

/// Reads, verifies, and prints or writes the object.
///
/// # Errors
/// There is no such Order, something speaks against the artifact, or another file is in the place of this one.
pub fn run_prepare(
    common: &Common,
    args: &Prepare,
    outside: &Outside,
    output: &mut Output,
) -> Result<(), Vec<Failure>> {
    let opened = Opened::new(common, outside, Access::ReadIfThere)?;
    let setup = opened.make_setup(Access::ReadIfThere, None);
    let read = run::read_inputs(&setup, &mut |text| output.show_progress(text)).map_err(wrap_failure)?;
    let order = setup::find_order(&args.order, common, read.world.orders.keys()).map_err(wrap_failure)?;
    let cases = resolve::resolve_cases(&read.world, &read.gitops, &setup.argocd_namespace);
    let Some(case) = find_case(&cases, &read, &order) else {
        return Err(explain_absence(&read, &order, opened.needs_repository()));
    };
    let named = match (&args.reference.digest, &args.reference.tag) {
        (Some(digest), _) => Named::Digest(*digest),
        (None, tag) => Named::Tag(tag.clone().unwrap_or_default()),
    };
    let wish = PrepareWish {
        repository: &args.reference.repository,
        named,
        name: args.name.as_ref(),
        base: args.base_digest,
        skip_evidence: args.skip_evidence,
    };
    let made =
        artifact::make_preparation(&setup, &read, case, &wish, &mut |text| output.show_progress(text))?;
    for note in opened.repository.take_notes() {
        output.report_warning(&note.into());
    }
    tell_made(&made, args, output);
    match &args.into {
        Some(folder) => {
            let kept =
                write_prepared(&made.prepared, args, folder, case, &read, output).map_err(wrap_failure)?;
            let format = args.output.map(|format| format_object(&made.prepared, &kept.name, format, common));
            output.write_result(&format.unwrap_or_else(|| format!("{}\n", escape::escape_line(&kept.place))));
        }
        None => {
            let format = args.output.unwrap_or(ObjectFormat::Yaml);
            output.write_result(&format_object(&made.prepared, &made.prepared.name, format, common));
        }
    }
    Ok(())
}

/// The Order's case, where the Order itself was read.
fn find_case<'a>(cases: &'a [Case], read: &Read, order: &OrderRef) -> Option<&'a Case> {
    read.world.orders.get(order)?;
    cases.iter().find(|case| case.order == *order)
}

/// Why there is no such Order: what was not read may be it.
fn explain_absence(read: &Read, order: &OrderRef, as_committed: bool) -> Vec<Failure> {
    let about = read.world.problems.iter().filter(|problem| match &problem.holds {
        Holds::Nothing => false,
        Holds::Orders(orders) => orders.contains(order),
        Holds::Everything => true,
    });
    let mut all: Vec<Failure> = about.map(|problem| problem.failure.clone()).collect();
    if all.is_empty() {
        let failure = setup::refuse_order(&order.to_string());
        all.push(match as_committed {
            true => failure.with_hint(
                "objects are read as they are committed: commit it, or name its folder with --from",
            ),
            false => failure,
        });
    }
    all
}

fn tell_made(made: &Made, args: &Prepare, output: &mut Output) {
    let prepared = &made.prepared;
    if let (None, Some(tag)) = (&args.reference.digest, &args.reference.tag) {
        let artifact = &prepared.artifact;
        output.write_note(&format!("{}:{tag} is {} now", artifact.repository, artifact.digest));
    }
    for line in &made.proven {
        output.write_detail(line);
    }
    if args.skip_evidence {
        let cause = "nothing was verified: its signature, its base and its time are your word";
        let warning =
            Failure::new_input("skip-evidence", cause).with_object(format!("artifact {}", prepared.artifact));
        output.report_warning(
            &warning.with_hint("a run reads the evidence itself, and holds what is not proven"),
        );
    }
    for warning in &made.warnings {
        output.report_warning(warning);
    }
}

/// A file's text. Where a commit message holds what a CI runner takes for a command, the object stands as JSON (which
/// YAML is): there nothing has to be changed on its way through a log, so that what is printed is what is written.
fn format_text(prepared: &Prepared) -> String {
    let yaml = preparation::format_preparation(prepared);
    if escape::escape_workflow_log(&yaml) == yaml { yaml } else { format_json(prepared) }
}

fn format_json(prepared: &Prepared) -> String {
    let object = preparation::build_object(prepared);
    escape::escape_json(&format!("{object:#}\n")).into_owned()
}

/// `name`: as which it is kept.
fn format_object(
    prepared: &Prepared,
    name: &PreparationName,
    format: ObjectFormat,
    common: &Common,
) -> String {
    match format {
        ObjectFormat::Yaml => format_text(prepared),
        ObjectFormat::Json => format_json(prepared),
        ObjectFormat::Name => names::format_line(
            names::PREPARATION,
            &prepared.order.namespace,
            name.as_str(),
            &common.namespace,
        ),
    }
}

/// Where a Preparation is, and what it is called there.
struct KeptPreparation {
    place: String,
    name: PreparationName,
}

impl KeptPreparation {
    fn from_loaded(name: &PreparationName, loaded: &Loaded<Preparation>) -> Self {
        Self { place: loaded.origin.file.to_string(), name: name.clone() }
    }
}

/// Into the folder, unless it is there or among the objects already; never over another file.
fn write_prepared(
    prepared: &Prepared,
    args: &Prepare,
    folder: &Path,
    case: &Case,
    read: &Read,
    output: &mut Output,
) -> Result<KeptPreparation, Failure> {
    let (order, name) = (&prepared.order, &prepared.name);
    let path = folder.join(build_preparation_path(order, name));
    let kept = KeptPreparation { place: path.display().to_string(), name: name.clone() };
    match check_file(&path, prepared)? {
        There::Same => output.write_note(&format!("kept {}: it is there already, and the same", kept.place)),
        There::Otherwise => {
            let cause = "it is there already, and does not say what its artifact says of itself now: it is left alone";
            let warning = Failure::new_input("exists", cause).with_place(At::from_file(&kept.place));
            output.report_warning(&warning.with_hint("without --into it is printed, to compare"));
        }
        There::Nothing => {
            if let Some(known) = find_known(prepared, args, case, read)? {
                let artifact = &prepared.artifact;
                output.write_note(&format!(
                    "kept {}: {artifact} is Preparation {} there",
                    known.place, known.name
                ));
                return Ok(known);
            }
            write_new(&path, &format_text(prepared))?;
            output.write_note(&format!("wrote {}", kept.place));
            output.write_note(&match case.mode {
                Mode::Automatic => format!("commit it; a run promotes it when the gates of {order} pass"),
                Mode::Manual => format!("commit it; expedite promote {order} {name} asks for it"),
            });
        }
    }
    Ok(kept)
}

/// What is in the place of the file.
enum There {
    Nothing,
    /// Byte for byte.
    Same,
    /// A Preparation of this artifact, in other words.
    Otherwise,
}

fn check_file(path: &Path, prepared: &Prepared) -> Result<There, Failure> {
    let at = || At::from_file(path.display().to_string());
    let found = match fs::read(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(There::Nothing),
        Err(error) => return Err(Failure::new_input("read", format!("reading it: {error}")).with_place(at())),
    };
    if found == format_text(prepared).as_bytes() {
        return Ok(There::Same);
    }
    let documents = parse::decode_text(&found).map(parse::parse_documents).unwrap_or_default();
    let says = |keys: &[&str]| match &documents[..] {
        [only] => only.node.as_ref()?.find_value(keys)?.as_text().map(str::to_owned),
        [..] => None,
    };
    let digest = prepared.artifact.digest.to_string();
    if says(&["kind"]).as_deref() == Some("Preparation")
        && says(&["spec", "artifact", "digest"]) == Some(digest)
    {
        return Ok(There::Otherwise);
    }
    let cause = "another file is in its place, and nothing is overwritten";
    Err(Failure::new(FailureKind::SaysNo, "exists", cause)
        .with_place(at())
        .with_hint("--name gives this one another name"))
}

/// A Preparation of this name, or one of this artifact, among the objects that were read.
fn find_known(
    prepared: &Prepared,
    args: &Prepare,
    case: &Case,
    read: &Read,
) -> Result<Option<KeptPreparation>, Failure> {
    let key = (prepared.order.namespace.clone(), prepared.name.clone());
    let same = |p: &Loaded<Preparation>| p.object.spec.artifact.digest == prepared.artifact.digest;
    if let Some(other) = read.world.preparations.get(&key) {
        if same(other) && other.object.spec.order_name == prepared.order.name {
            return Ok(Some(KeptPreparation::from_loaded(&prepared.name, other)));
        }
        let artifact = &other.object.spec.artifact;
        let cause = format!("it is there already, for {}: a Preparation never changes", artifact.oci_ref);
        return Err(Failure::new(FailureKind::SaysNo, "exists", cause)
            .with_object(format!("Preparation {}/{}", key.0, key.1))
            .with_place(other.origin.make_place())
            .with_hint("--name gives this one another name"));
    }
    let twin = case.preparations.iter().find(|(_, loaded)| same(loaded)).filter(|_| args.name.is_none());
    Ok(twin.map(|(name, loaded)| KeptPreparation::from_loaded(name, loaded)))
}

fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |what: &str, error: std::io::Error| {
        Failure::new_input("write", format!("{what}: {error}"))
            .with_place(At::from_file(path.display().to_string()))
    };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|error| failed("making its folder", error))?;
    }
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(|error| failed("it cannot be written", error))?;
    file.write_all(text.as_bytes()).map_err(|error| {
        // Half a file would be in the way of the next try, which says so if this fails.
        let _ = fs::remove_file(path);
        failed("writing it", error)
    })
}
