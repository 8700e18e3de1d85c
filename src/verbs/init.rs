//! `init`: the first files of a GitOps repository. Never overwrites.

mod objects;

use crate::error::{At, Failure, FailureKind};
use crate::model::id::{CommitId, Namespace};
use crate::model::preparation::GitSource;
use crate::report::Output;
use crate::verbs::flags::Common;
use crate::verbs::setup::Outside;
use crate::verbs::values::OrderArg;
use clap::{Args, ValueEnum};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// Write the first files of a GitOps repository
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  expedite init                                        in a checkout of the GitOps repository
  expedite init --url https://git.example/shop/gitops.git --registry registry.shop.example:5000
  expedite init --registry registry.shop.example:5000 --order shop/web --trust cosign.pub --key job.key
                                                       an Order and a Kitchen, too: the whole of a first repository
  expedite init --ci gitlab                            .gitlab-ci.yml instead of workflows of GitHub Actions
  expedite init --ci none -q | kubectl apply -f -      only the Secret on stdout")]
pub struct Init {
    /// URL by which Argo CD reads this repository [default: that of the remote origin]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Registry that the Secret is for: HOST or HOST:PORT
    #[arg(long, value_name = "HOST", default_value = "registry.example.com")]
    pub registry: String,
    /// Write a first Order, NAMESPACE/NAME, too
    #[arg(long, value_name = "ORDER", value_parser = OrderArg::parse)]
    pub order: Option<OrderArg>,
    /// Write a Kitchen that trusts this public key for signatures and provenance, and that of --key for records; may be given again
    #[arg(long, value_name = "FILE.pub")]
    pub trust: Vec<PathBuf>,
    /// Argo CD's namespace
    #[arg(long, value_name = "NAMESPACE", default_value = "argocd", value_parser = Namespace::parse)]
    pub argocd_namespace: Namespace,
    /// Let Argo CD sync servings/, too (needs the Serving CRD in its cluster)
    #[arg(long)]
    pub sync_servings: bool,
    /// The CI workflow to write
    #[arg(long, value_enum, default_value_t = Ci::Github)]
    pub ci: Ci,
    /// Git URL that CI installs Expedite from, written into its files: pull requests from forks see no variables [default: the variable EXPEDITE_SOURCE]
    #[arg(long, value_name = "URL", requires = "rev")]
    pub source: Option<String>,
    /// The commit of --source
    #[arg(long, value_name = "COMMIT", requires = "source", value_parser = CommitId::parse)]
    pub rev: Option<CommitId>,
}

/// The CI workflow to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Ci {
    /// `.github/workflows/expedite.yml` and, for pull requests, `expedite-preview.yml`.
    Github,
    /// `.gitlab-ci.yml`.
    Gitlab,
    /// None.
    None,
}

/// Stands in `apps.yaml` until somebody says the repository's URL; no name server knows it (RFC 2606).
const NO_URL: &str = "https://git.invalid/set/the/url/of/this/repository.git";

/// Writes `apps.yaml`, `expedite.yaml` and what CI runs where they are not there yet, and shows the
/// Secret that Argo CD needs for the registry.
///
/// # Errors
/// The folder is no checkout, a value cannot stand in a file, or a file cannot be written.
pub fn run_init(common: &Common, args: &Init, outside: &Outside, output: &mut Output) -> Result<(), Failure> {
    let place = find_place(common.repo.as_deref().filter(|r| !r.is_empty()).unwrap_or("."), outside)?;
    let branch = match common.branch.as_deref().filter(|b| !b.is_empty()) {
        Some(branch) => branch.to_owned(),
        None => place.branch.clone().unwrap_or_else(|| "main".to_owned()),
    };
    if args.registry.contains('/') {
        let cause = format!("--registry {:?} is no host: wanted HOST or HOST:PORT", args.registry);
        return Err(Failure::new(FailureKind::Usage, "registry", cause)
            .with_hint("leave the scheme and the path out"));
    }
    let url = args.url.clone().or_else(|| place.origin.clone());
    let include = if args.sync_servings { "{applications/*,servings/*}" } else { "applications/*" };
    let values = [
        ("namespace", quote_scalar(args.argocd_namespace.as_str())),
        ("branch", quote_scalar(&branch)),
        ("url", quote_scalar(url.as_deref().unwrap_or(NO_URL))),
        ("include", quote_scalar(include)),
        ("registry", quote_scalar(&args.registry)),
        ("observation", format_observation(common)),
        ("sources", format_sources(common)),
        ("registry_url", quote_scalar(&format!("oci://{}", args.registry))),
    ];
    let objects = objects::build_first_files(common, args, outside)?;
    let mut files = vec![
        ("apps.yaml", include_str!("init/apps.yaml")),
        ("expedite.yaml", include_str!("init/expedite.yaml")),
    ];
    match args.ci {
        Ci::Github => files.extend([
            (".github/workflows/expedite.yml", include_str!("init/github.yml")),
            (".github/workflows/expedite-preview.yml", include_str!("init/github-preview.yml")),
        ]),
        Ci::Gitlab => files.push((".gitlab-ci.yml", include_str!("init/gitlab.yml"))),
        Ci::None => {}
    }
    for (path, template) in files {
        let template = fill_installed(template, args);
        let written = write_new(&place.folder, path, &fill_template(&template, &values))?;
        output.write_note(&if written {
            format!("wrote {path}")
        } else {
            format!("kept {path}: it is there already")
        });
        if path == "apps.yaml" && written && url.is_none() {
            output.report_warning(
                &Failure::new(FailureKind::Input, "no-url", "the repository has no remote called origin")
                    .with_place(At::from_file(path))
                    .with_field("spec.source.repoURL")
                    .with_hint("put the URL there by which Argo CD reads this repository (or remove the file and give --url)"),
            );
        }
    }
    for (path, text) in &objects {
        let written = write_new(&place.folder, path, text)?;
        output.write_note(&if written {
            format!("wrote {path}")
        } else {
            format!("kept {path}: it is there already")
        });
    }
    output.write_result(&fill_template(include_str!("init/secret.yaml"), &values));
    Ok(())
}

