internal import Glibc

/// A file that appears whole or not at all.
///
/// It is written under another name beside its place and renamed by `finish()`; without that, and
/// on Ctrl-C, it is removed. Standard output, `-`, and a path that is no ordinary file (a pipe) are
/// written as they are.
final class OutputFile {
    private let path: String
    private let temporaryPath: String?
    private let descriptor: Int32
    private let output: Output
    private var cleanup: Int?
    private var isOpen = true

    /// Opens the file for writing.
    ///
    /// - Throws: `CommandFailure` when the folder is not there or the file cannot be written.
    init(path: String) throws(CommandFailure) {
        self.path = path
        var status = stat()
        let exists = unsafe stat(path, &status) == 0
        // What `/dev/stdout` stands for may be an ordinary file, but not one to be renamed.
        let isOrdinary =
            path != "-" && !path.hasPrefix("/dev/") && !path.hasPrefix("/proc/")
            && (!exists || status.st_mode & S_IFMT == S_IFREG)
        temporaryPath = isOrdinary ? "\(path).part-\(getpid())" : nil
        let flags = O_WRONLY | O_CREAT | O_CLOEXEC | (isOrdinary ? O_TRUNC : 0)
        descriptor = path == "-" ? dup(1) : unsafe open(temporaryPath ?? path, flags, 0o644)
        output = Output(descriptor: descriptor, name: path)
        guard descriptor >= 0 else {
            isOpen = false
            throw .input("cannot write \(path): \(unsafe String(cString: strerror(errno)))")
        }
        if let temporaryPath {
            cleanup = Interruption.onEnd { _ = unsafe unlink(temporaryPath) }
        }
    }

    deinit {
        guard isOpen else { return }
        close(descriptor)
        if let cleanup { Interruption.remove(cleanup) }
        if let temporaryPath { _ = unsafe unlink(temporaryPath) }
    }

    /// Writes bytes.
    func write(_ bytes: some Sequence<UInt8>) throws { try output.write(bytes) }

    /// Writes a line.
    func line(_ text: String) throws { try output.line(text) }

    /// Writes what is left and gives the file its name.
    func finish() throws {
        try output.flush()
        isOpen = false
        let isClosed = close(descriptor) == 0
        if let cleanup { Interruption.remove(cleanup) }
        guard let temporaryPath else { return }
        guard isClosed, unsafe rename(temporaryPath, path) == 0 else {
            let reason = unsafe String(cString: strerror(errno))
            _ = unsafe unlink(temporaryPath)
            throw CommandFailure.input("cannot write \(path): \(reason)")
        }
    }
}

/// Makes a folder and those above it where they are missing.
func makeFolder(_ path: String) throws(CommandFailure) {
    var made = path.hasPrefix("/") ? "/" : ""
    for part in path.split(separator: "/") {
        made += part + "/"
        guard unsafe mkdir(made, 0o755) != 0, errno != EEXIST else { continue }
        throw .input("cannot make the folder \(made): \(unsafe String(cString: strerror(errno)))")
    }
}

/// Whether two paths lead to one ordinary file, by whatever name.
func isSameFile(_ one: String, _ other: String) -> Bool {
    var first = stat()
    var second = stat()
    guard unsafe stat(one, &first) == 0, unsafe stat(other, &second) == 0 else { return false }
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino
        && first.st_mode & S_IFMT == S_IFREG
}
