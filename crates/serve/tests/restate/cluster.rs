//! Three nodes and two workers: both workers and a node are killed, a node is cut off, and the disk of a node is full.
//! `tests/chaos/cluster` runs it. It needs root: each node has a network namespace and a file system of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// The addresses of the nodes, and of the workers.
const NODES: [&str; 3] = ["10.213.0.1", "10.213.0.2", "10.213.0.3"];
pub(super) const WORKERS: &str = "10.213.0.254";
/// The port for clients in `examples/restate/three-nodes.toml`.
pub(super) const INGRESS: u16 = 8070;
/// Only for a test that fails.
const LIMIT: Duration = Duration::from_secs(600);
/// The size of the file system of a node.
const DISK: &str = "size=4g";

/// Three nodes on one bridge, and the workers at its end.
pub(super) struct Cluster {
    nodes: Vec<Option<Child>>,
    folder: tempfile::TempDir,
    client: Client,
}

impl Cluster {
    /// Starts the nodes. Returns `None` unless `DEFTOOL_CLUSTER` is `required`.
    pub(super) fn start() -> Option<Self> {
        if std::env::var("DEFTOOL_CLUSTER").as_deref() != Ok("required") {
            return None;
        }
        remove_network();
        ip("link add dfbridge type bridge");
        ip(&format!("addr add {WORKERS}/24 dev dfbridge"));
        ip("link set dfbridge up");
        let folder = tempfile::tempdir().unwrap();
        let mut cluster = Self { nodes: vec![None, None, None], folder, client: Client::new() };
        for (node, address) in NODES.iter().enumerate() {
            let name = namespace(node);
            ip(&format!("netns add {name}"));
            ip(&format!("link add {name} type veth peer name eth0 netns {name}"));
            ip(&format!("link set {name} master dfbridge up"));
            ip(&format!("-n {name} addr add {address}/24 dev eth0"));
            ip(&format!("-n {name} link set eth0 up"));
            ip(&format!("-n {name} link set lo up"));
            std::fs::create_dir(cluster.disk(node)).unwrap();
            run(Command::new("mount").args(["-t", "tmpfs", "-o", DISK, "tmpfs"]).arg(cluster.disk(node)));
            cluster.start_node(node);
        }
        cluster.wait_until_ready();
        Some(cluster)
    }

    fn disk(&self, node: usize) -> PathBuf {
        self.folder.path().join(format!("n{}", node + 1))
    }

    fn start_node(&mut self, node: usize) {
        let start = start_script().unwrap();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &namespace(node)]).arg(start.get_program());
        command.envs(start.get_envs().filter_map(|(key, value)| Some((key, value?))));
        command.arg(format!("n{}", node + 1)).arg(self.disk(node)).args(NODES);
        self.nodes[node] = Some(spawn(command));
    }

    /// Returns the CPU time of all nodes.
    pub(super) fn cpu(&self, of: impl Fn(&Child) -> f64) -> f64 {
        self.nodes.iter().flatten().map(of).sum()
    }

    /// Returns the size of the data of all nodes.
    pub(super) fn size(&self, of: impl Fn(&Path) -> u64) -> u64 {
        (0..NODES.len()).map(|node| of(&self.disk(node))).sum()
    }

    fn kill_node(&mut self, node: usize) {
        kill(self.nodes[node].take().unwrap());
    }

    /// Starts a node that has ended by itself.
    fn restart_node(&mut self, node: usize) {
        if self.nodes[node].as_mut().is_none_or(|child| child.try_wait().unwrap().is_some()) {
            self.start_node(node);
        }
    }

    fn is_healthy(&self, node: usize) -> bool {
        let health = |port, path| {
            let url = format!("http://{}:{port}/{path}", NODES[node]);
            self.client.send(&url, None).is_some_and(|(status, _)| status == 200)
        };
        health(9070, "health") && health(INGRESS, "restate/health")
    }

    fn wait_until_ready(&self) {
        wait_until("all nodes are ready", || (0..NODES.len()).all(|node| self.is_healthy(node)));
    }

    /// Sends a request to the nodes in turn until one answers as `is_done` expects. A client that knows all nodes sees no
    /// error.
    pub(super) fn ask(
        &self,
        port: u16,
        path: &str,
        body: Option<&Value>,
        is_done: impl Fn(u16) -> bool,
    ) -> Value {
        let started = Instant::now();
        for node in NODES.iter().cycle() {
            match self.client.send(&format!("http://{node}:{port}/{path}"), body) {
                Some((status, answer)) if is_done(status) => return answer,
                last => assert!(started.elapsed() < LIMIT, "{path}: {last:?}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        unreachable!("the nodes are tried in turn");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for mut node in std::mem::take(&mut self.nodes).into_iter().flatten() {
            let _ = node.kill();
            let _ = node.wait();
        }
        for node in 0..NODES.len() {
            let _ = Command::new("umount").arg("-l").arg(self.disk(node)).status();
        }
        remove_network();
    }
}

/// The name of the network namespace of a node, and of its link.
fn namespace(node: usize) -> String {
    format!("dfnode{}", node + 1)
}

fn ip(arguments: &str) {
    run(Command::new("ip").args(arguments.split(' ')));
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Removes the network, also that of a test that was killed.
fn remove_network() {
    for node in 0..NODES.len() {
        let _ = Command::new("ip").args(["netns", "del", &namespace(node)]).output();
    }
    let _ = Command::new("ip").args(["link", "del", "dfbridge"]).output();
}

/// Distributes connections to workers, as a load balancer before them does.
struct Balancer {
    address: SocketAddr,
    workers: Arc<Mutex<Vec<SocketAddr>>>,
}

impl Balancer {
    fn start(runtime: &Runtime) -> Self {
        let listener = runtime.block_on(TcpListener::bind((WORKERS, 0))).unwrap();
        let workers = Arc::<Mutex<Vec<SocketAddr>>>::default();
        let (address, known) = (listener.local_addr().unwrap(), Arc::clone(&workers));
        let next = Arc::new(AtomicUsize::new(0));
        runtime.spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (known, next) = (Arc::clone(&known), Arc::clone(&next));
                tokio::spawn(async move {
                    let workers = known.lock().unwrap().clone();
                    let first = next.fetch_add(1, Ordering::Relaxed);
                    for index in 0..workers.len() {
                        if let Ok(mut worker) =
                            TcpStream::connect(workers[(first + index) % workers.len()]).await
                        {
                            let _ = copy_bidirectional(&mut client, &mut worker).await;
                            return;
                        }
                    }
                });
            }
        });
        Self { address, workers }
    }
}

