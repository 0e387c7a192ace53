//! Conversion of scripts to messages and back.

use std::sync::Arc;

use deftool_process::frame::Octets;

use super::protocol::WireScript;
use crate::permission::{PathGrant, ScriptPermissions};
use crate::script::module::Module;
use crate::script::{Parameter, Script};

impl WireScript {
    /// Converts `script`. The memory limit is `memory` bytes if the script sets none.
    pub(super) fn of(script: &Script, memory: u64) -> Self {
        let grants = |grants: &[PathGrant]| {
            grants.iter().map(|grant| (grant.name.clone(), Octets::of_path(&grant.path))).collect()
        };
        let ScriptPermissions { net, read, write, run, env } = &script.permissions;
        Self {
            tool: script.tool.clone(),
            file: script.file.clone(),
            source: Octets::of(&script.source),
            parameters: script
                .parameters
                .iter()
                .map(|parameter| (parameter.name.clone(), parameter.integer))
                .collect(),
            is_async: script.is_async,
            memory: script.memory.unwrap_or(memory),
            root: script.root.as_deref().map(Octets::of_path),
            modules: script
                .modules
                .iter()
                .map(|module| (module.file.clone(), Octets::of(&module.source)))
                .collect(),
            net: net.clone(),
            read: grants(read),
            write: grants(write),
            run: run.clone(),
            env: env.clone(),
        }
    }

    pub(super) fn into_script(self) -> Arc<Script> {
        let grants = |grants: Vec<(String, Octets)>| {
            grants.into_iter().map(|(name, path)| PathGrant { name, path: path.into_path() }).collect()
        };
        let mut script = Script::new(self.tool, self.file, self.source.bytes());
        script.parameters =
            self.parameters.into_iter().map(|(name, integer)| Parameter { name, integer }).collect();
        script.is_async = self.is_async;
        script.memory = Some(self.memory);
        script.root = self.root.map(Octets::into_path);
        script.modules = self
            .modules
            .into_iter()
            .map(|(file, source)| Arc::new(Module::new(file, source.bytes())))
            .collect();
        script.permissions = ScriptPermissions {
            net: self.net,
            read: grants(self.read),
            write: grants(self.write),
            run: self.run,
            env: self.env,
        };
        Arc::new(script)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::ffi::OsStr;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn scripts_round_trip() {
        let odd = PathBuf::from(<OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"/n\xffotes"));
        let mut script = Script::new("t", "scripts/t.lua", b"return \xff");
        script.parameters = vec![Parameter { name: String::from("n"), integer: true }];
        script.permissions.read = vec![PathGrant { name: String::from("notes/"), path: odd.clone() }];
        script.root = Some(odd);
        script.modules = Arc::new([Arc::new(Module::new("scripts/lib/a.lua", "return 1"))]);
        let sent = serde_json::to_string(&WireScript::of(&script, 5)).unwrap();
        let arrived = serde_json::from_str::<WireScript>(&sent).unwrap().into_script();
        assert_eq!(arrived.source, script.source);
        assert_eq!(arrived.parameters, script.parameters);
        assert_eq!(arrived.permissions, script.permissions);
        assert_eq!(arrived.memory, Some(5));
        assert_eq!(arrived.root, script.root);
        assert_eq!(arrived.modules[0].file, "scripts/lib/a.lua");
        assert_eq!(&*arrived.modules[0].source, b"return 1");
    }
}
