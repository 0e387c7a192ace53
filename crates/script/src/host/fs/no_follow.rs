//! Functions that open files and folders without following links or blocking.

use std::path::Path;

use cap_std::fs::{Dir, OpenOptions};

/// Opens the folder `name` in `dir`. Does not follow a link.
pub(super) fn open_folder(dir: &Dir, name: &Path) -> std::io::Result<Dir> {
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt as _;
        use rustix::fs::OFlags;

        let mut options = OpenOptions::new();
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.read(true).custom_flags(flags.bits().cast_signed());
        Ok(Dir::from_std_file(dir.open_with(name, &options)?.into_std()))
    }
    #[cfg(not(unix))]
    dir.open_dir(name)
}

/// Sets `options` so that opening neither blocks nor follows a link.
pub(super) fn set_nonblocking_no_follow(options: &mut OpenOptions) {
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt as _;
        use rustix::fs::OFlags;

        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    #[cfg(not(unix))]
    let _ = options;
}
