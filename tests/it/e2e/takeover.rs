//! An Application that was there before: held, or taken over as a whole.

use super::*;
use crate::support::harness::Place;
use expedite::model::id::{ClusterName, OrderRef};
use expedite::model::naming::{build_application_name, build_application_path};

/// The file and what somebody wrote into it, before there was an Order, for shop/basket on eu-1.
fn existing() -> (String, String) {
    let order = OrderRef::parse("shop/basket").unwrap();
    let name = build_application_name(&order, &ClusterName::parse("eu-1").unwrap()).unwrap();
    let text = format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata:\n  name: {name}\n  namespace: argocd\n  annotations:\n    \
         delivery.kokumi.dev/allowed-order: shop/basket\nspec:\n  project: PROJECT\n  source:\n    \
         repoURL: oci://registry.shop.example:5000/shop/basket\n    targetRevision: 2.0.0\n    path: .\n  destination:\n    \
         server: SERVER # the one in Frankfurt\n    namespace: shop\n"
    );
    (build_application_path(&order, &name), text)
}

fn commit(place: &Place, path: &str, text: &str) {
    let checkout = format!("checkout-{}", head(place).trim());
    place.git(&["clone", "-q", "shop.git", &checkout]);
    place.write(&format!("{checkout}/{path}"), text);
    place.git(&["-C", &checkout, "add", "-A"]);
    place.git(&["-C", &checkout, "commit", "-q", "-m", "Argo CD as we had it"]);
    place.git(&["-C", &checkout, "push", "-q", "origin", "HEAD:main"]);
}

#[test]
fn what_a_takeover_would_lose_holds_that_cluster_alone() {
    let place = Place::with_shop();
    run(&place).ok();
    // Server and project as every Application of that Environment has them.
    let catalog = applications(&place, "shop/catalog");
    let eu = catalog
        .iter()
        .find(|a| a["spec"]["destination"]["server"].as_str().unwrap().contains("eu-1"))
        .unwrap();
    let (path, text) = existing();
    let text = text
        .replace("PROJECT", eu["spec"]["project"].as_str().unwrap())
        .replace("SERVER", eu["spec"]["destination"]["server"].as_str().unwrap());
    commit(&place, &path, &text);
    let basket = artifact(&place, "shop/basket", "2.1.0");
    verb(&place, &["promote", "shop/basket", &format!("basket-{}", &basket[7..19])]).ok();

    run(&place).ok();
    assert_eq!(tree(&place)[&path], text, "the held file is as it was");
    assert_eq!(pinned(&place, "shop/basket"), std::slice::from_ref(&basket), "the other Cluster has it");
    let held = serving(&place, "shop/basket");
    assert_eq!(condition(&held, "Ready"), ("False".into(), "OptInRequired".into()));
    let clusters = held["status"]["clusters"].as_array().unwrap();
    let eu_1 = clusters.iter().find(|c| c["name"] == "eu-1").unwrap();
    assert_eq!(eu_1["reason"], "OptInRequired");
    assert!(eu_1["message"].as_str().unwrap().contains("would lose the comment in line 15"), "{eu_1}");
    let committed = head(&place);
    run(&place).ok();
    assert_eq!(head(&place), committed, "nothing new, nothing committed");

    commit(&place, &path, &text.replace(" # the one in Frankfurt", ""));
    run(&place).ok();
    assert_eq!(applications(&place, "shop/basket").len(), 2);
    let taken: serde_json::Value = serde_yaml::from_str(&tree(&place)[&path]).unwrap();
    assert_eq!(taken["spec"]["source"]["targetRevision"], basket);
    assert_eq!(taken["metadata"].get("finalizers"), None, "none was there, none is added");
    let committed = head(&place);
    run(&place).ok();
    assert_eq!(head(&place), committed);
}
