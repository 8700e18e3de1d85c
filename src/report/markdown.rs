//! A plan as Markdown, for a pull request or a step's summary: first the counts, what moves where, what is
//! held and why; then one fold per Order with its gates, and what changes inside its artifact. It keeps to a
//! budget: the summary always survives, whole resources are added while they fit, and for what is left out
//! the page names the command that shows it.

mod fold;
mod summary;

use crate::report::escape::format_markdown_code as code;
use crate::report::view::{View, format_count};
use fold::Fold;
use std::fmt::Write as _;

/// Begins every page, so that Expedite finds its own comment again.
pub const MARKER: &str = "<!-- expedite:plan -->";

/// The plan in at most `budget` bytes (if that is enough for the counts).
#[must_use]
pub fn format_plan(view: &View<'_>, budget: usize) -> String {
    let footer = format_footer(view, budget);
    let room = budget.saturating_sub(footer.len() + RESERVE);
    let mut out = summary::format_summary(view, room);
    let folds: Vec<Fold> = summary::sort_rows(view).map(|row| Fold::new(view, row)).collect();
    // What is not shown whole is shown without what is inside; an Order has more to say than a list of files.
    let mut base = out.len();
    let mut kept = Vec::new();
    let mut left_out = 0;
    for fold in folds {
        match base + fold.len() <= room {
            true => {
                base += fold.len();
                kept.push(fold);
            }
            false => left_out += 1,
        }
    }
    let shares =
        split_room(&kept.iter().map(Fold::measure_resources).collect::<Vec<_>>(), room.saturating_sub(base));
    for (fold, share) in kept.iter().zip(shares) {
        out.push_str(&fold.format_fold(share));
    }
    if left_out > 0 {
        let what = format_count(left_out, "Order is", "Orders are");
        let _ = write!(out, "\n{what} left out here for length; `expedite plan` shows all.\n");
    }
    for drift in view.drift {
        let line =
            format!("\n- {}: {}\n", code(&drift.path), crate::report::escape::escape_markdown(&drift.what));
        if out.len() + line.len() <= room {
            out.push_str(&line);
        }
    }
    out.push_str(&footer);
    out
}

/// Bytes kept free for what is said about what was left out.
const RESERVE: usize = 400;

/// How much each may use of `room`: those that need little get it, the others share the rest evenly.
fn split_room(needs: &[usize], room: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|i| needs[*i]);
    let mut shares = vec![0; needs.len()];
    let mut left = room;
    for (done, i) in order.into_iter().enumerate() {
        shares[i] = needs[i].min(left / (needs.len() - done));
        left -= shares[i];
    }
    shares
}

/// The fingerprint: for people the short one, for machines the whole one, unless that is a large part of the
/// page.
fn format_footer(view: &View<'_>, budget: usize) -> String {
    let Some(fingerprint) = &view.preview.fingerprint else { return String::new() };
    let (whole, short) = (fingerprint.to_string(), fingerprint.drop_orders().to_string());
    let machine = if whole.len() <= budget / 8 { &whole } else { &short };
    format!(
        "\nFingerprint {}: `expedite plan --expect` fails once this plan is out of date.\n\
         {FINGERPRINT}{machine} -->\n",
        code(&short)
    )
}

/// Precedes the fingerprint for machines.
const FINGERPRINT: &str = "<!-- expedite:fingerprint ";

