//! An address that answers nobody.

use std::net::{SocketAddr, TcpStream};

use socket2::{Domain, Socket, Type};

/// An address of which no connection ever comes: its queue is full.
#[derive(Debug)]
pub(crate) struct BlackHole {
    addr: SocketAddr,
    _socket: Socket,
    _first: TcpStream,
}

// === impl BlackHole ===

impl BlackHole {
    pub(crate) fn open() -> Self {
        Self::try_open().expect("a free port on loopback")
    }

    fn try_open() -> std::io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        let any: SocketAddr = ([127, 0, 0, 1], 0).into();
        socket.bind(&any.into())?;
        socket.listen(0)?;
        let addr = socket.local_addr()?.as_socket().unwrap_or(any);
        // The queue has room for one; whoever comes next gets no answer at all.
        let first = TcpStream::connect(addr)?;
        Ok(Self {
            addr,
            _socket: socket,
            _first: first,
        })
    }

    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.addr)
    }
}
