//! What looking a key up costs: a known one, an unknown one, and one that differs in its last byte only. They take one
//! way, the look-up by digest, so their times are one.
use std::{fmt::Write as _, hint::black_box};

use a2a_gateway::{config::Realm, policy::auth::keys::Keys};
use aws_lc_rs::digest::{SHA256, digest};
use criterion::{Criterion, criterion_group, criterion_main};

fn key(number: usize) -> String {
    format!("k-5b0c7b8f1d2e4a68905b0c7b8f1d2e4a6890-{number:08}")
}

fn look_up(criterion: &mut Criterion) {
    let mut text = String::new();
    for number in 0..10_000 {
        let digest = digest(&SHA256, key(number).as_bytes());
        let digest: [u8; 32] = digest.as_ref().try_into().expect("32 bytes");
        let hex = blake3::Hash::from_bytes(digest).to_hex();
        let _infallible = writeln!(text, "- {{name: n{number}, digest: 'sha256:{hex}'}}");
    }
    let keys = Keys::read(&text, &[], &Realm::default()).expect("a file of keys");
    let near = key(7).replace("00000007", "0000000x");
    let mut group = criterion.benchmark_group("keys");
    for (name, shown, known) in [
        ("known", key(7), true),
        ("unknown", key(10_007), false),
        ("near", near, false),
    ] {
        assert_eq!(keys.find(&shown).is_some(), known);
        group.bench_function(name, |b| b.iter(|| keys.find(black_box(&shown))));
    }
    group.finish();
}

criterion_group!(benches, look_up);
criterion_main!(benches);
