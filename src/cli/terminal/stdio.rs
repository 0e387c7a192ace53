//! stdin and stdout as async streams, for protocols. tokio's own pass each read and each write to another thread, which
//! costs more than the message.
//!
//! Reads and writes must not block the runtime. The flag for that belongs to the open file, which other processes may
//! share: a shell that reads stdin after this process would fail. So a pipe is opened again, which gives it its own
//! flags, and a socket gets the flag with each operation. Other files use tokio's threads, as do pipes elsewhere than
//! on Linux.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

/// Returns stdin. Must be called in a tokio runtime.
pub(in crate::cli) fn stdin() -> Box<dyn AsyncRead + Send + Unpin> {
    #[cfg(unix)]
    if let Some(stream) = unix::input(&io::stdin()) {
        return stream;
    }
    Box::new(tokio::io::stdin())
}

/// Returns stdout. Must be called in a tokio runtime.
pub(in crate::cli) fn stdout() -> Box<dyn AsyncWrite + Send + Unpin> {
    #[cfg(unix)]
    if let Some(stream) = unix::output(&io::stdout()) {
        return stream;
    }
    Box::new(tokio::io::stdout())
}

#[cfg(unix)]
mod unix {
    use std::io;
    use std::os::fd::{AsFd, AsRawFd, OwnedFd};
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    use rustix::fs::{FileType, fstat};
    use rustix::net::{RecvFlags, SendFlags, recv, send};
    use tokio::io::unix::AsyncFd;
    use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
    use tokio::net::unix::pipe;

    /// Returns the stream of a pipe or socket. `None` for other files, and if the system does not allow it.
    pub(super) fn input(file: &impl AsFd) -> Option<Box<dyn AsyncRead + Send + Unpin>> {
        Some(match file_type(file)? {
            FileType::Fifo => Box::new(pipe::OpenOptions::new().open_receiver(reopened(file)?).ok()?),
            FileType::Socket => Box::new(Socket::new(file, Interest::READABLE)?),
            _ => return None,
        })
    }

    /// As [`input`], for output.
    pub(super) fn output(file: &impl AsFd) -> Option<Box<dyn AsyncWrite + Send + Unpin>> {
        Some(match file_type(file)? {
            FileType::Fifo => Box::new(pipe::OpenOptions::new().open_sender(reopened(file)?).ok()?),
            FileType::Socket => Box::new(Socket::new(file, Interest::WRITABLE)?),
            _ => return None,
        })
    }

    fn file_type(file: &impl AsFd) -> Option<FileType> {
        Some(FileType::from_raw_mode(fstat(file).ok()?.st_mode))
    }

    /// Returns a path that opens the file again. Elsewhere than on Linux, such a path returns the same open file.
    fn reopened(file: &impl AsFd) -> Option<String> {
        cfg!(target_os = "linux").then(|| format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()))
    }

    /// A socket whose flags stay as they are.
    struct Socket(AsyncFd<OwnedFd>);

    impl Socket {
        fn new(file: &impl AsFd, interest: Interest) -> Option<Self> {
            let file = file.as_fd().try_clone_to_owned().ok()?;
            // Deprecated for types that may change or close their descriptor. `OwnedFd` does neither.
            #[allow(deprecated)]
            let registered = AsyncFd::with_interest(file, interest);
            registered.ok().map(Self)
        }
    }

    impl AsyncRead for Socket {
        fn poll_read(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            loop {
                let mut ready = ready!(self.0.poll_read_ready(context))?;
                let free = buffer.initialize_unfilled();
                let received =
                    ready.try_io(|socket| Ok(recv(socket.get_ref(), &mut *free, RecvFlags::DONTWAIT)?));
                // Otherwise there was nothing to read.
                if let Ok(received) = received {
                    let (length, _) = received?;
                    buffer.advance(length);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }

    impl AsyncWrite for Socket {
        fn poll_write(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            loop {
                let mut ready = ready!(self.0.poll_write_ready(context))?;
                let sent = ready.try_io(|socket| Ok(send(socket.get_ref(), bytes, SendFlags::DONTWAIT)?));
                if let Ok(sent) = sent {
                    return Poll::Ready(sent);
                }
            }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }
}
