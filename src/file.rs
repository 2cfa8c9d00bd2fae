//! Files written whole or not at all. Every result the crate leaves on disk goes through here: pictures, pages, tables,
//! models. Seen by every module, sees only the error.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};

/// A temporary file that nobody holds and that is older than this was left by a process that was killed.
const STRAY: Duration = Duration::from_secs(60);

/// The temporary files of this process, for [`discard_drafts`].
static OPEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

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
    let mut draft = Draft::new(path)?;
    draft.write_all(bytes).map_err(|source| Error::new(ErrorKind::Io { path: path.to_path_buf(), source }))?;
    draft.finish()
}

/// A file that is written piece by piece and takes its name when it is [finished](Draft::finish): until then, and when
/// it is dropped, what was there stays.
///
/// A process that is killed leaves its temporary file behind, hidden and never mistaken for the real one; the next
/// draft of the same file removes it.
#[derive(Debug)]
pub struct Draft {
    file: io::BufWriter<File>,
    temporary: Option<PathBuf>,
    target: PathBuf,
    /// As the caller wrote it, for messages.
    path: PathBuf,
}

impl Draft {
    /// Begins a file. What is no ordinary file (`/dev/stdout`, a pipe) is written directly.
    ///
    /// # Errors
    /// As [`write_atomically`].
    pub fn new(path: &Path) -> Result<Self> {
        Self::begin(path).map_err(|source| Error::new(ErrorKind::Io { path: path.to_path_buf(), source }))
    }

    fn begin(path: &Path) -> io::Result<Self> {
        // A link is followed: renaming over it would leave its target as it was.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let path = path.to_path_buf();
        match fs::metadata(&target) {
            Ok(found) if found.is_dir() => return Err(io::Error::from(io::ErrorKind::IsADirectory)),
            Ok(found) if !found.is_file() => {
                let file = io::BufWriter::new(OpenOptions::new().write(true).open(&target)?);
                return Ok(Self { file, temporary: None, target, path });
            }
            Ok(found) if found.permissions().readonly() => {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let Some(name) = target.file_name() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"));
        };
        // Short, so that a name near the limit of the file system does not make a temporary name beyond it.
        let stem: String = name.to_string_lossy().chars().take(20).collect();
        sweep(directory(&target), &stem);
        let (file, temporary) = create_beside(directory(&target), &stem)?;
        Ok(Self { file: io::BufWriter::new(file), temporary: Some(temporary), target, path })
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// When what was written cannot be brought to disk; a file that was there is unchanged.
    pub fn finish(mut self) -> Result<()> {
        self.end().map_err(|source| Error::new(ErrorKind::Io { path: self.path.clone(), source }))
    }

    fn end(&mut self) -> io::Result<()> {
        self.file.flush()?;
        let Some(temporary) = &self.temporary else { return Ok(()) };
        if let Ok(before) = fs::metadata(&self.target) {
            self.file.get_ref().set_permissions(before.permissions())?;
        }
        self.file.get_ref().sync_all()?;
        fs::rename(temporary, &self.target)?;
        forget(temporary);
        self.temporary = None;
        // The new name survives a power cut once the directory is on disk. Not every file system can do that, and the
        // file itself is complete either way.
        if let Ok(opened) = File::open(directory(&self.target)) {
            let _ = opened.sync_all();
        }
        Ok(())
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
            forget(temporary);
        }
    }
}

/// Removes the temporary files of every draft of this process: for one that is about to end in the middle of its work.
/// Those drafts cannot be finished any more.
pub fn discard_drafts() {
    open_drafts().drain(..).for_each(|temporary| {
        let _ = fs::remove_file(temporary);
    });
}

fn open_drafts() -> MutexGuard<'static, Vec<PathBuf>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn forget(temporary: &Path) {
    open_drafts().retain(|path| path != temporary);
}

