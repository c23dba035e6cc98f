//! A proxy before an agent, that does to each connection what it is told. It reads all that the gateway sends, and keeps
//! it, also what it does not hand on: whatever was written may have reached an agent.
use std::{
    net::{SocketAddr, TcpListener as Listener, TcpStream as Stream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    runtime::{Builder, Runtime},
    sync::watch,
};

/// What happens to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// There is none: nobody listens.
    Refuse,
    /// It is reset as soon as it is there.
    ResetAtOnce,
    /// It is reset once so many bytes of a request were handed on.
    ResetUp(usize),
    /// It is reset once so many bytes of an answer were handed on.
    ResetDown(usize),
    /// It is closed in good order then.
    CloseDown(usize),
    /// From then on it is silent, and nothing that comes is acknowledged by a word.
    StallDown(usize),
    /// Each byte comes by itself.
    Dribble,
}

pub(crate) struct Proxy {
    pub(crate) addr: SocketAddr,
    shared: Arc<Shared>,
    fault: watch::Sender<Fault>,
}

struct Shared {
    agent: SocketAddr,
    /// All that the gateway sent.
    sent: Mutex<Vec<u8>>,
    open: AtomicUsize,
    listens: AtomicBool,
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

impl Proxy {
    pub(crate) fn before(agent: SocketAddr) -> Self {
        let listener = Listener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let (fault, faults) = watch::channel(Fault::None);
        let shared = Arc::new(Shared {
            agent,
            sent: Mutex::default(),
            open: AtomicUsize::new(0),
            listens: AtomicBool::new(true),
        });
        let for_thread = shared.clone();
        thread::spawn(move || runtime().block_on(listen(listener, addr, faults, for_thread)));
        Self {
            addr,
            shared,
            fault,
        }
    }

    /// From now on connections fare so; those that are there are reset where nobody is to listen any more.
    pub(crate) fn does(&self, fault: Fault) {
        self.fault.send_replace(fault);
        let listens = fault != Fault::Refuse;
        crate::support::until("the proxy does as told", || {
            self.shared.listens.load(SeqCst) == listens && (listens || self.open() == 0)
        });
    }

    /// How often a message of this id was sent.
    pub(crate) fn sends_of(&self, id: &str) -> usize {
        let sent = self.shared.sent.lock().unwrap();
        let name = format!("\"{id}\"");
        sent.windows(name.len())
            .filter(|part| *part == name.as_bytes())
            .count()
    }

    pub(crate) fn open(&self) -> usize {
        self.shared.open.load(SeqCst)
    }
}

async fn listen(
    first: Listener,
    addr: SocketAddr,
    mut faults: watch::Receiver<Fault>,
    shared: Arc<Shared>,
) {
    let mut first = Some(first);
    loop {
        // Where nobody listens, nobody else is to begin to: a port that is free is given to who asks for any.
        if *faults.borrow_and_update() == Fault::Refuse {
            drop(first.take());
            let kept = keep(addr);
            shared.listens.store(false, SeqCst);
            if faults.wait_for(|f| *f != Fault::Refuse).await.is_err() {
                return;
            }
            first = Some(Listener::bind(addr).unwrap());
            drop(kept);
        }
        let listener = first.take();
        let listener = listener.unwrap_or_else(|| Listener::bind(addr).unwrap());
        listener.set_nonblocking(true).unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        shared.listens.store(true, SeqCst);
        let said = faults.clone();
        loop {
            tokio::select! {
                refused = faults.wait_for(|f| *f == Fault::Refuse) => {
                    if refused.is_err() {
                        return;
                    }
                    break;
                }
                accepted = listener.accept() => {
                    let io = accepted.unwrap().0.into_std().unwrap();
                    let (shared, faults) = (shared.clone(), said.clone());
                    // Counted here: who asks whether any is open must not come between.
                    shared.open.fetch_add(1, SeqCst);
                    thread::spawn(move || {
                        runtime().block_on(carry(io, faults, &shared));
                        shared.open.fetch_sub(1, SeqCst);
                    });
                }
            }
        }
    }
}

/// A socket that has the port and does not listen: who connects there is refused.
fn keep(addr: SocketAddr) -> Option<TcpSocket> {
    let socket = TcpSocket::new_v4().ok()?;
    socket.set_reuseaddr(true).ok()?;
    socket.bind(addr).ok()?;
    Some(socket)
}

async fn carry(io: Stream, mut faults: watch::Receiver<Fault>, shared: &Shared) {
    let mut gateway = TcpStream::from_std(io).unwrap();
    gateway.set_nodelay(true).unwrap();
    let said = faults.clone();
    let ended = tokio::select! {
        ended = pass(&mut gateway, || *said.borrow(), shared) => ended,
        _ = faults.wait_for(|f| *f == Fault::Refuse) => End::Reset,
    };
    match ended {
        End::Reset => gateway.set_zero_linger().unwrap(),
        End::Closed => {
            let _gone = gateway.shutdown().await;
        }
    }
}

enum End {
    Reset,
    Closed,
}

/// Each request on a connection fares as it is said when it comes.
async fn pass(gateway: &mut TcpStream, said: impl Fn() -> Fault, shared: &Shared) -> End {
    let mut fault = said();
    if fault == Fault::ResetAtOnce {
        return End::Reset;
    }
    let Ok(mut agent) = TcpStream::connect(shared.agent).await else {
        return End::Reset;
    };
    let (mut up, mut down) = (0, 0);
    let (mut there, mut back) = ([0; 4096], [0; 4096]);
    loop {
        tokio::select! {
            biased;
            read = gateway.read(&mut there) => {
                let Ok(read @ 1..) = read else { return End::Closed };
                shared.sent.lock().unwrap().extend_from_slice(&there[..read]);
                if down > 0 {
                    (fault, up, down) = (said(), 0, 0);
                }
                if fault == Fault::ResetAtOnce {
                    return End::Reset;
                }
                let most = if let Fault::ResetUp(most) = fault {
                    read.min(most - up)
                } else {
                    read
                };
                up += most;
                let _gone = agent.write_all(&there[..most]).await;
                if matches!(fault, Fault::ResetUp(most) if up == most) {
                    return End::Reset;
                }
            }
            read = agent.read(&mut back) => {
                let Ok(read @ 1..) = read else { return End::Closed };
                let part = &back[..read];
                let before = down;
                down += read;
                match fault {
                    Fault::Dribble => {
                        for byte in part {
                            let _gone = gateway.write_all(&[*byte]).await;
                            tokio::task::yield_now().await;
                        }
                    }
                    Fault::ResetDown(most) | Fault::CloseDown(most) | Fault::StallDown(most) => {
                        let part = &part[..read.min(most - before)];
                        let _gone = gateway.write_all(part).await;
                        if down >= most {
                            return leave(gateway, fault).await;
                        }
                    }
                    Fault::None | Fault::Refuse | Fault::ResetAtOnce | Fault::ResetUp(_) => {
                        let _gone = gateway.write_all(part).await;
                    }
                }
            }
        }
    }
}

async fn leave(gateway: &mut TcpStream, fault: Fault) -> End {
    match fault {
        Fault::ResetDown(_) => End::Reset,
        Fault::StallDown(_) => {
            while let Ok(1..) = gateway.read(&mut [0; 4096]).await {}
            End::Closed
        }
        Fault::None
        | Fault::Refuse
        | Fault::ResetAtOnce
        | Fault::ResetUp(_)
        | Fault::CloseDown(_)
        | Fault::Dribble => End::Closed,
    }
}
