use std::fs;
use std::path::PathBuf;

use crate::error::Error;
use crate::process::Process;
use crate::workspace::Workspace;

const NS3_FLAGS: [&str; 3] = ["-std=c++17", "-O3", "-DNDEBUG"];
const NS3_LIBRARIES: [&str; 4] = ["-lns3-core", "-lns3-network", "-lns3-internet", "-lns3-point-to-point"];

/// A network simulator of another project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    Ns2,
    Ns3,
}

impl Peer {
    pub(super) const ALL: [Self; 2] = [Self::Ns2, Self::Ns3];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ns2 => "ns-2",
            Self::Ns3 => "ns-3",
        }
    }

    /// The names of the Debian packages that the simulator needs, separated by spaces.
    pub(super) fn packages(self) -> &'static str {
        match self {
            Self::Ns2 => "ns2",
            Self::Ns3 => "g++ libns3-dev",
        }
    }

    /// Returns the names and versions of the simulator's Debian packages, or the simulator's name if dpkg does not know
    /// the packages.
    pub(super) fn version(self) -> String {
        let query = Process::new("dpkg-query").arguments(["--show", "--showformat", "${Package} ${Version}, "]);
        let packages = query.arguments(self.packages().split(' ')).output();
        packages.map_or_else(|_| self.name().to_string(), |known| known.trim_end_matches(", ").to_string())
    }

    /// Builds the simulator's program for a scenario, if it must be built. Returns the command, to which the arguments
    /// of a run must be appended; `None` if the simulator is not installed.
    pub(super) fn prepare(self, workspace: &Workspace, scenario: &str) -> Result<Option<Vec<PathBuf>>, Error> {
        let source = |ending| workspace.path(format!("bench/peers/{scenario}.{ending}"));
        match self {
            Self::Ns2 => {
                let installed = Process::new("ns").argument("/dev/null").succeeds();
                Ok(installed.then(|| vec![PathBuf::from("ns"), source("tcl")]))
            }
            Self::Ns3 => {
                let header = ["-E", "-include", "ns3/ptr.h", "-x", "c++", "/dev/null"];
                if !Process::new("g++").arguments(header).succeeds() {
                    return Ok(None);
                }
                let folder = workspace.target("peers");
                fs::create_dir_all(&folder).map_err(|source| Error::File {
                    verb: "create",
                    path: folder.clone(),
                    source,
                })?;
                let program = folder.join(scenario);
                let compiler = Process::new("g++").arguments(NS3_FLAGS).argument(source("cc"));
                compiler
                    .argument("-o")
                    .argument(&program)
                    .argument("-Wl,--as-needed")
                    .arguments(NS3_LIBRARIES)
                    .run()?;
                Ok(Some(vec![program]))
            }
        }
    }
}

/// Parses simulator names separated by commas; `None` if a name is unknown.
pub(super) fn peers(value: &str) -> Option<Vec<Peer>> {
    value.split(',').map(|name| Peer::ALL.into_iter().find(|peer| peer.name() == name)).collect()
}
