//! The way to a server, which a test can cut, or let swallow what the server says.
use std::{
    io::{Read as _, Write as _},
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
};

use parking_lot::Mutex;
use tempfile::TempDir;

pub(super) struct Proxy {
    dir: TempDir,
    way: Arc<Way>,
}

struct Way {
    server: PathBuf,
    cut: AtomicBool,
    swallows: AtomicBool,
    streams: Mutex<Vec<UnixStream>>,
}

impl Proxy {
    pub(super) fn to(server: PathBuf) -> Self {
        let dir = TempDir::new().unwrap();
        let listener = UnixListener::bind(dir.path().join("proxy.sock")).unwrap();
        let way = Arc::new(Way {
            server,
            cut: AtomicBool::new(false),
            swallows: AtomicBool::new(false),
            streams: Mutex::new(vec![]),
        });
        let of_thread = Arc::clone(&way);
        // It ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                of_thread.pass(stream.unwrap());
            }
        });
        Self { dir, way }
    }

    pub(super) fn url(&self) -> String {
        let path = self.dir.path().join("proxy.sock");
        format!("redis+unix://{}", path.display())
    }

    /// Ends all connections, and each new one at once.
    pub(super) fn cut(&self) {
        self.way.cut.store(true, SeqCst);
        for stream in self.way.streams.lock().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(super) fn mend(&self) {
        self.way.cut.store(false, SeqCst);
    }

    /// What the server says is lost from now on, or not any more.
    pub(super) fn swallow(&self, swallows: bool) {
        self.way.swallows.store(swallows, SeqCst);
    }
}

impl Way {
    fn pass(self: &Arc<Self>, client: UnixStream) {
        let mut streams = self.streams.lock();
        let server = UnixStream::connect(&self.server);
        let (false, Ok(server)) = (self.cut.load(SeqCst), server) else {
            return;
        };
        streams.extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
        let (to, from) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let way = Arc::clone(self);
        thread::spawn(move || copy(from, to, || way.swallows.load(SeqCst)));
        thread::spawn(move || copy(client, server, || false));
    }
}

fn copy(mut from: UnixStream, mut to: UnixStream, swallows: impl Fn() -> bool) {
    let mut some = [0; 4096];
    while let Ok(n @ 1..) = from.read(&mut some) {
        if !swallows() && to.write_all(&some[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