/// The fingerprint on a page: the last one, because an earlier match may be part of a diff.
///
/// ```
/// use expedite::report::markdown::find_fingerprint;
/// assert_eq!(find_fingerprint("…\n<!-- expedite:fingerprint e1.x -->\n"), Some("e1.x"));
/// assert_eq!(find_fingerprint("no plan"), None);
/// ```
#[must_use]
pub fn find_fingerprint(page: &str) -> Option<&str> {
    let (_, rest) = page.rsplit_once(FINGERPRINT)?;
    rest.split_once(" -->").map(|(text, _)| text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::compare::{ArtifactSide, compare_artifacts};
    use crate::error::Failure;
    use crate::model::order::Mode;
    use crate::model::plan::{Decision, Forecast};
    use crate::model::resource::Resource;
    use crate::model::verdict::{For, GateName, Verdict};
    use crate::report::fingerprint::Fingerprint;
    use crate::report::preview::{Against, More};
    use crate::report::sample::{Sample, check_same, make_now, make_row, make_sample, parse_order};
    use serde_json::{Value, json};

    fn inside(old: &[Value], new: &[Value]) -> More {
        let of = |all: &[Value]| {
            all.iter().map(|o| Resource::from_object(o.clone(), "x.yaml")).collect::<Vec<_>>()
        };
        let (old, new) = (of(old), of(new));
        let side = |resources| ArtifactSide { resources, namespace: Some("shop") };
        More { inside: Some(Ok(compare_artifacts(side(&old), side(&new), false))), ..More::default() }
    }

    fn config(n: usize, text: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{n}")}, "data": {"a": text}})
    }

    /// With what is inside, a forecast, and a base.
    fn full() -> Sample {
        let mut sample = make_sample();
        let deployment = |image: &str, replicas: u8| json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": replicas, "containers": [{"name": "web", "image": image}]}});
        let web = inside(
            &[deployment("web:1", 2), config(1, "a\nb\nc\n")],
            &[deployment("web:2", 0), config(2, "x")],
        );
        sample.preview.more.insert(parse_order("shop/web"), web);
        let forecast =
            Forecast::NotBefore { time: make_now(), gate: GateName::Approvals, message: "0 of 2".into() };
        let unread = Failure::new_input("artifact", "it is not in the registry")
            .with_object("registry.shop.example/x");
        let cart = More {
            forecast: Some(forecast),
            inside: Some(Err(unread)),
            moves: Some(("a".into(), "shop".into())),
        };
        sample.preview.more.insert(parse_order("shop/cart"), cart);
        sample.preview.fingerprint = Some(Fingerprint::from_view(&sample.make_view(None), "trust"));
        sample
    }

    #[test]
    fn a_plan_reads_as_a_page() {
        check_same("markdown/expected.md", &format_plan(&full().make_view(None), 60_000));
    }

    #[test]
    fn a_plan_against_a_base_says_what_the_change_does() {
        let mut sample = full();
        sample.plan.rows.retain(|r| ["web", "kept"].contains(&r.order.name.as_str()));
        sample.preview.base = Some(Against {
            reference: "origin/main".into(),
            commit: "0123456789".into(),
            anyway: 4,
            without: [(parse_order("shop/web"), "keeps web-1".to_owned())].into(),
            gone: vec![parse_order("shop/left")],
            weakened: vec!["Kitchen: key evil may vouch for provenance".into()],
            notes: vec!["expedite.yaml changes; that of origin/main counts here".into()],
        });
        check_same("markdown/expected-base.md", &format_plan(&sample.make_view(None), 60_000));
    }

    #[test]
    fn the_budget_holds_and_the_counts_survive() {
        let mut sample = make_sample();
        sample.plan.rows = (0..400)
            .map(|n| {
                let mut held = make_row(&format!("shop/app-{n}"), Mode::Manual, Some("x-1"), Decision::Hold);
                let message = format!("{} 🍲", "long words ".repeat(80));
                held.verdicts = vec![Verdict::make_waiting(GateName::Window, For::Evidence, message)];
                held
            })
            .collect();
        for n in 0..400 {
            let all: Vec<Value> = (0..30).map(|i| config(i, &"value ".repeat(20))).collect();
            sample.preview.more.insert(parse_order(&format!("shop/app-{n}")), inside(&[], &all));
        }
        sample.preview.fingerprint = Some(Fingerprint::from_view(&sample.make_view(None), "trust"));
        for budget in [3_000, 10_000, 65_536, 100_000] {
            let page = format_plan(&sample.make_view(None), budget);
            assert!(page.len() <= budget, "{} of {budget}", page.len());
            assert!(page.contains("400 held"), "the counts are exact");
            assert!(page.contains("are left out here for length"), "{budget}");
            assert_eq!(page.matches("<details>").count(), page.matches("</details>").count());
            let table = page.lines().filter(|l| l.starts_with('|'));
            assert!(table.clone().all(|l| l.ends_with('|')), "no row is cut");
            assert_eq!(page.matches("```").count() % 2, 0, "no block is open");
        }
        let whole = format_plan(&sample.make_view(None), 100_000_000);
        assert_eq!(whole.matches("<details>").count(), 400);
        assert!(!whole.contains("left out"));
    }

    #[test]
    fn whole_resources_are_added_while_they_fit() {
        let mut sample = make_sample();
        sample.plan.rows.retain(|r| r.order == parse_order("shop/web"));
        let objects = |text: &str| -> Vec<Value> { (0..300).map(|n| config(n, &text.repeat(40))).collect() };
        let mut more = inside(&objects("old "), &objects("new "));
        let Some(Ok(found)) = &mut more.inside else { panic!() };
        assert_eq!(found.changes.len(), 300);
        sample.preview.more.insert(parse_order("shop/web"), more);
        let page = format_plan(&sample.make_view(None), 65_536);
        assert!(page.len() <= 65_536 && page.len() > 60_000, "{}", page.len());
        assert!(page.contains("0 added, 300 changed, 0 removed"), "the counts are exact");
        let shown = page.matches("**ConfigMap c").count();
        assert!(shown > 50 && shown < 300, "{shown}");
        let left = format!(
            "{} resources are left out here for length; <code>expedite diff shop/web</code>",
            300 - shown
        );
        assert!(page.contains(&left), "{left}");
        assert_eq!(page.matches("```diff").count(), shown, "each one is whole");
    }

    #[test]
    fn one_order_too_long_for_the_page_leaves_the_others() {
        let mut sample = make_sample();
        let all = format_plan(&sample.make_view(None), 60_000).matches("<details>").count();
        for _ in 0..200 {
            sample.plan.rows[0].errors.push(Failure::new_input("x", "y".repeat(1_000)));
        }
        let page = format_plan(&sample.make_view(None), 65_536);
        assert_eq!(page.matches("<details>").count(), all - 1);
        assert!(page.contains("1 Order is left out here"), "{page}");
    }

    #[test]
    fn foreign_text_closes_no_fold_and_mentions_no_person() {
        let mut sample = make_sample();
        sample.plan.rows.retain(|r| r.order.name.as_str() == "cart");
        let evil = "</details>\n\n# all good\n@everyone | [x](https://evil.example) ``` <!-- --> #12";
        sample.plan.rows[0].verdicts[1].message = evil.into();
        let object = json!({"kind": "ConfigMap", "metadata": {"name": evil}, "data": {evil: format!("a\n````\n{evil}\n")}});
        sample.preview.more.insert(parse_order("shop/cart"), inside(&[], &[object]));
        let page = format_plan(&sample.make_view(None), 60_000);
        let fenced = |line: &&str| line.starts_with(['+', '`']);
        assert!(page.contains("\n`````diff\n+ "), "the fence is longer than any inside: {page}");
        let prose: String =
            page.lines().filter(|line| !fenced(line)).map(|line| format!("{line}\n")).collect();
        assert_eq!(prose.matches("</details>").count(), 1, "{page}");
        assert!(
            !prose.contains("\n# all") && !prose.contains("@everyone") && !prose.contains("https://evil"),
            "{page}"
        );
    }

    #[test]
    fn room_is_shared() {
        assert_eq!(split_room(&[10, 100, 100], 110), [10, 50, 50]);
        assert_eq!(split_room(&[], 5), Vec::<usize>::new());
        assert_eq!(split_room(&[3, 4], 100), [3, 4]);
    }
}
