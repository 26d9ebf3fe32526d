internal import Glibc

/// The few file operations that the private server needs.
///
/// Foundation would bring them too, at several megabytes for the linked program.
package enum FileSystem {
    /// What `stat` says of a path; nil when there is nothing or it cannot be looked at.
    static func status(_ path: String, followsLinks: Bool = true) -> stat? {
        var status = stat()
        let result =
            followsLinks ? unsafe stat(path, &status) : unsafe lstat(path, &status)
        return result == 0 ? status : nil
    }

    /// Whether something is at the path.
    package static func exists(_ path: String) -> Bool { status(path) != nil }

    /// Whether a folder is at the path, following links.
    static func isFolder(_ path: String) -> Bool {
        status(path).map { $0.st_mode & S_IFMT == S_IFDIR } ?? false
    }

    /// The path's permission bits, or nil where nothing is.
    package static func mode(of path: String) -> UInt32? {
        status(path).map { $0.st_mode & 0o7777 }
    }

    /// The number of the user whom the path belongs to, or nil where nothing is.
    package static func owner(of path: String) -> UInt32? { status(path)?.st_uid }

    /// Whether this process may run the file.
    static func isProgram(_ path: String) -> Bool {
        let isFile = status(path).map { $0.st_mode & S_IFMT == S_IFREG } ?? false
        let isAllowed = unsafe access(path, X_OK) == 0
        return isFile && isAllowed
    }

    /// The path without links and dots, or nil where it leads nowhere.
    package static func resolved(_ path: String) -> String? {
        guard let buffer = unsafe realpath(path, nil) else { return nil }
        defer { unsafe free(buffer) }
        return unsafe String(cString: buffer)
    }

    /// Makes a folder and those above it; one that is there already is left as it is.
    package static func makeFolder(
        _ path: String,
        mode: UInt32 = 0o755
    ) throws(EmbeddedServerError) {
        if isFolder(path) { return }
        let parent = self.parent(of: path)
        if parent != path { try makeFolder(parent) }
        guard unsafe mkdir(path, mode) == 0 || (errno == EEXIST && isFolder(path)) else {
            throw failure("cannot make the folder \(path)")
        }
        // The process's umask must not decide who can reach the server's files.
        if mode != 0o755 { _ = unsafe chmod(path, mode) }
    }

    /// The folder that holds the path.
    package static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// The last component of the path.
    static func name(of path: String) -> String {
        path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
    }

    /// The names in a folder, sorted; none when it cannot be read.
    package static func names(in path: String) -> [String] {
        guard let folder = unsafe opendir(path) else { return [] }
        defer { unsafe closedir(folder) }
        var names: [String] = []
        while let entry = unsafe readdir(folder) {
            // The entry may be shorter than its type says, so its name is read where it lies.
            let offset = MemoryLayout<dirent>.offset(of: \.d_name) ?? 0
            let start = unsafe UnsafeRawPointer(entry).advanced(by: offset)
            let name = unsafe String(cString: start.assumingMemoryBound(to: CChar.self))
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    /// The file's text from `offset` on, at most `limitBytes` of its end; nil when unreadable.
    package static func text(
        _ path: String,
        from offset: Int = 0,
        limitBytes: Int = 64 * 1024
    ) -> String? {
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        let end = Int(lseek(file, 0, SEEK_END))
        // Files under /proc have no length, so they are read from the start.
        if end > 0 { _ = lseek(file, off_t(max(offset, end - limitBytes)), SEEK_SET) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while bytes.count < limitBytes {
            let count = unsafe chunk.withUnsafeMutableBytes { buffer in
                unsafe read(file, buffer.baseAddress, buffer.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            bytes.append(contentsOf: chunk[..<count])
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// How long the file is; 0 when it is not there.
    static func length(_ path: String) -> Int {
        status(path).map { Int($0.st_size) } ?? 0
    }

    /// Writes a small file whole: beside its place first, then moved there.
    package static func write(_ text: String, to path: String) throws(EmbeddedServerError) {
        let draft = "\(path).new"
        let file = unsafe open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard file >= 0 else { throw failure("cannot write \(draft)") }
        let isWritten = append(text, to: file)
        let failure = self.failure("cannot write \(draft)")
        close(file)
        guard isWritten else { throw failure }
        guard unsafe rename(draft, path) == 0 else { throw self.failure("cannot write \(path)") }
    }

    /// Writes all of `text` to an open file.
    static func append(_ text: String, to file: Int32) -> Bool {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { buffer in
                unsafe Glibc.write(file, buffer.baseAddress, buffer.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Removes a file; one that is not there is no error.
    static func remove(_ path: String) { _ = unsafe unlink(path) }

    /// Removes a folder with all it holds, without following links.
    package static func removeTree(_ path: String) {
        guard let status = status(path, followsLinks: false) else { return }
        if status.st_mode & S_IFMT == S_IFDIR {
            for name in names(in: path) { removeTree("\(path)/\(name)") }
            _ = unsafe rmdir(path)
        } else {
            _ = unsafe unlink(path)
        }
    }

    /// An error with the system's reason for the call that just failed.
    static func failure(_ what: String) -> EmbeddedServerError {
        let number = errno
        let reason = unsafe String(cString: strerror(number))
        return EmbeddedServerError(
            code: number == ENOSPC || number == EDQUOT ? .diskFull : .directory,
            message: "\(what): \(reason)"
        )
    }

    /// FNV-1a over the text as 16 hexadecimal digits: a short name that stays the same.
    package static func shortName(of text: String) -> String {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        let digits = String(hash, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
