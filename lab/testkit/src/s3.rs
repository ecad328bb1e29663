//! A real S3 server over a folder (versitygw) on a port of 127.0.0.1, and a proxy in between that delays, cuts and
//! refuses requests as networks and services do.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tempfile::TempDir;

use crate::server::free_port;
use crate::{Error, IoContext, Result, Tool};

const ACCESS_KEY: &str = "tester";
const SECRET_KEY: &str = "tester-secret";
/// The bucket that is there.
pub const BUCKET: &str = "bucket";
/// How long it may take to start.
const START_LIMIT: Duration = Duration::from_secs(30);

/// An S3 server. Gone when dropped, with its objects.
#[derive(Debug)]
pub struct S3Server {
    process: Child,
    port: u16,
    folder: TempDir,
}

impl S3Server {
    /// Starts one with an empty bucket; `None` after saying `SKIPPED` aloud where it can't be had, unless servers are
    /// required.
    pub fn start() -> Option<S3Server> {
        match Self::try_start() {
            Ok(server) => return Some(server),
            Err(Error::Unavailable(reason)) => crate::tool::skip(&reason),
            Err(error) => panic!("the S3 server does not start: {error}"),
        }
        None
    }

    fn try_start() -> Result<S3Server> {
        let installed = Tool::Versitygw.find()?;
        let folder = tempfile::tempdir().map_err(|error| Error::Io("make a folder".into(), error))?;
        for name in ["data", "data/bucket", "meta"] {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).at("make", &path)?;
        }
        let port = free_port()?;
        let mut command = installed.command("versitygw");
        command.args(["--access", ACCESS_KEY, "--secret", SECRET_KEY, "--quiet"]);
        command.args(["--port", &format!("127.0.0.1:{port}"), "posix", "--sidecar"]);
        command.arg(folder.path().join("meta")).arg(folder.path().join("data"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().map_err(|error| Error::Io("run versitygw".into(), error))?;
        let mut server = S3Server { process, port, folder };
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if server.process.try_wait().is_ok_and(|ended| ended.is_some()) || begin.elapsed() > START_LIMIT {
                return Err(Error::Failed(format!("versitygw does not listen on port {port}")));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The variables for a client's environment.
    pub fn settings(&self) -> Vec<(String, String)> {
        settings(self.port)
    }

    /// The bucket's contents, as files.
    pub fn bucket(&self) -> PathBuf {
        self.folder.path().join("data").join(BUCKET)
    }
}

fn settings(port: u16) -> Vec<(String, String)> {
    let endpoint = format!("http://127.0.0.1:{port}");
    [
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
        ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", &endpoint),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

impl Drop for S3Server {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The fate of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestFault {
    /// Nothing: the server answers it.
    Pass,
    /// This status and body are the answer; the server never sees it.
    Answer(u16, String),
    /// Half of the upload reaches the server; then both connections are closed.
    CutUpload,
    /// The server has it whole, and its answer is lost.
    LoseAnswer,
    /// Half of the answer comes.
    CutAnswer,
    /// Nothing comes, for as long as this.
    Stall(Duration),
    /// The connection is reset while the request still comes.
    Reset,
}

type Plan = dyn Fn(usize, &str) -> RequestFault + Send + Sync;

/// A proxy between clients and an S3 server, with a plan for each request.
#[derive(Debug)]
pub struct FaultProxy {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    heads: Arc<Mutex<Vec<String>>>,
}

impl FaultProxy {
    /// Listens until the process ends; `plan` is asked with the number of the request and its first line, such as
    /// `PUT /bucket/key?partNumber=1 HTTP/1.1`.
    pub fn start(
        server: &S3Server,
        plan: impl Fn(usize, &str) -> RequestFault + Send + Sync + 'static,
    ) -> Result<FaultProxy> {
        let bound = TcpListener::bind(("127.0.0.1", 0));
        let listener = bound.map_err(|error| Error::Io("listen".into(), error))?;
        let port = listener.local_addr().map_err(|error| Error::Io("listen".into(), error))?.port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (seen, plan, upstream): (_, Arc<Plan>, _) = (Arc::clone(&requests), Arc::new(plan), server.port);
        let seen_heads = Arc::clone(&heads);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let seen = Arc::clone(&seen);
                let heads = Arc::clone(&seen_heads);
                let plan = Arc::clone(&plan);
                // A connection that breaks is what tests ask for.
                thread::spawn(move || serve(&client, upstream, (&seen, &heads), plan.as_ref()).ok());
            }
        });
        Ok(FaultProxy { port, requests, heads })
    }

    /// The variables for a client's environment.
    pub fn settings(&self) -> Vec<(String, String)> {
        settings(self.port)
    }

    /// The first lines of the requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }

    /// The requests so far, with their headers.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().clone()
    }
}

/// One request and its answer: the server closes after each.
fn serve(
    client: &TcpStream,
    upstream: u16,
    (seen, heads): (&Mutex<Vec<String>>, &Mutex<Vec<String>>),
    plan: &Plan,
) -> io::Result<()> {
    let mut reader = BufReader::new(client);
    let mut head = Vec::new();
    let mut size = 0;
    loop {
        let begin = head.len();
        if reader.read_until(b'\n', &mut head)? == 0 {
            return Ok(());
        }
        let line = String::from_utf8_lossy(&head[begin..]).to_ascii_lowercase();
        if let Some(length) = line.strip_prefix("content-length:") {
            size = length.trim().parse().unwrap_or(0);
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let first = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
    heads.lock().push(String::from_utf8_lossy(&head).into_owned());
    let number = {
        let mut seen = seen.lock();
        seen.push(first.clone());
        seen.len() - 1
    };
    let mut to_client = client;
    let fault = plan(number, &first);
    if fault == RequestFault::Reset && size > 0 {
        // The system resets a connection that is closed with bytes nobody has read.
        return client.set_nonblocking(true);
    }
    let mut body = vec![0; size];
    reader.read_exact(&mut body)?;
    match &fault {
        RequestFault::Answer(status, body) => {
            let length = body.len();
            write!(
                to_client,
                "HTTP/1.1 {status} Fault\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )?;
            return client.shutdown(Shutdown::Write);
        }
        RequestFault::Stall(time) => {
            thread::sleep(*time);
            return Ok(());
        }
        RequestFault::CutUpload => body.truncate(size / 2),
        RequestFault::Pass | RequestFault::LoseAnswer | RequestFault::CutAnswer | RequestFault::Reset => {}
    }
    let mut server = TcpStream::connect(("127.0.0.1", upstream))?;
    server.write_all(&head)?;
    server.write_all(&body)?;
    if fault == RequestFault::CutUpload {
        return Ok(());
    }
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    match fault {
        RequestFault::LoseAnswer | RequestFault::Reset => Ok(()),
        RequestFault::CutAnswer => to_client.write_all(&answer[..answer.len() / 2]),
        _ => to_client.write_all(&answer),
    }
}
