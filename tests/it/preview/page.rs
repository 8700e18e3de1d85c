//! The page itself, rendered with a GitHub-flavoured renderer.

use super::{AT, BASKET, Place, config_maps, prepare, prose, rendered, tags};
use crate::support::harness;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

/// All that a page of ours may hold.
const OURS: &[&str] = &[
    "h2", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code", "details", "summary", "ul",
    "li", "pre", "br",
];

const EVIL: &str = "</details></table>\n\n# all good\n\n@everyone #12 GH-12 [x](https://evil.example) https://evil.example www.evil.example mail@evil.example <img src=x onerror=alert(1)> <!-- --> ``` ~~~ | | $x$ {{x}} \u{202e}";

#[test]
fn a_plan_is_a_page() {
    let place = Place::with_shop();
    place.expedite(&["promote", "shop/basket", "basket-914a05e13bf2"]).ok();
    place.expedite(&["run", "--only", "shop/basket", "--at", AT]).ok();
    place.expedite(&["promote", "shop/basket", BASKET]).ok();
    let scope = ["--only", "shop/basket", "--only", "shop/mailer", "--at", AT];
    let page = place.expedite(&[&["plan", "-o", "markdown"][..], &scope].concat());
    let text = page.ok();
    let path = harness::package().join("tests/it/preview/expected.md");
    harness::same(&path, text).unwrap_or_else(|e| panic!("{e}"));
    let html = rendered(text);
    assert_eq!(html.matches("<details>").count(), html.matches("</details>").count());
    assert!(html.contains("<pre><code class=\"language-diff\">"), "{html}");
}

#[test]
fn foreign_text_has_no_life_of_its_own() {
    let place = Place::with_shop();
    let quoted = serde_json::to_string(EVIL).unwrap();
    let object = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {quoted}\n  namespace: {quoted}\n  annotations: {{{quoted}: {quoted}}}\ndata:\n  {quoted}: |\n    ````` fence\n    ```\n    </details>\n    @everyone\n"
    );
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2}\ndata: {other: aHVudGVyMg==}\n";
    let files =
        [("a.yaml", object.as_str()), ("s.yaml", secret), ("b.yaml", "password: [hunter2\n</details>")];
    prepare(&place, "shop/basket", "basket-evil", EVIL, &files);
    place.edit("objects/environments.yaml", "  onDelete: Orphan", &format!("  promotion: {{freezes: [{{from: 2026-01-01T00:00:00Z, to: 2026-12-01T00:00:00Z, reason: {quoted}}}]}}\n  onDelete: Orphan"));
    place.expedite(&["promote", "shop/basket", "basket-evil"]).ok();
    place.write("objects/broken.yaml", format!("kind: {quoted}\n{quoted}: [\n"));
    let said = place.expedite(&["plan", "-o", "markdown", "--at", AT]);
    let page = &said.stdout;
    assert!(page.contains("basket-evil") && page.contains("all good"), "{}", said.transcript("plan"));
    let html = rendered(page);
    for tag in tags(&html) {
        let name = tag.trim_matches(['<', '>', '/']).split([' ', '/']).next().unwrap().to_owned();
        let attributes = tag.contains('=') && !tag.contains("class=\"language-diff\"");
        assert!(OURS.contains(&name.as_str()) && !attributes, "{tag} came to life:\n{page}");
    }
    assert_eq!(html.matches("<h2").count(), 1, "one title, ours");
    assert_eq!(html.matches("</details>").count(), html.matches("<details>").count());
    let prose = prose(&html);
    for alive in ["@everyone", "#12", "https://", "www.evil", "mail@evil", "\u{202e}"] {
        assert!(!prose.contains(alive), "{alive} is alive:\n{page}");
    }
    for hidden in ["hunter2", "aHVudGVyMg"] {
        assert!(!page.contains(hidden), "a Secret's value is told:\n{page}");
    }
    assert!(page.contains("its file does not parse, so its text is not shown"), "{page}");
    let diff = place.expedite(&["plan", "-o", "diff", "--at", AT]);
    assert!(!diff.stdout.contains("hunter2") && !diff.stdout.contains('\u{202e}'), "{}", diff.stdout);
}

