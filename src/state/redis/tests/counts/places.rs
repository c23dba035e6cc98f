//! Places for keys that callers make up, where nothing comes of a call.
use std::sync::Arc;

use futures_util::FutureExt as _;

use super::{
    super::{
        proxy::Proxy,
        replica::{eventually, replica, settings},
        server::RedisServer,
    },
    STEP, ask, daily, is_taken,
};
use crate::state::counters::{Ask, By, Counters, memory::Local};

#[tokio::test]
async fn a_place_for_a_key_is_free_again_where_the_store_is_away_or_the_caller_gone() {
    let server = RedisServer::start();
    let proxy = Proxy::to(server.socket());
    let a = Arc::new(replica(&proxy.url(), settings()).await);
    let local = || Local::new(1000, 10);
    let made = |name: &str| Ask {
        by: By::known(7),
        chosen: true,
        ..ask(name, daily(1))
    };
    for alone in [false, true] {
        let counters = Counters::shared(a.clone(), local(), local(), alone);
        let takes = async |name: &str, n: u64| {
            let made = made(&format!("{name} {n} {alone}"));
            counters.take(&[made], n, STEP).await
        };
        proxy.cut();
        let other = [ask("other", daily(1000))];
        eventually(async || a.take_counts(&other, 1).await.is_err()).await;
        for n in 0..100 {
            let said = takes("away", n).await;
            assert_eq!(said.is_err(), !alone);
        }
        proxy.mend();
        eventually(async || a.take_counts(&other, 1).await.is_ok()).await;
        let client = |args: &[&str]| {
            let mut client = redis::cmd("CLIENT");
            client.arg(args).exec(&mut server.connection()).unwrap();
        };
        client(&["PAUSE", "60000", "WRITE"]); // no answer comes before the callers are gone
        for n in 0..100 {
            let gone = takes("gone", n).now_or_never();
            assert!(gone.is_none(), "nobody waits for the store");
        }
        client(&["UNPAUSE"]);
        let mut admitted = 0;
        for n in 0..20 {
            let said = takes("free", n).await;
            admitted += u64::from(is_taken(&said));
        }
        assert!(admitted >= 10, "{admitted}: its share");
    }
}
