internal import Glibc

/// A file that only its owner may read.
enum SecretFile {
    /// The largest key file that is read; Apple's have 257 bytes.
    static let sizeMaxBytes = 64 << 10

    /// Reads it.
    ///
    /// Its group may read it too, since that is how containers are given secrets; nobody may write
    /// it but its owner, and others may do nothing.
    ///
    /// - Parameters:
    ///   - path: the file.
    ///   - harm: what whoever has its content can do.
    /// - Returns: its text.
    /// - Throws: `InputError` with the command that helps; nothing of the content is in it.
    static func text(
        path: String,
        harm: String = "has this key can extend and refund in your name"
    ) throws(InputError) -> String {
        var status = stat()
        let isThere = unsafe stat(path, &status) == 0
        if isThere {
            guard status.st_mode & S_IFMT == S_IFREG else {
                throw InputError(code: .unreadable, message: "\(path) is no file")
            }
            guard status.st_mode & 0o037 == 0 else {
                let mode = String(status.st_mode & 0o777, radix: 8)
                throw InputError(
                    code: .unreadable,
                    message: "\(path) can be read or changed by others (mode \(mode)), and whoever "
                        + "\(harm): chmod 600 \(path)"
                )
            }
        }
        let bytes = try fileBytes(path: path, sizeMaxBytes: sizeMaxBytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}