/// A worker on a port of its own.
pub(super) fn serve(project: &Project, server: &Server, port: u16) -> Child {
    let address = format!("{WORKERS}:{port}");
    start_worker(serve_command(&address, project, server), &address)
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    /// A worker is killed, and started again later.
    Worker(usize),
    /// A node is killed, and started again later.
    Node(usize),
    /// A node does not reach the others, the workers and the clients.
    Partition(usize),
    /// The disk of a node is full.
    FullDisk(usize),
}

#[test]
fn nothing_is_lost_or_repeated_when_workers_nodes_network_and_disks_fail() {
    let Some(mut cluster) = Cluster::start() else { return };
    let seed = std::env::var("DEFTOOL_CHAOS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let requests = std::env::var("DEFTOOL_CHAOS_REQUESTS").ok().and_then(|count| count.parse().ok());
    let requests: usize = requests.unwrap_or(400);
    let mut random = fastrand::Rng::with_seed(seed);
    let project = project();
    project.write("specs/worker.eld", "(defworker :name \"many\" :slots 32)");
    for tool in ["look", "send", "pay"] {
        project.write(&format!("scripts/{tool}.lua"), SLOW_SCRIPT);
    }
    let server = in_turn(&TOOLS);
    let balancer = Balancer::start(&cluster.client.runtime);
    let ports = free_ports::<2>();
    let mut workers = ports.map(|port| serve(&project, &server, port));
    *balancer.workers.lock().unwrap() =
        ports.map(|port| format!("{WORKERS}:{port}").parse().unwrap()).to_vec();
    let deployment = json!({"uri": format!("http://{}", balancer.address)});
    cluster.ask(9070, "deployments", Some(&deployment), |status| status < 300);

    let mut faults = vec![Fault::Worker(0), Fault::Worker(1)];
    // n1 created the cluster and is its first leader.
    faults.extend([Fault::Node(0), Fault::Partition(random.usize(..3)), Fault::FullDisk(random.usize(..3))]);
    random.shuffle(&mut faults);
    let ids: Vec<String> = (0..requests).map(|number| format!("chaos-{seed}-{number}")).collect();
    let mut waiting = ids.iter();
    let started = Instant::now();
    for fault in &faults {
        // An equal part of the requests before each fault.
        for id in waiting.by_ref().take(requests / (faults.len() - 1)) {
            let path = format!("Request/{id}/run/send");
            cluster.ask(INGRESS, &path, Some(&json!({"prompt": "hello"})), |status| status < 300);
        }
        std::thread::sleep(Duration::from_millis(random.u64(0..500)));
        let lasts = Duration::from_millis(random.u64(2_000..8_000));
        eprintln!("{:>5.1} s: {fault:?} for {lasts:?}", started.elapsed().as_secs_f32());
        match *fault {
            Fault::Worker(number) => {
                workers[number].kill().unwrap();
                workers[number].wait().unwrap();
                std::thread::sleep(lasts);
                workers[number] = serve(&project, &server, ports[number]);
            }
            Fault::Node(node) => {
                cluster.kill_node(node);
                std::thread::sleep(lasts);
                cluster.start_node(node);
            }
            Fault::Partition(node) => {
                ip(&format!("link set {} down", namespace(node)));
                std::thread::sleep(lasts);
                ip(&format!("link set {} up", namespace(node)));
            }
            Fault::FullDisk(node) => {
                let ballast = cluster.disk(node).join("ballast");
                fill(&ballast);
                std::thread::sleep(lasts);
                std::fs::remove_file(ballast).unwrap();
                cluster.restart_node(node);
            }
        }
        cluster.wait_until_ready();
    }
    for id in &ids {
        let path = format!("restate/workflow/Request/{id}/attach");
        check_result(seed, &cluster.ask(INGRESS, &path, None, |status| status == 200));
    }
    println!(
        "seed {seed}: {requests} requests in {:.0} s, {}",
        started.elapsed().as_secs_f32(),
        Counts::of(&project, seed)
    );
    for worker in workers {
        kill(worker);
    }
}

/// Writes a file until the disk is full.
fn fill(path: &Path) {
    let mut file = std::fs::File::create(path).unwrap();
    let block = vec![1; 1 << 20];
    let error = loop {
        if let Err(error) = std::io::Write::write_all(&mut file, &block) {
            break error;
        }
    };
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
}