fn directory(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A fresh hidden file, named after the stem, this process and a counter, and locked for as long as it is written: the
/// lock goes with the process, however it ends.
fn create_beside(directory: &Path, stem: &str) -> io::Result<(File, PathBuf)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let mut tries = 0;
    loop {
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let temporary = directory.join(format!(".{stem}.{}-{count}.tmp", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => {
                // Where the file system has no locks, age alone tells strays.
                let _ = file.try_lock();
                open_drafts().push(temporary.clone());
                return Ok((file, temporary));
            }
            // Left behind by a process of the same number that was killed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < 100 => tries += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Removes what killed processes left of earlier drafts of the same file. Failing to is no harm.
fn sweep(directory: &Path, stem: &str) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let prefix = format!(".{stem}.");
    for entry in entries.flatten() {
        let name = entry.file_name();
        let middle = name.to_str().and_then(|n| n.strip_prefix(&prefix)?.strip_suffix(".tmp"));
        let ours = middle
            .and_then(|m| m.split_once('-'))
            .is_some_and(|(process, count)| process.parse::<u32>().is_ok() && count.parse::<u64>().is_ok());
        let old = || entry.metadata().and_then(|m| m.modified()).is_ok_and(|t| t.elapsed().is_ok_and(|a| a > STRAY));
        if ours && old() && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(entry.path());
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
    fn a_draft_that_is_not_finished_leaves_the_old_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("model");
        fs::write(&path, b"old").unwrap();
        // Dropped at every step: begun, half written, flushed, and on disk but without its name.
        for step in 0..4 {
            let mut draft = Draft::new(&path).unwrap();
            if step > 0 {
                draft.write_all(&[b'x'; 10_000]).unwrap();
            }
            if step > 1 {
                draft.flush().unwrap();
            }
            if step > 2 {
                draft.file.get_ref().sync_all().unwrap();
            }
            assert_eq!(fs::read(&path).unwrap(), b"old");
            assert_eq!(names(directory.path()).len(), 2);
            drop(draft);
            assert_eq!((fs::read(&path).unwrap(), names(directory.path())), (b"old".to_vec(), vec!["model".into()]));
        }
        let mut draft = Draft::new(&path).unwrap();
        draft.write_all(b"new").unwrap();
        draft.finish().unwrap();
        assert_eq!((fs::read(&path).unwrap(), names(directory.path())), (b"new".to_vec(), vec!["model".into()]));
    }

    /// Run by the test below in a process that is killed: it writes half a file and waits.
    #[test]
    #[ignore = "runs inside the next test"]
    fn child_that_is_killed() {
        let path = PathBuf::from(std::env::var_os("COVARY_TEST_KILLED").unwrap());
        let mut draft = Draft::new(&path).unwrap();
        draft.write_all(&[b'x'; 100_000]).unwrap();
        draft.flush().unwrap();
        fs::write(path.with_extension("half"), b"").unwrap();
        std::thread::sleep(Duration::from_secs(60));
    }

    #[test]
    fn a_kill_in_the_middle_leaves_the_old_file_and_the_next_draft_tidies() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("model");
        fs::write(&path, b"old").unwrap();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "file::tests::child_that_is_killed"])
            .env("COVARY_TEST_KILLED", &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let half = path.with_extension("half");
        while !half.exists() {
            assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
            std::thread::sleep(Duration::from_millis(5));
        }
        let stray = names(directory.path()).into_iter().find(|n| n.ends_with(".tmp")).unwrap();
        let stray = directory.path().join(stray);
        // However old it looks, a draft that somebody still writes is left alone.
        let aged = |path: &Path| {
            let file = OpenOptions::new().write(true).open(path).unwrap();
            file.set_modified(std::time::SystemTime::now() - 2 * STRAY).unwrap();
        };
        aged(&stray);
        drop(Draft::new(&path).unwrap());
        assert!(stray.exists());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert!(stray.exists());
        write_atomically(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(directory.path()), ["model", "model.half"]);
    }

    #[test]
    fn other_hidden_files_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("model");
        for name in [".model.mine.tmp", ".model.1-2.tmp.keep", ".models.1-2.tmp"] {
            let file = File::create(directory.path().join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - 2 * STRAY).unwrap();
        }
        write_atomically(&path, b"new").unwrap();
        assert_eq!(names(directory.path()).len(), 4);
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
