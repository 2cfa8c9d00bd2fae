//! Files written whole or not at all. Every result the crate leaves on disk goes through here: pictures, pages, tables,
//! models. Seen by every module, sees only the error.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, ErrorKind, Result};

/// Writes `bytes` to `path` so that a reader, a crash or a full disk never sees half a file.
///
/// The bytes go to a temporary file in the same directory, are forced to disk, and take the name in one step. The
/// permissions of a file that is replaced are kept, and a symbolic link keeps pointing where it did. What is no
/// ordinary file (`/dev/stdout`, a pipe) is written directly, for there is nothing to replace.
///
/// # Errors
///
/// A directory that does not exist or cannot be written, a file that is marked read-only, a full disk. The error names
/// `path`; a file that was there is unchanged, and no temporary file stays behind.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    write(path, bytes).map_err(|source| Error::new(ErrorKind::Io { path: path.to_path_buf(), source }))
}

/// A file that is written piece by piece and takes its name when it is [finished](Draft::finish): until then, and when
/// it is dropped, what was there stays.
#[derive(Debug)]
pub struct Draft {
    file: io::BufWriter<File>,
    temporary: Option<PathBuf>,
    target: PathBuf,
}

impl Draft {
    /// Begins a file. What is no ordinary file (`/dev/stdout`, a pipe) is written directly.
    ///
    /// # Errors
    /// As [`write_atomically`].
    pub fn new(path: &Path) -> Result<Self> {
        let begin = || {
            let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
            match fs::metadata(&target) {
                Ok(found) if found.is_dir() => return Err(io::Error::from(io::ErrorKind::IsADirectory)),
                Ok(found) if !found.is_file() => {
                    let file = io::BufWriter::new(OpenOptions::new().write(true).open(&target)?);
                    return Ok(Self { file, temporary: None, target });
                }
                Ok(found) if found.permissions().readonly() => {
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
                }
                _ => {}
            }
            let Some(name) = target.file_name() else {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"));
            };
            let directory = match target.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            };
            let (file, temporary) = create_beside(directory, name)?;
            Ok(Self { file: io::BufWriter::new(file), temporary: Some(temporary), target })
        };
        begin().map_err(|source| Error::new(ErrorKind::Io { path: path.to_path_buf(), source }))
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// When what was written cannot be brought to disk; a file that was there is unchanged.
    pub fn finish(mut self) -> Result<()> {
        let mut end = || {
            self.file.flush()?;
            let Some(temporary) = &self.temporary else { return Ok(()) };
            if let Ok(before) = fs::metadata(&self.target) {
                self.file.get_ref().set_permissions(before.permissions())?;
            }
            self.file.get_ref().sync_all()?;
            fs::rename(temporary, &self.target)?;
            self.temporary = None;
            Ok(())
        };
        end().map_err(|source| Error::new(ErrorKind::Io { path: self.target.clone(), source }))
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Nothing more can be done about a temporary file that stays.
            let _ = fs::remove_file(temporary);
        }
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link is followed: renaming over it would leave its target as it was.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let before = match fs::metadata(&target) {
        Ok(found) => Some(found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if let Some(found) = &before {
        if found.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        if !found.is_file() {
            let mut device = OpenOptions::new().write(true).open(&target)?;
            device.write_all(bytes)?;
            return device.flush();
        }
        if found.permissions().readonly() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
        }
    }
    let Some(name) = target.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"));
    };
    let directory = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let (mut file, temporary) = create_beside(directory, name)?;
    let permissions = before.map(|found| found.permissions());
    let done = file
        .write_all(bytes)
        .and_then(|()| permissions.map_or(Ok(()), |kept| file.set_permissions(kept)))
        .and_then(|()| file.sync_all());
    drop(file);
    if let Err(error) = done.and_then(|()| fs::rename(&temporary, &target)) {
        // The first error is the one to report; a temporary file that cannot be removed changes nothing about it.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    // The new name survives a power cut once the directory is on disk. Not every file system can do that, and the
    // file itself is complete either way.
    if let Ok(opened) = File::open(directory) {
        let _ = opened.sync_all();
    }
    Ok(())
}

/// A fresh hidden file in `directory`, named after `name`, this process and a counter.
fn create_beside(directory: &Path, name: &std::ffi::OsStr) -> io::Result<(File, PathBuf)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    // Short, so that a name near the limit of the file system does not make a temporary name beyond it.
    let stem: String = name.to_string_lossy().chars().take(20).collect();
    let mut tries = 0;
    loop {
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let temporary = directory.join(format!(".{stem}.{}-{count}.tmp", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((file, temporary)),
            // Left behind by a process of the same number that was killed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < 100 => tries += 1,
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_and_nothing_else_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.svg");
        write_atomically(&path, b"one").unwrap();
        write_atomically(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(directory.path()), ["out.svg"]);
    }

    #[test]
    fn a_missing_directory_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("none").join("out.svg");
        let error = write_atomically(&path, b"x").unwrap_err();
        assert!(error.to_string().contains("out.svg"), "{error}");
        assert!(matches!(error.kind(), ErrorKind::Io { path: p, .. } if *p == path));
    }

    #[test]
    fn a_directory_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        fs::create_dir(&path).unwrap();
        assert!(write_atomically(&path, b"x").is_err());
        assert_eq!(names(directory.path()), ["out"]);
        assert!(write_atomically(Path::new("/"), b"x").is_err());
        assert!(write_atomically(Path::new(""), b"x").is_err());
    }

    #[test]
    fn a_read_only_file_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.svg");
        fs::write(&path, b"old").unwrap();
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions).unwrap();
        assert!(write_atomically(&path, b"new").is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(directory.path()), ["out.svg"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_keeps_pointing_and_permissions_stay() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().join("real.svg");
        let link = directory.path().join("link.svg");
        fs::write(&real, b"old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write_atomically(&link, b"new").unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        write_atomically(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    /// Run by the test below in a process that may write no more than 4 KiB to a file.
    #[cfg(unix)]
    #[test]
    #[ignore = "runs inside the next test"]
    fn child_with_a_full_disk() {
        let path = PathBuf::from(std::env::var_os("COVARY_TEST_FULL").unwrap());
        let error = write_atomically(&path, &[b'x'; 100_000]).unwrap_err();
        assert!(error.to_string().contains("out.svg"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_full_disk_leaves_the_old_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.svg");
        fs::write(&path, b"old").unwrap();
        // Without the trap the signal would end the child before `write` can say that there is no room.
        let script = "trap '' XFSZ; ulimit -f 4; exec \"$0\" --ignored --exact file::tests::child_with_a_full_disk";
        let out = std::process::Command::new("bash")
            .args(["-c", script])
            .arg(std::env::current_exe().unwrap())
            .env("COVARY_TEST_FULL", &path)
            .output();
        let Ok(out) = out else { return }; // no bash here
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
        assert!(String::from_utf8_lossy(&out.stdout).contains("1 passed"));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(directory.path()), ["out.svg"]);
    }
}
