//! The matrix: every case of `tests/vectors` is one document as each dialect writes it, and every pair of its
//! files is translated and compared.
//!
//! | File | Is |
//! |---|---|
//! | `case.toml` | the kind of document, its operation, where the specification has it, what is lost and why |
//! | `j03.json` and so on | read, and written by all that are read |
//! | `r03p.snake.in.http` | only read: another spelling of the same |
//! | `r03p.out.json` | only written: what it says cannot be turned back, for the reason that `oneway` gives |
//!
//! In a case that is `refused` all files must be, with that reason, whatever they should become.
//!
//! REST requests begin with their first line and errors with their status line. JSON is compared as a tree that
//! keeps the text of numbers and strings, and which members are there.
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use a2a_gateway::{
    a2a::{
        Dialect, Face, Op,
        shape::{FileBytes, Loss, Options},
    },
    cli::Document,
    translate::{Job, Translated},
};
use serde::Deserialize;

#[path = "vectors/tree.rs"]
mod tree;

use tree::Tree;

/// `case.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    document: String,
    op: Option<String>,
    /// Where the specifications have it.
    spec: String,
    /// The reason with which every file is refused, whatever it should become.
    refused: Option<String>,
    /// Why some files are only written.
    oneway: Option<String>,
    #[serde(default)]
    options: Chosen,
    #[serde(default)]
    lost: Vec<Lost>,
}

/// What an operator or the client's request would have chosen.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a line of a case.toml"
)]
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Chosen {
    history: Option<u64>,
    ends: bool,
    file_bytes: Option<String>,
    strict_030: bool,
    forget_lossy: bool,
    v03_rest_blocking: bool,
    v10_accept_blocking: bool,
    face: Option<String>,
    v03_flat_errors: bool,
    slash_paths: bool,
}

/// A member that must be reported as lost, and be gone.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lost {
    /// The files it is lost from; all if none is named.
    #[serde(default)]
    from: Vec<String>,
    /// The dialects it is lost to.
    to: Vec<String>,
    path: String,
    /// What must not be in the output; the member's name if it is not said.
    gone: Option<String>,
    why: String,
}

struct File {
    /// `r03p.snake.in`, for people.
    name: String,
    dialect: &'static str,
    read: bool,
    written: bool,
    text: String,
}

const DIALECTS: [(&str, Dialect); 6] = [
    ("j03", Dialect::J03),
    ("r03p", Dialect::R03P),
    ("r03k", Dialect::R03K),
    ("r03s", Dialect::R03S),
    ("j10", Dialect::J10),
    ("r10", Dialect::R10),
];

fn dialect(name: &str) -> Dialect {
    let found = DIALECTS.iter().find(|d| d.0 == name);
    found.expect("files are named after dialects").1
}

