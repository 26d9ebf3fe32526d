internal import Glibc

/// A certificate with its chain, and its private key, both in PEM.
public struct TLSIdentity: Sendable {
    let certificatePEM: String
    let keyPEM: String

    /// Takes PEM text.
    public init(certificatePEM: String, keyPEM: String) {
        self.certificatePEM = certificatePEM
        self.keyPEM = keyPEM
    }

    /// Reads two files.
    ///
    /// - Throws: `HTTPError` with `certificate` where one cannot be read.
    public init(certificateFile: String, keyFile: String) throws(HTTPError) {
        certificatePEM = try Self.text(of: certificateFile)
        keyPEM = try Self.text(of: keyFile)
    }

    /// Sees whether a server can use both together, by starting one that nobody knows of.
    ///
    /// - Throws: `HTTPError` with `certificate` where it cannot.
    public func check() throws(HTTPError) {
        var configuration = HTTPServerConfiguration(address: .loopback, port: 0)
        configuration.tls = self
        _ = try HTTPServer(configuration: configuration, router: Router([])).stop(within: .zero)
    }

    /// TLS 1.2 and 1.3 alone.
    static let priorities = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

    private static func text(of path: String) throws(HTTPError) -> String {
        let limitBytes = 1 << 20
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            let reason = unsafe String(cString: strerror(errno))
            throw HTTPError(code: .certificate, message: "\(path) cannot be read: \(reason)")
        }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: limitBytes)
        var count = 0
        while count < limitBytes {
            let more = unsafe bytes.withUnsafeMutableBytes {
                unsafe read(file, $0.baseAddress?.advanced(by: count), limitBytes - count)
            }
            if more < 0, errno == EINTR { continue }
            guard more > 0 else { break }
            count += more
        }
        let text = String(decoding: bytes[..<count], as: UTF8.self)
        guard text.contains("-----BEGIN ") else {
            throw HTTPError(code: .certificate, message: "\(path) is not a PEM file")
        }
        return text
    }
}
