//! A cluster of one server, and the ports that such places need.
use std::net::TcpListener;

use super::server::{RedisServer, eventually};

/// A port that nobody has right now.
pub(super) fn port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port().to_string()
}

/// The cluster, and its address.
pub(super) fn cluster() -> (RedisServer, String) {
    let (at, bus) = (port(), port());
    let server = RedisServer::with(&[
        "--port",
        &at,
        "--cluster-enabled",
        "yes",
        "--cluster-port",
        &bus,
        "--bind",
        "127.0.0.1",
    ]);
    let mut connection = server.connection();
    let cluster = || redis::cmd("CLUSTER");
    let all = ["ADDSLOTSRANGE", "0", "16383"];
    cluster().arg(&all).exec(&mut connection).unwrap();
    eventually("the cluster works", || {
        let info: String = cluster().arg("INFO").query(&mut connection).unwrap();
        info.contains("cluster_state:ok")
    });
    (server, format!("redis+cluster://127.0.0.1:{at}"))
}