/// Whoever reads a cluster sees its Applications: what nobody has observed is held then.
fn format_observation(common: &Common) -> String {
    if common.needs_cluster() {
        "  requireObservation: true        # hold what nobody has observed".to_owned()
    } else {
        "#  requireObservation: false      # true: hold what nobody has observed".to_owned()
    }
}

/// The sources that the flags name, as settings.
fn format_sources(common: &Common) -> String {
    if !common.needs_cluster() {
        return "#sources:\n#- path: ./objects\n#- cluster: {context: prod, namespaces: [shop]}   # {}: the current context, all \
                namespaces; applications: false where another one runs Argo CD"
            .to_owned();
    }
    let mut text = "sources:".to_owned();
    for context in common.list_contexts() {
        match context {
            Some(context) => text += &format!("\n- cluster: {{context: {}}}", quote_scalar(context)),
            None => text += "\n- cluster: {}",
        }
    }
    text
}

/// The checkout that is written into.
struct CheckoutPlace {
    folder: PathBuf,
    branch: Option<String>,
    /// Without any user or password.
    origin: Option<String>,
}

fn find_place(path: &str, outside: &Outside) -> Result<CheckoutPlace, Failure> {
    let folder = PathBuf::from(path);
    if !folder.is_dir() {
        let cause = if path.contains("://") {
            "init writes into a folder on this machine"
        } else {
            "there is no such folder"
        };
        return Err(Failure::new_input("no-folder", cause)
            .with_object("--repo")
            .with_place(At::from_file(path)));
    }
    let Some(around) = git_commits::find_around(&folder, &outside.environment) else {
        return Ok(CheckoutPlace { folder, branch: None, origin: None });
    };
    let Some(root) = around.root else {
        let cause = "this is a bare repository, which has no files to write";
        return Err(Failure::new(FailureKind::Repository, "bare", cause)
            .with_place(At::from_file(path))
            .with_hint("run init in a checkout of it, commit and push"));
    };
    // A URL of a checkout may carry a token; the file that is written from it is committed.
    let origin = around.origin.map(|url| GitSource::strip_user(&url)).filter(|url| is_remote(url));
    Ok(CheckoutPlace { folder: root, branch: around.branch, origin })
}

/// Whether another machine can reach it: a scheme, or `user@host:path`.
fn is_remote(url: &str) -> bool {
    (url.contains("://") && !url.starts_with("file:"))
        || url.split_once(':').is_some_and(|(host, _)| host.contains('@') && !host.contains('/'))
}

/// A YAML scalar that reads as exactly this string: JSON's strings are YAML's double-quoted ones.
fn quote_scalar(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn fill_template(template: &str, values: &[(&str, String)]) -> String {
    values
        .iter()
        .fold(template.to_owned(), |text, (name, value)| text.replace(&format!("{{{{ {name} }}}}"), value))
}

/// What CI installs, written where a variable would say it.
fn fill_installed(template: &str, args: &Init) -> String {
    let (Some(source), Some(rev)) = (&args.source, &args.rev) else { return template.to_owned() };
    let registry = "  EXPEDITE_REGISTRY: {{ registry }}\n";
    let (source, quoted_rev) = (quote_scalar(source), quote_scalar(rev.as_str()));
    template
        .replace("      if: vars.EXPEDITE_REV != ''\n", "")
        .replace("-${{ vars.EXPEDITE_REV }}", &format!("-{rev}"))
        .replace("${{ vars.EXPEDITE_REV }}", &quoted_rev)
        .replace("${{ vars.EXPEDITE_SOURCE }}", &source)
        .replace(registry, &format!("{registry}  EXPEDITE_SOURCE: {source}\n  EXPEDITE_REV: {quoted_rev}\n"))
}

/// Whether it was written; `false` where something of that name is there.
fn write_new(folder: &Path, path: &str, text: &str) -> Result<bool, Failure> {
    let wrong = |error: std::io::Error| {
        Failure::new(FailureKind::Repository, "write", format!("writing it: {error}"))
            .with_place(At::from_file(path))
    };
    let full = folder.join(path);
    if let Some(parent) = full.parent() {
        fs::create_dir_all(parent).map_err(wrong)?;
    }
    match OpenOptions::new().write(true).create_new(true).open(&full) {
        Ok(mut file) => file.write_all(text.as_bytes()).map(|()| true).map_err(wrong),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(wrong(error)),
    }
}