#[test]
fn a_change_of_three_hundred_resources_fits() {
    let place = Place::with_shop();
    let old = config_maps(300, "old ");
    prepare(&place, "shop/basket", "basket-big", "big", &[("all.yaml", &old)]);
    let new = format!(
        "{old}---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: zzz}}\nspec: {{}}\n"
    )
    .replace("old", "new");
    prepare(&place, "shop/basket", "basket-bigger", "bigger", &[("all.yaml", &new)]);
    let diff = place.expedite(&["diff", "shop/basket", "basket-big", "basket-bigger"]);
    assert!(diff.ok().ends_with("1 added, 300 changed, 0 removed; 0 unchanged\n"), "{}", diff.stdout);
    place.expedite(&["promote", "shop/basket", "basket-bigger"]).ok();
    let said = place.expedite(&["plan", "-o", "markdown", "--at", AT]);
    let page = said.ok();
    assert!(page.chars().count() <= 65_536, "{}", page.chars().count());
    assert!(page.len() > 50_000, "what fits is shown: {}", page.len());
    assert!(page.contains("301 added, 0 changed, 0 removed; 0 unchanged"), "the counts survive");
    assert!(page.contains("**PersistentVolumeClaim zzz** added"), "what is not to be missed is not left out");
    assert!(page.contains(
        "resources are left out here for length; <code>expedite diff shop/basket</code> shows all."
    ));
    let html = rendered(page);
    assert_eq!(html.matches("<details>").count(), html.matches("</details>").count());
    assert_eq!(html.matches("<pre>").count(), html.matches("</pre>").count());
    assert!(tags(&html).iter().all(|tag| !tag.starts_with("<a")), "nothing is a link");
}

#[test]
fn an_artifact_that_cannot_be_read_is_unknown_and_not_equal() {
    let place = Place::with_shop();
    let digest = prepare(&place, "shop/basket", "basket-lost", "lost", &[("a.yaml", "kind: A\n")]);
    std::fs::remove_file(layout::blob(&place, &digest)).unwrap();
    place.expedite(&["promote", "shop/basket", "basket-lost"]).ok();
    let page = place.expedite(&["plan", "--only", "shop/basket", "-o", "markdown", "--at", AT]);
    assert!(
        page.stdout.contains("**Inside:** unknown: registry.shop.example"),
        "{}",
        page.transcript("plan")
    );
}

mod layout {
    use super::Place;
    use std::path::PathBuf;

    pub fn blob(place: &Place, digest: &str) -> PathBuf {
        crate::support::layout::repository(&place.path("registry"), "shop/basket").blob(digest)
    }
}

#[test]
fn a_diff_is_for_a_terminal_and_a_pager() {
    let place = Place::with_shop();
    place.expedite(&["promote", "shop/basket", BASKET]).ok();
    let plain = place.expedite(&["plan", "-o", "diff", "--at", AT]);
    assert!(!plain.ok().contains('\u{1b}'), "no colour into a pipe");
    assert!(plain.stdout.contains("shop/basket: promotes"), "{}", plain.stdout);
    assert!(plain.stdout.contains("+++ b/applications/shop/kokumi-shop-basket-"), "{}", plain.stdout);
    let coloured = place.expedite(&["plan", "-o", "diff", "--at", AT, "--color", "always"]);
    assert!(coloured.ok().contains("\u{1b}[32m+"), "{}", coloured.stdout);
    for line in coloured.stdout.lines().filter(|l| l.contains('\u{1b}')) {
        assert!(line.ends_with("\u{1b}[0m"), "a pager begins anywhere: {line:?}");
    }
    for arguments in [&["plan", "-o", "diff", "--at", AT][..], &["diff", "shop/basket"]] {
        let mut command = place.binary(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // As `| head -1` does: one line, then the pipe is closed.
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut String::new()).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !stderr.contains("panicked"), "{}\n{stderr}", output.status);
        assert!(!stderr.contains("roken pipe"), "{stderr}");
    }
}

#[test]
fn the_summary_of_a_step_is_the_same_page() {
    let mut place = Place::with_shop();
    place.set("GITHUB_ACTIONS", "true");
    let summary = place.path("summary.md");
    place.set("GITHUB_STEP_SUMMARY", summary.to_str().unwrap());
    let page = place.expedite(&["plan", "-o", "markdown", "--at", AT]).ok().to_owned();
    let written = place.read("summary.md");
    assert!(written.starts_with("<!-- expedite:plan -->"), "{written}");
    assert_eq!(written.matches("**Inside:**").count(), page.matches("**Inside:**").count());
    assert!(page.contains("**Inside:**"), "{page}");
    std::fs::remove_file(&summary).unwrap();
    place.expedite(&["run", "--at", AT]).ok();
    let written = place.read("summary.md");
    assert!(written.contains(" promoted, ") && written.contains("**Inside:**"), "{written}");
    assert!(!written.contains("Fingerprint"), "nothing is left to expect of what is done");
}