#[test]
fn every_pair_of_every_case() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let mut wrong = vec![];
    let (mut cases, mut pairs) = (0, 0);
    for entry in fs::read_dir(&root).expect("the cases are there") {
        let path = entry.expect("a case").path();
        if !path.is_dir() {
            continue;
        }
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let case = fs::read_to_string(path.join("case.toml")).expect("case.toml is there");
        let case: Case = toml::from_str(&case).unwrap_or_else(|e| panic!("{name}: {e}"));
        let files = files(&path);
        cases += 1;
        pairs += run(&name, &case, &files, &mut wrong);
    }
    assert!(
        cases >= 100 && pairs >= 1500,
        "{cases} cases, {pairs} pairs"
    );
    println!("{cases} cases, {pairs} pairs");
    assert!(
        wrong.is_empty(),
        "{} of {pairs} pairs are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

fn files(path: &Path) -> Vec<File> {
    let mut files = vec![];
    for entry in fs::read_dir(path).expect("a case is a folder") {
        let path = entry.expect("a file").path();
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        if name == "case" {
            continue;
        }
        let first = name.split('.').next().unwrap_or_default();
        let (dialect, _) = DIALECTS
            .iter()
            .find(|d| d.0 == first)
            .unwrap_or_else(|| panic!("{} is named after no dialect", path.display()));
        let text = fs::read_to_string(&path).expect("it is text");
        files.push(File {
            dialect,
            read: name.rsplit('.').next() != Some("out"),
            written: name.rsplit('.').next() != Some("in"),
            name,
            text,
        });
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files
}

/// Runs all pairs of a case and gives their number.
fn run(name: &str, case: &Case, files: &[File], wrong: &mut Vec<String>) -> usize {
    let mut tell = |what: String| wrong.push(format!("{name}: {what}"));
    if case.spec.is_empty() || case.lost.iter().any(|l| l.why.is_empty()) {
        tell("a case names its place in the specification, a loss its reason".into());
    }
    if files.iter().any(|f| !f.read) && case.oneway.is_none() {
        tell("a file is only written, and nothing says why".into());
    }
    if let Some(reason) = &case.refused {
        for (from, to) in files.iter().flat_map(|f| DIALECTS.map(|to| (f, to))) {
            match job(case, from.dialect, to.0).run(document(&case.document), &from.text) {
                Err(fault) if fault.kind.wire().reason == reason => {}
                other => tell(format!("{} is not refused: {other:?}", from.name)),
            }
        }
        return files.len() * DIALECTS.len();
    }
    let mut used = BTreeSet::new();
    let mut pairs = 0;
    for from in files.iter().filter(|f| f.read) {
        for to in files.iter().filter(|f| f.written) {
            pairs += 1;
            if let Err(why) = pair(case, from, to, &mut used) {
                tell(format!("{} -> {}: {why}", from.name, to.name));
            }
        }
    }
    for (n, lost) in case.lost.iter().enumerate() {
        if !used.contains(&n) {
            tell(format!("{} is declared as lost, and never is", lost.path));
        }
    }
    pairs
}

fn job(case: &Case, from: &str, to: &str) -> Job {
    let mut job = Job::new(dialect(from), dialect(to));
    job.options = options(&case.options);
    job.history = case.options.history;
    job.ends = case.options.ends;
    job.face = face(&case.options);
    job.op = case
        .op
        .as_deref()
        .map(|op| Op::named(op).unwrap_or_else(|| panic!("there is no operation {op}")));
    job
}

fn face(chosen: &Chosen) -> Face {
    let face = match chosen.face.as_deref() {
        None => Face::A2A,
        Some("memorylake") => Face::MEMORYLAKE,
        Some(other) => panic!("there is no face {other}"),
    };
    Face {
        v03_flat_errors: chosen.v03_flat_errors,
        ..face
    }
}

fn pair(case: &Case, from: &File, to: &File, used: &mut BTreeSet<usize>) -> Result<(), String> {
    let job = job(case, from.dialect, to.dialect);
    let kind = document(&case.document);
    let told = if kind == Document::Error {
        job.error(&from.text).map(|(status, told)| Translated {
            output: format!("{status}\n\n{}", told.output),
            ..told
        })
    } else {
        job.run(kind, &from.text)
    };
    let told = told.map_err(|e| format!("refused: {e}"))?;
    let wanted = if kind == Document::Error {
        to.text.trim_start_matches("HTTP/1.1 ")
    } else {
        &to.text
    };
    compare(wanted, &told.output)?;
    losses(case, from, to, &told, used)
}

/// Compares the first line, if there is one, and the bodies.
fn compare(wanted: &str, got: &str) -> Result<(), String> {
    let (head, body) = parted(wanted);
    let (got_head, got_body) = parted(got);
    let number = |head: &str| head.split(' ').next().unwrap_or_default().to_owned();
    let same = if head.starts_with(|c: char| c.is_ascii_digit()) {
        number(head) == number(got_head) // a status, with or without its words
    } else {
        head == got_head
    };
    if !same {
        return Err(format!("`{got_head}` is not `{head}`"));
    }
    if body.is_empty() || got_body.is_empty() {
        return if body == got_body {
            Ok(())
        } else {
            Err(format!("the body is `{got_body}`, not `{body}`"))
        };
    }
    let (wanted, got) = (Tree::read(body), Tree::read(got_body));
    let found = wanted.difference(&got, "");
    found.map_or(Ok(()), |d| Err(format!("{d}\n    in {got_body}")))
}

fn parted(text: &str) -> (&str, &str) {
    let bare = text.trim();
    if bare.starts_with(['{', '[']) {
        return ("", bare);
    }
    let (head, body) = bare.split_once('\n').unwrap_or((bare, ""));
    (head.trim(), body.trim())
}

/// What is reported must be declared, what is declared must be reported and gone.
fn losses(
    case: &Case,
    from: &File,
    to: &File,
    told: &Translated,
    used: &mut BTreeSet<usize>,
) -> Result<(), String> {
    let names =
        |list: &[String], file: &File| list.iter().any(|n| *n == file.name || *n == file.dialect);
    let mut declared = BTreeMap::new();
    for (n, lost) in case.lost.iter().enumerate() {
        if (lost.from.is_empty() || names(&lost.from, from)) && names(&lost.to, to) {
            declared.insert(lost.path.clone(), (n, lost));
        }
    }
    let reported: BTreeSet<String> = told.losses.iter().map(Loss::path).collect();
    if let Some(silent) = reported.iter().find(|p| !declared.contains_key(*p)) {
        return Err(format!("{silent} is lost, which the case does not declare"));
    }
    for (path, (n, lost)) in declared {
        if !reported.contains(&path) {
            return Err(format!("{path} is declared as lost and not reported"));
        }
        let member = path.rsplit('.').next().unwrap_or_default();
        let gone = lost.gone.clone().unwrap_or(format!("\"{member}\""));
        if told.output.contains(&gone) {
            return Err(format!("{path} is declared as lost, but {gone} is there"));
        }
        used.insert(n);
    }
    Ok(())
}

fn document(name: &str) -> Document {
    match name {
        "request" => Document::Request,
        "response" => Document::Response,
        "event" => Document::Event,
        "error" => Document::Error,
        "card" => Document::Card,
        _ => panic!("there is no document {name}"),
    }
}

fn options(chosen: &Chosen) -> Options {
    Options {
        file_bytes: match chosen.file_bytes.as_deref() {
            None | Some("auto") => FileBytes::Auto,
            Some("single") => FileBytes::Single,
            Some("double") => FileBytes::Double,
            Some(other) => panic!("there is no file_bytes {other}"),
        },
        strict_030: chosen.strict_030,
        preserve_lossy: !chosen.forget_lossy,
        v03_rest_blocking: chosen.v03_rest_blocking,
        v10_accept_blocking: chosen.v10_accept_blocking,
        slash_paths: chosen.slash_paths,
        ..Options::default()
    }
}
