//! A signing key in EXPEDITE_KEY: read in the forms in which CI keeps it, and never printed, whatever its form.

use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The shop's test key as a value of EXPEDITE_KEY, and the characters of its body.
fn test_key(place: &Place) -> (String, String) {
    let pem = place.read("keys/test-job.key");
    let body: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    (pem, body)
}

/// What a run prints with this key in the variable, in GitHub Actions.
fn run_with_key(place: &mut Place, value: &str) -> Said {
    place.set("EXPEDITE_KEY", value);
    place.set("GITHUB_ACTIONS", "true");
    run(place)
}

#[test]
fn a_key_without_its_line_breaks_signs() {
    type Form = (&'static str, fn(&str) -> String);
    let forms: [Form; 6] = [
        ("as the file has it", |pem| pem.to_owned()),
        ("without line breaks", |pem| pem.replace('\n', "")),
        ("with spaces", |pem| pem.replace('\n', " ")),
        ("with \\n", |pem| pem.replace('\n', "\\n")),
        ("with Windows line breaks", |pem| pem.replace('\n', "\r\n")),
        ("in base64", |pem| STANDARD.encode(pem)),
    ];
    for (name, form) in forms {
        let mut place = Place::with_shop();
        let (pem, _) = test_key(&place);
        let said = run_with_key(&mut place, &form(&pem));
        assert_eq!(said.status, Some(0), "{name}: {}", said.stderr);
        let signed = tree(&place).into_iter().filter(|(path, _)| path.starts_with("records/")).count();
        assert!(signed > 0, "{name}: nothing was signed");
    }
}

#[test]
fn a_damaged_key_is_described_by_its_length_and_never_printed() {
    let mut place = Place::with_shop();
    let (pem, body) = test_key(&place);
    let one_line = pem.replace('\n', "");
    let broken = [
        body.clone(),
        STANDARD.encode(&body),
        one_line.replace("-----BEGIN ", ""),
        one_line.replace("-----END", ""),
        one_line[..one_line.len() / 2].to_owned(),
        one_line.replace("-----BEGIN PRIVATE KEY-----", "-----BEGIN "),
        one_line.replace("PRIVATE KEY-----", "PRIVATE KEY----- "),
        one_line.replace("KEY-----", "KEY"),
        pem.replacen("PRIVATE KEY", &body[..30], 2),
        format!("{body}\n{body}"),
        one_line.replace("-----", ""),
        STANDARD.encode(&pem)[..80].to_owned(),
    ];
    for value in broken {
        for verb_ in [&["run"][..], &["plan"]] {
            place.set("EXPEDITE_KEY", &value);
            place.set("GITHUB_ACTIONS", "true");
            let said = verb(&place, verb_);
            let printed = format!("{}{}", said.stdout, said.stderr);
            let encoded = STANDARD.encode(&body);
            for secret in [&body, &encoded, &value] {
                let characters: Vec<char> = secret.chars().filter(|c| !c.is_whitespace()).collect();
                for part in characters.windows(12) {
                    let part: String = part.iter().collect();
                    let is_known =
                        part.contains("PRIVATE") || part.contains("KEY--") || part.contains("-----");
                    assert!(
                        is_known || !printed.contains(&part),
                        "{verb_:?} printed {part} of {value}: {printed}"
                    );
                }
            }
        }
    }
}
