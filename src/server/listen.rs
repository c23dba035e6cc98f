//! Where the server listens: an address, or a socket in the file system for those who share it.
use std::fmt;
use std::fs::{self, Permissions};
use std::io::{Error, ErrorKind, Result};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process;

use tokio::net::{TcpListener, TcpSocket, UnixListener, UnixSocket};

use super::wire::Wire;

/// Connections that may wait to be accepted; a burst beyond it waits for its clients to try again.
const BACKLOG: u32 = 1024;
/// Who may connect to a socket in the file system: its owner and its group.
const MODE: u32 = 0o660;
/// Where those come from who connect by it: all are one peer, on this machine.
const OF_UNIX: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// An address; port 0 takes any free port.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A socket that listens, not yet at home in any runtime.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

impl From<std::net::TcpListener> for Socket {
    fn from(listener: std::net::TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl Socket {
    /// Begins to listen, inside of a runtime. The file of a socket is gone when the second part is.
    pub(super) fn bind(at: &Listen) -> Result<(Self, Option<File>)> {
        match at {
            Listen::Tcp(address) => tcp(*address).map(|socket| (socket, None)),
            Listen::Unix(path) => unix(path).map(|(socket, file)| (socket, Some(file))),
        }
    }

    pub(super) fn try_clone(&self) -> Result<Self> {
        Ok(match self {
            Self::Tcp(listener) => Self::Tcp(listener.try_clone()?),
            Self::Unix(listener) => Self::Unix(listener.try_clone()?),
        })
    }

    pub(super) fn local_addr(&self) -> Result<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr(),
            Self::Unix(_) => Ok(OF_UNIX),
        }
    }
}

fn tcp(address: SocketAddr) -> Result<Socket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restart need not wait for the last connections of the one before.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)?.into_std().map(Socket::Tcp)
}

/// Made under another name and then put in its place: nobody connects before its mode is set, and what a gateway that
/// was killed has left behind is replaced at once.
fn unix(path: &Path) -> Result<(Socket, File)> {
    let wrong = |why: &str| Error::other(format!("unix:{}: {why}", path.display()));
    match fs::symlink_metadata(path) {
        Ok(there) if !there.file_type().is_socket() => {
            return Err(wrong("there is a file that is no socket"));
        }
        Ok(_) => match std::os::unix::net::UnixStream::connect(path) {
            Ok(_) => return Err(wrong("somebody listens there already")),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(wrong(&format!("who listens there? {error}"))),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(wrong(&error.to_string())),
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", process::id()));
    let beside = PathBuf::from(beside);
    let made = || {
        let _ = fs::remove_file(&beside); // of a process that had our number and was killed
        let socket = UnixSocket::new_stream()?;
        socket.bind(&beside)?;
        fs::set_permissions(&beside, Permissions::from_mode(MODE))?;
        let listener = socket.listen(BACKLOG)?.into_std()?;
        fs::rename(&beside, path)?;
        File::of(path).map(|file| (Socket::Unix(listener), file))
    };
    made().map_err(|error| {
        let _ = fs::remove_file(&beside);
        wrong(&error.to_string())
    })
}

/// The file of a socket, removed when this is dropped, unless another gateway has put its own there.
#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
    is: (u64, u64),
}

impl File {
    fn of(path: &Path) -> Result<Self> {
        let is = fs::symlink_metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            is: (is.dev(), is.ino()),
        })
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let same = |now: fs::Metadata| (now.dev(), now.ino()) == self.is;
        if fs::symlink_metadata(&self.path).is_ok_and(same) {
            let _ = fs::remove_file(&self.path); // the next one to listen there removes it as well
        }
    }
}

/// A socket that a worker accepts from.
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    pub(super) fn new(socket: Socket) -> Result<Self> {
        Ok(match socket {
            Socket::Tcp(listener) => Self::Tcp(TcpListener::from_std(listener)?),
            Socket::Unix(listener) => Self::Unix(UnixListener::from_std(listener)?),
        })
    }

    pub(super) async fn accept(&self) -> Result<(Wire, SocketAddr)> {
        match self {
            Self::Tcp(listener) => {
                let (io, addr) = listener.accept().await?;
                // Answers are written whole or event by event; waiting to fill a packet only delays them. If the peer
                // has gone already this fails, and reading will say so.
                let _ = io.set_nodelay(true);
                Ok((Wire::Tcp(io), addr))
            }
            Self::Unix(listener) => {
                let (io, _) = listener.accept().await?;
                Ok((Wire::Unix(io), OF_UNIX))
            }
        }
    }
}
