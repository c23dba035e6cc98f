//! Keys that change while the gateway runs.
use crate::{
    house::{House, KEY, READER, api_key, bearer, file, item, keys_way, overwrite},
    issuer::{ISSUER, Issuer, Pair, claims, set},
    support::{until, words::J10},
};

#[test]
fn a_file_of_keys_is_read_again_and_a_bad_one_is_not_taken() {
    let keys = file(&item("a", KEY, ""));
    let house = House::build("", &format!("auth: [{}]", keys_way(&keys)));
    let status = |key: &str| house.send(J10, &api_key(key)).status();
    assert_eq!((status(KEY), status(READER)), (200, 401));
    overwrite(&keys, "- {name: a, digest: broken}");
    // A good change after it shows that the bad one was looked at, or never there.
    assert_eq!(status(KEY), 200);
    overwrite(&keys, &(item("a", KEY, "") + &item("b", READER, "")));
    until("the new key is known", || status(READER) == 200);
    overwrite(&keys, &item("b", READER, ""));
    until("the old key is not", || status(KEY) == 401);
    assert_eq!(status(READER), 200);
}

#[test]
fn a_rotated_key_of_the_issuer_is_fetched_once() {
    let (one, two) = (Pair::new("one"), Pair::new("two"));
    let issuer = Issuer::with(std::slice::from_ref(&one));
    let house = House::build("", &format!("auth: [{}]", issuer.way()));
    let status = |pair: &Pair| house.send(J10, &bearer(&pair.signs(&claims()))).status();
    assert_eq!((status(&one), status(&one)), (200, 200));
    assert_eq!(issuer.log.all().len(), 1);
    issuer.says(200, set(&[one.clone(), two.clone()]));
    assert_eq!((status(&two), status(&one)), (200, 200));
    assert_eq!(issuer.log.all().len(), 2);
    // Keys that nobody has do not make it ask again and again.
    for _ in 0..5 {
        assert_eq!(status(&Pair::new("none")), 401);
    }
    assert_eq!(issuer.log.all().len(), 2);
    assert_eq!(status(&two), 200);
}

#[test]
fn a_key_that_changed_under_its_name_is_fetched_again() {
    let (one, next) = (Pair::new("one"), Pair::new("one"));
    let issuer = Issuer::with(std::slice::from_ref(&one));
    let house = House::build("", &format!("auth: [{}]", issuer.way()));
    let status = |pair: &Pair| house.send(J10, &bearer(&pair.signs(&claims()))).status();
    assert_eq!(status(&one), 200);
    issuer.says(200, set(std::slice::from_ref(&next)));
    assert_eq!(status(&next), 200);
    assert_eq!((status(&one), issuer.log.all().len()), (401, 2));
    // Wrong signatures do not make it ask again and again.
    for _ in 0..5 {
        assert_eq!(status(&Pair::new("one")), 401);
    }
    assert_eq!(issuer.log.all().len(), 2);
    assert_eq!(status(&next), 200);
}

#[test]
fn the_last_good_keys_hold_while_the_issuer_is_broken() {
    for (code, text) in [
        (500, String::new()),
        (200, "{}".to_owned()),
        (200, "x".repeat(300_000)),
    ] {
        let one = Pair::new("one");
        let issuer = Issuer::with(std::slice::from_ref(&one));
        let house = House::build("", &format!("auth: [{}]", issuer.way()));
        let status = |pair: &Pair| house.send(J10, &bearer(&pair.signs(&claims()))).status();
        assert_eq!(status(&one), 200);
        issuer.says(code, text);
        assert_eq!(status(&Pair::new("none")), 401); // which makes it fetch
        assert_eq!(issuer.log.all().len(), 2);
        assert_eq!(status(&one), 200);
    }
}

#[test]
fn without_any_keys_of_the_issuer_nobody_is_blamed() {
    let one = Pair::new("one");
    let issuer = Issuer::with(std::slice::from_ref(&one));
    issuer.says(503, String::new());
    let house = House::build("", &format!("auth: [{}]", issuer.way()));
    let token = bearer(&one.signs(&claims()));
    let answer = house.send(J10, &token);
    assert_eq!(answer.status(), 503, "{answer:?}");
    assert!(answer.head.get("retry-after").is_some());
    assert_eq!(house.asked(), 0);
    issuer.says(200, set(&[one]));
    until("they are fetched", || {
        house.send(J10, &token).status() == 200
    });
}

#[test]
fn many_at_once_make_one_fetch() {
    let one = Pair::new("one");
    let issuer = Issuer::with(std::slice::from_ref(&one));
    let house = House::build("", &format!("auth: [{}]", issuer.way()));
    std::thread::scope(|all| {
        for _ in 0..16 {
            let token = bearer(&one.signs(&claims()));
            let house = &house;
            all.spawn(move || assert_eq!(house.send(J10, &token).status(), 200));
        }
    });
    assert_eq!(issuer.log.all().len(), 1);
}

#[test]
fn keys_of_an_issuer_may_come_from_a_file() {
    let (one, two) = (Pair::new("one"), Pair::new("two"));
    let keys = file(&set(std::slice::from_ref(&one)));
    let path = keys.path().display();
    let house = House::build(
        "",
        &format!(
            "auth: [{{jwt: {{issuer: '{ISSUER}', audience: [gateway], algorithms: [ES256], jwks_file: '{path}'}}}}]"
        ),
    );
    let status = |pair: &Pair| house.send(J10, &bearer(&pair.signs(&claims()))).status();
    assert_eq!((status(&one), status(&two)), (200, 401));
    overwrite(&keys, &set(std::slice::from_ref(&two)));
    until("the new key is known", || status(&two) == 200);
    assert_eq!(status(&one), 401);
}
